"""The pilot that hunts: its curriculum, short trainings, resumed runs, and the weights that ship."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")

from baselines.short_runs import assert_same_run, no_figures, whole_and_resumed

import palaestra_assets
from palaestra import registry
from palaestra.core.run.opponents import policy_metadata
from palaestra_baselines import ucav_pursuit
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.run_folder import read_rows
from palaestra_baselines.ucav_pursuit import RUNGS, TEAM, TESTS, WEAVE, Args, Lanes, kill_share, lanes_of_rungs

pytestmark = pytest.mark.check

SMALL = Args(total_steps=2048, lanes=16, rollout=32, minibatches=4, epochs=4, evaluations=4, matches=4, quiet=True)
SMALL = dataclasses.replace(SMALL, window=8, hunters=0.2)
SHIPPED = "weights/ucav_pursuit.safetensors"


@pytest.fixture(scope="module")
def lanes() -> Any:
    """Lanes of a small run."""
    made = Lanes(SMALL)
    yield made
    made.close()


def set_rung(lanes: Lanes, cone_deg: float, won: int, matches: int = 8) -> None:
    """Puts the first rung to a cone and to results of its last matches; no other rung has any."""
    lanes.cones_deg = [cone_deg, 15.0, 15.0, 15.0]
    lanes.won = [[1] * won + [0] * (matches - won), [], [], []]


# -- curriculum --------------------------------------------------------------------------------------------------------


def test_every_lane_is_on_one_rung_and_each_rung_has_its_share():
    for hunters in (0.0, 0.25):
        lanes = lanes_of_rungs(Args(lanes=128, hunters=hunters))
        assert np.concatenate(lanes).tolist() == list(range(128))
        assert [len(some) for some in lanes] == [76 - 128 * hunters, 26, 26, 128 * hunters]


@pytest.mark.parametrize(("won", "matches", "narrows"), [(5, 8, True), (4, 8, False), (7, 7, False)])
def test_a_cone_narrows_only_when_most_of_a_full_window_was_won(lanes: Lanes, won: int, matches: int, narrows: bool):
    set_rung(lanes, 10.0, won, matches)
    lanes.narrow()
    assert lanes.cones_deg == [pytest.approx(9.3 if narrows else 10.0), 15.0, 15.0, 15.0]
    own = lanes.sim.parameters["cone_half_angle_deg"][lanes.rung_of == 0]
    assert own.tolist() == pytest.approx([lanes.cones_deg[0]] * len(own))


def test_only_the_last_matches_count(lanes: Lanes):
    set_rung(lanes, 10.0, 8)
    lanes.won[0] += [0] * 8
    lanes.narrow()
    assert lanes.cones_deg[0] == 10.0


@pytest.mark.parametrize(("rung", "narrowest"), [("behind", 1.0), ("hunters", 2.0)])
def test_no_cone_falls_below_the_narrowest(lanes: Lanes, rung: str, narrowest: float):
    number = list(RUNGS).index(rung)
    set_rung(lanes, 15.0, 0)
    lanes.cones_deg[number], lanes.won[number] = narrowest + 0.01, [1] * 8
    lanes.narrow()
    assert lanes.cones_deg[number] == narrowest


def test_rungs_differ_in_targets_and_rules(lanes: Lanes):
    parameters = lanes.sim.parameters
    behind, low, far, hunters = (lanes.rung_of == number for number in range(len(RUNGS)))
    assert parameters["altitude_high_m"][low].max() < parameters["altitude_low_m"][behind].min()
    assert parameters["behind_range_high_m"][far].min() > parameters["behind_range_high_m"][behind].max()
    assert parameters["horizon"][behind].max() < parameters["horizon"][hunters].min()
    scripts = np.array(lanes.sim.game.scripts)[lanes.sim.states["current_player"][:, 1]]
    assert set(scripts[hunters]) == {"pure_fast", "pure_pursuit"}
    assert set(scripts[~hunters]) == {"weave", "level_turn", "straight"}


def test_a_won_match_counts_on_the_rung_of_its_lane(lanes: Lanes):
    set_rung(lanes, 15.0, 0, 0)
    far = lanes.rung_of == 2
    lanes.sim.states["health"][far, 1] = 0.0
    lanes.step(np.zeros((SMALL.lanes, 4)))
    assert lanes.won == [[], [], [1] * far.sum(), []]


def test_a_checkpoint_holds_the_curriculum(lanes: Lanes):
    set_rung(lanes, 7.0, 5)
    state, before = lanes.state(), lanes.figures()
    set_rung(lanes, 9.0, 2)
    lanes.restore(state)
    assert lanes.figures() == before


# -- trainings ---------------------------------------------------------------------------------------------------------


def test_the_learning_rate_falls_over_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rates: list[float] = []
    made = ucav_pursuit.make_ppo

    def noted(*given: Any, **named: Any) -> Any:
        model = made(*given, **named)
        train = model.train

        def train_noted() -> None:
            train()
            rates.append(model.policy.optimizer.param_groups[0]["lr"])

        model.train = train_noted
        return model

    monkeypatch.setattr(ucav_pursuit, "make_ppo", noted)
    report = ucav_pursuit.train(dataclasses.replace(SMALL, directory=tmp_path), no_figures)
    assert rates == pytest.approx([7e-4, 5.6e-4, 4.2e-4, 2.8e-4])
    assert [row["steps"] for row in read_rows(tmp_path / "seed_0" / "log.csv")] == [0, 512, 1024, 1536, 2048]
    assert (report.steps, report.updates) == (2048, 4 * 4 * 4)


def test_a_resumed_run_goes_on_bitwise(tmp_path: Path):
    assert_same_run(*whole_and_resumed(ucav_pursuit, SMALL, tmp_path))


def test_a_saved_pilot_does_what_the_mean_of_the_policy_does(tmp_path: Path, lanes: Lanes):
    report = ucav_pursuit.train(dataclasses.replace(SMALL, directory=tmp_path, total_steps=512), no_figures)
    model = ucav_pursuit.make_ppo(SMALL, "MlpPolicy", lanes, log_std_init=-0.7)
    policy: Any = model.policy
    for name, value in read_policy(report.weights)[0].items():
        number, part = name.removeprefix("layer_").split(".")
        layer: Any = [*policy.mlp_extractor.policy_net[::2], policy.action_net][int(number)]
        getattr(layer, part).data = getattr(layer, part).data.new_tensor(value)
    seen = lanes.reset()
    player = ucav_pursuit.load_policy(report.weights, lanes.sim.game, TEAM)
    expected, _ = model.predict(seen, deterministic=True)
    np.testing.assert_allclose(player(seen), expected, atol=1e-6)


@pytest.mark.slow
def test_it_learns_to_hit_in_seconds(tmp_path: Path):
    args = Args(directory=tmp_path, total_steps=250_000, evaluations=2, cone_deg=(15.0, 15.0), quiet=True)
    report = ucav_pursuit.train(args, no_figures)
    untrained, _, learnt = report.log
    assert untrained["won_behind"] == 0.0
    assert learnt["won_behind"] > 0.5


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env_id": "palaestra/UcavDogfight-v2"}, "--env-id is a preset of UcavPursuit"),
        ({"minibatches": 7}, "--minibatches must divide the 512 decisions"),
        ({"hunters": 0.6}, "--hunters leaves lanes"),
        ({"won_share": 1.5}, "--won-share must be between 0 and 1"),
    ],
)
def test_arguments_that_cannot_be_are_refused(given: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SMALL, **given).check()


# -- the weights that ship ---------------------------------------------------------------------------------------------


def test_the_bundled_pilot_says_where_it_comes_from():
    notes = policy_metadata(palaestra_assets.path(SHIPPED))
    assert (notes["method"], notes["game"]) == (ucav_pursuit.METHOD, ucav_pursuit.GAME)
    assert palaestra_assets.path(SHIPPED).stat().st_size < 100_000


def test_the_bundled_pilot_shoots_down_what_weaves_and_what_hunts():
    game, _ = registry.make_game(Args().env_id)
    player = ucav_pursuit.load_policy(palaestra_assets.path(SHIPPED), game, TEAM)
    assert kill_share(Args(), player, TESTS[WEAVE], 64) >= 0.95
    assert kill_share(Args(), player, TESTS["pure_pursuit, 3 deg"], 64) >= 0.5
