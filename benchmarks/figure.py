"""A line of the table: a figure of ours beside one of its yardsticks, and the aim it is held to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from benchmarks.interleaved import Taken

OURS = "checkpoint-manager"
MICROSECONDS, PER_SECOND, MILLISECONDS, SECONDS, MEGABYTES = "us", "/s", "ms", "s", "MB"
OF_SECONDS = {MICROSECONDS: 1e6, MILLISECONDS: 1e3, SECONDS: 1.0}


class Aim(msgspec.Struct, frozen=True):
    """A bound on the ratio, or where `of_value` on our own figure in its unit."""

    bound: float
    at_least: bool
    of_value: bool = False

    def is_reached(self, value: float) -> bool:
        """Whether the value keeps the bound."""
        return value >= self.bound if self.at_least else value <= self.bound

    def text(self, unit: str) -> str:
        """The aim in words."""
        return f"at {'least' if self.at_least else 'most'} {self.bound:g}{' ' + unit if self.of_value else ''}"


def at_most(bound: float) -> Aim:
    """The ratio may not exceed it."""
    return Aim(bound, at_least=False)


def at_least(bound: float) -> Aim:
    """The ratio may not fall below it."""
    return Aim(bound, at_least=True)


class Row(msgspec.Struct, kw_only=True):
    """One line. `ours` and `theirs` in `unit`; `ratio` in the sense of `means`; the rest is for a closer look."""

    group: str
    figure: str
    unit: str
    ours: float
    yardstick: str = ""
    theirs: float | None = None
    ratio: float | None = None
    means: str = ""
    aim: Aim | None = None
    note: str = ""
    rounds: dict[str, list[float]] = {}
    cpu_us: dict[str, float] = {}

    @property
    def reached(self) -> bool | None:
        """Whether the aim is reached; None without one."""
        held = None if self.aim is None else self.ours if self.aim.of_value else self.ratio
        return None if self.aim is None or held is None else self.aim.is_reached(held)

    def plain(self) -> dict[str, Any]:
        """For the JSON file."""
        aim = None if self.aim is None else self.aim.text(self.unit)
        return msgspec.structs.asdict(self) | {"aim": aim, "reached": self.reached}


def cost(
    taken: Taken, group: str, figure: str, yardstick: str, aim: Aim | None = None, *, ours: str = OURS, **more: Any
) -> Row:
    """What an operation costs us in terms of what it costs the yardstick: less is better."""
    return _row(taken, ours, yardstick, group, figure, aim, more.pop("unit", MICROSECONDS), faster=False, **more)


def speed(
    taken: Taken, group: str, figure: str, yardstick: str, aim: Aim | None = None, *, ours: str = OURS, **more: Any
) -> Row:
    """How many times as fast as the yardstick we are: more is better."""
    return _row(taken, ours, yardstick, group, figure, aim, more.pop("unit", MICROSECONDS), faster=True, **more)


def _row(
    taken: Taken,
    ours: str,
    yardstick: str,
    group: str,
    figure: str,
    aim: Aim | None,
    unit: str,
    *,
    faster: bool,
    **more: Any,
) -> Row:
    mine, theirs = taken.median(ours), taken.median(yardstick)
    return Row(
        group=group,
        figure=figure,
        unit=unit,
        ours=in_unit(mine, unit),
        yardstick=yardstick,
        theirs=in_unit(theirs, unit),
        ratio=theirs / mine if faster else mine / theirs,
        means="times as fast" if faster else "times its time",
        aim=aim,
        rounds={name: [in_unit(value, unit) for value in taken.seconds[name]] for name in (ours, yardstick)},
        cpu_us={name: taken.used(name) * 1e6 for name in (ours, yardstick)},
        **more,
    )


def in_unit(seconds: float, unit: str) -> float:
    """Seconds an operation in a unit of the table."""
    return 1 / seconds if unit == PER_SECOND else seconds * OF_SECONDS[unit]
