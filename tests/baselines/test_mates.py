"""One agent learns beside teammates that others play: who decides, what evaluations play, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

from baselines.short_runs import OF_MAPPO

from palaestra.evaluation import evaluate
from palaestra_baselines import mappo, vdn
from palaestra_baselines.common.many_runs import train_runs
from palaestra_baselines.common.run_folder import WEIGHTS, RunFolder
from palaestra_baselines.common.training import EVALUATION_SEED

pytestmark = pytest.mark.check
TAG = "palaestra/TeamTag-2v2-v0"
SMALL: dict[str, Any] = {"env_id": TAG, "team": "red", "opponent": "random", "options": ("mates=random",), **OF_MAPPO}


def test_the_learner_decides_for_the_first_agent_alone(tmp_path: Path):
    args = mappo.Args(**SMALL, directory=tmp_path)
    with RunFolder(args, "mappo") as folder:
        training = mappo.RolloutTraining(args, folder, None, args.rollout, with_state=True)
    sim, position = training.collector.sim, training.collector.position
    assert training.roster.decides.tolist() == [True, False]
    assert position.asked.all(axis=0).tolist() == [True, False]
    assert position.alive.all()
    assert (position.legal[:, 1].sum(axis=1) == 1).all(), "the others have their no-op alone"
    assert (sim.states["assigned_player"][:, sim.game.teams["red"]] == [-1, -2]).all()
    sim.close()


def test_runs_beside_others_are_trained_by_other_processes(tmp_path: Path):
    args = mappo.Args(**{**SMALL, "options": ("mates=random", "horizon=50")}, directory=tmp_path)
    train_runs("beside", [("palaestra_baselines.mappo", args, None)], 1)
    assert (args.folder / WEIGHTS).is_file()


def test_evaluations_play_the_first_agent_beside_the_same_players(tmp_path: Path):
    given = {**SMALL, "options": ("mates=default",)}
    report = mappo.train(mappo.Args(**given, directory=tmp_path))
    words: dict[str, Any] = {"matches": 4, "num_envs": 4, "seed": EVALUATION_SEED, "swap": False}
    beside = evaluate(TAG, str(report.weights), "random", mates="default", **words).results
    assert report.log[-1]["return"] == pytest.approx(beside["return_a"].mean())
    alone = evaluate(TAG, str(report.weights), "random", **words).results
    assert not np.array_equal(alone["return_a"], beside["return_a"])


@pytest.mark.parametrize(
    ("method", "given", "error"),
    [
        (vdn, {}, "vdn learns whole teams: leave --options mates= out, or learn one agent by mappo"),
        (mappo, {"team": "blue"}, "teammates to the first agent of the first team: say --team red, got 'blue'"),
        (mappo, {"options": ("mates=nobody",)}, "'nobody' is neither a script"),
    ],
)
def test_what_cannot_learn_beside_others_says_so(method: Any, given: dict[str, Any], error: str, tmp_path: Path):
    words = {
        name: SMALL[name]
        for name in ("env_id", "team", "opponent", "options", "total_steps", "lanes", "matches", "quiet")
    } | given
    with pytest.raises(ValueError, match=error):
        method.train(method.Args(**words, directory=tmp_path))
