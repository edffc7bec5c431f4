"""A verification's report as a page for people: one HTML file that needs no network and no other file.

It is made of the JSON report's own parts: `report_page.html`, with `{{names}}` for what differs from report to report.
Whatever is put in cannot become markup, and the page lets no script run but its own.
"""

from __future__ import annotations

import os
import re
import shlex
from base64 import b64encode
from hashlib import sha256
from html import escape
from itertools import starmap
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

HELD_BYTES = 8 * 1024 * 1024  # of each kind, some 100,000 differences: what a browser filters without a pause
REASONS = {
    "behind": "the cache has an older revision",
    "ahead": "the cache has a newer revision",
    "no_revision": "the entry was put there by cache, and PostgreSQL never confirmed it",
    "damaged": "the same revision, with other content or another tenant",
}
_TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report_page.html")
_PLACES = re.compile(r"\{\{(\w+)\}\}")
_SCRIPT = re.compile(r"<script>(.*)</script>", re.DOTALL)


def pieces(
    summary: Mapping[str, Any], reasons: Mapping[str, int], differences: Mapping[str, Iterable[bytes]], json_path: str
) -> Iterator[bytes]:
    """The bytes of the page, in order.

    `summary` is that of the JSON report, `reasons` says how often each one occurs, and `differences` has the items of
    each kind as JSON texts, of which the page takes `HELD_BYTES` and no more. Raises OSError.
    """
    with open(_TEMPLATE, encoding="utf-8") as file:
        template = file.read()
    values = _values(summary, reasons, json_path) | {"script_hash": _hash_of_script(template)}
    for number, part in enumerate(_PLACES.split(template)):
        if number % 2 == 0:
            yield part.encode()
        elif part == "report":
            yield from _embedded(summary, differences)
        else:
            yield values[part].encode("utf-8", "replace")  # a path may hold bytes that are no text


def _embedded(summary: Mapping[str, Any], differences: Mapping[str, Iterable[bytes]]) -> Iterator[bytes]:
    """JSON that cannot end the element it stands in: `<` is written as an escape, which only strings hold."""
    yield b'{"counts":' + msgspec.json.encode(summary["mismatch_counts"]) + b',"differences":{'
    for number, (kind, items) in enumerate(differences.items()):
        yield (b"],\n" if number else b"\n") + msgspec.json.encode(kind) + b":[\n"
        held = 0
        for item in items:
            line = item.replace(b"<", b"\\u003c")
            if held + len(line) > HELD_BYTES:
                break
            yield (b",\n" if held else b"") + line
            held += len(line)
    yield b"]}}"


def _values(summary: Mapping[str, Any], reasons: Mapping[str, int], json_path: str) -> dict[str, str]:
    counts: dict[str, int] = summary["mismatch_counts"]
    checked_at: str = summary["checked_at"]
    numbers = counts | {name: summary[name] for name in ("pg_count", "sqlite_count")}
    return {name: f"{count:,}" for name, count in numbers.items()} | {
        "verdict": _verdict(sum(counts.values())),
        "verdict_class": "consistent" if summary["consistent"] else "",
        "scope": f"{_scope('workflow', summary['workflow_id'])}, {_scope('tenant', summary['tenant_id'])}",
        "checked_at": escape(checked_at),
        "checked_at_short": escape(checked_at[:19].replace("T", " ")) + " UTC",
        "steps": "".join(f"\n    <li>{step}</li>" for step in _steps(summary, reasons)),
        "reasons": "".join(starmap(_reason, reasons.items())),
        "json_name": escape(os.path.basename(json_path)),
        "json_path": escape(json_path),
    }


def _verdict(differences: int) -> str:
    if differences == 0:
        return "Cache and PostgreSQL agree"
    return f"Cache and PostgreSQL differ in {differences:,} place{'' if differences == 1 else 's'}"


def _scope(what: str, which: str | None) -> str:
    return f"all {what}s" if which is None else f"{what} <code><bdi>{escape(which)}</bdi></code>"


def _reason(reason: str, count: int) -> str:
    return f'\n    <dt>{reason}</dt><dd class="count">{count:,}</dd><dd class="quiet">{REASONS[reason]}</dd>'


def _steps(summary: Mapping[str, Any], reasons: Mapping[str, int]) -> Iterator[str]:
    """What a person does about it, as HTML, the most urgent first."""
    counts = summary["mismatch_counts"]
    if summary["consistent"]:
        yield "Nothing: every checkpoint is in the cache, with the content that PostgreSQL has."
        return
    if "damaged" in reasons:
        yield (
            "Find out who has written into the cache file or the table: the same revision has two contents. "
            "This program never does that; a damaged disk may."
        )
    if "ahead" in reasons:
        yield (
            "See whether PostgreSQL was put back to an earlier state, by a backup or a standby that lagged. "
            "The cache then holds newer states than PostgreSQL: keep a copy of <code>cache.db</code> before you go on."
        )
    if counts["cache_only"] or "no_revision" in reasons:
        yield (
            "See whether entries that PostgreSQL does not know are still needed: <code>cache</code> put them there, or "
            "somebody else has deleted the checkpoints. <code>save</code> what must stay; a rebuild drops them."
        )
    if "behind" in reasons:
        yield (
            "Where the cache is behind, <code>cached_get</code> may answer with an older state until the entry "
            "expires; <code>get</code> never does."
        )
    if counts["pg_only"]:
        yield "What only PostgreSQL has is safe; to read it takes a little longer until the cache has it too."
    rebuild, verify = (f"<code>{escape(_command(action, summary))}</code>" for action in ("rebuild", "verify"))
    each = "" if summary["tenant_id"] is not None else ", once for each tenant, with <code>--tenant</code>"
    yield f"Fill the cache from PostgreSQL: {rebuild}{each}. Then look again: {verify}."


def _command(action: str, summary: Mapping[str, Any]) -> str:
    words = ["checkpoint", action]
    for option in ("tenant", "workflow"):
        value = summary[f"{option}_id"]
        if value is not None:
            words.append(f"--{option}={value}")
    return shlex.join(words)


def _hash_of_script(template: str) -> str:
    found = _SCRIPT.search(template)
    script = found[1] if found else ""
    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"
