"""The command line for people: every command is a request like any other. It adds no rule of its own."""
