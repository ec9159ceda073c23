"""Football of quadrupeds: who is paid, what robots see, and what the script reaches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from palaestra import make_batch, registry
from palaestra.core.compile.linker import link
from palaestra.evaluation import evaluate
from palaestra.games.robots import quad_football

pytestmark = pytest.mark.check

pytest.importorskip("mujoco")

ONE, TWO = "palaestra/QuadFootball1v1-v0", "palaestra/QuadFootball2v2-v0"


def match(id: str, **keywords: Any) -> Any:
    sim: Any = make_batch(id, 1, autoreset_mode="off", **keywords)
    sim.reset(seed=3)
    return sim


def put(sim: Any, ball: tuple[float, float] = (0.0, 0.0), fallen: tuple[int, ...] = (), **ball_numbers: Any) -> None:
    """Puts the ball somewhere at rest, or as its numbers say, and lays robots on their sides."""
    records = sim.states.copy()
    records["balls"]["position_m"][0, 0, :2] = ball
    records["ball_x_m"] = ball[0]
    for name, numbers in ball_numbers.items():
        records["balls"][name][0, 0] = numbers
    for k in fallen:
        records["robots"]["quaternion"][0, k] = math.cos(0.75), math.sin(0.75), 0.0, 0.0
    sim.load_states(records, np.array([True]))


@pytest.mark.parametrize(("id", "size"), [(ONE, 1), (TWO, 2)])
def test_a_goal_pays_the_team_that_attacks_this_end(id: str, size: int):
    for x, winner in ((2.6, 0), (-2.6, 1)):
        sim = match(id)
        put(sim, (x, 0.3))
        sim.step()
        assert sim.states["info"]["end_reason"][0] == quad_football.SCORED
        assert sim.states["info"]["winner"][0] == winner
        paid = 1.0 - 2.0 * winner
        assert sim.rewards[0].tolist() == [paid] * size + [-paid] * size


def test_a_ball_before_the_line_or_beside_the_goal_is_no_goal():
    for ball in ((2.4, 0.0), (2.7, 1.0)):
        sim = match(ONE)
        put(sim, ball)
        sim.step()
        assert sim.states["info"]["end_reason"][0] == 0
        assert sim.rewards[0].tolist() == [0.0, 0.0]


def test_the_team_of_a_fallen_robot_loses_and_falls_of_both_teams_draw():
    for fallen, winner, red in (((1,), 1, -1.0), ((3,), 0, 1.0), ((0, 2), -1, 0.0)):
        sim = match(TWO)
        put(sim, fallen=fallen)
        sim.step()
        assert sim.states["info"]["end_reason"][0] == quad_football.FALLEN
        assert sim.states["info"]["winner"][0] == winner
        assert sim.rewards[0].tolist() == [red, red, -red, -red]


def test_a_goal_counts_before_a_fall():
    sim = match(ONE)
    put(sim, (2.6, 0.0), fallen=(0,))
    sim.step()
    assert sim.states["info"]["end_reason"][0] == quad_football.SCORED
    assert sim.rewards[0].tolist() == [1.0, -1.0]


def test_the_dense_reward_is_the_share_of_the_field_that_the_ball_has_gone():
    sim = match(TWO, reward="dense")
    put(sim, (0.3, 1.2), velocity_mps=(-1.0, 0.0, 0.0), turn_radps=(0.0, -1.0 / quad_football.BALL_M, 0.0))
    sim.step()
    share = (sim.states["balls"]["position_m"][0, 0, 0] - 0.3) / 5.0
    assert share == pytest.approx(-0.02, abs=0.002)
    assert sim.rewards[0] == pytest.approx([share, share, -share, -share], abs=1e-7)
    assert sim.rewards[0].sum() == 0.0


def test_both_sides_see_the_same_in_a_match_turned_by_half():
    sim = match(TWO)
    for _ in range(3):
        sim.actions[...] = np.linspace(-1, 1, sim.actions.size).reshape(sim.actions.shape)
        sim.step()
    put(sim, (0.4, -0.3), velocity_mps=(0.5, 0.2, 0.0))
    seen = sim.observations[0].copy()
    records = sim.states.copy()
    robots, balls = records["robots"], records["balls"]
    for bodies in (robots, balls):
        bodies["position_m"][..., :2] *= -1.0
        bodies["velocity_mps"][..., :2] *= -1.0
    w, x, y, z = np.moveaxis(robots["quaternion"].copy(), -1, 0)
    robots["quaternion"] = np.stack([-z, -y, x, w], axis=-1)
    records["robots"] = robots[:, [2, 3, 0, 1]]
    records["last"] = records["last"][:, [2, 3, 0, 1]]
    sim.load_states(records, np.array([True]))
    np.testing.assert_allclose(sim.observations[0], seen[[2, 3, 0, 1]], atol=2e-5)


def test_a_robot_sees_teammate_opponents_ball_and_goals_in_its_own_frame():
    sim = match(TWO)
    records = sim.states.copy()
    records["robots"]["position_m"][0, :, :2] = (-1.0, 0.5), (-1.0, -0.5), (1.0, 0.25), (1.0, -0.25)
    turns = np.array((0.0, 0.0, math.pi, math.pi / 2))
    records["robots"]["quaternion"][0] = [(math.cos(t / 2), 0.0, 0.0, math.sin(t / 2)) for t in turns]
    records["balls"]["position_m"][0, 0, :2] = 0.25, 0.0
    records["balls"]["velocity_mps"][0, 0, :2] = 1.0, 0.5
    sim.load_states(records, np.array([True]))
    red, blue = sim.observations[0, 1, -20:], sim.observations[0, 3, -20:]
    assert red[:12] == pytest.approx(
        [0, 1, 1, 0, 2, 0.75, -1, 0, 2, 0.25, 0, 1], abs=1e-6
    )  # teammate, opponents by number
    assert red[12:] == pytest.approx([1.25, 0.5, 1, 0.5, 3.5, 0.5, -1.5, 0.5], abs=1e-6)
    assert blue[:2] == pytest.approx([0.5, 0], abs=1e-6)
    assert blue[4:6] == pytest.approx([0.75, 2], abs=1e-6)  # looks along y
    assert blue[12:] == pytest.approx([0.25, 0.75, 0.5, -1, 0.25, 3.5, 0.25, -1.5], abs=1e-6)


def test_starts_are_in_the_own_half_beside_the_teammate_and_look_at_the_ball():
    sim: Any = make_batch(TWO, 50, autoreset_mode="off")
    sim.reset(seed=1)
    places = sim.states["robots"]["position_m"][:, :, :2] * np.array([1.0, 1.0, -1.0, -1.0])[:, None]
    assert (np.abs(places[..., 0] + 1.2) <= 0.3).all()
    assert (np.abs(places[..., 1] - [0.6, -0.6, 0.6, -0.6]) <= 0.3).all()
    ahead, left = np.moveaxis(sim.observations[:, :, -8:-6], -1, 0)
    assert (np.abs(np.arctan2(left, ahead)) <= 0.3).all()


def test_boards_keep_a_fast_ball_in():
    sim = match(ONE)
    put(sim, (0.0, 0.5), velocity_mps=(3.0, 4.0, 5.0))
    for _ in range(30):
        sim.step()
        x, y, _ = sim.states["balls"]["position_m"][0, 0]
        assert abs(y) < quad_football.SIDE_M - quad_football.BALL_M
        assert abs(x) < quad_football.LINE_M


def test_a_rolling_ball_comes_to_rest():
    sim = match(ONE)
    put(sim, (-1.0, 1.2), velocity_mps=(1.0, 0.0, 0.0), turn_radps=(0.0, 1.0 / quad_football.BALL_M, 0.0))
    for _ in range(28):
        sim.step()
    ball = sim.states["balls"][0, 0]
    assert -0.1 < ball["position_m"][0] < 0.3
    assert np.linalg.norm(ball["velocity_mps"]) < 0.02


def test_the_script_goes_around_the_ball_instead_of_towards_its_own_goal():
    sim = match(ONE)
    records = sim.states.copy()
    records["robots"]["position_m"][0, :2, :2] = (0.9, 0.05), (2.0, -0.8)
    records["robots"]["quaternion"][0, 0] = 1.0, 0.0, 0.0, 0.0
    sim.load_states(records, np.array([True]))
    sim.set_opponent("red", "attack")
    for _ in range(70):
        sim.actions[...] = 0.0
        sim.step()
        assert sim.states["balls"]["position_m"][0, 0, 0] > -0.2
    assert sim.states["balls"]["position_m"][0, 0, 0] > 0.2


def test_one_kernel_plays_both_sizes():
    one, two = (link(registry.make_game(id)[0]) for id in (ONE, TWO))
    assert one is two


@pytest.mark.slow
@pytest.mark.parametrize("id", [ONE, TWO])
def test_the_script_beats_random_play(id: str):
    table = evaluate(id, "attack", "random", matches=256)
    print(f"{id}: {table.wins} of 256, {table.end_reasons}")
    assert table.wins >= 0.9 * 256, str(table)


@pytest.mark.slow
@pytest.mark.parametrize("id", [ONE, TWO])
def test_no_side_is_favoured(id: str):
    table = evaluate(id, "attack", "attack", matches=256)
    assert abs(table.first_team_score - 0.5) <= 3.0 * 0.5 / math.sqrt(table.seeds), str(table)
