"""Short trainings: settings, and a run that is interrupted and resumed beside one that is not."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.training import Evaluation, Report

OF_MAPPO: dict[str, Any] = {
    "total_steps": 320,
    "lanes": 8,
    "rollout": 8,
    "chunk": 4,
    "epochs": 2,
    "minibatches": 3,
    "hidden": (8, 4),
    "critic_hidden": (8,),
    "evaluations": 2,
    "matches": 4,
    "quiet": True,
}


class Stop(Exception):
    """An error ends the run, not Ctrl-C."""


def no_figures(_: Any) -> dict[str, float]:
    return {}


def evaluation_until(number: int, end: Callable[[], Any]) -> Evaluation:
    """Evaluations without figures; the one of this number, counted from 1, calls ``end``."""
    evaluated = itertools.count(1)

    def evaluation(_: Any) -> dict[str, float]:
        if next(evaluated) == number:
            end()
        return {}

    return evaluation


def whole_and_resumed(
    method: Any,
    args: Any,
    folder: Path,
    *,
    evaluation: Evaluation | None = no_figures,
    stop_at: int = 3,
    stop: type[BaseException] = KeyboardInterrupt,
) -> tuple[Report, Report]:
    """Two runs: one without a break, and one that an evaluation ends with ``stop`` before it is resumed."""

    def end() -> None:
        raise stop

    whole = method.train(dataclasses.replace(args, directory=folder / "whole"), evaluation)
    halves = dataclasses.replace(args, directory=folder / "halves")
    with pytest.raises(stop):
        method.train(halves, evaluation_until(stop_at, end))
    return whole, method.train(dataclasses.replace(halves, resume=True), evaluation)


def resumed_after(iterations: int, name: str, method: Any, args: Any) -> Report:
    """Resumes a training whose ``Run.<name>`` was interrupted once it had done so many iterations."""
    kept = getattr(method.Run, name)

    def stop_late(run: Any, *given: Any) -> None:
        if run.updates == iterations:
            raise KeyboardInterrupt
        kept(run, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(method.Run, name, stop_late)
        with pytest.raises(KeyboardInterrupt):
            method.train(args)
    return method.train(dataclasses.replace(args, resume=True))


def assert_same_policy(whole: Report, resumed: Report) -> None:
    """Weights are the same to the bit, and so are the numbers of decisions and gradient steps."""
    assert (resumed.steps, resumed.updates) == (whole.steps, whole.updates)
    arrays, others = (read_policy(report.weights)[0] for report in (whole, resumed))
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name])


def assert_same_run(whole: Report, resumed: Report) -> None:
    """Policies and curves are the same to the bit, processor time left out."""
    assert_same_policy(whole, resumed)
    rows = [[{**row, "cpu_s": 0.0} for row in report.log] for report in (whole, resumed)]
    assert rows[0] == rows[1]
