"""`python -m tests.chaos --seconds 60 [--seed N]`: a storm over several workers; exit status 0 if nothing was lost."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.storm import Storm


def main() -> int:
    """Prints the table, and where a promise was broken what is known of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long the faults go on (default: 60)")
    parser.add_argument("--seed", type=int, default=None, help="the same faults at the same times again")
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    sys.stdout.write(f"chaos: seed {seed}\n")
    sys.stdout.flush()
    folder = Path(tempfile.mkdtemp(prefix="checkpoint-chaos-"))
    folder.chmod(0o711)  # the account of the server has to pass
    try:
        storm = Storm(folder, seed, arguments.seconds)
        table = storm.run()
        sys.stdout.write("".join(f"{event}\n" for event in storm.journal))
        sys.stdout.write(str(table))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if table.right else 1


if __name__ == "__main__":
    sys.exit(main())
