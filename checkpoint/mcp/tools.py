"""The tools: which action each one stands for, and what a host and an agent are told of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from checkpoint.validation import load_schema

# Hosts that read numbers as doubles would change a larger bound, or refuse it.
_LARGEST_EXACT = 2**53
_KEPT = ("type", "description", "minLength", "maxLength", "minimum", "maximum", "default")


class Tool(NamedTuple):
    """One tool. The last three are MCP's hints, by MCP's definitions, which are stricter than everyday words.

    `destructive`: not only adds, but replaces or removes something. `idempotent`: the same call again changes nothing
    more (the age of cache entries aside). A read that fills the cache is a read; one that leaves a report file is not.
    """

    name: str
    action: str
    advice: str
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False

    @property
    def title(self) -> str:
        """For people."""
        title: str = load_schema(f"{self.action}.request.json")["title"]
        return title.removesuffix(": request")

    @property
    def description(self) -> str:
        """What the action does, as its schema says, and when an agent wants it."""
        return f"{load_schema(f'{self.action}.request.json')['description']} {self.advice}"

    @property
    def input_schema(self) -> dict[str, Any]:
        """The request schema of the action, without `action`, in the part of JSON Schema that every host takes.

        That is one `type` for each property and no reference, pattern or rule across properties. What is left out is
        checked when the tool is called, and the descriptions say it.
        """
        schema = load_schema(f"{self.action}.request.json")
        properties = {name: _simple(each) for name, each in schema["properties"].items() if name != "action"}
        required = [name for name in schema["required"] if name != "action"]
        simple: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        return simple | {"required": required} if required else simple


def _simple(schema: dict[str, Any]) -> dict[str, Any]:
    simple = {name: schema[name] for name in _KEPT if name in schema}
    if isinstance(simple["type"], list):
        simple["type"] = simple["type"][0]
    if simple["type"] == "object":  # some hosts refuse an object of which nothing is said
        simple |= {"properties": {}, "additionalProperties": True}
    if simple.get("maximum", 0) > _LARGEST_EXACT:
        del simple["maximum"]
    return simple


TOOLS: tuple[Tool, ...] = (
    Tool(
        "save_checkpoint",
        "save",
        "Use it as soon as a step is done. It is kept once the answer says success; cache_written false is no error. "
        "Send the revision last read as expected_revision where others may save the same step.",
        destructive=True,
    ),
    Tool(
        "get_checkpoint",
        "get",
        "Use it to resume after a crash: found false means that the step is not done. For frequent reads take "
        "get_cached_state.",
        read_only=True,
        idempotent=True,
    ),
    Tool(
        "list_checkpoints",
        "list",
        "Use it to see which steps are done; include_state false leaves the states out and keeps the answer short. "
        "Go on with next_cursor as cursor until it is null.",
        read_only=True,
        idempotent=True,
    ),
    Tool(
        "cache_to_sqlite",
        "cache",
        "Only for what is cheap to make again: it may be lost at any time and is in no backup. save_checkpoint keeps.",
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "get_cached_state",
        "cached_get",
        "Use it for reads that must be fast or are frequent; source tells which side answered. allow_stale true still "
        "answers from an expired entry while PostgreSQL is away.",
        read_only=True,
        idempotent=True,
    ),
    Tool(
        "rebuild_sqlite_cache",
        "rebuild",
        "Use it after the cache was lost, or when verify_checkpoint_integrity found differences. What cache_to_sqlite "
        "alone has stored is gone afterwards.",
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "verify_checkpoint_integrity",
        "verify",
        "Use it to see whether the cache can be trusted: consistent is true, or mismatch_counts and mismatches show "
        "the differences, and the JSON file at report_path has all of them. rebuild_sqlite_cache mends the cache.",
    ),
    Tool(
        "healthcheck",
        "healthcheck",
        "Use it first when another tool answers with a code that begins with PG_, or DB_NOT_CONFIGURED.",
        read_only=True,
        idempotent=True,
    ),
    Tool(
        "list_workflows",
        "workflows",
        "Use it to find the id of a workflow to go on with. Go on with next_cursor as cursor until it is null.",
        read_only=True,
        idempotent=True,
    ),
    Tool(
        "delete_checkpoints",
        "delete",
        "Ask the person before. Send either step_id or all_steps true.",
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "prune_checkpoints",
        "prune",
        "Ask the person before, and call it with dry_run true first to see how many it would be.",
        destructive=True,
    ),
    Tool(
        "request_approval",
        "request_approval",
        "Call it with input and without report first: needs_report true means to prepare the report now and to call "
        "again with it. The answer tells whether the person has decided; nothing has to keep running while it waits.",
        idempotent=True,
    ),
    Tool(
        "approve",
        "approve",
        "Only after a person has read the report and said yes; never on your own. Send the same input as when asking.",
        idempotent=True,
    ),
    Tool(
        "reject",
        "reject",
        "Only after a person has said no. It cannot be taken back.",
        idempotent=True,
    ),
    Tool(
        "list_pending_approvals",
        "pending",
        "Use it to show a person what waits for a decision. Go on with next_cursor as cursor until it is null.",
        read_only=True,
        idempotent=True,
    ),
)

BY_NAME = {tool.name: tool for tool in TOOLS}

INSTRUCTIONS = (
    "Checkpoints of workflow steps: PostgreSQL is the authority, SQLite a cache that may be lost. A checkpoint is a "
    "JSON object under (workflow_id, step_id). Save after every step; to resume, list_checkpoints or get_checkpoint. "
    "Each result is an envelope {success, data, error, code}: decide by success and code; error says what to do."
)
