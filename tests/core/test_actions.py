"""An action outside its space is an error that names agent, value and place, and changes nothing."""

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from games import two_team, two_team_homogeneous
from games.play import all_bytes, idle_actions, random_actions, simulation

from palaestra.core.contract.actions import ActionError
from palaestra.core.contract.spaces import action_space
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game
from palaestra.games.calibration import cartpole

pytestmark = pytest.mark.jitless

RAID, MELEE, CARTPOLE = two_team.game(), two_team_homogeneous.game(), cartpole.game()
N = 5


def started(game: Game, threads: int = 1, out_of_range: Any = "clip") -> Simulation:
    sim = simulation(game, N, threads=threads, out_of_range=out_of_range)
    sim.reset(seed=1)
    sim.step(idle_actions(sim))  # blue's turn now
    return sim


def changed(game: Game, change: Callable[[Any], Any]) -> Any:
    actions = idle_actions(simulation(game, N))
    result = change(actions)
    return actions if result is None else result


def put(path: tuple, index: tuple, value: Any) -> Callable[[Any], None]:
    def change(actions: Any) -> None:
        for name in path:
            actions = actions[name]
        actions[index] = value

    return change


OUT_OF_RANGE = [
    (CARTPOLE, put((), (3, 0), 2), "lane 3, cart_0: push = 2 is not an integer in [0, 2)"),
    (CARTPOLE, put((), (4, 0), -1), "lane 4, cart_0: push = -1 is not an integer in [0, 2)"),
    (MELEE, put((), (2, 7, 1), np.nan), "lane 2, blue_2: thrust[1] = nan is not in [-1, 1]"),
    (MELEE, put((), (2, 0, 0), np.inf), "lane 2, red_0: thrust[0] = inf is not in [-1, 1]"),
    (MELEE, put((), (0, 9, 0), -1.001), "lane 0, blue_4: thrust[0] = -1.001 is not in [-1, 1]"),
    (RAID, put(("scout",), (1, 2), 4), "lane 1, blue_0: move = 4 is not an integer in [0, 4)"),
    (RAID, put(("guard", "trigger"), (4, 1), 2), "lane 4, blue_1: trigger = 2 is not an integer in [0, 2)"),
    (RAID, put(("guard", "effort"), (3, 1), 0.95), "lane 3, blue_1: effort = 0.95 is not in [0.1, 0.9]"),
    (RAID, put(("guard", "effort"), (3, 1), np.nan), "lane 3, blue_1: effort = nan is not in [0.1, 0.9]"),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("game", "change", "complaint"), OUT_OF_RANGE, ids=[c for _, _, c in OUT_OF_RANGE])
def test_a_value_outside_its_space_is_named_and_nothing_moves(game, change, complaint: str, threads: int):
    sim = started(game, threads, "raise")
    before = all_bytes(sim)
    with pytest.raises(ActionError, match=re.escape(complaint)):
        sim.step(changed(game, change))
    np.testing.assert_array_equal(all_bytes(sim), before)
    sim.step(idle_actions(sim))  # and the game goes on


@pytest.mark.parametrize("threads", [1, 2])
def test_finite_numbers_beyond_their_bounds_are_clipped(threads: int):
    for game, path, far, near in (
        (MELEE, (), [9.9, -1e300], [1.0, -1.0]),
        (RAID, ("guard", "effort"), [0.95, -3.0], [0.9, 0.1]),
    ):
        beyond, at_bounds = started(game, threads), started(game, threads, "raise")
        for sim, values in ((beyond, far), (at_bounds, near)):
            actions = idle_actions(sim)
            put(path, (slice(0, 2),), np.reshape(values, (2, 1) if path else (2, 1, 1)))(actions)
            sim.step(actions)
        np.testing.assert_array_equal(all_bytes(beyond), all_bytes(at_bounds))


def test_what_is_not_finite_is_refused_though_finite_numbers_are_clipped():
    for bad in (np.nan, np.inf, -np.inf):
        sim = started(MELEE)
        with pytest.raises(ActionError, match=re.escape(f"lane 2, red_0: thrust[0] = {bad} is not in [-1, 1]")):
            sim.step(changed(MELEE, put((), (2, 0, 0), bad)))


def test_a_refused_number_is_shown_in_full():
    sim = started(MELEE, out_of_range="raise")
    with pytest.raises(ActionError, match=re.escape("thrust[0] = 1.0000001192092896 is not in [-1, 1]")):
        sim.step(changed(MELEE, put((), (2, 0, 0), np.nextafter(np.float32(1), np.float32(2)))))


def test_the_word_for_what_is_out_of_range_is_checked_and_copies_keep_it():
    with pytest.raises(ValueError, match=re.escape('out_of_range must be "clip" or "raise", got \'wrap\'')):
        simulation(MELEE, 1, out_of_range="wrap")
    assert copy.deepcopy(started(MELEE, out_of_range="raise")).out_of_range == "raise"


