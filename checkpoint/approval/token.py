"""The token of a decision: a mark that anybody can compute, or with a secret a proof (contract, section 5)."""

from __future__ import annotations

import hmac
import os
from typing import TYPE_CHECKING

from checkpoint.approval.canonical import digest

if TYPE_CHECKING:
    from checkpoint.approval.record import Approval
    from checkpoint.settings import Settings


class Tokens:
    """Tokens under the settings of this process. `bound` is always the text that the token is taken over."""

    def __init__(self, settings: Settings) -> None:
        self._secrets = [
            os.fsencode(secret)
            for secret in (settings.approval_secret, settings.approval_secret_previous)
            if secret is not None
        ]
        self._approver = settings.approver

    def stored(self, bound: bytes) -> str | None:
        """What the record holds: the token, or nothing where a secret makes it."""
        return None if self._secrets else digest(bound)

    def for_requester(self, approval: Approval) -> str | None:
        """What the process that asks is shown."""
        return None if self._secrets else approval.approval_token

    def for_approver(self, approval: Approval, bound: bytes) -> str | None:
        """What `pending` shows: with a secret only in a process of an approver."""
        if not self._secrets:
            return approval.approval_token
        return _keyed(self._secrets[0], bound) if self._approver else None

    def accepts(self, token: str, approval: Approval, bound: bytes) -> bool:
        """Whether `token` is the one of this approval, in time that does not depend on where they differ."""
        if self._secrets:
            valid = [_keyed(secret, bound) for secret in self._secrets]
        else:
            valid = [] if approval.approval_token is None else [approval.approval_token]
        given = token.encode("utf-8", "surrogatepass")
        return any(hmac.compare_digest(given, one.encode()) for one in valid)


def _keyed(secret: bytes, bound: bytes) -> str:
    return hmac.digest(secret, bound, "sha256").hex()
