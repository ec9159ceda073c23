"""The outer loop of the dogfight: its lanes, what it sees, its funnel, and short leagues of both learners."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")

from baselines.short_runs import assert_same_run, whole_and_resumed

from palaestra_baselines import ucav_hierarchy
from palaestra_baselines.common.league import Opponents
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.ucav_hierarchy import Args, EvolutionLearner, PpoLearner, funnel

pytestmark = pytest.mark.check

SMALL = Args(
    training_options=("duration_s=10",),
    pairs=2,
    trials=4,
    lanes=4,
    rollout=16,
    minibatches=2,
    total_steps=1000,
    evaluations=2,
    matches=4,
    quiet=True,
)
PPO: dict[str, Any] = {"learner": "ppo", "total_steps": 256, "hidden": (8,)}


@pytest.fixture(scope="module")
def learner() -> EvolutionLearner:
    return EvolutionLearner(SMALL)


def test_it_starts_with_zeros(learner: EvolutionLearner):
    arrays = learner.arrays()
    assert not any(array.any() for array in arrays.values())
    assert arrays["layer_0.weight"].shape == (4, 62)


def test_what_it_sees_is_scaled_to_unit_deviation(learner: EvolutionLearner):
    shape = learner.shape
    assert len(shape.columns) == len(shape.deviations) < shape.size
    assert (shape.deviations > 0.0).all()
    assert shape.scales.tolist() == list(SMALL.action_scales)


def test_scripts_fly_the_stick_and_generations_play_either_team(learner: EvolutionLearner):
    pools: Any = {"red": "a pool", "blue": "a pool"}
    alone = learner.arenas(Opponents(SMALL.anchors, 0.5, {}))
    assert [(a.own, a.other, a.per_member, a.sim.game.symmetric_teams) for a in alone] == [("red", "blue", 4, False)]
    both = learner.arenas(Opponents(SMALL.anchors, 0.5, pools))
    told = [(a.own, a.other, a.per_member, a.sim.game.symmetric_teams) for a in both]
    assert told == [("red", "blue", 2, False), ("red", "blue", 1, True), ("blue", "red", 1, True)]
    assert all(a.sim.num_envs == 2 * SMALL.pairs * a.per_member for a in both)
    assert [bool(a.opponents.pools) for a in both] == [False, True, True]


def test_members_are_rated_by_health_and_ends_alone(learner: EvolutionLearner):
    (arena,) = learner.arenas(Opponents(("straight",), 1.0, {}))
    weights = {name: arena.sim.parameters[name][0] for name in ("posture_weight", "aim_weight", "altitude_weight")}
    assert not any(weights.values())


def test_a_policy_that_aims_away_is_rated_lower(learner: EvolutionLearner):
    shape = dataclasses.replace(learner.shape, scales=np.ones(4))
    away = np.zeros(shape.parameters)
    away[-2] = 1.0  # aim straight up
    args = dataclasses.replace(SMALL, training_options=("duration_s=60",), anchors=("straight",))
    (arena,) = EvolutionLearner(args).arenas(Opponents(("straight",), 1.0, {}))
    arena.sim.set_parameters(cone_half_angle_deg=15.0, start="offensive")
    returns, _ = arena.play(shape, np.stack([np.zeros_like(away), away] * 2), np.arange(4, dtype=np.uint64), 0)
    assert returns[0].mean() > 0.5 > returns[1].mean()
    np.testing.assert_array_equal(returns[:2], returns[2:])


def test_the_funnel_counts_what_came_of_chances():
    figures = funnel(SMALL, "lead_pursuit", "straight", 8)
    ends = sum(value for name, value in figures.items() if name.startswith("end_"))
    assert ends == pytest.approx(1.0)
    assert 0.0 <= figures["rear"] + figures["front"] <= 1.0
    assert figures["opportunities"] > 0.0
    assert figures["end_kill"] > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, PPO, {**PPO, "anchor_share": 0.0, "draw": "latest", "latest_share": 1.0}])
def test_a_league_resumes_to_the_same_bytes(tmp_path: Path, more: dict[str, Any]):
    args = dataclasses.replace(SMALL, **more)
    whole, halves = whole_and_resumed(ucav_hierarchy, args, tmp_path, stop_at=2)
    assert_same_run(whole, halves)
    (one, _), (other, _) = (
        read_policy(tmp_path / half / "seed_0" / "generation_1.safetensors") for half in ("whole", "halves")
    )
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_ppo_learns_the_rate_of_its_schedule_and_goes_on_from_a_generation(monkeypatch: pytest.MonkeyPatch):
    args = dataclasses.replace(SMALL, **PPO, learning_rate=(4e-4, 2e-4))
    learner = PpoLearner(args)
    rates = []
    learn = learner.model.learn
    monkeypatch.setattr(learner.model, "learn", lambda n: (rates.append(learner.model.lr_schedule(1.0)), learn(n))[1])
    before = learner.state()
    shown: list[int] = []
    assert learner.train(Opponents(args.anchors, 1.0, {}), 1, 128, shown.append) == 128
    assert shown == [64, 128]
    assert rates == pytest.approx([4e-4, 3.5e-4])
    after = learner.arrays()
    learner.restore(before)
    assert any((learner.arrays()[name] != after[name]).any() for name in after)
