"""The environment, read once into one frozen object (contract, section 6)."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from checkpoint.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG_LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
POSTGRES_PREFIXES = ("postgresql://", "postgres://")
EMBEDDED_PREFIX = "embedded:"
MOST_DIGITS = 18
MOST_ID_CHARACTERS = 255
MOST_NAME_BYTES = 63  # of an identifier in PostgreSQL

# What libpq can certainly read. It is asked about anything else; a cache hit would not load it otherwise.
_WORD = r"[\w.~!$*+-]"
_OPTION = r"(host|port|user|dbname|sslmode|application_name|connect_timeout|target_session_attrs)=[\w./-]+"
_is_plain_url = re.compile(
    rf"postgres(ql)?://({_WORD}+(:{_WORD}*)?@)?[\w.-]*(:[0-9]{{1,5}})?(/[\w.-]*)?(\?{_OPTION}(&{_OPTION})*)?", re.ASCII
).fullmatch


class Variable(NamedTuple):
    """One environment variable: its name, its default as one would write it, and what it means."""

    name: str
    default: str | None
    meaning: str


VARIABLES: tuple[Variable, ...] = (
    Variable(
        "DATABASE_URL",
        None,
        "libpq URL or key=value string of the PostgreSQL authority, several hosts allowed; or embedded: or "
        "embedded:PATH for a server that the product starts itself",
    ),
    Variable("CHECKPOINT_SCHEMA", "public", "PostgreSQL schema that holds the tables"),
    Variable(
        "CHECKPOINT_DATA_DIR", "data/checkpoint_mcp", "folder of cache.db, reports/ and artifacts/; made on first use"
    ),
    Variable(
        "CHECKPOINT_ARTIFACTS_DIR", None, "folder of approved output; where unset artifacts/ in CHECKPOINT_DATA_DIR"
    ),
    Variable("CHECKPOINT_CACHE_TTL", "300", "seconds for which a cache entry is served after PostgreSQL confirmed it"),
    Variable(
        "CHECKPOINT_CACHE_MAX_BYTES", "1073741824", "size limit of the cache file in bytes; oldest entries go first"
    ),
    Variable("CHECKPOINT_CACHE_WAIT_MS", "50", "milliseconds that an answer waits at most for its cache write"),
    Variable(
        "CHECKPOINT_TENANT", None, "the one tenant that this process serves; requests that name another are refused"
    ),
    Variable("CHECKPOINT_REBUILD_LIMIT", "10000", "rows that one rebuild reads at most"),
    Variable("CHECKPOINT_MAX_REQUEST_BYTES", "67108864", "bytes of one request line at most"),
    Variable("CHECKPOINT_CONNECT_TIMEOUT", "5", "seconds to wait for a connection to one host"),
    Variable("CHECKPOINT_STATEMENT_TIMEOUT", "30", "seconds to wait for one PostgreSQL statement"),
    Variable(
        "CHECKPOINT_APPROVAL_SECRET",
        None,
        "makes approval tokens a proof: only processes that have it can compute them, only an approver's shows them",
    ),
    Variable(
        "CHECKPOINT_APPROVAL_SECRET_PREVIOUS", None, "the secret before; tokens made with it are accepted for a while"
    ),
    Variable("CHECKPOINT_APPROVER", None, "1 lets pending show the tokens made with CHECKPOINT_APPROVAL_SECRET"),
    Variable("CHECKPOINT_TIMEZONE", "UTC", "IANA time zone of the times in answers"),
    Variable("CHECKPOINT_LOG_LEVEL", "WARNING", "DEBUG, INFO, WARNING, ERROR or CRITICAL; JSON lines on stderr"),
)
_DEFAULTS = {variable.name: variable.default for variable in VARIABLES}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the environment asks for, checked. Times are in seconds unless the name says otherwise."""

    database_url: str | None
    schema: str
    data_dir: str
    artifacts_dir: str
    cache_ttl: float
    cache_max_bytes: int
    cache_wait_ms: int
    tenant: str | None
    rebuild_limit: int
    max_request_bytes: int
    connect_timeout: float
    statement_timeout: float
    approval_secret: str | None
    approval_secret_previous: str | None
    approver: bool
    timezone: str
    log_level: int

    @property
    def cache_path(self) -> str:
        """Absolute path of the cache file."""
        return os.path.join(self.data_dir, "cache.db")

    @property
    def reports_dir(self) -> str:
        """Absolute path of the folder of verify reports."""
        return os.path.join(self.data_dir, "reports")


