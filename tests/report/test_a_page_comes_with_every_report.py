"""Beside the JSON of a verify lies the same as one HTML page: private, whole or absent, and gone with its JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint import report_page
from checkpoint.comparison import KINDS, Difference
from tests.report.reports import REASONS, differences, write_report
from tests.support.asking import done
from tests.support.command_line import REPOSITORY

if TYPE_CHECKING:
    from tests.support.worker import Worker

MEMORY = """
import resource
from pathlib import Path
import sys
from tests.report.reports import differences, write_report
write_report(Path(sys.argv[1]), differences(2000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
write_report(Path(sys.argv[1]), differences(300_000))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def held(page: Path) -> dict[str, Any]:
    """What the page's script reads."""
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def shown(page: Path) -> str:
    """The text outside of scripts and styles, as one line."""
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_a_verify_leaves_a_page_beside_its_report(worker: Worker) -> None:
    """The same name with .html, for the owner alone; report_path stays that of the JSON."""
    done(worker, "save", workflow_id="wf", step_id="s", state_data={})
    done(worker, "cache", workflow_id="wf", step_id="cached", state_data={})
    answer = done(worker, "verify", tenant_id="default")
    path = Path(answer["report_path"])
    page = path.with_suffix(".html")
    assert sorted(path.parent.iterdir()) == [page, path]
    assert page.stat().st_mode & 0o777 == 0o600
    assert held(page)["differences"] == answer["mismatches"]
    assert held(page)["counts"] == answer["mismatch_counts"]
    for told in ("differ in 1 place", "all workflows, tenant default", path.name, str(path)):
        assert told in shown(page)


def test_the_page_says_what_the_json_says(tmp_path: Path) -> None:
    """Each count and every difference, with its reason."""
    path, page = write_report(tmp_path, differences(1000))
    report = json.loads(path.read_text(encoding="utf-8"))
    assert held(page)["differences"] == report["mismatches"]
    counts = dict(re.findall(r'data-count="(\w+)">([\d,]+)<', page.read_text(encoding="utf-8")))
    assert {name: int(count.replace(",", "")) for name, count in counts.items()} == {
        **report["mismatch_counts"],
        "pg_count": report["pg_count"],
        "sqlite_count": report["sqlite_count"],
    }


def test_nothing_in_it_is_taken_for_markup(tmp_path: Path) -> None:
    """Ids with tags, quotes, placeholders and the end of a script stand as text, in the page's tables as in its head."""
    bad = "</script><script>alert(1)</script><!-- ' \" & {{verdict}} \u2028 -->"
    _, page = write_report(
        tmp_path,
        [Difference("cache_only", bad, bad), Difference("data_mismatch", bad, bad, "behind")],
        workflow_id=bad,
        tenant_id=bad,
    )
    assert held(page)["differences"]["cache_only"] == [{"workflow_id": bad, "step_id": bad}]
    text = page.read_text(encoding="utf-8")
    assert text.count("<script") == text.count("</script>") == 2
    assert "alert(1)</script>" not in text
    assert " ".join(f"workflow {bad} , tenant {bad}".split()) in shown(page)


def test_it_asks_for_nothing(tmp_path: Path) -> None:
    """No address of anything but the JSON beside it, and a policy that lets nothing be loaded and no other script run."""
    path, page = write_report(tmp_path, differences(30))
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r'(?:src|href)="([^"]*)"', text)) == {"data:,", path.name}
    assert "://" not in re.sub(r"/\*.*?\*/", "", text)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; ")
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", policy)


@pytest.mark.parametrize("reason", [*REASONS, "cache_only", "pg_only"])
def test_what_to_do_next_fits_what_was_found(tmp_path: Path, reason: str) -> None:
    """Each reason has its advice, and the way to mend it comes last, with the scope that was verified."""
    kind = reason if reason in KINDS else "data_mismatch"
    found = [Difference(kind, "wf", "s", None if kind == reason else reason)]
    _, page = write_report(tmp_path, found, workflow_id="wf", tenant_id="it's mine")
    steps = re.findall(r"<li>(.*?)</li>", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(steps) == 2
    assert """checkpoint rebuild '--tenant=it'"'"'s mine' --workflow=wf""" in unescape(steps[1])
    others = write_report(tmp_path, [Difference("pg_only", "wf", "s")])[1].read_text(encoding="utf-8")
    assert reason == "pg_only" or steps[0] not in others


def test_a_page_about_no_difference_says_so(tmp_path: Path) -> None:
    """Nothing is to be done."""
    _, page = write_report(tmp_path, [])
    assert "Cache and PostgreSQL agree" in shown(page)
    assert "Nothing: every checkpoint is in the cache" in shown(page)


def test_a_page_takes_so_many_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past its limit it holds the first of a kind, whole ones, and still tells how many there are."""
    monkeypatch.setattr(report_page, "HELD_BYTES", 10_000)
    path, page = write_report(tmp_path, differences(3000))
    report = json.loads(path.read_text(encoding="utf-8"))
    for kind in KINDS:
        kept = held(page)["differences"][kind]
        assert 50 < len(kept) < 1000
        assert kept == report["mismatches"][kind][: len(kept)]
        assert held(page)["counts"][kind] == 1000
    assert page.stat().st_size < 50_000


def test_its_writer_needs_no_more_memory_for_more_differences(tmp_path: Path) -> None:
    """Three hundred thousand take hardly more than two thousand."""
    grown = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path)], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert int(grown.stdout) * 1024 < 10_000_000


def test_a_page_without_room_costs_nobody_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the page cannot be written, the JSON is there, and nothing half made."""

    def no_room(*_: object) -> Any:
        yield b"<!doctype html>"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report_page, "pieces", no_room)
    path, _ = write_report(tmp_path, differences(3))
    assert json.loads(path.read_text(encoding="utf-8"))["mismatch_counts"] == dict.fromkeys(KINDS, 1)
    assert list(tmp_path.iterdir()) == [path]


def test_the_newest_50_stay_in_pairs(tmp_path: Path) -> None:
    """Sixty reports leave fifty, each with its page."""
    made = [write_report(tmp_path, []) for _ in range(60)]
    assert sorted(tmp_path.iterdir()) == sorted(path for pair in made[-50:] for path in pair)
