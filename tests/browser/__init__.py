"""The pages that the product writes, in a real browser."""
