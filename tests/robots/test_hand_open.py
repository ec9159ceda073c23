"""Two hands open a bottle, a pen, scissors: the joint between the parts, what is paid and seen, what scripts reach."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from palaestra import make_batch
from palaestra.games.robots import hand_open, hand_parts

pytestmark = pytest.mark.check

mujoco = pytest.importorskip("mujoco")

THINGS = dict(hand_open.TASKS)
IDS = {task: f"palaestra/{thing.name}-v0" for task, thing in THINGS.items()}
RUNNING, HORIZON = 0, 1


def batch(task: str, lanes: int = 1, **keywords: Any) -> Any:
    sim: Any = make_batch(IDS[task], lanes, autoreset_mode="off", **keywords)
    sim.reset(seed=2)
    return sim


def changed(sim: Any, opening: float | None = None, place: Any = None, base: Any = None) -> None:
    """Changes lane 0."""
    records = sim.states.copy()
    if opening is not None:
        records["joints"]["opening"][0, 0] = opening
    if place is not None:
        records["objects"]["position_m"][0, 0] = place
    if base is not None:
        records["hands"]["base_pose"][0, 0, :3] = base
    sim.load_states(records[:1], np.arange(sim.num_envs) == 0)


def played(task: str, script: str, lanes: int, **keywords: Any) -> Any:
    """The match records at the end."""
    sim = batch(task, lanes, **keywords)
    sim.set_opponent("hand", script)
    for _ in range(THINGS[task].horizon):
        sim.step()
    return sim.states


@pytest.mark.parametrize("task", THINGS)
def test_the_model_is_as_its_tables_say(task: str):
    thing = THINGS[task]
    model = hand_open.scene(thing)
    assert (model.nq, model.nv, model.nu) == (68, 67, 52)
    joint = model.joint("opening")
    assert (joint.qposadr[0], joint.dofadr[0]) == (67, 66)
    assert tuple(joint.range) == (0.0, thing.most)
    assert model.dof_frictionloss[66] == thing.friction
    for part in range(2):
        rods = [rod for rod in thing.rods if rod.part == part]
        body = model.body(f"part_{part}")
        assert body.mass[0] == pytest.approx(sum(rod.mass_kg for rod in rods))
        sizes = model.geom_size[body.geomadr[0] : body.geomadr[0] + body.geomnum[0]]
        np.testing.assert_allclose(sizes[:, 0], [rod.radius_m for rod in rods])
        np.testing.assert_allclose(sizes[:, 1], [math.dist(rod.start_m, rod.end_m) / 2 for rod in rods])


@pytest.mark.parametrize("task", THINGS)
def test_weight_opens_nothing_and_the_thing_lies_still(task: str):
    sim = batch(task, 4)
    sim.set_opponent("hand", "hold")
    before = sim.states["objects"]["position_m"].copy()
    for _ in range(THINGS[task].horizon):
        sim.step()
    assert (sim.states["info"]["end_reason"] == HORIZON).all()
    assert np.abs(sim.states["info"]["opening"]).max() < 1e-3
    assert np.abs(sim.states["objects"]["position_m"] - before).max() < 2e-3


@pytest.mark.parametrize("task", THINGS)
def test_one_hand_alone_does_not_open_it(task: str):
    for hand in range(2):
        sim = batch(task)
        sim.set_opponent(f"hand_{hand}", "pull")
        sim.set_opponent(f"hand_{1 - hand}", "hold")
        for _ in range(THINGS[task].horizon):
            sim.step()
        assert sim.states["info"]["end_reason"][0] != hand_parts.DONE


@pytest.mark.parametrize("task", THINGS)
def test_both_hands_open_it(task: str):
    assert (played(task, "pull", 2)["info"]["end_reason"] == hand_parts.DONE).all()


@pytest.mark.parametrize("task", THINGS)
def test_opening_is_paid_and_ends_the_match_where_hands_hold_the_parts(task: str):
    thing = THINGS[task]
    dense, sparse = batch(task), batch(task, reward="sparse")
    half = 0.5 * thing.open_at
    for sim in (dense, sparse):
        changed(sim, opening=half)
        sim.step()
    info = dense.states["info"][0]
    assert info["end_reason"] == RUNNING
    assert info["opening"] == pytest.approx(half, rel=0.1)
    assert dense.rewards[0].tolist() == pytest.approx([info["opening"] / thing.open_at + info["reward_near"]] * 2)
    assert 0.0 < info["reward_near"] < hand_open.NEAR_PAY
    assert sparse.rewards[0].tolist() == [0.0, 0.0]
    for sim, paid in ((dense, 1.0 + 1.0 - info["opening"] / thing.open_at), (sparse, 1.0)):
        changed(sim, opening=1.1 * thing.open_at)
        sim.step()
        is_held = sim.states["info"]["away_m"][0] < hand_open.HELD_M
        assert (sim.states["info"]["end_reason"][0] == hand_parts.DONE) == is_held
        if is_held:
            assert sim.rewards[0].tolist() == pytest.approx([paid + sim.states["info"]["reward_near"][0]] * 2, abs=1e-6)


def test_what_is_open_outside_of_the_hands_does_not_end_the_match():
    sim = batch("pen")
    changed(sim, opening=0.09, place=(0.0, 0.0, 0.8))
    sim.step()
    assert sim.states["info"]["end_reason"][0] == RUNNING
    assert sim.states["info"]["away_m"][0] > 0.4


def test_a_fall_ends_the_match_and_so_does_a_base_far_from_its_place():
    for place, base, reason in (
        ((0.0, 0.5, 0.15), None, hand_parts.DROPPED),
        (None, (0.0, 0.08, 0.08), hand_parts.STRAYED),
    ):
        sim = batch("bottle_cap")
        changed(sim, place=place, base=base)
        sim.step()
        assert sim.states["info"]["end_reason"][0] == reason


def test_a_thing_that_flies_off_absurdly_truncates_the_match():
    sim = batch("bottle_cap")
    records = sim.states.copy()
    records["objects"]["velocity_mps"][0, 0] = 0.0, 0.0, 25.0
    sim.load_states(records, np.array([True]))
    sim.step()
    assert sim.states["info"]["end_reason"][0] == hand_parts.LOST
    assert sim.truncated[0]
    assert not sim.terminated[0]


@pytest.mark.parametrize("task", THINGS)
def test_the_places_of_grips_and_palms_are_those_of_mujoco(task: str):
    thing = THINGS[task]
    sim = batch(task)
    rng = np.random.default_rng(0)
    records = sim.states.copy()
    for k in range(2):
        records["hands"]["base_pose"][0, k] = rng.uniform(-0.05, 0.05, 3).tolist() + rng.uniform(-0.6, 0.6, 3).tolist()
        records["hands"]["joint_rad"][0, k, :2] = rng.uniform(-0.4, 0.4, 2)
    turn = rng.normal(size=4)
    records["objects"]["quaternion"][0, 0] = -np.copysign(turn / np.linalg.norm(turn), turn[0])
    records["joints"]["opening"][0, 0] = 0.5 * thing.most
    sim.load_states(records, np.array([True]))
    model = hand_open.scene(thing)
    data = mujoco.MjData(model)
    for k in range(2):
        data.qpos[30 * k : 30 * k + 6] = records["hands"]["base_pose"][0, k]
        data.qpos[30 * k + 6 : 30 * k + 30] = records["hands"]["joint_rad"][0, k]
    data.qpos[60:63], data.qpos[63:67] = (records["objects"][name][0, 0] for name in ("position_m", "quaternion"))
    data.qpos[67] = 0.5 * thing.most
    mujoco.mj_kinematics(model, data)
    state, world = sim.states.view(np.recarray)[0], sim.game.world
    for k in range(2):
        part = data.body(f"part_{k}")
        expected = part.xpos + part.xmat.reshape(3, 3) @ thing.grips_m[k]
        np.testing.assert_allclose(hand_open.grip_point(state, world, k), expected, atol=1e-9)
        palm = data.body(f"hand_{k}_palm")
        expected = palm.xpos + palm.xmat.reshape(3, 3) @ (hand_open.CUP_M, 0.0, world.task.above_m)
        own = hand_open.palm_point(state.hands[k], world.task.above_m)
        np.testing.assert_allclose(world.place_m[k] + own @ world.axes[k], expected, atol=1e-9)


def test_a_hand_sees_the_thing_in_its_own_frame_and_the_right_one_in_a_mirror():
    """The scissors are their own mirror: a turn to one side looks to a hand as one to the other side to the other."""
    sim = batch("scissors")
    records = sim.states.copy()
    thing = records["objects"][0, 0]
    thing["position_m"], thing["velocity_mps"] = (0.02, -0.1, 0.4), (1.0, 2.0, 3.0)
    thing["quaternion"] = -math.cos(0.1), 0.0, 0.0, -math.sin(0.1)
    thing["turn_radps"] = 0.0, 0.0, 0.5
    records["joints"]["opening"][0, 0], records["joints"]["speed"][0, 0] = 0.3, 0.7
    sim.load_states(records, np.array([True]))
    first, second = sim.observations[0, :, -18:]
    cos, sin = math.cos(0.1), math.sin(0.1)
    x = 0.115 + hand_open.CUP_M
    assert first[:13].tolist() == pytest.approx([x + 0.02, -0.1, 0.1, cos, 0, 0, sin, 1, 2, 3, 0, 0, 0.5], abs=1e-6)
    assert second[:13].tolist() == pytest.approx([x - 0.02, -0.1, 0.1, cos, 0, 0, -sin, -1, 2, 3, 0, 0, -0.5], abs=1e-6)
    assert first[13:15].tolist() == second[13:15].tolist() == pytest.approx([0.3, 0.7])
    state = sim.states.view(np.recarray)[0]
    point = hand_open.grip_point(state, sim.game.world, 1)
    assert second[15:].tolist() == pytest.approx([x - point[0], point[1], point[2] - 0.3], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("task", THINGS)
def test_pull_opens_and_hold_and_random_do_not(task: str):
    for script, commands, low, high in (
        ("hold", "joint", 0, 0),
        ("random", "joint", 0, 5),  # 2 %
        ("random", "grip", 0, 5),
        ("pull", "joint", 250, 256),
        ("pull", "grip", 250, 256),
    ):
        reasons = played(task, script, 256, commands=commands)["info"]["end_reason"]
        solved, lost = ((reasons == reason).sum() for reason in (hand_parts.DONE, hand_parts.LOST))
        print(f"{IDS[task]}, {script} ({commands}): solved {solved} of 256, diverged {lost}")
        assert low <= solved <= high


KNOTS, LANES, ROUNDS, ELITES = 4, 200, 5, 12
"""Moments of a plan, rollouts at once, how often, and those that the next ones are drawn around."""


def rewards_of(sim: Any, plans: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Plays a plan a lane from one start, ``[N, KNOTS, 2, 10]``: what is paid, and whether the thing is open."""
    sim.reset(seed=np.full(sim.num_envs, seed))
    paid = np.zeros(sim.num_envs)
    for number in range(sim.game.horizon):
        moment = min(number / 90.0, 1.0) * (KNOTS - 1)
        before = min(int(moment), KNOTS - 2)
        sim.actions[...] = plans[:, before] + (moment - before) * (plans[:, before + 1] - plans[:, before])
        is_on = sim.states["info"]["end_reason"] == RUNNING
        sim.step()
        paid += np.where(is_on, sim.rewards[:, 0], 0.0)
    return paid, sim.states["info"]["end_reason"] == hand_parts.DONE


@pytest.mark.slow
@pytest.mark.parametrize("task", THINGS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_cross_entropy_method_beats_hold_in_1000_rollouts(task: str, seed: int):
    sim, rng = batch(task, LANES, commands="grip"), np.random.default_rng(seed)
    held = rewards_of(sim, np.zeros((LANES, KNOTS, 2, 10)), seed)[0][0]
    mean, spread = np.zeros((KNOTS, 2, 10)), np.full((KNOTS, 2, 10), 0.4)
    best, solved = -np.inf, 0
    for _ in range(ROUNDS):
        plans = np.clip(rng.normal(mean, spread, (LANES, KNOTS, 2, 10)), -1.0, 1.0)
        plans[:, 0] = 0.0
        paid, is_open = rewards_of(sim, plans, seed)
        elites = plans[np.argsort(-paid)[:ELITES]]
        mean, spread = elites.mean(axis=0), elites.std(axis=0) + 0.05
        best, solved = max(best, paid.max()), solved + is_open.sum()
    print(f"{IDS[task]}, start {seed}: hold {held:.3f}, best {best:.3f}, solved by {solved} of {ROUNDS * LANES}")
    assert best > held
