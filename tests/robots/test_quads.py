"""Quadrupeds: the body and its trot, the rules of gate, box and ring, and what their scripts reach."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

from palaestra import make_batch
from palaestra.evaluation import evaluate
from palaestra.games.robots import quad_gate, quad_parts, quad_sight, quad_sumo, quadruped
from palaestra.games.robots.quadruped import JOINTS, POSITIONS, RANGES_RAD, STIFFNESS, TORQUES_NM, VELOCITIES

pytestmark = pytest.mark.check

mujoco = pytest.importorskip("mujoco")

GATE, BOX, SUMO = "palaestra/QuadGate2-v0", "palaestra/QuadPushBox-v0", "palaestra/QuadSumo-v0"


def batch(id: str, lanes: int = 1, **keywords: Any) -> Any:
    sim: Any = make_batch(id, lanes, autoreset_mode="off", **keywords)
    sim.reset(seed=3)
    return sim


def placed(sim: Any, robot: int, x: float, y: float, tilt_rad: float = 0.0, field: str = "robots") -> None:
    """Puts a body of lane 0 somewhere."""
    records = sim.states.copy()
    body = records[field][0, robot]
    body["position_m"][:2] = x, y
    if tilt_rad:
        body["quaternion"] = math.cos(tilt_rad / 2), math.sin(tilt_rad / 2), 0.0, 0.0
    sim.load_states(records[:1], np.arange(sim.num_envs) == 0)


def test_the_body_is_as_its_tables_say():
    model = quad_gate.scene(2)
    assert (model.nq, model.nv, model.nu) == (2 * POSITIONS, 2 * VELOCITIES, 24)
    names = [model.joint(k).name for k in range(model.njnt) if not model.joint(k).name.endswith("free")]
    assert names == [f"robot_{k}_{joint}" for k in range(2) for joint in JOINTS]
    np.testing.assert_array_equal(model.jnt_range[1:13], np.tile(RANGES_RAD, (4, 1)))
    assert [model.joint(int(k)).name for k in model.actuator_trnid[:, 0]] == names
    np.testing.assert_array_equal(model.actuator_forcerange[:, 1], np.tile(TORQUES_NM, 8))
    assert (model.actuator_gainprm[:, 0] == STIFFNESS).all()
    assert 12.0 < model.body_mass.sum() / 2 < 14.0


def trotting(command: Any, decisions: int, lanes: int) -> np.ndarray:
    """Speed ahead, to the left and of turning of one robot, mean over the decisions after the third second: ``[N, 3]``.

    The other robot stands far away.
    """
    sim = batch(GATE, lanes, horizon=10**6)
    records = sim.states.copy()
    records["robots"]["position_m"][:, 0, :2] = 0.0, -60.0
    sim.load_states(records, np.ones(lanes, bool))
    speeds = []
    for number in range(decisions):
        before = sim.states["robots"][:, 0].copy()
        sim.actions[:, 0] = command(number)
        sim.step()
        robot = sim.states["robots"][:, 0]
        way = (robot["position_m"] - before["position_m"])[:, :2] / 0.1
        turned = [2 * np.arctan2(r["quaternion"][:, 3], r["quaternion"][:, 0]) for r in (before, robot)]
        turn = (turned[1] - turned[0] + math.pi) % (2 * math.pi) - math.pi
        middle = turned[0] + turn / 2
        cos, sin = np.cos(middle), np.sin(middle)
        speeds.append(np.stack([cos * way[:, 0] + sin * way[:, 1], cos * way[:, 1] - sin * way[:, 0], turn / 0.1], -1))
        assert (sim.states["info"]["end_reason"] == 0).all(), f"a robot has fallen in decision {number}"
    return np.mean(speeds[30:], axis=0)


COMMANDS = ((0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0.5, 0.5, -0.5), (0.6, 0, 0.8))


def test_a_robot_trots_as_it_is_commanded():
    wanted = np.array(COMMANDS[5:], np.float32)
    errors = trotting(lambda number: wanted, 80, 3) - wanted * (1.0, 0.5, 1.0)
    assert (np.abs(errors) <= (0.15, 0.15, 0.1)).all(), errors


@pytest.mark.slow
def test_the_trot_keeps_eight_commands_and_stands_a_hundred_random_runs():
    wanted = np.array(COMMANDS, np.float32)
    errors = trotting(lambda number: wanted, 130, len(wanted)) - wanted * (1.0, 0.5, 1.0)
    print("trot, largest errors (m/s, m/s, rad/s):", np.abs(errors).max(0).round(3))
    assert (np.abs(errors) <= (0.15, 0.15, 0.1)).all(), errors
    rng = np.random.default_rng(0)
    held: Any = {}
    trotting(lambda number: held.setdefault(number // 5, rng.uniform(-1, 1, (100, 3))), 100, 100)


def test_commands_longer_than_one_are_shortened():
    long, short = batch(GATE), batch(GATE)
    for _ in range(3):
        long.actions[...] = (1.0, 1.0, -1.0)
        short.actions[...] = np.array((1.0, 1.0, -1.0)) / math.sqrt(3.0)
        long.step()
        short.step()
    wanted = [sim.states["robots"]["wanted"][0, 0] for sim in (long, short)]
    assert wanted[0] == pytest.approx(wanted[1], abs=1e-6)
    assert wanted[0][2] < -0.5


def test_a_robot_sees_others_in_its_own_frame():
    sim = batch(BOX)
    records = sim.states.copy()
    for k, (x, y, turn) in enumerate(((-2.0, 1.0, math.pi / 2), (-2.0, 3.0, math.pi))):
        records["robots"]["position_m"][0, k, :2] = x, y
        records["robots"]["quaternion"][0, k] = math.cos(turn / 2), 0.0, 0.0, math.sin(turn / 2)
        records["robots"]["velocity_mps"][0, k] = 1.0, 0.0, 0.0
    records["boxes"]["position_m"][0, 0, :2] = 0.0, 1.0
    records["goal_m"][0] = 1.5, 1.0
    sim.load_states(records, np.array([True]))
    first = sim.observations[0, 0]
    assert first[:6].tolist() == pytest.approx([0, 0, 1, 0, -1, 0], abs=1e-6)  # up, velocity: to the right
    assert first[-10:].tolist()[:4] == pytest.approx([2, 0, 0, 1], abs=1e-6)  # the mate is ahead and looks left
    assert first[-6:-4].tolist() == pytest.approx([0, -2], abs=1e-6)  # the box is to the right
    assert first[-2:].tolist() == pytest.approx([0, -3.5], abs=1e-6)


def test_sensors_end_at_their_limit():
    sim = batch(GATE)
    records = sim.states.copy()
    records["robots"]["joint_radps"][0, 1, 4:6] = -1857.0, 900.0
    sim.load_states(records, np.array([True]))
    assert sim.observations[0, 1, 21 + 4 : 21 + 6].tolist() == [-quad_sight.SENSOR_LIMIT, 900.0]


def test_the_gate_pays_ways_through_its_middle_and_ends_when_all_have_passed():
    sim = batch(GATE)
    placed(sim, 0, -1.2, 0.9)
    placed(sim, 1, 2.0, 0.0)
    assert quadruped.to_go(sim.states["robots"].view(np.recarray)[0, 0], quad_gate.BEHIND_M) == pytest.approx(0.5 + 1.5)
    sim.step()  # sets what is left to go
    assert sim.states["info"]["passed"][0] == 1
    assert sim.states["info"]["end_reason"][0] == 0
    before = sim.states["to_go_m"][0, :2].sum()
    sim.actions[:, 0] = (1.0, 0.0, 0.0)
    sim.step()
    way = before - sim.states["to_go_m"][0, :2].sum()
    assert sim.rewards[0] == pytest.approx([way / 2] * 2, abs=1e-6)
    placed(sim, 0, 1.5, 1.0)
    sim.step()
    assert sim.states["info"]["end_reason"][0] == quad_parts.DONE
    assert sim.states["info"]["reward_done"][0] == 1.0


@pytest.mark.parametrize(("reward", "paid"), [("dense", -1.0), ("sparse", 0.0)])
@pytest.mark.parametrize("id", [GATE, BOX])
def test_a_fall_ends_the_match_and_costs_with_the_dense_reward(id: str, reward: str, paid: float):
    sim = batch(id, reward=reward)
    placed(sim, 1, -3.0, 0.0, tilt_rad=1.5)
    sim.step()
    info = sim.states["info"][0]
    assert info["end_reason"] == quad_parts.FALLEN
    assert info["reward_fall"] == paid
    assert sim.rewards[0].tolist() == pytest.approx([paid + info["reward_progress"]] * 2)


def test_the_box_is_at_the_goal_within_its_radius():
    sim = batch(BOX, reward="sparse")
    records = sim.states.copy()
    for distance, reason in ((0.32, 0), (0.28, quad_parts.DONE)):
        records["boxes"]["position_m"][0, 0, :2] = records["goal_m"][0] - (distance, 0.0)
        sim.load_states(records, np.array([True]))
        sim.step()
        assert sim.states["info"]["end_reason"][0] == reason
        assert sim.rewards[0].tolist() == [float(reason != 0)] * 2


def test_who_leaves_the_ring_loses_and_both_at_once_draw():
    for places, winner, paid in (
        (((1.6, 0.0), (0.0, 0.0)), 1, [-1.0, 1.0]),
        (((0.0, 0.0), (0.0, -1.6)), 0, [1.0, -1.0]),
        (((1.6, 0.0), (-1.6, 0.0)), -1, [0.0, 0.0]),
    ):
        sim = batch(SUMO)
        for k, (x, y) in enumerate(places):
            placed(sim, k, x, y)
        sim.step()
        assert sim.states["info"]["end_reason"][0] == quad_sumo.OUT
        assert sim.states["info"]["winner"][0] == winner
        assert sim.rewards[0].tolist() == paid


@pytest.mark.slow
@pytest.mark.parametrize(
    ("id", "players", "least"),
    [
        (GATE, ("turns",), 0.90),
        ("palaestra/QuadGate5-v0", ("turns",), 0.70),
        (BOX, ("push",), 0.85),
        (SUMO, ("shove", "random"), 0.90),
    ],
)
def test_scripts_solve_their_tasks(id: str, players: tuple[str, ...], least: float):
    table = evaluate(id, *players, matches=256)
    won = table.wins if len(players) == 2 else table.end_reasons.get("done", 0)
    print(f"scripts, {id}: {won} of 256")
    assert won >= least * 256, str(table)


@pytest.mark.slow
def test_ppo_of_stable_baselines3_learns_the_gate():
    """20,480 decisions in less than two minutes, then 64 matches against those of random play, by their returns."""
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    from palaestra.adapters.sb3 import as_vec_env

    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    start = time.process_time()
    envs = as_vec_env(GATE, 32)
    model = stable_baselines3.PPO("MlpPolicy", envs, n_steps=64, batch_size=256, seed=0, device="cpu")
    model.learn(20_480)
    taken = time.process_time() - start

    def returns(act: Any) -> np.ndarray:
        games: Any = as_vec_env(GATE, 64)
        games.seed(7)
        seen, paid, on = games.reset(), np.zeros(64), np.ones(64, bool)
        while on.any():
            seen, rewards, dones, _ = games.step(act(seen))
            paid += rewards * on
            on &= ~dones
        return paid

    rng = np.random.default_rng(1)
    learned = returns(lambda seen: model.predict(seen, deterministic=False)[0])
    random = returns(lambda seen: rng.uniform(-1, 1, (64, *(envs.action_space.shape or ()))).astype(np.float32))
    error = math.sqrt((learned.var(ddof=1) + random.var(ddof=1)) / 64)
    print(
        f"learns: PPO {learned.mean():.3f}, random {random.mean():.3f}, standard error {error:.3f}, {taken:.0f} CPU s"
    )
    assert learned.mean() > random.mean() + 3 * error
    assert taken <= 120
