"""A table of figures, as the programs among the tests print it, and whether every figure is the one promised."""

from __future__ import annotations

from typing import NamedTuple

WIDTH = 62


class _Row(NamedTuple):
    name: str
    value: object
    promised: str | None
    right: bool


class Table:
    """Rows of a name and a figure. A figure with a promise is held to it; the others are for information."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._rows: list[_Row] = []

    def tell(self, name: str, value: object) -> None:
        """A figure for information."""
        self._rows.append(_Row(name, value, None, right=True))

    def hold(self, name: str, value: object, promised: object, *, right: bool | None = None) -> None:
        """A figure with its promise. `right` tells whether it is kept; left out, the two have to be equal."""
        kept = value == promised if right is None else right
        self._rows.append(_Row(name, value, str(promised), kept))

    @property
    def right(self) -> bool:
        """Whether every promise is kept."""
        return all(row.right for row in self._rows)

    def __str__(self) -> str:
        lines = [self._title]
        for name, value, promised, right in self._rows:
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            line = f"  {name:<{WIDTH}} {shown:>14}"
            if promised is not None:
                line += f"   promised: {promised}{'' if right else '   << BROKEN'}"
            lines.append(line)
        return "\n".join([*lines, ""])
