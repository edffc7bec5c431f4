"""`python -m checkpoint`: the command line for people."""

import sys

from checkpoint.cli.main import main

sys.exit(main())
