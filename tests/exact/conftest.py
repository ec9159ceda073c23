"""What holds for the tests of the solvers: teams take turns on a board of 3 x 3, and its rules are interpreted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from palaestra.exact import positions


@pytest.fixture(scope="module", autouse=True)
def interprets_small_boards() -> Iterator[None]:
    """The kernel of alternating order takes the compiler longer than all of its tests take interpreted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "INTERPRETED_TO", 8000)
        yield
