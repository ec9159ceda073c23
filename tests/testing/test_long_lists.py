"""The conformance kit on agents that make 17 choices of 11,713 alternatives, listed by up to 256 candidates."""

import pytest
from games import hauliers

from palaestra.testing import check

IDS = ("tests/Hauliers-v0", "tests/Hauliers-2-v0")
CPU_S = 60.0
assert hauliers.ORDERS > 10_000


@pytest.mark.check
@pytest.mark.parametrize("id", IDS)
def test_one_of_a_million_illegal_actions_is_drawn_without_a_list_of_them(id: str):
    report = check(id, only=["illegal_actions_become_noops"])
    assert report.passed, str(report)
    assert report.cpu_seconds < 10.0


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
def test_the_fast_level_ends_within_a_minute(id: str):
    report = check(id)
    assert report.passed, str(report)
    assert report.cpu_seconds < CPU_S
