# `make` alone lists what there is. GNU make 3.81 and a POSIX shell are enough; nothing has to be set up before.

# The Pythons to try, in this order; `make PYTHON=/path/to/python run` takes one of your own.
PYTHON = python3 python3.14 python3.13 python3.12 python3.11
# Further arguments for pytest: make test ARGS="tests/framing -x"
ARGS =
# How many tests run at once: most of them wait for a process, and four fill two cores.
WORKERS = 4

PY = .venv/bin/python
# What .venv holds is up to date while these are newer than pyproject.toml: what the product needs, what its development needs,
# and what it is measured against.
PRODUCT = .venv/ready
DEVELOPMENT = .venv/ready-dev
YARDSTICKS = .venv/ready-bench

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test test-containers test-browser lint types check chaos fuzz soak bench clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s%s\n", $$1, $$2 }' Makefile

run: $(PRODUCT) ## answers request lines from stdin on stdout; takes DATABASE_URL, else a PostgreSQL of its own
	@DATABASE_URL="$${DATABASE_URL:-embedded:}" exec $(PY) runner.py

test: $(DEVELOPMENT) ## all tests, on TEST_DATABASE_URL, else in a container, else on a PostgreSQL of their own
	$(PY) -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-containers: $(DEVELOPMENT) ## all tests, on PostgreSQL in a container and no other
	$(PY) -m pytest --containers $(ARGS)

test-browser: CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome || echo chromium)
test-browser: $(DEVELOPMENT) ## the page of a verify report in a headless Chromium, or in the one that CHROMIUM names
	CHROMIUM="$(CHROMIUM)" $(PY) -m pytest tests/browser $(ARGS)

lint: $(DEVELOPMENT) ## style and formatting
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(DEVELOPMENT) ## static types
	$(PY) -m mypy benchmarks checkpoint examples tests tools runner.py

check: lint types test ## everything that must be green before a commit

chaos: SECONDS = 60
chaos: $(DEVELOPMENT) ## kills workers, PostgreSQL and cache files for SECONDS, and counts what was lost; SEED repeats a run
	$(PY) -m tests.chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

fuzz: SECONDS = 60
fuzz: $(DEVELOPMENT) ## sends strange bytes to a worker for SECONDS and holds it to one right answer a line; SEED as above
	$(PY) -m tests.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

soak: SECONDS = 300
soak: $(DEVELOPMENT) ## loads one worker for SECONDS and compares what it holds at the end and at the start; SEED as above
	$(PY) -m tests.soak --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

bench: ROUNDS = 5
bench: $(YARDSTICKS) ## takes every figure beside its yardsticks, ROUNDS times, and writes benchmarks/results; SEED as above
	$(PY) -m benchmarks --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))

clean: ## removes .venv and what the tools left behind; stored data stays
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Everything goes to stderr, and stdin is left alone: it belongs to the requests of `run`.
define environment
@for python in $(PYTHON); do \
    if "$$python" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' </dev/null >/dev/null 2>&1; then \
        exec "$$python" tools/environment.py $(1) </dev/null >&2; \
    fi; \
done; \
echo "Python 3.11 or newer, with venv and pip, is needed, and none of these is one: $(PYTHON)" >&2; \
echo "Install it (Debian, Ubuntu: apt-get install python3 python3-venv) or name one: make PYTHON=/path/to/python" >&2; \
exit 1
endef

$(PRODUCT): pyproject.toml $(PY)
	$(call environment)

$(DEVELOPMENT): pyproject.toml $(PY)
	$(call environment,dev)

$(YARDSTICKS): pyproject.toml $(PY)
	$(call environment,bench)

# Where this link leads nowhere, because there is no environment or the Python under it has gone, the three above are made.
$(PY): ;
