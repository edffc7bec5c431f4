"""Each kind of result as what is shown of it."""
