"""SQL kept in `.sql` files: blocks that start with `-- name:` and a comment that states their promise."""

from __future__ import annotations


def load(path: str) -> dict[str, str]:
    """The statements of the file by name, without comments and without the closing semicolon."""
    with open(path, encoding="utf-8") as file:
        _, *blocks = file.read().split("\n-- name: ")
    statements = {}
    for block in blocks:
        name, *lines = block.splitlines()
        body = "\n".join(line for line in lines if not line.startswith("--"))
        statements[name.strip()] = body.strip().removesuffix(";")
    return statements
