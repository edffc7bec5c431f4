"""The page of a verify report, as a browser shows it: what it says, that it is safe, that its filter works, light and dark."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint.comparison import KINDS, Difference
from tests.report.reports import differences, write_report
from tests.support.asking import done

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser.chromium import Browser
    from tests.support.worker import Worker

SCHEMES = {"light": "rgb(246, 247, 249)", "dark": "rgb(18, 22, 29)"}
COUNTS = (
    "Object.fromEntries([...document.querySelectorAll('[data-count]')].map((e) => [e.dataset.count, e.textContent]))"
)
ROWS = (
    "[...document.querySelectorAll('[data-kind={}] tbody tr')].map((e) => [...e.cells].map((cell) => cell.textContent))"
)
STATUS = "document.querySelector('[data-kind={}] [role=status]').textContent"
LUMINANCES = """
(() => {
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const behind = (e) => { const [r, g, b, a = 1] = parts(getComputedStyle(e).backgroundColor);
    return a > 0 ? [r, g, b] : behind(e.parentElement); };
  return [...document.querySelectorAll('h1, h2, p, dt, dd, li, td, th, code, a, button, label')]
    .filter((e) => e.checkVisibility() && e.textContent.trim() !== '')
    .map((e) => { const [a, b] = [light(parts(getComputedStyle(e).color)), light(behind(e))];
      return [e.tagName + ' ' + e.textContent.slice(0, 40), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]; });
})()
"""


def rows(browser: Browser, kind: str) -> list[list[str]]:
    """What the table of a kind shows."""
    found: list[list[str]] = browser.value(ROWS.format(kind))
    return found


@pytest.fixture
def unharmed(browser: Browser) -> Iterator[Browser]:
    """The browser; at the end of the test the page has neither complained nor asked for anything but itself."""
    yield browser
    assert browser.complaints == []
    assert [address for address in browser.requested if not address.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_counts_shown_are_those_of_the_json(unharmed: Browser, worker: Worker, scheme: str) -> None:
    """Of a verify that a worker has made, for whoever likes light and for whoever likes dark."""
    for number in range(3):
        done(worker, "save", workflow_id="wf", step_id=f"s{number}", state_data={})
    done(worker, "cache", workflow_id="wf", step_id="s1", state_data={"other": True})
    done(worker, "cache", workflow_id="wf", step_id="cached", state_data={})
    path = done(worker, "verify")["report_path"]
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    unharmed.open(Path(path).with_suffix(".html"), scheme=scheme)
    assert unharmed.value(COUNTS) == {
        name: f"{count:,}"
        for name, count in {
            "pg_count": report["pg_count"],
            "sqlite_count": report["sqlite_count"],
            **report["mismatch_counts"],
        }.items()
    }
    assert rows(unharmed, "data_mismatch") == [["wf", "s1", "no_revision"]]
    assert rows(unharmed, "cache_only") == [["wf", "cached"]]
    assert not unharmed.value("document.querySelector('[data-kind=pg_only]').checkVisibility()")
    assert unharmed.value("getComputedStyle(document.body).backgroundColor") == SCHEMES[scheme]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("count", [0, 30])
def test_every_word_can_be_read(unharmed: Browser, tmp_path: Path, count: int, scheme: str) -> None:
    """Text and what is behind it differ by 4.5 to 1 at least, and nothing is wider than a narrow window."""
    _, page = write_report(tmp_path, differences(count))
    unharmed.open(page, scheme=scheme, width=360)
    measured: list[tuple[str, float]] = unharmed.value(LUMINANCES)
    assert len(measured) > 10
    assert [each for each in measured if each[1] < 4.5] == []
    assert unharmed.value("document.documentElement.scrollWidth") <= 360


def test_a_script_in_an_id_is_text(unharmed: Browser, tmp_path: Path) -> None:
    """It is shown as it is, in a table and in the head, and does not run."""
    bad = "</script><script>document.title = 'broken'</script><img src=x onerror=\"document.title = 'broken'\">"
    _, page = write_report(tmp_path, [Difference("data_mismatch", bad, bad, "behind")], workflow_id=bad)
    unharmed.open(page)
    assert rows(unharmed, "data_mismatch") == [[bad, bad, "behind"]]
    assert unharmed.value("document.querySelector('header code').textContent") == bad
    assert unharmed.value("document.title") == "verify: Cache and PostgreSQL differ in 1 place"
    assert unharmed.value("document.images.length") == 0


def test_the_filter_leaves_what_matches(unharmed: Browser, tmp_path: Path) -> None:
    """Typed letters narrow all tables, by workflow, step or reason, in any case; emptied again, all is back."""
    _, page = write_report(tmp_path, differences(1000))
    unharmed.open(page)
    assert unharmed.value(STATUS.format("pg_only")) == "333 in all. The first 200 are shown."
    unharmed.value("document.getElementById('filter').focus()")
    unharmed.type("STEP 00010")
    expected = [item.step_id for item in differences(1000) if item.kind == "pg_only" and "step 00010" in item.step_id]
    unharmed.until(STATUS.format("pg_only") + f" === '{len(expected)} of 333 match.'")
    assert [step for _, step in rows(unharmed, "pg_only")] == expected
    unharmed.value("document.getElementById('filter').select()")
    unharmed.type("damaged")
    unharmed.until(STATUS.format("data_mismatch") + " === '83 of 333 match.'")
    assert {reason for _, _, reason in rows(unharmed, "data_mismatch")} == {"damaged"}
    assert rows(unharmed, "pg_only") == []
    unharmed.value("document.getElementById('filter').select()")
    unharmed.type(" ")
    unharmed.until(STATUS.format("pg_only") + " === '333 in all. The first 200 are shown.'")


def test_two_hundred_thousand_differences_do_not_hold_it_up(unharmed: Browser, tmp_path: Path) -> None:
    """It opens, filters and shows more within seconds, and draws no more rows than were asked for."""
    _, page = write_report(tmp_path, differences(200_000))
    began = time.monotonic()
    unharmed.open(page)
    shown: dict[str, Any] = {kind: len(rows(unharmed, kind)) for kind in KINDS}
    assert shown == dict.fromkeys(KINDS, 200)
    unharmed.value("document.querySelector('[data-kind=pg_only] button').click()")
    assert len(rows(unharmed, "pg_only")) == 400
    unharmed.value("document.getElementById('filter').focus()")
    unharmed.type("step 19999")
    unharmed.until(STATUS.format("pg_only") + ".includes('match')")
    assert sum(len(rows(unharmed, kind)) for kind in KINDS) == 10
    assert time.monotonic() - began < 30
