"""The ledger of a storm finds each kind of wrong, and nothing wrong in what is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.chaos import ledger as book
from tests.chaos.ledger import START, Key, Ledger

if TYPE_CHECKING:
    from collections import Counter


@pytest.fixture
def ledger() -> Ledger:
    """An empty book."""
    return Ledger()


@pytest.fixture
def owned() -> Key:
    """A key with one writer."""
    return Key("wf", "owned", owned=True)


@pytest.fixture
def contended() -> Key:
    """A key with many writers."""
    return Key("wf", "contended", owned=False)


def row(key: Key, ticket: int, revision: int, row_id: int = 1) -> dict[str, Any]:
    """A row as it is answered."""
    return {"id": row_id, "revision": revision, "state_data": key.state(ticket)}


def saved(ledger: Ledger, key: Key, revision: int) -> int:
    """An acknowledged save; its ticket."""
    ticket = ledger.attempt(key)
    ledger.acknowledged("writer", key, ticket, row(key, ticket, revision))
    return ticket


def read(ledger: Ledger, key: Key, found: dict[str, Any] | None) -> Counter[str]:
    """What the ledger says of a read of PostgreSQL."""
    ledger.judge("reader", key, found, {book.LOST: ledger.floor(key)})
    return ledger.wrongs


def test_what_was_acknowledged_last_is_right(ledger: Ledger, owned: Key, contended: Key) -> None:
    """A read of the newest acknowledged state is no wrong, and counts as a check."""
    for key in (owned, contended):
        assert not read(ledger, key, row(key, saved(ledger, key, 1), 1))
    assert ledger.consistency() == 100


def test_nothing_is_right_before_anything_was_acknowledged(ledger: Ledger, owned: Key) -> None:
    """A key of which no save was acknowledged may be missing."""
    ledger.attempt(owned)
    assert not read(ledger, owned, None)


def test_an_older_state_is_a_lost_save(ledger: Ledger, owned: Key, contended: Key) -> None:
    """PostgreSQL showing less than was acknowledged is a loss, told once however often it is read."""
    for number, key in enumerate((owned, contended), 1):
        first = saved(ledger, key, 1)
        saved(ledger, key, 2)
        assert read(ledger, key, row(key, first, 1))[book.LOST] == number
        assert read(ledger, key, row(key, first, 1))[book.LOST] == number
    assert ledger.consistency() < 100


def test_a_missing_row_is_a_lost_save(ledger: Ledger, owned: Key, contended: Key) -> None:
    """So is no row at all, where nobody deleted it."""
    for number, key in enumerate((owned, contended), 1):
        saved(ledger, key, 1)
        assert read(ledger, key, None)[book.LOST] == number


def test_a_row_that_was_deleted_may_be_missing_and_must_not_come_back(ledger: Ledger, owned: Key) -> None:
    """An acknowledged delete makes nothing right, and the state before it wrong."""
    first = saved(ledger, owned, 1)
    ledger.acknowledged("writer", owned, ledger.attempt(owned, removes=True), None)
    assert not read(ledger, owned, None)
    assert read(ledger, owned, row(owned, first, 1))[book.LOST] == 1


def test_an_unknown_outcome_may_stand_or_not(ledger: Ledger, owned: Key) -> None:
    """A save without an answer is right where it stands, and right where the one before it stands."""
    first = saved(ledger, owned, 1)
    opened = ledger.attempt(owned)
    assert not read(ledger, owned, row(owned, first, 1))
    assert not read(ledger, owned, row(owned, opened, 2))


def test_a_delete_of_unknown_outcome_explains_a_missing_row(ledger: Ledger, owned: Key) -> None:
    """A row may be missing after a delete without an answer; after a refused one it may not."""
    saved(ledger, owned, 1)
    ticket = ledger.attempt(owned, removes=True)
    assert not read(ledger, owned, None)
    ledger.refused("writer", owned, ticket)
    assert read(ledger, owned, None)[book.LOST] == 1


def test_a_refused_save_must_not_be_read(ledger: Ledger, contended: Key) -> None:
    """Where the answer was "certainly not written", the state is one that was never saved, read before or after."""
    before, after = ledger.attempt(contended), ledger.attempt(contended)
    read(ledger, contended, row(contended, before, 1))
    ledger.refused("writer", contended, before)
    assert ledger.wrongs[book.NEVER_SAVED] == 1
    ledger.refused("writer", contended, after)
    assert read(ledger, contended, row(contended, after, 2))[book.NEVER_SAVED] == 2


@pytest.mark.parametrize("change", [{"ticket": 99}, {"fill": "changed"}, {"key": "wf/other"}, {"ticket": None}])
def test_a_state_that_nobody_sent_is_seen(ledger: Ledger, owned: Key, change: dict[str, object]) -> None:
    """Not a byte of a state may differ from what was sent under its key."""
    found = row(owned, saved(ledger, owned, 1), 1)
    found["state_data"] |= change
    assert read(ledger, owned, found)[book.NEVER_SAVED] == 1


def test_one_revision_has_one_value(ledger: Ledger, owned: Key) -> None:
    """Two states under the same id and revision cannot both be true."""
    first = saved(ledger, owned, 1)
    second = saved(ledger, owned, 2)
    assert first != second
    assert read(ledger, owned, row(owned, second, 1))[book.TWO_VALUES] == 1


def test_each_floor_is_held_by_its_own_name(ledger: Ledger, owned: Key) -> None:
    """A cached read is held to what its process was acknowledged and shown, not to what others saved since."""
    first = saved(ledger, owned, 1)
    own = ledger.floor(owned)
    saved(ledger, owned, 2)
    ledger.judge("reader", owned, row(owned, first, 1), {book.OLDER_THAN_OWN: own, book.WENT_BACK: START})
    assert not ledger.wrongs
    ledger.judge("reader", owned, None, {book.OLDER_THAN_OWN: own})
    assert ledger.wrongs == {book.OLDER_THAN_OWN: 1}