def load(environ: Mapping[str, str]) -> Settings:
    """Settings from `environ`; an empty value counts as unset. Raises SettingsError naming the variable."""
    reader = _Reader(environ)
    data_dir = reader.folder("CHECKPOINT_DATA_DIR")
    secret, previous = reader.secret("CHECKPOINT_APPROVAL_SECRET"), reader.secret("CHECKPOINT_APPROVAL_SECRET_PREVIOUS")
    if previous is not None and secret is None:
        raise SettingsError("CHECKPOINT_APPROVAL_SECRET_PREVIOUS needs CHECKPOINT_APPROVAL_SECRET beside it")
    return Settings(
        database_url=reader.database_url("DATABASE_URL"),
        schema=reader.identifier("CHECKPOINT_SCHEMA"),
        data_dir=data_dir,
        artifacts_dir=reader.folder("CHECKPOINT_ARTIFACTS_DIR", os.path.join(data_dir, "artifacts")),
        cache_ttl=reader.number("CHECKPOINT_CACHE_TTL", least=0, most=10**10),
        cache_max_bytes=reader.integer("CHECKPOINT_CACHE_MAX_BYTES", least=65536, most=2**46),
        cache_wait_ms=reader.integer("CHECKPOINT_CACHE_WAIT_MS", least=0, most=60_000),
        tenant=reader.tenant("CHECKPOINT_TENANT"),
        rebuild_limit=reader.integer("CHECKPOINT_REBUILD_LIMIT", least=1, most=10**12),
        max_request_bytes=reader.integer("CHECKPOINT_MAX_REQUEST_BYTES", least=64, most=2**30),
        connect_timeout=reader.number("CHECKPOINT_CONNECT_TIMEOUT", least=2, most=3600),  # the driver knows no less
        statement_timeout=reader.number("CHECKPOINT_STATEMENT_TIMEOUT", least=0.1, most=86400),
        approval_secret=secret,
        approval_secret_previous=previous,
        approver=reader.flag("CHECKPOINT_APPROVER"),
        timezone=reader.timezone("CHECKPOINT_TIMEZONE"),
        log_level=reader.log_level("CHECKPOINT_LOG_LEVEL"),
    )


class _Reader:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def _text(self, name: str) -> str:
        return self._environ.get(name, "").strip() or _DEFAULTS[name] or ""

    def number(self, name: str, *, least: float, most: float) -> float:
        try:
            value = float(self._text(name))
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise SettingsError(f"{name} must be a number from {least:g} to {most:g}")
        return value

    def integer(self, name: str, *, least: int, most: int) -> int:
        text = self._text(name)
        if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and least <= int(text) <= most):
            raise SettingsError(f"{name} must be a whole number from {least} to {most}")
        return int(text)

    def database_url(self, name: str) -> str | None:
        text = self._text(name)
        if not text or text.startswith(EMBEDDED_PREFIX) or _is_plain_url(text):
            return text or None
        if not text.startswith(POSTGRES_PREFIXES) and ("=" not in text or "://" in text.split("=", 1)[0]):
            raise SettingsError(
                f"{name} must start with postgresql:// (or be a libpq key=value string), "
                "or be embedded: or embedded:PATH"
            )
        import psycopg

        try:
            parts = psycopg.conninfo.conninfo_to_dict(text)
        except (psycopg.Error, UnicodeError):  # its text repeats the string, password included
            raise SettingsError(
                f"{name} cannot be read by libpq: it is postgresql://user:password@host:port/database with special"
                " characters percent-encoded and known options only, or known key=value pairs"
            ) from None
        if not re.fullmatch(r"[0-9,]*", str(parts.get("port") or "")):
            raise SettingsError(f"{name} has a port that is no number; percent-encode what is special in the password")
        return text

    def identifier(self, name: str) -> str:
        text = self._text(name)
        if "\0" in text or len(text.encode("utf-8", "surrogateescape")) > MOST_NAME_BYTES or text.startswith("pg_"):
            raise SettingsError(
                f"{name} must be a PostgreSQL schema name of at most 63 bytes that does not start with pg_"
            )
        return text

    def tenant(self, name: str) -> str | None:
        text = self._environ.get(name, "")
        if text and (len(text) > MOST_ID_CHARACTERS or not text.strip() or any(_is_control(c) for c in text)):
            raise SettingsError(f"{name} must be 1 to 255 characters without control characters, not only white space")
        return text or None

    def folder(self, name: str, otherwise: str = "") -> str:
        return os.path.abspath(os.path.expanduser(self._text(name) or otherwise))

    def secret(self, name: str) -> str | None:
        return self._text(name) or None

    def flag(self, name: str) -> bool:
        text = self._text(name)
        if text not in ("", "0", "1"):
            raise SettingsError(f"{name} must be 1 or 0")
        return text == "1"

    def timezone(self, name: str) -> str:
        text = self._text(name)
        if text != "UTC":
            from zoneinfo import ZoneInfo

            try:
                ZoneInfo(text)
            except (KeyError, ValueError, OSError):
                raise SettingsError(f"{name} must be the name of an IANA time zone, such as Asia/Shanghai") from None
        return text

    def log_level(self, name: str) -> int:
        level = LOG_LEVELS.get(self._text(name).upper())
        if level is None:
            raise SettingsError(f"{name} must be one of {', '.join(LOG_LEVELS)}")
        return level


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"
