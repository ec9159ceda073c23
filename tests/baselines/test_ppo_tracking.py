"""The learned inner loop: it learns in seconds, its files load as saved, and an interrupted run resumes."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jsbsim")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")


import palaestra
from palaestra import registry
from palaestra.games.ucav.inner_loop import TRACKING, TRACKING_SIZE, load_inner_loop
from palaestra_baselines import ppo_tracking
from palaestra_baselines.common.policy_file import arrays_to_layers, read_policy, save_policy
from palaestra_baselines.common.run_folder import RunFolder, read_rows
from palaestra_baselines.pid import REFERENCE, Errors, measure_errors
from palaestra_baselines.ppo_tracking import (
    ENV_ID,
    TEST_SEED,
    evaluation_flights,
    layer_arrays,
    measure_conditions,
)

DOGFIGHT = "palaestra/UcavDogfight-v2"

SMALL = ppo_tracking.Args(
    total_steps=1024, lanes=8, workers=0, rollout_steps=32, batch_size=128, evaluations=2, flights=2, quiet=True
)


@pytest.fixture(autouse=True)
def short_flights(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations of trainings fly 20 s instead of 60 s."""
    if request.node.get_closest_marker("learning") is None:
        monkeypatch.setattr(ppo_tracking, "evaluation_flights", functools.partial(evaluation_flights, horizon=200))


def small(folder: Path, **changes) -> ppo_tracking.Args:
    return dataclasses.replace(SMALL, directory=folder, **changes)


def test_the_scales_of_the_input_fit_the_observation():
    assert len(ppo_tracking.INPUT_SCALE) == sum(f.size for f in TRACKING)


@pytest.mark.check
def test_a_short_training_writes_what_it_promises(tmp_path: Path):
    args = small(tmp_path)
    report = ppo_tracking.train(args)
    assert report.steps == 1024
    assert report.weights == tmp_path / "seed_0" / "best.safetensors"
    rows = read_rows(args.folder / "log.csv")
    assert [row["steps"] for row in rows] == [0, 512, 1024]
    assert report.cpu_s > 0
    arrays, notes = read_policy(report.weights)
    assert notes["method"] == "ppo_tracking"
    assert notes["env_id"] == ENV_ID
    assert notes["args"]["total_steps"] == 1024
    network = load_inner_loop(str(report.weights))
    assert network.sizes.tolist() == [TRACKING_SIZE, 64, 64, 4]
    np.testing.assert_array_equal(
        network.weights[: TRACKING_SIZE * 64].reshape(TRACKING_SIZE, 64).T, arrays["layer_0.weight"]
    )


@pytest.mark.check
def test_the_saved_perceptron_is_the_mean_of_sb3s_policy():
    vec = ppo_tracking.make_vec_env(SMALL)
    vec.seed(0)
    model = ppo_tracking.make_model(SMALL, vec)
    seen = vec.reset()
    assert isinstance(seen, np.ndarray)
    expected, _ = model.predict(seen, deterministic=True)
    np.testing.assert_allclose(ppo_tracking.player_of(ppo_tracking.policy_layers(model))(seen), expected, atol=1e-6)
    vec.close()


def test_the_last_lanes_fly_wide_commands():
    vec = ppo_tracking.make_vec_env(dataclasses.replace(SMALL, wide_share=0.25))
    assert vec.get_attr("roll_range_deg") == [60.0] * 6 + [180.0] * 2
    vec.close()


@pytest.mark.check
def test_an_interrupted_run_resumes(tmp_path: Path):
    first = ppo_tracking.train(small(tmp_path, total_steps=512, evaluations=1))
    layers = [(np.ones_like(weight), bias) for weight, bias in arrays_to_layers(read_policy(first.weights)[0])]
    lost = {"steps": 900, "score": -1.0}  # saved after the checkpoint, before the process ended
    ppo_tracking.save_weights(first.weights, layers, small(tmp_path), **lost)
    report = ppo_tracking.train(small(tmp_path, resume=True))
    assert report.steps == 1024
    _, notes = read_policy(report.weights)
    (row,) = (row for row in report.log if row["steps"] == notes["steps"])
    assert vars(report.best) == notes["errors"] == {name: row[name] for name in notes["errors"]}
    assert [row["steps"] for row in read_rows(tmp_path / "seed_0" / "log.csv")] == [0, 512, 1024]
    again = ppo_tracking.train(small(tmp_path, resume=True))
    assert again.steps == 1024


@pytest.mark.check
def test_a_saved_policy_plays_as_an_opponent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = ppo_tracking.train(small(tmp_path, total_steps=256, evaluations=1)).weights
    monkeypatch.setattr("palaestra.core.run.opponents.entry_points", lambda group: [EntryPoint()])
    sim = palaestra.make_batch(ENV_ID, 2, opponents={"pilot": str(path)})
    sim.reset(seed=0)
    first = np.array(sim.observations)
    sim.step()
    player = ppo_tracking.player_of(arrays_to_layers(read_policy(path)[0]))
    np.testing.assert_allclose(sim.states["body"]["aileron_command"], player(first)[:, :, 0], atol=1e-12)


