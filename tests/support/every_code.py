"""The last word of a whole run: every code was answered to some test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint.errors import CODES

if TYPE_CHECKING:
    from tests.support.reached import Reached

TESTS = Path(__file__).resolve().parents[1]
LEAVES_SOME_OUT = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "stepwise", "collectonly")


class Judge:
    """Fails a run of all tests in which a code of the wire was never reached; a run of some tests it leaves alone."""

    def __init__(self, config: pytest.Config, reached: Reached) -> None:
        self._config = config
        self._reached = reached
        self._missing: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Judges, and turns a green run red."""
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and self._all_ran(session):
            reached = self._reached.codes()
            self._missing = [code for code in CODES if code not in reached]
            if self._missing:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Names the codes."""
        if self._missing:
            terminalreporter.section("codes that no test reached", red=True)
            terminalreporter.line(", ".join(self._missing), red=True)

    def _all_ran(self, session: pytest.Session) -> bool:
        asked = {(self._config.invocation_params.dir / argument).resolve() for argument in self._config.args}
        some_left_out = any(self._config.getoption(option, None) for option in LEAVES_SOME_OUT)
        return bool(asked & {TESTS, TESTS.parent}) and not (some_left_out or session.shouldstop or session.shouldfail)