MALFORMED = [
    (CARTPOLE, lambda a: a[:, 0], "action of cart must have shape (5, 1), got (5,)"),
    (CARTPOLE, lambda a: a.astype(float), "action of cart must be integers, got float64"),
    (CARTPOLE, lambda a: a.astype(bool), "action of cart must be integers, got bool"),
    (CARTPOLE, lambda a: a.astype(object), "action of cart must be integers, got object"),
    (CARTPOLE, lambda a: "left", "action of cart must have shape (5, 1), got ()"),
    (MELEE, lambda a: a[:, :, 0], "action of point must have shape (5, 10, 2), got (5, 10)"),
    (MELEE, lambda a: a.astype(complex), "action of point must be real numbers, got complex128"),
    (RAID, lambda a: a["scout"], "actions must be a dict with the roles scout, guard"),
    (RAID, lambda a: {"scout": a["scout"]}, "actions must be a dict with the roles scout, guard"),
    (RAID, lambda a: a | {"guard": {"move": 0}}, "actions of guard must give the fields move, trigger, effort"),
    (RAID, lambda a: a | {"guard": np.zeros((5, 2))}, "actions of guard must give the fields move, trigger, effort"),
    (RAID, lambda a: a | {"guard": a["guard"] | {"effort": 0.5}}, "effort of guard must have shape (5, 2), got ()"),
    (RAID, lambda a: a | {"guard": a["guard"] | {"trigger": np.zeros((5, 2))}}, "trigger of guard must be integers"),
]


@pytest.mark.parametrize(("game", "change", "complaint"), MALFORMED, ids=[c for _, _, c in MALFORMED])
def test_what_has_another_form_is_refused_and_nothing_moves(game, change, complaint: str):
    sim = started(game)
    before = all_bytes(sim)
    with pytest.raises(ActionError, match=re.escape(complaint)):
        sim.step(changed(game, change))
    np.testing.assert_array_equal(all_bytes(sim), before)


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        (0.5, "action of cart must be integers, got float64"),
        (True, "action of cart must be integers, got bool"),
        ([0, 1], "action of cart must have 1 numbers in each of 1 lanes, got shape (1, 2)"),
        ("left", "action of cart must be integers, got <U4"),
        ({"push": 1}, "action of cart must have 1 numbers in each of 1 lanes, got shape ()"),
        (2**70, "push = 1180591620717411303424 is far outside its space"),
        (2, "lane 0, cart_0: push = 2 is not an integer in [0, 2)"),
        (np.int32(-1), "lane 0, cart_0: push = -1 is not an integer in [0, 2)"),
    ],
)
def test_the_faces_refuse_in_the_same_words(action: Any, complaint: str):
    env = GameEnv(simulation(CARTPOLE, 1, autoreset_mode="off"))
    parallel = GameParallelEnv(simulation(CARTPOLE, 1, autoreset_mode="off"), mask=None)
    for face, given in ((env, action), (parallel, {"cart_0": action})):
        face.reset(seed=1)
        before = all_bytes(face.sim)
        with pytest.raises(ActionError, match=re.escape(complaint)):
            face.step(given)
        np.testing.assert_array_equal(all_bytes(face.sim), before)


def test_a_team_of_two_roles_acts_by_role():
    env = GameEnv(simulation(RAID, 1, autoreset_mode="off"), control="blue", observation="dict")
    env.reset(seed=1)
    with pytest.raises(ActionError, match="actions must be a dict with the roles scout, guard"):
        env.step({"scout": 0})
    with pytest.raises(ActionError, match="actions of guard must give the fields move, trigger, effort"):
        env.step({"scout": 0, "guard": {"move": 0, "trigger": 0}})


def test_an_action_error_is_a_value_error():
    assert issubclass(ActionError, ValueError)


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u8"])
def test_any_integers_are_choices(kind: str):
    sim, twin = started(CARTPOLE), started(CARTPOLE)
    sim.step(np.ones((N, 1), kind))
    twin.step(np.ones((N, 1), "i8"))
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


def test_integers_and_float32_are_real_numbers():
    sim, twin = started(MELEE), started(MELEE)
    sim.step(np.ones((N, 10, 2), "i4"))
    twin.step(np.ones((N, 10, 2), "f4"))
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


def test_without_actions_what_stands_in_the_arrays_is_played():
    sim, twin, rng = started(RAID), started(RAID), np.random.default_rng(0)
    actions = random_actions(sim, rng)
    sim.step(actions)
    twin.actions["scout"][:] = actions["scout"]
    for name, values in actions["guard"].items():
        twin.actions["guard"][name][:] = values
    twin.step()
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


def test_actions_that_were_not_written_are_noops():
    sim = simulation(RAID, N)
    sim.reset(seed=1)
    assert (sim.actions["guard"]["effort"] == 0.1).all()
    sim.step()
    twin = simulation(RAID, N)
    twin.reset(seed=1)
    twin.step(idle_actions(twin))
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


def test_composite_actions_may_be_records():
    sim, twin = started(RAID), started(RAID)
    actions = random_actions(sim, np.random.default_rng(0))
    records = np.zeros((N, 2), sim.actions["guard"].dtype)
    for name, values in actions["guard"].items():
        records[name] = values
    sim.step(actions)
    twin.step(actions | {"guard": records})
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


def test_only_agents_that_are_to_act_are_checked():
    sim = started(RAID)
    actions = idle_actions(sim)
    actions["scout"][:, 0] = 99  # red, in blue's turn
    actions["guard"]["effort"][:, 0] = np.nan
    sim.step(actions)
    assert sim.states["steps"].tolist() == [2] * N


def test_the_bounds_of_the_space_are_inside_even_where_float32_rounds_them_outwards():
    game = two_team_homogeneous.game(thrust=0.1)
    space: Any = action_space(game.roles[0].action)
    assert float(space.high[0]) > 0.1
    sim = started(game, out_of_range="raise")
    for bound in (space.low, space.high):
        sim.step(np.broadcast_to(bound, (N, 10, 2)))
    with pytest.raises(ActionError, match=re.escape("is not in [-0.1, 0.1]")):
        sim.step(np.full((N, 10, 2), 0.1001))