def test_files_play_aim_commands_against_the_stick(tmp_path: Path, rules):
    """As they do where both sides decide the same: red's action is held for a second period."""
    game = registry.make_game(DOGFIGHT, commands="aim", blue_commands="stick")[0]
    paths = {team: tmp_path / f"{team}.safetensors" for team in game.teams}
    random, players = np.random.default_rng(4), {}
    for team, path in paths.items():
        layers = [(random.normal(size=shape) / 9, np.zeros(shape[0])) for shape in ((8, 62), (4, 8))]
        save_policy(path, layer_arrays(layers), method="ppo_tracking", env_id=DOGFIGHT, args={})
        players[team] = ppo_tracking.load_policy(path, game, team)
    sim = rules(game, 2, opponents={team: str(path) for team, path in paths.items()})
    sim.reset(seed=1)
    held = np.zeros((2, 4))
    for period in range(4):
        red, blue = (players[team](sim.team_view(team, "observations"))[:, 0] for team in game.teams)
        sim.step()
        held = red if period % 2 == 0 else held
        np.testing.assert_array_equal(sim.states["last_action"], np.stack([held, blue], axis=1))
    assert (np.abs(held) < 1.0).all()


class EntryPoint:
    """What an installed palaestra says of the method."""

    name = "ppo_tracking"

    def load(self):
        return ppo_tracking


def test_equal_seeds_give_every_player_the_same_commands():
    sim, pid = evaluation_flights(2, 0), evaluation_flights(2, 0, script="pid")
    for flights in (sim, pid):
        flights.reset(seed=TEST_SEED)
    np.testing.assert_array_equal(sim.states["turn_command_rad"], pid.states["turn_command_rad"])


def test_the_pid_settles_on_the_evaluation_flights():
    result = measure_errors(evaluation_flights(4, 0, script="pid"), TEST_SEED)
    assert result.roll_settled_deg < 0.1
    assert result.flight_path_settled_deg < 0.1
    assert result.ended == 0


@pytest.mark.check
def test_it_learns_to_hold_a_command_in_seconds(tmp_path: Path):
    args = small(tmp_path, total_steps=32768, lanes=64, rollout_steps=16, batch_size=256, epochs=6, evaluations=1)
    args = dataclasses.replace(args, std=(0.4, 0.3), wide_share=0.0, flights=8)
    report = ppo_tracking.train(args)
    untrained, learnt = report.log[0], report.log[-1]
    assert learnt["roll_settled_deg"] < 0.2 * untrained["roll_settled_deg"]
    assert learnt["flight_path_settled_deg"] < 0.5 * untrained["flight_path_settled_deg"]


def test_an_end_by_rule_costs_what_the_training_asks():
    sim = palaestra.make_batch(
        ENV_ID, 1, autoreset_mode="off", end_cost=7.0, altitude_low_m=600.0, altitude_high_m=600.0
    )
    sim.reset(seed=0)
    dive = np.array([[[0.0, -0.5, 0.0, 1.0]]])
    while not sim.terminated[0]:
        assert sim.rewards[0, 0] >= 0.0
        sim.step(dive)
    assert sim.rewards[0, 0] == -7.0


@pytest.mark.learning
def test_it_tracks_within_a_twentieth_of_the_way_of_the_tuned_pid(tmp_path: Path):
    report = ppo_tracking.train(ppo_tracking.Args(directory=tmp_path))
    pid = measure_conditions(None)["default"]
    learnt = measure_conditions(ppo_tracking.player_of(arrays_to_layers(read_policy(report.weights)[0])))["default"]
    ratios = learnt.ratios(pid)
    assert max(ratios[name] for name in ("roll_deg", "flight_path_deg", "speed_mps")) <= 1.05
    assert learnt.ended == 0


def test_the_layers_of_an_inner_loop_are_those_of_its_file(tmp_path: Path):
    random = np.random.default_rng(0)
    sizes = ((5, TRACKING_SIZE), (4, 5))
    layers = [(random.normal(size=shape), random.normal(size=shape[0])) for shape in sizes]
    ppo_tracking.save_weights(tmp_path / "loop.safetensors", layers, SMALL)
    read = ppo_tracking.network_layers(load_inner_loop(str(tmp_path / "loop.safetensors")))
    for found, expected in zip(read, layers, strict=True):
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.check
def test_the_noise_falls_by_a_constant_factor_from_the_first_to_the_last_decision(tmp_path: Path):
    seen = []

    class Noted(ppo_tracking.Trainer):
        def _on_rollout_start(self) -> None:
            super()._on_rollout_start()
            policy: Any = self.model.policy
            seen.append(policy.log_std.exp().detach().numpy() / np.array(ppo_tracking.NOISE))

        def evaluate(self) -> None: ...

    args = small(tmp_path, total_steps=1024, std=(0.4, 0.1))
    vec = ppo_tracking.make_vec_env(args)
    with RunFolder(args, "ppo_tracking") as folder:
        ppo_tracking.make_model(args, vec).learn(1024, callback=Noted(args, vec, folder))
    vec.close()
    np.testing.assert_allclose(np.array(seen), (0.4 * 0.25 ** np.arange(0, 1, 0.25))[:, None] * np.ones(4), rtol=1e-5)


def errors_of(factor: float = 1.0, **changes: float) -> Errors:
    return dataclasses.replace(
        Errors(**{k: factor * v for k, v in REFERENCE.items()}, action_change=0.01, ended=0), **changes
    )


def test_the_best_policy_has_small_errors_on_narrow_and_wide_commands_and_ends_no_flight():
    pid = {"default": errors_of(), "wide": errors_of(ended=3)}
    score = lambda **results: ppo_tracking.score({**pid, **results}, pid, 100)  # noqa: E731
    assert score() == 1.0
    assert score(wide=errors_of(ended=1)) == 1.0
    assert score(wide=errors_of(ended=5)) == 1.2
    assert score(default=errors_of(ended=1)) == 1.1
    assert score() < score(wide=errors_of(2.0)) < score(default=errors_of(2.0))
    for name in REFERENCE:
        assert score(default=errors_of(**{name: 2 * REFERENCE[name]})) > score(), name
