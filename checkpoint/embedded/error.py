"""What is raised when the embedded server cannot serve."""

from __future__ import annotations


class EmbeddedError(Exception):
    """One sentence for the user: what is wrong with the embedded server, and what to do. It holds no secret."""
