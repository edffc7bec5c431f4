"""What a run found: as JSON for programs, as Markdown for people."""

from __future__ import annotations

import datetime as dt
import os
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from benchmarks import langgraph_savers, machine
from checkpoint import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.anatomy import Part
    from benchmarks.figure import Row
    from benchmarks.run import Run
    from benchmarks.servers import Server
    from benchmarks.start_up import Import

WITHOUT_LZ4 = (
    "No PostgreSQL with lz4 was found (the product's own has none, and of the system's there is none in "
    "/usr/lib/postgresql), so the aims at 100 KB, which are about lz4, are not judged."
)
VERDICTS = {True: "yes", False: "**no**", None: ""}
HEAD = "| figure | ours | yardstick | its | ratio | aim | reached |\n| --- | ---: | --- | ---: | ---: | --- | --- |"


class Result(msgspec.Struct, frozen=True):
    """Everything that a run found."""

    run: Run
    servers: list[Server]
    rows: list[Row]
    parts: list[Part]
    imports: dict[str, list[Import]]

    def notes(self) -> list[str]:
        """What is missing from this run, and why."""
        notes = [] if langgraph_savers.installed() else [langgraph_savers.NOT_INSTALLED]
        notes += [] if any(server.lz4 for server in self.servers) else [WITHOUT_LZ4]
        slack = [server.about for server in self.servers if not server.fsync or server.synchronous_commit == "off"]
        return notes + [f"Commits of {name} were not durable: its figures are not to be compared." for name in slack]

    def json(self) -> bytes:
        """The whole, with the median of every round."""
        return orjson.dumps(self._plain(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def markdown(self) -> str:
        """The table, and under what conditions it was made."""
        blocks = ["\n".join(f"- {each}" for each in self._conditions())]
        for group, rows in groupby(self.rows, key=lambda row: row.group):
            blocks += [f"### {group[0].upper()}{group[1:]}", "\n".join([HEAD, *map(_line, rows)])]
        blocks += self._where_time_goes()
        blocks += self._imports()
        return "\n\n".join(blocks) + "\n"

    def write(self, folder: str) -> None:
        """`results.json` and `results.md` in the folder, which is made if need be."""
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "results.json"), "wb") as file:
            file.write(self.json())
        with open(os.path.join(folder, "results.md"), "w", encoding="utf-8") as text:
            text.write(self.markdown())

    def _plain(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "made": dt.datetime.now(dt.UTC).date().isoformat(),
            "rounds": self.run.rounds,
            "seed": self.run.seed,
            "scale": self.run.scale,
            "machine": machine.machine(),
            "versions": machine.versions(),
            "servers": [_without_url(server) for server in self.servers],
            "notes": self.notes(),
            "rows": [row.plain() for row in self.rows],
            "where_the_time_goes": [msgspec.structs.asdict(part) for part in self.parts],
            "imports": {name: [msgspec.structs.asdict(each) for each in found] for name, found in self.imports.items()},
        }

    def _conditions(self) -> Iterator[str]:
        host = machine.machine()
        trial = "" if self.run.scale == 1 else f", a trial at scale {self.run.scale:g}: no figures to go by"
        rounds = "one round" if self.run.rounds == 1 else f"{self.run.rounds} rounds"
        yield (
            f"Medians of {rounds}, seed {self.run.seed}{trial}. "
            f"{host['processor']}, {host['cores']} cores, {host['memory_gib']} GiB, {host['system']}; "
            "client and servers on this machine."
        )
        yield ", ".join(f"{name} {version}" for name, version in machine.versions().items()) + "."
        for server in self.servers:
            fsync = "on" if server.fsync else "OFF"
            yield f"{server.about}, {server.name}: fsync {fsync}, synchronous_commit {server.synchronous_commit}."
        yield from self.notes()

    def _where_time_goes(self) -> Iterator[str]:
        for size, parts in groupby(self.parts, key=lambda part: part.kilobytes):
            by_step: dict[str, dict[str, float]] = {}
            for part in parts:
                by_step.setdefault(part.step, {})[part.action] = part.us
            actions = list(next(iter(by_step.values())))
            lines = [f"| step | {' | '.join(actions)} |", f"| --- |{' ---: |' * len(actions)}"]
            lines += [
                f"| {step} | {' | '.join(_number(taken[action]) for action in actions)} |"
                for step, taken in by_step.items()
            ]
            yield f"### Where the time goes, {size} KB, in process, us"
            yield "\n".join(lines)

    def _imports(self) -> Iterator[str]:
        for name, found in self.imports.items():
            yield f"### Imports of a process for one {name}, the heaviest first"
            yield ", ".join(f"{each.module} {each.own_us / 1000:.1f} ms" for each in found)


def _line(row: Row) -> str:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} {row.means}"
    aim = "" if row.aim is None else row.aim.text(row.unit)
    theirs = "" if row.theirs is None else f"{_number(row.theirs)} {row.unit}"
    figure = f"{row.figure} ({row.note})" if row.note else row.figure
    cells = (figure, f"{_number(row.ours)} {row.unit}", row.yardstick, theirs, ratio, aim, VERDICTS[row.reached])
    return f"| {' | '.join(cells)} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _without_url(server: Server) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(server).items() if name != "url"}
