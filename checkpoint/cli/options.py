"""What each command takes after its name. Every `dest` is a field of the request, but for `yes` and `raw`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint.cli import arguments

if TYPE_CHECKING:
    from argparse import ArgumentParser

JSON_SOURCE = "JSON, or @FILE, or - for stdin"


def _key(parser: ArgumentParser) -> None:
    parser.add_argument("workflow_id", metavar="WORKFLOW")
    parser.add_argument("step_id", metavar="STEP")


def _tenant(parser: ArgumentParser, otherwise: str) -> None:
    parser.add_argument("--tenant", metavar="TENANT", dest="tenant_id", help=f"this tenant; else {otherwise}")


def _workflow(parser: ArgumentParser) -> None:
    parser.add_argument("--workflow", metavar="WORKFLOW", dest="workflow_id", help="this workflow; else all")


def _flag(parser: ArgumentParser, option: str, field: str, text: str) -> None:
    parser.add_argument(option, dest=field, action="store_true", default=None, help=text)


def _yes(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask whether it is meant")


def _raw(parser: ArgumentParser) -> None:
    parser.add_argument("--raw", action="store_true", help="print the state alone, as the text that was saved")


def _pages(parser: ArgumentParser, most: int) -> None:
    parser.add_argument("--limit", metavar="N", type=int, help=f"rows of one page; else {most}")
    parser.add_argument("--cursor", help="the page after the one that showed this")


def save(parser: ArgumentParser) -> None:
    """Of `save`."""
    _key(parser)
    parser.add_argument("state_data", metavar="STATE", type=arguments.content, help=f"a JSON object: {JSON_SOURCE}")
    _tenant(parser, "default")
    parser.add_argument(
        "--expect",
        "--expected-revision",
        metavar="REVISION",
        dest="expected_revision",
        type=int,
        help="save only if this is the revision that stands; 0: only if none does",
    )


def cache(parser: ArgumentParser) -> None:
    """Of `cache`."""
    _key(parser)
    parser.add_argument("state_data", metavar="STATE", type=arguments.content, help=f"a JSON object: {JSON_SOURCE}")
    _tenant(parser, "default")


def get(parser: ArgumentParser) -> None:
    """Of `get`."""
    _key(parser)
    _tenant(parser, "whichever has it")
    _raw(parser)


def cached_get(parser: ArgumentParser) -> None:
    """Of `cached-get`."""
    get(parser)
    _flag(parser, "--allow-stale", "allow_stale", "an expired entry will do while PostgreSQL is away")


def list_(parser: ArgumentParser) -> None:
    """Of `list`."""
    parser.add_argument("workflow_id", metavar="WORKFLOW")
    _tenant(parser, "all")
    parser.add_argument("--state", dest="include_state", action="store_true", help="show the states, which may be long")
    _pages(parser, 10000)


def workflows(parser: ArgumentParser) -> None:
    """Of `workflows`."""
    _tenant(parser, "all")
    _pages(parser, 1000)


def rebuild(parser: ArgumentParser) -> None:
    """Of `rebuild`."""
    _tenant(parser, "default")
    _workflow(parser)


def verify(parser: ArgumentParser) -> None:
    """Of `verify`."""
    _tenant(parser, "all")
    _workflow(parser)


def delete(parser: ArgumentParser) -> None:
    """Of `delete`."""
    parser.add_argument("workflow_id", metavar="WORKFLOW")
    parser.add_argument("step_id", metavar="STEP", nargs="?")
    _flag(parser, "--all-steps", "all_steps", "every step of the workflow, in place of STEP")
    _tenant(parser, "default")
    _yes(parser)


def prune(parser: ArgumentParser) -> None:
    """Of `prune`."""
    parser.add_argument(
        "--older-than",
        metavar="TIME",
        dest="older_than_sec",
        type=arguments.duration,
        required=True,
        help="not saved for that long: a number and s, m, h, d or w",
    )
    _workflow(parser)
    _tenant(parser, "default")
    _flag(parser, "--all-tenants", "all_tenants", "all tenants, in place of --tenant")
    _flag(parser, "--dry-run", "dry_run", "count them, and delete nothing")
    _yes(parser)


def health(_parser: ArgumentParser) -> None:
    """Of `health`: none."""


def _input(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--input", metavar="JSON", type=arguments.content, help=f"what the report is about: {JSON_SOURCE}"
    )
    parser.add_argument("--input-hash", metavar="SHA256", help="the hash of it, in its place")


def request_approval(parser: ArgumentParser) -> None:
    """Of `request-approval`."""
    _key(parser)
    _input(parser)
    parser.add_argument("--report", type=arguments.text, help="what would be written: text, @FILE, or - for stdin")
    parser.add_argument("--output", metavar="PATH", help="where, below the artifacts folder")
    parser.add_argument(
        "--expires-in",
        metavar="TIME",
        dest="expires_in_sec",
        type=arguments.duration,
        help="how long it may be decided: a number and s, m, h, d or w",
    )
    _flag(parser, "--renew", "renew", "ask once more if its time is over")
    _tenant(parser, "default")


def decide(parser: ArgumentParser) -> None:
    """Of `approve` and `reject`."""
    _key(parser)
    parser.add_argument("token", metavar="TOKEN", type=arguments.word, help="of the question; or @FILE, or - for stdin")
    _input(parser)
    parser.add_argument("--by", metavar="NAME", help="who decides")
    parser.add_argument("--reason", metavar="TEXT", help="why")
    _tenant(parser, "whichever has it")


def pending(parser: ArgumentParser) -> None:
    """Of `pending`."""
    _tenant(parser, "all")
    _pages(parser, 100)
