"""How the project is set up and started."""
