"""Every check catches the fault that is planted for it; that sound games pass is shown in test_coverage_of_calls."""

import re

import pytest
from testing import face_faults  # noqa: F401 (it plants more)
from testing.faults import FAULTS
from testing.planting import DUEL, Fault

from palaestra.testing import CHECKS, check

pytestmark = pytest.mark.usefixtures("broken_games_are_registered")

CHECKED = [fault for fault in FAULTS if fault.check]
"""Others are those of `tests/reliability`, which any check may see."""
SLOW = {"workers_do_not_change_results"}


@pytest.mark.parametrize("name", CHECKS)
def test_there_is_a_fault_for_every_check(name: str):
    assert name in {fault.check for fault in CHECKED}


@pytest.mark.check
@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, id=f"{f.check}: {f.about}", marks=[pytest.mark.slow] * (f.check in SLOW)) for f in CHECKED],
)
def test_a_check_catches_its_fault(fault: Fault):
    assert fault.subject is not None
    report = check(fault.subject(), only=[fault.check])
    result = report[fault.check]
    assert result.status == "FAILED", f"not seen: {fault.about}\n{report}"
    assert re.search(fault.match, result.message), result.message


@pytest.mark.slow
@pytest.mark.parametrize("id", [DUEL])
def test_sound_games_pass_at_length(id: str):
    report = check(id, "full", skip=["registered_everywhere"], fault=0)
    assert report.passed, str(report)
