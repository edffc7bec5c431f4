#!/bin/sh
# A workflow in plain shell that goes on where it was ended:  sh examples/shell.sh [WORKFLOW]
#
# PYTHON names a Python that has the packages, else it is the one in .venv, else python3. JSON is taken apart by jq, where
# there is one, else by that Python.

set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
workflow=${1:-shell-example}
python=${PYTHON:-$root/.venv/bin/python}
[ -n "${PYTHON:-}" ] || [ -x "$python" ] || python=python3
DATABASE_URL=${DATABASE_URL:-embedded:}
export DATABASE_URL

worker() {
    "$python" "$root/runner.py"
}

# A string as JSON, whatever is in it: quotes, backslashes, line breaks.
quoted() {
    if command -v jq >/dev/null; then
        printf '%s' "$1" | jq -Rs .
    else
        printf '%s' "$1" | "$python" -c 'import json, sys; print(json.dumps(sys.stdin.read()))'
    fi
}

# The value at a path such as data.found of the JSON on stdin; strings without their quotes.
value() {
    if command -v jq >/dev/null; then
        jq -r ".$1 | if type == \"string\" then . else tojson end"
    else
        "$python" -c '
import functools, json, sys
found = functools.reduce(dict.get, sys.argv[1].split("."), json.load(sys.stdin))
print(found if isinstance(found, str) else json.dumps(found))' "$1"
    fi
}

# One request through a worker of its own: the answer, or what is wrong on stderr and status 1. It is printf that writes
# JSON, since some shells have an echo that eats backslashes.
ask() {
    answer=$(printf '%s\n' "$1" | worker)
    if [ "$(printf '%s\n' "$answer" | value success)" = true ]; then
        printf '%s\n' "$answer"
    else
        printf '%s\n' "$answer" | value error >&2
        return 1
    fi
}

workflow_json=$(quoted "$workflow")
for step in fetch 'count "words"' publish; do
    key="\"workflow_id\":$workflow_json,\"step_id\":$(quoted "$step")"
    answer=$(ask "{\"action\":\"get\",$key}")
    if [ "$(printf '%s\n' "$answer" | value data.found)" = true ]; then
        printf '%s: done before, %s\n' "$step" "$(printf '%s\n' "$answer" | value data.state_data.result)"
        continue
    fi
    result="$step took no time" # the work
    ask "{\"action\":\"save\",$key,\"state_data\":{\"result\":$(quoted "$result")},\"expected_revision\":0}" >/dev/null
    printf '%s: done\n' "$step"
done

# Many requests through one worker: lines in, as many lines out, in the same order.
{
    printf '{"action":"list","workflow_id":%s,"include_state":false}\n' "$workflow_json"
    printf '{"action":"verify","workflow_id":%s}\n' "$workflow_json"
} | worker | {
    IFS= read -r listed
    IFS= read -r verified
    printf '%s steps are saved; the cache agrees: %s\n' \
        "$(printf '%s\n' "$listed" | value data.count)" "$(printf '%s\n' "$verified" | value data.consistent)"
}
