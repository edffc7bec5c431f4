"""A workflow over the text files of a folder that survives being killed.

    python examples/crash_and_resume.py FOLDER                     run it, or go on where an earlier run was ended
    python examples/crash_and_resume.py FOLDER --crash --kills 3   kill it three times, and check what came of it

Three steps for each file (its SHA-256, its words, a summary), and a last one that merges them into a report, as JSON on
stdout. After each step its result is saved as a checkpoint, through one `runner.py` that lives as long as the run.
A run that starts reads with `list` what is saved and skips those steps. What it does is told on stderr.

Only the standard library is needed here; `runner.py` is started with the same Python, and with DATABASE_URL=embedded:
where DATABASE_URL is not set.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RUNNER = Path(__file__).resolve().parents[1] / "runner.py"
State = dict[str, Any]


class Refused(Exception):
    """The worker's answer was an error; `code` says which."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Checkpoints:
    """The checkpoints of one workflow, asked for through a worker process of this object's own."""

    def __init__(self, workflow_id: str) -> None:
        environment = {**os.environ, "DATABASE_URL": os.environ.get("DATABASE_URL") or "embedded:"}
        command = [sys.executable, str(RUNNER)]
        self.workflow_id = workflow_id
        self._worker = Popen(command, stdin=PIPE, stdout=PIPE, encoding="utf-8", env=environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The end of its input ends a worker."""
        self._worker.communicate()

    def rows(self) -> dict[str, State]:
        """What is saved: step id to its row, which has `state_data` and `revision`."""
        found: dict[str, State] = {}
        cursor = None
        while True:
            page = self._ask("list", cursor=cursor)
            found |= {row["step_id"]: row for row in page["checkpoints"]}
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def save(self, step_id: str, state: State) -> State:
        """Saves a step that is not saved yet. Gives the state that counts: where another run was faster, that one's."""
        try:
            self._ask("save", step_id=step_id, state_data=state, expected_revision=0)
        except Refused as refusal:
            if refusal.code != "REVISION_CONFLICT":
                raise
            state = self._ask("get", step_id=step_id)["state_data"]
        return state

    def forget(self) -> None:
        """Deletes all steps of the workflow."""
        self._ask("delete", all_steps=True)

    def _ask(self, action: str, **fields: Any) -> State:
        """Writes a line, reads a line. Whoever writes many lines before reading needs a thread that reads meanwhile."""
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        request = {"action": action, "workflow_id": self.workflow_id, **fields}
        try:
            self._worker.stdin.write(json.dumps(request) + "\n")
            self._worker.stdin.flush()
            line = self._worker.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SystemExit("the worker has ended")
        answer = json.loads(line)
        if not answer["success"]:
            raise Refused(answer["code"], answer["error"])
        data: State = answer["data"]
        return data


def text_files(folder: Path) -> list[str]:
    """The text files below `folder`, as relative paths. Hidden ones, and names that make no step id, are left out."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(parent, name) for name in names if not name.startswith(".")):
            relative = path.relative_to(folder).as_posix()
            regular = path.is_file() and not path.is_symlink()
            if regular and relative.isprintable() and len(relative) <= 200 and b"\0" not in path.read_bytes():
                found.append(relative)
    return sorted(found)


def fingerprint(path: Path) -> State:
    """The step `hash` of a file."""
    content = path.read_bytes()
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def words(path: Path) -> State:
    """The step `words` of a file."""
    found = path.read_text(encoding="utf-8", errors="replace").split()
    return {"words": len(found), "different_words": len(set(found))}


def summary(path: Path) -> State:
    """The step `summary` of a file."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    first = next((line.strip() for line in lines if line.strip()), "")
    return {"lines": len(lines), "first_line": first[:80], "longest_line": max(map(len, lines), default=0)}


def merge(parts: dict[str, State]) -> State:
    """The step `report`: what the others found, and its sums."""
    sums = {key: sum(part[key] for part in parts.values()) for key in ("bytes", "words", "lines")}
    return {"files": len(parts), **sums, "each": [{"path": name, **part} for name, part in parts.items()]}


STEPS_OF_A_FILE: dict[str, Callable[[Path], State]] = {"hash": fingerprint, "words": words, "summary": summary}


class Run:
    """One run of the workflow: does, in order, what is not saved yet, and saves it."""

    def __init__(self, checkpoints: Checkpoints, journal: Path | None) -> None:
        self._checkpoints = checkpoints
        self._saved = checkpoints.rows()
        self._journal = journal

    def report(self, folder: Path) -> State:
        """The state of the last step. The list of files is a step too: a resumed run goes on with the same one."""
        files = self._step("files", lambda: {"files": text_files(folder)})["files"]
        parts: dict[str, State] = {name: {} for name in files}
        for name in files:
            for kind, work in STEPS_OF_A_FILE.items():
                parts[name] |= self._step(f"{kind} {name}", partial(work, folder / name))
        return self._step("report", partial(merge, parts))

    def _step(self, step_id: str, work: Callable[[], State]) -> State:
        if step_id in self._saved:
            tell(f"skip {step_id}")
            state: State = self._saved[step_id]["state_data"]
            return state
        state = work()
        # A kill between here and the answer to `save` leaves work that is done and that nobody knows of: the next run
        # does it again. No store can close that gap. So a step must bear repetition until its checkpoint is answered.
        if self._journal is not None:
            with self._journal.open("a", encoding="utf-8") as journal:
                journal.write(f"{step_id}\n")
        state = self._checkpoints.save(step_id, state)
        tell(f"did {step_id}")
        return state


def killed_run(folder: Path, workflow_id: str, journal: Path, kill_after: int | None, *, worker_too: bool) -> str:
    """A run in a process of its own, killed once so many steps are skipped or done; in words, what became of it."""
    command = [sys.executable, __file__, str(folder), "--workflow-id", workflow_id, "--journal", str(journal)]
    child = Popen(
        command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, encoding="utf-8", errors="replace", process_group=0
    )
    assert child.stderr is not None
    steps: dict[str, list[str]] = {"skip": [], "did": []}
    for line in child.stderr:  # Its worker holds this pipe too: the loop ends when both have gone.
        verb, _, step_id = line.rstrip("\n").partition(" ")
        if verb not in steps:
            tell(line.rstrip("\n"))
            continue
        steps[verb].append(step_id)
        if kill_after is not None and sum(map(len, steps.values())) >= kill_after:
            kill_after = None
            (os.killpg if worker_too else os.kill)(child.pid, signal.SIGKILL)
    status = child.wait()
    if status > 0:
        raise SystemExit(f"the run failed with exit status {status}")
    end = "finished" if status == 0 else f"killed {'with its worker' if worker_too else 'and its worker left to end'}"
    return f"skipped {span(steps['skip'])}, did {span(steps['did'])}, {end}"


def crash(folder: Path, checkpoints: Checkpoints, journal: Path, *, kills: int, chance: random.Random) -> bool:
    """Runs the workflow from its beginning, kills it at random steps, and tells whether it came through."""
    checkpoints.forget()
    expected = {"files", *(f"{kind} {name}" for name in text_files(folder) for kind in STEPS_OF_A_FILE), "report"}
    moments = sorted(chance.sample(range(1, len(expected)), min(kills, len(expected) - 1)))
    tell(f"{len(expected)} steps; to be killed after step {', '.join(map(str, moments))}")
    journal.write_text("", encoding="utf-8")
    saved: set[str] = set()
    worked, cut_off, done_again = Counter[str](), Counter[str](), set[str]()
    for number, moment in enumerate([*moments, None], 1):
        end = killed_run(folder, checkpoints.workflow_id, journal, moment, worker_too=chance.random() < 0.5)
        tell(f"run {number}: {end}")
        in_this_run = Counter(journal.read_text(encoding="utf-8").split("\n")[:-1]) - worked
        done_again |= saved & set(in_this_run)
        saved = set(checkpoints.rows())
        cut_off.update(set(in_this_run) - saved)
        worked += in_this_run
    revisions = {step_id: row["revision"] for step_id, row in checkpoints.rows().items()}
    facts = {
        f"all {len(expected)} steps have a checkpoint, each saved once": revisions == dict.fromkeys(expected, 1),
        "no step that had a checkpoint was done again": not done_again,
        f"cut off between work and checkpoint, and the only ones done again: {', '.join(cut_off) or 'none'}": (
            set(worked) == expected and all(count <= 1 + cut_off[step_id] for step_id, count in worked.items())
        ),
    }
    for fact, holds in facts.items():
        tell(f"{'true' if holds else 'NOT TRUE'}: {fact}")
    return all(facts.values())


def span(steps: Sequence[str]) -> str:
    """Steps that follow each other: how many, the first and the last."""
    ends = steps if len(steps) < 2 else (steps[0], steps[-1])
    return f"{len(steps)} ({' ... '.join(ends)})" if steps else "0"


def tell(sentence: str) -> None:
    """For people; stdout is for the report."""
    print(sentence, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """The command line, read."""
    parser = argparse.ArgumentParser(description="A report on the text files of a folder, by a workflow that resumes.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workflow-id", help="by default one that follows from the path of the folder")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report there and not to stdout")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="append a line for each step whose work is done")
    parser.add_argument("--fresh", action="store_true", help="forget first what earlier runs have saved")
    parser.add_argument("--crash", action="store_true", help="begin afresh, kill the run on its way, check the outcome")
    parser.add_argument("--kills", type=int, default=1, metavar="N", help="with --crash: how often (default: 1)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="with --crash: decides which steps")
    read = parser.parse_args()
    if not read.folder.is_dir():
        parser.error(f"{read.folder} is not a folder")
    if read.kills < 1:
        parser.error("--kills needs at least 1")
    return read


def main() -> int:
    """The exit status: 0, or 1 where something failed or the check after the kills did not hold."""
    options = arguments()
    folder: Path = options.folder.resolve()
    held = True
    workflow_id = options.workflow_id or f"folder-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"
    try:
        with Checkpoints(workflow_id) as checkpoints:
            if options.crash:
                tell(f"workflow {workflow_id}, seed {options.seed}")
                chance = random.Random(options.seed)
                with TemporaryDirectory() as temporary:  # not for the runs that are killed: they would leave theirs
                    journal = options.journal or Path(temporary, "journal")
                    held = crash(folder, checkpoints, journal, kills=options.kills, chance=chance)
                report = checkpoints.rows()["report"]["state_data"]
            else:
                if options.fresh:
                    checkpoints.forget()
                report = Run(checkpoints, options.journal).report(folder)
    except Refused as refusal:
        tell(f"the worker answered {refusal}")
        return 1
    except KeyboardInterrupt:
        tell("interrupted; start it again, and it goes on behind the last saved step")
        return 130
    text = json.dumps(report, ensure_ascii=False, indent=2).encode() + b"\n"
    if options.out is None:
        sys.stdout.buffer.write(text)
    else:
        options.out.write_bytes(text)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
