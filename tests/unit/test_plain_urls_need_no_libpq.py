"""A DATABASE_URL that is taken without asking libpq is one that libpq can read (contract, section 6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from psycopg import conninfo

from checkpoint import settings

PART = st.text("aZ9._~-!$*+", max_size=5)
URLS = st.builds(
    "{}://{}{}{}{}{}".format,
    st.sampled_from(["postgresql", "postgres"]),
    st.one_of(st.just(""), st.builds("{}:{}@".format, PART, PART), st.builds("{}@".format, PART)),
    st.sampled_from(["", "localhost", "db.example.com", "10.0.0.1", "[::1]"]),
    st.sampled_from(["", ":5432", ":1", ":x"]),
    st.one_of(st.just(""), st.builds("/{}".format, PART)),
    st.sampled_from(["", "?sslmode=require", "?host=/run/pg&port=5433", "?sslmode=require&application_name=a.b"]),
)


@given(URLS)
def test_what_is_plain_is_read_by_libpq(url: str) -> None:
    """Whatever the parts, no plain URL makes libpq raise."""
    if settings._is_plain_url(url):
        conninfo.conninfo_to_dict(url)


def test_usual_urls_are_plain() -> None:
    """What people write most need not wait for libpq."""
    for url in (
        "postgresql://app:secret@db.example.com:5432/shop",
        "postgres://localhost/x",
        "postgresql:///postgres?host=/tmp/checkpoint&port=5432",
        "postgresql://app@db/shop?sslmode=require",
    ):
        assert settings._is_plain_url(url), url
