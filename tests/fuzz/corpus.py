"""The lines to begin with: every request of the golden conversations."""

from __future__ import annotations

from tests.support.golden import conversations


def golden_lines() -> list[bytes]:
    """Each request line of the golden conversations once, as it is sent, without those of more than 20 kB."""
    sent = {step["send"].encode() for conversation in conversations() for step in conversation.steps if "send" in step}
    return sorted(line for line in sent if len(line) < 20_000)
