"""Interrupts at random moments: `python tests/reliability/interrupts.py` plays many more of them."""

import signal

import pytest
from reliability import interrupts

FAST = ("interpreted", "engine with a log")


@pytest.mark.check
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarms")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in FAST else pytest.mark.slow) for kind in interrupts.KINDS]
)
def test_an_interrupted_simulation_is_whole_or_says_that_it_is_not(kind: str):
    trial = interrupts.run(kind, 10 if kind in FAST else 50, seed=1)
    assert trial.wrong == []
    assert trial.outcomes.total() in (10, 50)
    assert trial.outcomes[interrupts.WRONG] == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarms")
@pytest.mark.parametrize("is_warm", [True, False])
def test_after_an_interrupted_first_call_the_next_one_works(is_warm: bool):
    kind = interrupts.FirstCall("make", "palaestra/CartPole-v0", {}, is_warm)
    assert interrupts.run_first_calls(3, (kind,)) == []
