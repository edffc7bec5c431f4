"""A report about a file that is written only after a person has agreed, in another process than the one that asked.

    python examples/approve_report.py FILE start             prepare the report, show it, and the token to decide with
    python examples/approve_report.py FILE approve TOKEN     write the report
    python examples/approve_report.py FILE reject TOKEN      never write it

Every call is a process of its own, with a `runner.py` of its own, and keeps nothing in memory for the next one. The
exit status is 0 when what was asked for is so. With EXAMPLE_CRASH_AFTER_WRITE=1 in the environment the runner of an
`approve` is killed at the worst moment: the file has its name, and the record does not know of it yet. Needs nothing
but the standard library here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

RUNNER = Path(__file__).resolve().parents[1] / "runner.py"
WORKFLOW = "approve_report"

# Runs the runner with one change of ours: where it has given the output file its name, it is killed.
CRASHING_RUNNER = """
import os, runpy, signal, sys
link = os.link
def link_and_die(*arguments, **options):
    link(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
os.link = link_and_die
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """The answer of a runner that is started for this one request."""
    command = [sys.executable, str(RUNNER)]
    if os.environ.get("EXAMPLE_CRASH_AFTER_WRITE") == "1" and request["action"] == "approve":
        command = [sys.executable, "-c", CRASHING_RUNNER, str(RUNNER)]
    database = os.environ.get("DATABASE_URL") or "embedded:"
    ended = subprocess.run(
        command,
        input=json.dumps(request) + "\n",
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "DATABASE_URL": database},
        check=False,
    )
    if not ended.stdout:
        raise SystemExit(f"the runner ended without an answer (exit status {ended.returncode})")
    answer: dict[str, Any] = json.loads(ended.stdout)
    if not answer["success"]:
        raise SystemExit(f"{answer['code']}: {answer['error']}")
    data: dict[str, Any] = answer["data"]
    return data


def prepare(path: Path, content: bytes) -> str:
    """The report: what costs time and money in earnest, and is therefore done once for one content of the file."""
    print(f"preparing a report about {path.name} ...")
    text = content.decode("utf-8", "replace")
    words = re.findall(r"\w+", text.lower())
    often = ", ".join(f"{word} ({count})" for word, count in Counter(words).most_common(3))
    return f"# {path.name}\n\n{len(text.splitlines())} lines, {len(words)} words. Most often: {often}.\n"


def start(path: Path) -> None:
    """Asks what stands; only where nothing does, the report is prepared and the question stored."""
    content = path.read_bytes()
    question = {
        "action": "request_approval",
        **key(path),
        "input": source(path, content),
        "output": f"{path.stem}-report.md",
    }
    data = ask(question)
    if data["needs_report"]:
        data = ask({**question, "report": prepare(path, content)})
    if data["status"] == "completed":
        print(f"approved and written before; {data['output']} is unchanged")
    elif data["status"] == "rejected":
        print(f"rejected before by {data['decided_by']}; nothing was written")
    else:
        print(data["report"])
        print(f"awaiting approval, token {data['approval_token'] or 'shown by pending to an approver'}")


def decide(path: Path, action: str, token: str, by: str) -> None:
    """Carries the decision out, about the file as it is now."""
    data = ask({"action": action, **key(path), "token": token, "by": by, "input": source(path, path.read_bytes())})
    if data["already_completed"]:
        print(f"approved and written before; {data['output']} is unchanged")
    elif data["status"] == "completed":
        print(f"approved; the report is in {data['output']}")
    else:
        print("rejected before" if data["already_rejected"] else "rejected; nothing is written")


def key(path: Path) -> dict[str, str]:
    """The ids of the approval: one for each file."""
    return {"workflow_id": WORKFLOW, "step_id": str(path.resolve())[-255:]}


def source(path: Path, content: bytes) -> dict[str, str]:
    """What the report is about; when it changes, an approval of the old report does not count."""
    return {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()}


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="A report about a file that a person has to approve.")
    parser.add_argument("file", type=Path)
    parser.add_argument("command", choices=("start", "approve", "reject"))
    parser.add_argument("token", nargs="?")
    parser.add_argument("--by", default=os.environ.get("USER", "somebody"), help="who decides")
    arguments = parser.parse_args()
    if not arguments.file.is_file():
        parser.error(f"{arguments.file} is no file")
    if arguments.command == "start":
        start(arguments.file)
    elif arguments.token is None:
        parser.error(f"{arguments.command} needs the token that start has shown")
    else:
        decide(arguments.file, arguments.command, arguments.token, arguments.by)


if __name__ == "__main__":
    main()
