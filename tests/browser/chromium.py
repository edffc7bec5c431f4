"""A headless Chromium, spoken to over a pair of pipes in its DevTools protocol: JSON messages that end in a zero byte."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # it opens what the tests have written, and root cannot have the sandbox
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
)
READS, WRITES = 3, 4  # the descriptors on which it listens and answers
ABOVE = 10
CHUNK = 1 << 20
PATIENCE = 60.0


class NoBrowser(Exception):
    """There is none to be had; the message says what to install."""


def find() -> str:
    """The browser that the variable CHROMIUM names, else one of the usual names. Raises NoBrowser."""
    wanted = os.environ.get("CHROMIUM")
    for name in (wanted,) if wanted else NAMES:
        if path := shutil.which(name):
            return path
    raise NoBrowser(
        f"no browser is named {wanted or ' or '.join(NAMES)}; on Debian or Ubuntu: apt-get install chromium, "
        "or name one: CHROMIUM=/path/to/chromium"
    )


class Browser:
    """One process with one page."""

    def __init__(self, process: int, to: int, of: int) -> None:
        self._process, self._to, self._of = process, to, of
        self._received = bytearray()
        self._numbers = itertools.count(1)
        self._session: dict[str, str] = {}
        self.requested: list[str] = []
        """The address of everything that the page asked for."""
        self.complaints: list[str] = []
        """What the page wrote to the console as a warning or an error, and every exception."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, page: Path, *, scheme: str = "light", width: int = 1000, height: int = 800) -> None:
        """Shows a file to somebody who likes light or dark; returns when it has loaded."""
        self.requested.clear()
        self.complaints.clear()
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=page.as_uri())
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is, as JSON would have it."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits for a JavaScript expression to become true."""
        deadline = time.monotonic() + PATIENCE
        while self.value(expression) is not True:
            assert time.monotonic() < deadline, f"waited in vain for {expression}"
            time.sleep(0.02)

    def type(self, text: str) -> None:
        """Keys into what has the focus."""
        self.call("Input.insertText", text=text)

    def screenshot(self, to: Path, *, whole: bool = False) -> None:
        """What is to be seen, as PNG; with `whole` the page to its end."""
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        to.write_bytes(base64.b64decode(image["data"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of one command. Raises AssertionError where the browser refuses it."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **self._session}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer.get("method", ""), answer.get("params", {}))

    def _note(self, method: str, event: dict[str, Any]) -> None:
        match method:
            case "Network.requestWillBeSent":
                self.requested.append(event["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(event["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if event["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(event["args"]))
            case "Log.entryAdded" if event["entry"]["level"] in ("error", "warning"):
                self.complaints.append(event["entry"]["text"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._of], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            data = os.read(self._of, CHUNK)
            assert data, "the browser has ended"
            self._received += data
        text, _, rest = bytes(self._received).partition(b"\0")
        self._received = bytearray(rest)
        message: dict[str, Any] = json.loads(text)
        return message


@contextmanager
def started(program: str, folder: Path) -> Iterator[Browser]:
    """A browser that keeps its profile in `folder` and ends with the context."""
    commands, to = _pipe()
    of, answers = _pipe()
    log = os.open(folder / "chromium.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    process = os.posix_spawn(
        program,
        [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
        {**os.environ, "HOME": str(folder)},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, commands, READS),
            (os.POSIX_SPAWN_DUP2, answers, WRITES),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
        ],
        setpgroup=0,
    )
    for descriptor in (commands, answers, log):
        os.close(descriptor)
    try:
        yield Browser(process, to, of)
    finally:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(to)
        os.close(of)


def _pipe() -> tuple[int, int]:
    """Both ends of a pipe, out of the way of the descriptors that the browser gets."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, ABOVE) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
