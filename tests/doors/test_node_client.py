"""The Node.js client of examples/node keeps the same promises as the worker that it starts (contract, section 1)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.command_line import REPOSITORY
from tests.support.environment import worker_environment
from tests.support.golden import Conversation, conversations

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.worker import Worker

NODE = shutil.which("node")
THROUGH_NODE = REPOSITORY / "tests" / "doors" / "through_node.mjs"
EXAMPLES = REPOSITORY / "examples" / "node"
PATIENCE = 60
IMPORT = f"import {{ Checkpoints, Refused, WorkerEnded }} from {json.dumps((EXAMPLES / 'checkpoints.mjs').as_uri())};\n"

pytestmark = pytest.mark.skipif(NODE is None, reason="no node on PATH; with it the client of examples/node is tested")


@pytest.mark.parametrize("conversation", conversations(), ids=lambda conversation: conversation.name)
def test_the_golden_conversations_are_the_same_through_it(
    conversation: Conversation, start_worker: StartWorker, folder: Path
) -> None:
    """Requests that are sent ahead get the golden answers, each its own."""

    def start(environment: Mapping[str, str | None]) -> Worker:
        patient = {"CHECKPOINT_CACHE_WAIT_MS": "10000", **environment}
        return start_worker(patient, argv=[NODE, str(THROUGH_NODE), sys.executable])

    conversation.replay(start, folder, at_once=True)


def node(script: str, folder: Path, **environment: str | None) -> Any:
    """What a script prints as JSON on its one line of output; it can use the client's names."""
    settings = {"CHECKPOINT_DATA_DIR": str(folder), "PYTHON": sys.executable, **environment}
    ended = subprocess.run(
        [str(NODE), "--input-type=module", "--eval", IMPORT + script],
        capture_output=True,
        encoding="utf-8",
        env=worker_environment(settings),
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return json.loads(ended.stdout)


def test_more_than_the_pipes_hold_is_written_and_read(folder: Path) -> None:
    """Twenty megabytes each way, through `each` and without waiting at all: neither side waits for the other for ever."""
    count = """
        const c = new Checkpoints();
        const text = "\\u2028é".repeat(2000);
        const put = (n) => ({ action: "cache", workflow_id: "wf", step_id: `${n % 10}`, state_data: { text } });
        const get = { action: "cached_get", workflow_id: "wf", step_id: "1" };
        const requests = Array.from({ length: 2000 }, (_, n) => (n % 2 ? get : put(n)));
        requests[1] = put(1);
        let same = 0;
        for await (const answer of c.each(requests)) same += answer.data.state_data?.text === text;
        const all = await Promise.all(requests.map((each) => c.line(JSON.stringify(each))));
        same += all.filter((line) => JSON.parse(line).data.state_data?.text === text).length;
        console.log(JSON.stringify([same, await c.close()]));
    """
    assert node(count, folder) == [999 + 999, 0]


def test_the_end_of_the_worker_reaches_everyone_who_waits(folder: Path) -> None:
    """A worker that is killed, one that cannot be started, one that was closed: WorkerEnded, at once, for all."""
    ended = """
        const tell = (promise) => promise.then(() => "answered", (error) => error.constructor.name);
        const killed = new Checkpoints({ runner: "-c", python: process.env.MORTAL });
        const missing = new Checkpoints({ python: "/no/such/python" });
        const closed = new Checkpoints();
        const first = [killed.ask("healthcheck"), killed.ask("get"), missing.ask("healthcheck")].map(tell);
        const told = await Promise.all(first);
        told.push(await closed.close(), await tell(closed.ask("healthcheck")), await tell(killed.ask("healthcheck")));
        told.push(await killed.close(), await missing.close());
        console.log(JSON.stringify(told));
    """
    mortal = folder.parent / "mortal"
    mortal.write_text("#!/bin/sh\nread line\nkill -9 $$\n", encoding="utf-8")
    mortal.chmod(0o755)
    assert node(ended, folder, MORTAL=str(mortal)) == [
        "WorkerEnded",
        "WorkerEnded",
        "WorkerEnded",
        0,
        "WorkerEnded",
        "WorkerEnded",
        None,
        None,
    ]


def test_a_refusal_has_its_code_and_other_requests_go_on(folder: Path) -> None:
    """`ask` throws Refused with the code; what is no line is not sent, since it would have no answer or two."""
    refused = """
        const c = new Checkpoints();
        const tell = (promise) => promise.then(() => "answered", (error) => error.code ?? error.constructor.name);
        const told = [c.ask("save", {}), c.ask("get", { workflow_id: "w", step_id: "s" }), c.line(" "), c.line("{}\\n{}")];
        console.log(JSON.stringify([...(await Promise.all(told.map(tell))), (await c.ask("healthcheck")).status]));
        await c.close();
    """
    assert node(refused, folder) == ["INVALID_ARG", "DB_NOT_CONFIGURED", "TypeError", "TypeError", "degraded"]


def test_the_example_goes_on_where_it_was(
    start_worker: StartWorker, database_url: str, schema: str, folder: Path
) -> None:
    """A step that is saved is not done again; the rest is."""
    settings = {"DATABASE_URL": database_url, "CHECKPOINT_SCHEMA": schema, "CHECKPOINT_DATA_DIR": str(folder)}
    start_worker().ask({"action": "save", "workflow_id": "mine", "step_id": "parse", "state_data": {}})
    ended = subprocess.run(
        [str(NODE), str(EXAMPLES / "resume.mjs"), "mine"],
        capture_output=True,
        text=True,
        env=worker_environment({**settings, "PYTHON": sys.executable}),
        timeout=PATIENCE,
        check=False,
    )
    assert ended.stdout.splitlines() == ["fetch: done", "parse: done before", "sum up: done", "publish: done"]
    assert (ended.returncode, ended.stderr) == (0, "")
