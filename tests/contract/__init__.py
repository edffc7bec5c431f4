"""What a caller sees, as golden conversations (contract, sections 1 to 4)."""
