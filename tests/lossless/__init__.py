"""The state of a checkpoint is kept as the text that was sent."""
