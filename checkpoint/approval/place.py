"""Where an output file goes: names that stay below the artifacts folder on every file system (contract, section 5)."""

from __future__ import annotations

import re

from checkpoint.approval.canonical import canonical, digest

TEMPORARY = re.compile(r"\.checkpoint-[0-9a-f]{16}\.tmp")
MOST_NAME_BYTES = 255
SLUG_LENGTH = 60
DIGEST_LENGTH = 16


class BadPlace(ValueError):
    """An output that is not a plain relative path; the message says what is wrong with it."""


def parts(output: str) -> tuple[str, ...]:
    """The names of folders and file in a relative path, the file last. Raises BadPlace."""
    if output.startswith("/"):
        raise BadPlace("it must be relative to the artifacts folder")
    if "\\" in output or any(character < " " or "\x7f" <= character <= "\x9f" for character in output):
        raise BadPlace("it must not hold backslashes or control characters")
    names = tuple(output.split("/"))
    for name in names:
        if name in ("", ".", ".."):
            raise BadPlace("none of its parts may be empty, . or ..")
        if len(name.encode("utf-8", "surrogatepass")) > MOST_NAME_BYTES:
            raise BadPlace("none of its parts may be longer than 255 bytes")
        if TEMPORARY.fullmatch(name.lower()):
            raise BadPlace("such a name is kept for temporary files")
    return names


def default_output(tenant_id: str, workflow_id: str, step_id: str, input_hash: str, report: str) -> str:
    """A readable name that no other tenant, ids, input or report has, not even where case or Unicode is folded."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"{workflow_id}-{step_id}".lower()).strip("-")[:SLUG_LENGTH].rstrip("-")
    mark = digest(canonical([tenant_id, workflow_id, step_id, input_hash, report]))[:DIGEST_LENGTH]
    return f"{slug or 'report'}-{mark}"
