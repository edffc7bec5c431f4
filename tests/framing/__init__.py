"""How lines travel, held through a real process (contract, section 1)."""
