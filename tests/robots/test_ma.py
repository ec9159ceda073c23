"""Running robots of several agents: the models' tables, the division, rewards and ends; parity with Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from palaestra import make_batch, registry
from palaestra.core.contract.options import options_of
from palaestra.games.robots import ma

mujoco = pytest.importorskip("mujoco")

IDS = {"half_cheetah": "MaHalfCheetah", "ant": "MaAnt", "hopper": "MaHopper", "walker2d": "MaWalker2d"}


def batch(robot: str, lanes: int = 1, **keywords: Any) -> Any:
    sim: Any = make_batch(f"palaestra/{IDS[robot]}-v0", lanes, autoreset_mode="off", **keywords)
    sim.reset(seed=0)
    return sim


def placed(sim: Any, position: Any = None, velocity: Any = None) -> None:
    """Puts the robot of lane 0 somewhere."""
    records = sim.states.copy()
    for name, values in (("position", position), ("velocity", velocity)):
        if values is not None:
            records["bodies"][name][0, 0] = values
    sim.load_states(records[:1], np.arange(sim.num_envs) == 0)


@pytest.mark.parametrize("robot", ma.ROBOTS)
def test_the_table_is_that_of_the_model(robot: str):
    kind, model = ma.ROBOTS[robot], ma.model(robot)
    joints = [model.joint(k).name for k in range(model.njnt) if not model.joint(k).name.startswith("root")]
    assert kind.joints == tuple(joints)
    assert kind.motors == tuple(model.joint(int(k)).name for k in model.actuator_trnid[:, 0])
    assert kind.start == tuple(model.qpos0)
    assert kind.root == (model.nq - len(joints), model.nv - len(joints))
    assert kind.step_s == model.opt.timestep
    assert (model.actuator_ctrlrange == [-1, 1]).all()
    for parts in kind.parts.values():
        assert sorted(joint for part in parts for joint in part) == sorted(joints)


@pytest.mark.check
def test_an_agent_drives_its_own_joints_and_sees_those_next_to_them():
    sim = batch("ant")
    position, velocity = np.arange(15) / 10, np.arange(14) / 100
    position[3:7] = 0.5  # of length 1
    placed(sim, position, velocity)
    trunk, own, near = [0.2, 0.5, 0.5, 0.5, 0.5], [0.9, 1.0], [0.7, 1.1]  # hip_2, ankle_2; hip_1, hip_3
    speeds = [0.0, 0.01, 0.02, 0.03, 0.04, 0.05]
    expected = [*trunk, *speeds, *own, 0.08, 0.09, *near, 0.06, 0.1]
    assert sim.observations[0, 1].tolist() == pytest.approx(expected)
    sim.actions[...] = [[[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]]]
    sim.step()
    torques = sim.states["bodies"]["torque"][0, 0].tolist()  # hip_4, ankle_4, hip_1, ...
    assert torques == [0.7, 0.8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def test_rewards_are_speed_less_effort_and_all_are_paid_alike():
    sim = batch("half_cheetah", 16, control_weight=0.5)
    sim.actions[...] = np.random.default_rng(0).uniform(-1, 1, sim.actions.shape)
    before, squares = sim.states["bodies"]["position"][:, 0, 0].copy(), (sim.actions**2).sum((1, 2))
    sim.step()
    speed = (sim.states["bodies"]["position"][:, 0, 0] - before) / 0.05
    assert sim.rewards[:, 0] == pytest.approx(speed - 0.5 * squares, rel=1e-5)
    assert (sim.rewards[:, 0] == sim.rewards[:, 1]).all()
    assert sim.info["speed_mps"] == pytest.approx(speed)
    assert sim.info["reward_forward"] + sim.info["reward_control"] == pytest.approx(sim.rewards[:, 0], rel=1e-5)


@pytest.mark.check
@pytest.mark.parametrize(
    ("robot", "position"),
    [
        ("ant", {2: 1.1}), ("hopper", {1: 0.6}), ("hopper", {2: 0.3}), ("hopper", {2: -0.3}),
        ("walker2d", {1: 2.2}), ("walker2d", {1: 0.7}), ("walker2d", {2: 1.2}),
    ],
)  # fmt: skip
def test_a_robot_that_has_fallen_ends_the_match_and_is_not_paid_for_its_health(robot: str, position: dict):
    for where, falls in (({}, False), (position, True)):
        sim = batch(robot, forward_weight=0.0, control_weight=0.0)
        start = np.array(ma.ROBOTS[robot].start)
        start[list(where)] = list(where.values())
        placed(sim, start, 0.0)
        sim.step()
        assert sim.terminated.item() is falls
        assert sim.rewards[0].tolist() == [0.0 if falls else 1.0] * len(sim.game.agents)
        assert (sim.info["end_reason"].item() == ma.FALLEN) is falls


@pytest.mark.check
def test_the_sparse_reward_pays_each_milestone_once():
    sim = batch("hopper", reward="sparse")
    start = np.array(ma.ROBOTS["hopper"].start)
    paid = []
    for x in (0.2, 0.6, 0.4, 0.7, 1.6, 1.7):  # milestones stand at 0.5, 1.0 and 1.5 m
        placed(sim, [x, *start[1:]], 0.0)
        sim.step()
        paid.append(float(sim.rewards[0, 0]))
    assert paid == [0.0, 1.0, 0.0, 0.0, 2.0, 0.0]


@pytest.mark.check
def test_metres_are_paid_once_for_the_greatest_way_and_make_the_team_the_winner():
    sim, paid, won = batch("half_cheetah", reward="sparse", metres=2.0, horizon=7), [], []
    for x in (1.9, 6.1, 3.9, 6.2, 7.9, 1.0, 8.1):
        placed(sim, [x, *[0.0] * 8], 0.0)
        sim.step()
        paid.append(float(sim.rewards[0, 1]))
        won.append(int(sim.info["winner"][0]))
    assert paid == [0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert won == [-1, -1, -1, -1, -1, -1, 0]
    assert sim.truncated[0]


@pytest.mark.check
@pytest.mark.parametrize(("x", "winner"), [(0.6, 0), (0.4, -1)])
def test_a_hopper_that_falls_beyond_a_mark_has_won(x: float, winner: int):
    sim = batch("hopper", reward="sparse")
    placed(sim, [x, 0.5, *[0.0] * 4], 0.0)
    sim.step()
    assert sim.terminated.item()
    assert sim.info["winner"].item() == winner


def test_no_start_is_beyond_a_mark():
    shortest = next(option for option in options_of(ma.game) if option.name == "metres").low
    assert shortest is not None
    assert all(kind.noise[0] < shortest <= kind.milestone_m for kind in ma.ROBOTS.values())


@pytest.mark.parametrize(("robot", "metres"), [("half_cheetah", 5.0), ("ant", 3.0), ("hopper", 0.25)])
def test_the_tasks_of_exploration_pay_metres(robot: str, metres: float):
    game, _ = registry.make_game(f"palaestra/Sparse{IDS[robot]}-v0")
    assert game.world.milestone_m == metres
    assert game.world.agents == ma.game(robot=robot).world.agents


@pytest.mark.check
def test_starts_are_noisy_as_in_gymnasiums_tasks():
    for robot, kind in ma.ROBOTS.items():
        sim = batch(robot, 4096)
        bodies = sim.states["bodies"]
        off = bodies["position"][:, 0] - kind.start
        assert abs(off).max() <= kind.noise[0]
        assert off.std() == pytest.approx(kind.noise[0] / np.sqrt(3), rel=0.02)
        spread = kind.noise[1] if kind.is_normal else kind.noise[1] / np.sqrt(3)
        assert bodies["velocity"].std() == pytest.approx(spread, rel=0.02)
        assert (abs(bodies["velocity"]).max() > kind.noise[1]) == kind.is_normal


def test_a_division_of_another_robot_is_refused():
    with pytest.raises(ValueError, match="parts of robot='hopper' must be one of '3x1', '1', got '2x3'"):
        ma.game(robot="hopper", parts="2x3")


THEIRS = {
    "half_cheetah": ("HalfCheetah-v5", {}),
    "hopper": ("Hopper-v5", {}),
    "walker2d": ("Walker2d-v5", {}),
    "ant": ("Ant-v5", {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0}),
}


@pytest.mark.check
@pytest.mark.parametrize(("lanes", "decisions"), [(3, 90), pytest.param(8, 1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("robot", THEIRS)
def test_alone_a_robot_is_gymnasiums_to_the_bit(robot: str, lanes: int, decisions: int):
    pytest.importorskip("imageio")
    id, keywords = THEIRS[robot]
    theirs: list[Any] = [gymnasium.make(id, **keywords).unwrapped for _ in range(lanes)]
    ours = batch(robot, lanes, parts="1", dtype="float64", compiled=False)
    motors, rng, ends = ours.game.world.motor_of[0], np.random.default_rng(0), 0

    def start(lane: int) -> None:
        """Both from the same positions and velocities."""
        theirs[lane].reset(seed=int(rng.integers(1 << 30)))
        ours.reset(np.arange(lanes) == lane)
        record = ours.states[[lane]].copy()
        record["bodies"]["position"][0, 0] = theirs[lane].data.qpos
        record["bodies"]["velocity"][0, 0] = theirs[lane].data.qvel
        ours.load_states(record, np.arange(lanes) == lane)

    for lane in range(lanes):
        start(lane)
    for _ in range(decisions):
        actions = rng.uniform(-1, 1, ours.actions.shape)
        ours.actions[...] = actions
        before = ours.states["bodies"]["position"][:, 0, 0].copy()
        ours.step()
        for lane, env in enumerate(theirs):
            torques = np.zeros(len(motors))
            torques[motors] = actions[lane, 0]
            seen, reward, fell, *_ = env.step(torques)
            if robot == "ant":  # theirs takes the speed from a frame of one step before
                reward = (env.data.qpos[0] - before[lane]) / env.dt + env.healthy_reward - env.control_cost(torques)
                assert ours.rewards[lane, 0] == pytest.approx(reward, abs=1e-14)
            else:
                assert ours.rewards[lane, 0] == reward
            assert ours.observations[lane, 0].tobytes() == seen.tobytes()
            assert ours.terminated[lane] == fell
            ends += fell
        for lane in np.flatnonzero(ours.terminated | ours.truncated):
            start(int(lane))
    assert (ends > 0) == (robot != "half_cheetah")


@pytest.mark.parametrize(("member", "number"), [("position", 4), ("velocity", 0), ("velocity", 5)])
def test_a_hopper_with_a_number_of_a_hundred_has_fallen(member: str, number: int):
    game = ma.game(robot="hopper")
    record = np.zeros(1, game.state_dtype)
    record["bodies"]["position"][0, 0, 1] = 1.25
    body = record.view(np.recarray)[0].bodies[0]
    assert not ma.has_fallen(body, game.world)
    for value, falls in ((99.9, False), (100.0, True), (-100.0, True)):
        body[member][number] = value
        assert ma.has_fallen(body, game.world) is falls
