"""Every code of the wire, once, and the exceptions that carry it (contract, section 4)."""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """One machine code: when it is answered, and whether sending the same request again can help."""

    name: str
    meaning: str
    retry: str


def _table(*rows: tuple[str, str, str]) -> dict[str, Code]:
    return {name: Code(name, meaning, retry) for name, meaning, retry in rows}


CODES: dict[str, Code] = _table(
    ("INVALID_JSON", "the line is not one JSON object in valid UTF-8", "no"),
    ("REQUEST_TOO_LARGE", "the line is longer than CHECKPOINT_MAX_REQUEST_BYTES", "no"),
    ("UNKNOWN_ACTION", "the action is missing, not a string, or not one of the actions", "no"),
    ("INVALID_ARG", "a field is missing, misspelt, of the wrong type or out of range", "no"),
    ("DB_NOT_CONFIGURED", "the action needs PostgreSQL and DATABASE_URL is not set", "no"),
    ("PG_WRITE_ERROR", "PostgreSQL failed or cannot be reached; certainly nothing more was written", "yes"),
    ("PG_WRITE_UNKNOWN", "PostgreSQL failed, and whether the change was written cannot be known", "after a get"),
    ("PG_READ_ERROR", "PostgreSQL failed or cannot be reached while one checkpoint was read", "yes"),
    ("PG_LIST_ERROR", "PostgreSQL failed or cannot be reached while a list was read", "yes"),
    ("VERIFY_FAILED", "one of the two sides could not be read to its end; nothing is said about them", "yes"),
    ("REBUILD_FAILED", "PostgreSQL or the cache failed; the old cache is as it was", "yes"),
    ("REVISION_CONFLICT", "the checkpoint does not have the expected revision; nothing was changed", "after a get"),
    ("TENANT_CONFLICT", "the checkpoint belongs to another tenant; nothing was changed", "no"),
    ("TENANT_DENIED", "the process or its database role is pinned to one tenant and the request names another", "no"),
    ("KIND_CONFLICT", "the record is not an ordinary checkpoint; nothing was changed", "no"),
    ("APPROVAL_NOT_FOUND", "no approval stands under the key, or it is another tenant's", "no"),
    ("TOKEN_MISMATCH", "the token is not the one of this approval; nothing was changed or used up", "no"),
    ("INPUT_CHANGED", "the input is not the one that the stored report was prepared for; nothing was changed", "no"),
    ("ALREADY_DECIDED", "the approval was decided the other way before; nothing was changed", "no"),
    ("APPROVAL_EXPIRED", "the time in which the approval could be decided is over; nothing was changed", "no"),
    ("OUTPUT_CONFLICT", "something else than the report stands under the output's name; it was left alone", "no"),
    ("OUTPUT_MISSING", "the output file of a completed approval is gone; it was not written again", "after the repair"),
    ("OUTPUT_WRITE_ERROR", "the output file cannot be written or read; nothing was changed", "after the repair"),
    ("CORRUPT_STATE", "the record is not an approval as it was stored; nothing was changed", "no"),
    ("INTERNAL_ERROR", "a fault of this program; its traceback is on stderr", "no"),
)

OTHER_TENANT = "this workflow_id and step_id belong to another tenant; use other ids"  # the sentence of TENANT_CONFLICT


class CheckpointError(Exception):
    """An answer that is not a success: one code of `CODES` and a sentence that names the field and the mend.

    The sentence never holds a secret or a piece of `state_data` (contract, section 2). `unreachable` tells that there
    is no PostgreSQL to ask, as against one that refuses.
    """

    def __init__(self, code: str, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable
        self.code = CODES[code].name
        self.message = message


class SettingsError(Exception):
    """A setting that cannot be used: one line that names the variable (contract, section 6)."""
