"""Minimax-Q finds the value and the mixed policies of games whose solution is known, and its file plays them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tyro", reason="the methods need the extra palaestra[baselines]")
pytest.importorskip("safetensors", reason="the methods need the extra palaestra[baselines]")
from palaestra import exact, make_batch, registry
from palaestra.core.run.opponents import load_policy as load_any
from palaestra_baselines import minimax_q
from palaestra_baselines.common.run_folder import read_rows

pytestmark = pytest.mark.check

SOCCER = "palaestra/GridSoccer-v0"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A fifth of the default run."""
    folder = tmp_path_factory.mktemp("minimax_q")
    return minimax_q.Args(total_steps=2_000_000, lanes=2048, evaluations=4, directory=folder, quiet=True)


@pytest.fixture(scope="module")
def report(small):
    return minimax_q.train(small)


@pytest.mark.check
def test_it_learns_the_value_and_policies_that_lose_little(report):
    assert report.log[-1]["value_error"] <= 0.05
    assert report.log[-1]["exploitability"] < 0.1
    assert report.log[0]["exploitability"] > report.log[-1]["exploitability"]
    assert report.steps >= 2_000_000


def test_a_match_that_is_truncated_at_the_horizon_is_bootstrapped_in_the_target():
    learner = minimax_q.Learner(minimax_q.Args(options=("horizon=1",), lanes=64))
    learner.values[:] = 1.0
    learner.step()  # of a first sample all is learnt
    assert learner.sim.truncated.any()
    scored = learner.sim.terminated
    assert not scored.any()
    np.testing.assert_allclose(learner.q[learner.visits > 0], learner.args.gamma, atol=1e-12)
    learner.step()  # all lanes start anew
    assert (learner.steps, learner.visits.sum()) == (64, 64)


def test_a_sample_moves_its_action_value_by_the_share_that_its_number_gives():
    q, visits, values = np.array([0.0, 8.0]), np.array([0, 20]), np.array([5.0, 10.0])
    touched = np.zeros(2, np.bool_)
    before, cells, after = np.array([1, -1, 1]), np.array([1, 0, 1]), np.array([0, 0, -1])
    minimax_q.learn(before, cells, np.array([1.0, 9.0, 2.0]), after, 0.5, 20.0, q, visits, values, touched)
    once = 8.0 + 20 / 40 * (1.0 + 0.5 * 5.0 - 8.0)
    assert q.tolist() == pytest.approx([0.0, once + 20 / 41 * (2.0 - once)])
    assert (visits.tolist(), touched.tolist()) == ([0, 22], [False, True])


def test_actions_are_drawn_from_the_policy_or_uniformly_in_the_given_share():
    start, policy = np.array([0, 2, 6]), np.array([0.25, 0.75, 0.1, 0.2, 0.3, 0.4])
    lines = np.zeros(4, np.int64)
    positions, explores = np.array([0, 1, 1, 1]), np.array([0.6, 0.6, 0.6, 0.4])
    minimax_q.draw_lines(positions, start, policy, 0.5, explores, np.array([0.3, 0.05, 0.5, 0.5]), lines)
    assert lines.tolist() == [1, 0, 2, 2]
    minimax_q.draw_lines(positions, start, policy, 0.5, explores, np.array([0.2, 0.05, 0.7, 0.2]), lines)
    assert lines.tolist() == [0, 0, 3, 0]


def test_the_log_has_the_exact_figures(small, report):
    rows = read_rows(small.folder / "log.csv")
    assert len(rows) == 4
    for row in rows:
        assert row["value_error"] >= abs(row["value"] - row["learned_value"]) - 1e-5
        assert row["exploitability"] == max(row["exploitability_red"], row["exploitability_blue"])
    assert rows[-1]["exploitability"] == pytest.approx(report.log[-1]["exploitability"], rel=1e-4)


@pytest.mark.check
def test_in_alternating_order_it_learns_policies_that_do_not_mix(small, tmp_path):
    report = minimax_q.train(replace(small, options=("order=alternating",), directory=tmp_path))
    assert report.log[-1]["exploitability"] < 0.1


def test_a_stopped_run_ends_like_one_that_was_not(small, tmp_path):
    whole = replace(small, total_steps=40_000, evaluations=2, lanes=64, directory=tmp_path / "whole")
    parts = replace(whole, directory=tmp_path / "parts")
    one = minimax_q.train(whole)
    minimax_q.train(replace(parts, total_steps=20_000, evaluations=1))
    two = minimax_q.train(replace(parts, resume=True))
    assert one.steps == two.steps
    assert all(one.log[-1][name] == two.log[-1][name] for name in ("learned_value", "exploitability"))
    rows = [read_rows(args.folder / "log.csv") for args in (whole, parts)]
    assert [row["exploitability"] for row in rows[0]] == [row["exploitability"] for row in rows[1]]


def test_the_saved_policy_is_the_learnt_one_and_exact_can_evaluate_it(report):
    solution = exact.solve(SOCCER, symmetry=False)
    for team in ("red", "blue"):
        found = exact.exploitability(solution, str(report.weights), team)
        assert found.exploitability == pytest.approx(report.log[-1][f"exploitability_{team}"], abs=1e-6)


def test_the_saved_policy_plays_with_the_frequencies_it_states(report):
    game, _ = registry.make_game(SOCCER)
    player: Any = load_any(report.weights, game, "red")
    sim = make_batch(SOCCER, 4000, opponents={"blue": "random"})
    sim.reset(seed=5)
    seen, n = sim.team_view("red", "observations"), sim.num_envs
    stated = player.probabilities(seen, None, None)
    counted = np.zeros_like(stated)
    memory = np.zeros((n, player.memory_size))
    for _ in range(25):
        chosen = player.act(seen, None, None, None, sim.lane_seeds, memory)
        counted[np.arange(n), chosen[:, 0]] += 1 / 25
    np.testing.assert_allclose(counted.mean(0), stated.mean(0), atol=0.01)
    sim.set_opponent("red", player)
    for _ in range(5):
        sim.step()


def test_a_policy_of_another_game_is_refused(report):
    game, _ = registry.make_game(SOCCER, rows=2, columns=3)
    with pytest.raises(ValueError, match="so it was trained for another game"):
        minimax_q.load_policy(report.weights, game, "red")
    with pytest.raises(ValueError, match="none of 'green'"):
        minimax_q.load_policy(report.weights, game, "green")


def test_help_explains_the_arguments(capsys):
    with pytest.raises(SystemExit) as done:
        minimax_q.main(["--help"])
    assert done.value.code == 0
    assert "--epsilon" in capsys.readouterr().out


@pytest.mark.learning
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_littmans_soccer_is_learnt_in_two_minutes(tmp_path, seed):
    report = minimax_q.train(minimax_q.Args(seed=seed, directory=tmp_path, quiet=True))
    assert report.log[-1]["value_error"] <= 0.02
    assert report.log[-1]["exploitability"] < 0.05
    assert report.log[-1]["cpu_s"] <= 120
