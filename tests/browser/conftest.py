"""One browser for all of these tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.browser import chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser.chromium import Browser


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium. Without one these tests are skipped, unless CHROMIUM names the one to use."""
    try:
        program = chromium.find()
    except chromium.NoBrowser as error:
        if os.environ.get("CHROMIUM"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    with chromium.started(program, tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
