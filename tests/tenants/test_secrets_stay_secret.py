"""No password leaves the process, however wrong the connection string is (contract, section 2)."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.support.worker import WorkerGone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.conftest import StartWorker

PLAIN = "Zk7xQhm9vLWt3y"
ODD = "Zk7xQ@hm9vL/Wt3yB:p8nRn#u6cDe?w2sXa"  # every piece between the signs is a part of the secret
ENCODED = quote(ODD, safe="")
PIECES = re.findall(r"[A-Za-z0-9]{5,}", ODD)
SERVER = "127.0.0.1:1/nowhere"  # where nothing listens

# DATABASE_URL, by what is wrong with it.
WRONG: dict[str, str] = {
    "nothing listens": f"postgresql://user:{ENCODED}@{SERVER}",
    "a password as it is, at and slash": f"postgresql://user:{ODD}@{SERVER}",
    "a password as it is, at": f"postgresql://user:Zk7xQ@hm9vL@{SERVER}",
    "a password as it is, slash": f"postgresql://user:Zk7xQ/hm9vL@{SERVER}",
    "a password as it is, colon": f"postgresql://user:Zk7xQ:hm9vL@{SERVER}",
    "a password as it is, question mark": f"postgresql://user:Zk7xQ?hm9vL@{SERVER}",
    "a password as it is, number sign": f"postgresql://user:Zk7xQ#hm9vL@{SERVER}",
    "a password as it is, percent": f"postgresql://user:Zk7xQ%hm9vL@{SERVER}",
    "a password as it is, space": f"postgresql://user:Zk7xQ hm9vL@{SERVER}",
    "a user as it is": f"postgresql://us@er:{PLAIN}@{SERVER}",
    "no host": f"postgresql://user:{PLAIN}",
    "host and password exchanged": f"postgresql://user@127.0.0.1:{PLAIN}/nowhere",
    "a port that is none": f"postgresql://user:{ENCODED}@127.0.0.1:none/nowhere",
    "a port out of range": f"postgresql://user:{ENCODED}@127.0.0.1:99999/nowhere",
    "a bracket left open": f"postgresql://user:{PLAIN}@[::1/nowhere",
    "percent-encoding that is none": f"postgresql://user:{PLAIN}%zz@{SERVER}",
    "an encoded zero": f"postgresql://user:{PLAIN}%00@{SERVER}",
    "several hosts": f"postgresql://user:{ENCODED}@127.0.0.1:1,127.0.0.1:2/nowhere",
    "several hosts, a password as it is": f"postgresql://user:{ODD}@127.0.0.1:1,127.0.0.1:2/nowhere",
    "a password in the query": f"postgresql://user@{SERVER}?password={ENCODED}",
    "a misspelt parameter": f"postgresql://user@{SERVER}?passwrod={ENCODED}",
    "a value that is none": f"postgresql://user:{PLAIN}@{SERVER}?sslmode={PLAIN}",
    "a timeout that is none": f"postgresql://user:{PLAIN}@{SERVER}?connect_timeout={PLAIN}",
    "a key's password": f"postgresql://user@{SERVER}?sslmode=require&sslkey=/nowhere&sslpassword={PLAIN}",
    "a host that is a folder": f"postgresql://user:{ENCODED}@/nowhere?host=/nonexistent",
    "pairs": f"host=127.0.0.1 port=1 user=user password={PLAIN}",
    "pairs, quoted": f"host = 127.0.0.1 port = 1 password = '{ODD}'",
    "pairs, a quote left open": f"host=127.0.0.1 port=1 password='{PLAIN}",
    "pairs, a space": "host=127.0.0.1 port=1 password=Zk7xQ hm9vL",
    "pairs, misspelt": f"host=127.0.0.1 port=1 passwd={PLAIN}",
    "pairs in the database's place": f"dbname='host=127.0.0.1 port=1 password={PLAIN}' host=127.0.0.1 port=1",
    "a URL in the database's place": f"dbname=postgresql://user:{PLAIN}@{SERVER} host=127.0.0.1 port=1",
    "a URL in the host's place": f"host=postgresql://user:{PLAIN}@127.0.0.1/nowhere port=1",
    "the shell's export": f"export DATABASE_URL=postgresql://user:{PLAIN}@{SERVER}",
    "another driver's": f"postgresql+asyncpg://user:{ENCODED}@{SERVER}",
    "Java's": f"jdbc:postgresql://127.0.0.1:1/nowhere?user=user&password={PLAIN}",
    "a scheme misspelt": f"postgress://user:{PLAIN}@{SERVER}",
    "a scheme in capitals": f"POSTGRESQL://user:{PLAIN}@{SERVER}",
    "quotes around it": f'"postgresql://user:{PLAIN}@{SERVER}"',
    "no scheme": f"user:{PLAIN}@{SERVER}",
    "bytes that are no text": os.fsdecode(b"postgresql://user:Zk7xQhm9vLWt3y\xff@127.0.0.1:1/nowhere"),
}
SERVICES = {
    "a service": f"[mine]\nhost=127.0.0.1\nport=1\npassword={PLAIN}\n",
    "a service with a line that is none": f"[mine]\nhost=127.0.0.1\n{PLAIN}\npassword={PLAIN}\n",
    "a service with a misspelt key": f"[mine]\nhost=127.0.0.1\nport=1\npasswd={PLAIN}\n",
    "no such service": f"[other]\npassword={PLAIN}\n",
}
REQUESTS = (
    {"action": "get", "workflow_id": "wf", "step_id": "s"},
    {"action": "save", "workflow_id": "wf", "step_id": "s", "state_data": {}},
    {"action": "list", "workflow_id": "wf"},
    {"action": "verify"},
    {"action": "rebuild"},
    {"action": "cached_get", "workflow_id": "wf", "step_id": "s"},
    {"action": "prune", "older_than_sec": 1},
    {"action": "request_approval", "workflow_id": "wf", "step_id": "a", "input": {}, "report": "r"},
    {"action": "pending"},
    {"action": "healthcheck"},
)
CODES = [
    "PG_READ_ERROR",
    "PG_WRITE_ERROR",
    "PG_LIST_ERROR",
    "VERIFY_FAILED",
    "REBUILD_FAILED",
    "PG_READ_ERROR",
    "PG_WRITE_ERROR",
    "PG_WRITE_ERROR",
    "PG_LIST_ERROR",
]
QUICK = {"CHECKPOINT_CONNECT_TIMEOUT": "2", "CHECKPOINT_LOG_LEVEL": "DEBUG"}


@pytest.mark.parametrize("forms", [sorted(WRONG)[start::4] for start in range(4)], ids=["1", "2", "3", "4"])
def test_no_password_comes_out_for_a_wrong_connection_string(
    forms: list[str], start_offline_worker: StartWorker, folder: Path
) -> None:
    """Neither on stdout nor on stderr at DEBUG, nor in a report: of no form of string, for no action, no piece of it."""
    _try({form: {"DATABASE_URL": WRONG[form]} for form in forms}, start_offline_worker, folder)


def test_no_password_comes_out_of_a_service_or_the_environment(
    start_offline_worker: StartWorker, folder: Path, tmp_path: Path
) -> None:
    """The same where the password stands in a service file, in a password file or in PGPASSWORD."""
    tried: dict[str, Mapping[str, str]] = {}
    for form, content in SERVICES.items():
        file = tmp_path / f"{form}.conf"
        file.write_text(content, encoding="utf-8")
        tried[form] = {"DATABASE_URL": "service=mine", "PGSERVICEFILE": str(file)}
    passwords = tmp_path / "passwords"
    passwords.write_text(f"*:*:*:*:{PLAIN}\n{PLAIN}\n", encoding="utf-8")
    passwords.chmod(0o644)  # too open: libpq complains
    tried["a password file"] = {"DATABASE_URL": f"postgresql://user@{SERVER}", "PGPASSFILE": str(passwords)}
    tried["PGPASSWORD"] = {"DATABASE_URL": f"postgresql://user@{SERVER}", "PGPASSWORD": PLAIN}
    _try(tried, start_offline_worker, folder)


def test_the_refusal_of_a_wrong_form_names_the_variable(start_offline_worker: StartWorker) -> None:
    """What is no libpq string at all is one line on stderr, exit status 2, before any request is read."""
    for form in ("another driver's", "no scheme", "Java's", "a scheme misspelt", "quotes around it"):
        worker = start_offline_worker({"DATABASE_URL": WRONG[form]})
        assert worker.wait() == 2, form
        assert worker.stderr.count("\n") == 1, form
        assert "DATABASE_URL" in worker.stderr


def _try(tried: Mapping[str, Mapping[str, str]], start: StartWorker, folder: Path) -> None:
    """Asks a worker of each environment for everything; it fails at everything, truthfully, and tells no secret."""
    workers = {form: start({**QUICK, **env}) for form, env in tried.items()}
    answers: dict[str, list[dict[str, Any]]] = {}
    for form, worker in workers.items():
        with suppress(WorkerGone):
            for request in REQUESTS:
                worker.send(request)
        worker.close_input()
        answers[form] = worker.read_all()
        if worker.wait() != 0:
            assert (worker.wait(), answers.pop(form)) == (2, []), form
    said = {form: b"\n".join(worker.raw).decode("utf-8") + worker.stderr for form, worker in workers.items()}
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []
    said |= {path.name: path.read_text(encoding="utf-8", errors="replace") for path in files}
    told = {
        form: [piece for piece in (*PIECES, PLAIN, ENCODED) if piece.lower() in text.lower()]
        for form, text in said.items()
    }
    assert {form: pieces for form, pieces in told.items() if pieces} == {}
    for form, all_of_it in answers.items():
        *failed, health = all_of_it
        codes = [answer["code"] for answer in failed]
        assert codes == CODES, f"{form}: {codes}"
        assert health["data"]["status"] == "down", f"{form}: {health}"
        assert health["data"]["pg"]["error"], form
