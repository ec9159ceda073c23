"""Joint choices as one Discrete or one MultiDiscrete, masks where nothing is forbidden, and names of their parts."""

import copy
import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from games import duel, two_team, two_team_homogeneous
from games.play import all_bytes, simulation
from gymnasium import spaces

from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.joint_choices import JointChoices
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.game import Choice, Field, Game, Role
from palaestra.games.calibration import cartpole

PAIRS = duel.game(players=2)
SIGHT = (Field("turn", (), 0, 1),)


def reset(s, world):
    s.acting[1] = 0


def step(s, world, actions, rewards, scratch):
    s.said = 100 * actions.talker[0].word + 10 * actions.walker[0].legs[0] + actions.walker[0].legs[1]
    return False


def observe(s, world, observations, scratch):
    observations.talker[0].turn = 1.0


UNLIKE = Game(
    name="Unlike",
    roles=(
        Role("talker", ("team_0",), SIGHT, (Choice("word", 3, noop=2),)),
        Role("walker", ("team_1",), SIGHT, (Choice("legs", 4, shape=(2,), noop=1),)),
    ),
    state=[("said", "i8")],
    reset=reset,
    step=step,
    observe=observe,
)
"""A team of unlike roles, whose second member is never asked in the first decision; it forbids nothing."""


def started(game: Game, n: int = 1, **options: Any) -> Any:
    sim = simulation(game, n, compiled=False, **options)
    sim.reset(seed=1)
    return sim


def joint(game: Game = PAIRS, n: int = 1, **options: Any) -> AgentIO:
    sim = started(game, n)
    return AgentIO(sim, sim.game.teams[next(iter(game.teams))], choices="discrete", **options)


# -- actions -----------------------------------------------------------------------------------------------------------


def test_joint_choices_are_numbered_the_first_counting_most():
    agent_io = joint(UNLIKE)
    assert agent_io.action_space == spaces.Discrete(3 * 4 * 4)
    assert agent_io.joint is not None
    np.testing.assert_array_equal(
        agent_io.joint.table, [[a, b, c] for a in range(3) for b in range(4) for c in range(4)]
    )


def test_a_joint_choice_does_what_its_parts_do():
    together, apart = joint(n=3), AgentIO(started(PAIRS, 3), (0, 1))
    assert apart.action_space == spaces.MultiDiscrete([3, 3])
    for number in range(9):
        together.write(np.array([number, 0, 8 - number]))
        apart.write(np.array([[number // 3, number % 3], [0, 0], [(8 - number) // 3, (8 - number) % 3]]))
        np.testing.assert_array_equal(together.sim.actions, apart.sim.actions)
        for agent_io in (together, apart):
            agent_io.sim.step()
        np.testing.assert_array_equal(all_bytes(together.sim), all_bytes(apart.sim))


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        (9, "lane 0: joint choice = 9 is not an integer in [0, 9)"),
        (-1, "lane 0: joint choice = -1 is not an integer in [0, 9)"),
        (1.0, "a joint choice must be an integer, got float64"),
        (True, "a joint choice must be an integer, got bool"),
        ([0, 1], "a joint choice is one number in each of 1 lanes, got shape (1, 2)"),
        (2**70, "a joint choice must be an integer, got object"),
    ],
)
def test_what_is_no_joint_choice_is_refused_and_nothing_moves(action: Any, complaint: str):
    agent_io = joint()
    before = all_bytes(agent_io.sim)
    with pytest.raises(ActionError, match=re.escape(complaint)):
        agent_io.write_one(action)
    np.testing.assert_array_equal(all_bytes(agent_io.sim), before)


def test_real_numbers_and_too_many_combinations_have_no_joint_choice():
    with pytest.raises(
        ValueError,
        match=re.escape("RaidGame has real-valued actions (effort)".replace("RaidGame", two_team.game().name)),
    ):
        AgentIO(started(two_team.game()), (3,), "dict", choices="discrete")
    many = duel.game(players=11)
    with pytest.raises(
        ValueError, match=re.escape("would number 177,147 combinations of [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]")
    ):
        AgentIO(started(many), tuple(range(11)), choices="discrete")
    with pytest.raises(ValueError, match=re.escape('choices must be "separate" or "discrete", got \'one\'')):
        AgentIO(started(PAIRS), (0,), choices="one")  # pyright: ignore[reportArgumentType]


def test_a_team_of_unlike_roles_makes_one_row_of_choices():
    agent_io = AgentIO(started(UNLIKE, 2), (0, 1))
    assert agent_io.action_space == spaces.MultiDiscrete([3, 4, 4])
    agent_io.sim.states["acting"] = 1
    agent_io.write(np.array([[2, 3, 1], [0, 1, 2]]))
    agent_io.sim.step()
    assert agent_io.sim.states["said"].tolist() == [231, 12]
    with pytest.raises(
        ActionError, match=re.escape("action of talker, walker must have 3 numbers a lane, got shape (2, 2)")
    ):
        agent_io.write(np.zeros((2, 2), np.int64))


def test_every_face_takes_joint_choices():
    sim = lambda mode, n=1: started(PAIRS, n, autoreset_mode=mode, opponents={"blue": "presser"})  # noqa: E731
    env = GameEnv(sim("off"), choices="discrete")
    vec = GameVectorEnv(sim("next_step", 2), choices="discrete")
    many = GameParallelEnv(started(UNLIKE, autoreset_mode="off"), choices="discrete")
    assert env.action_space == vec.single_action_space == spaces.Discrete(9)
    assert many.action_spaces == {"team_0": spaces.Discrete(3), "team_1": spaces.Discrete(16)}
    env.reset(seed=1)
    vec.reset(seed=1)
    many.reset(seed=1)
    env.step(7)
    vec.step(np.array([7, 3]))
    many.step({"team_0": 2, "team_1": np.int64(13)})
    assert env.sim.actions[0, :2].tolist() == vec.sim.actions[0, :2].tolist() == [2, 1]
    assert many.sim.states["said"][0] == 211  # the walker is not asked: its no-op


def test_gymnasium_makes_joint_choices_by_keyword():
    env = gymnasium.make("palaestra/TeamMatrix-v0", choices="discrete", mask="obs", mask_keys=("obs", "mask"))
    space: Any = env.observation_space
    assert isinstance(env.action_space, spaces.Discrete)
    assert list(space) == ["mask", "obs"]
    assert space["mask"].shape == (env.action_space.n,)
    observation, _ = env.reset(seed=1)
    assert observation in space


# -- masks -------------------------------------------------------------------------------------------------------------


def test_masks_of_joint_choices_are_multiplied_out():
    agent_io = joint(UNLIKE)
    choices = agent_io.joint
    assert isinstance(choices, JointChoices)
    allowed = np.array([[True, False, True, True, False, False, True, False, True, True, False]])
    assert np.flatnonzero(choices.masks(allowed)[0]).tolist() == [
        k for k, (a, b, c) in enumerate(choices.table) if a in (0, 2) and b in (0, 3) and c in (1, 2)
    ]


def test_masks_of_a_team_that_may_not_do_everything():
    sim = started(PAIRS, 2)
    apart, together = AgentIO(sim, (0, 1), mask="info"), AgentIO(sim, (0, 1), mask="obs", choices="discrete")
    space: Any = together.observation_space
    assert space["action_mask"] == spaces.Box(0, 1, (9,), np.int8)
    whole = apart.action_masks()
    expected = np.array([np.outer(row[:3], row[3:]).ravel() for row in whole])
    np.testing.assert_array_equal(together.action_masks(), expected)
    np.testing.assert_array_equal(together.observe()["action_mask"], expected)
    np.testing.assert_array_equal(together.masks_of(1)["action_mask"], expected[1])
    assert together.observe_lane(0) in space


def test_where_nothing_is_forbidden_all_masks_are_ones():
    env = GameEnv(started(cartpole.game(), autoreset_mode="off"), mask="obs")
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space
    assert observation["action_mask"].tolist() == [1, 1]
    assert "action_mask" not in info
    np.testing.assert_array_equal(env.action_masks(), [True, True])
    told = GameEnv(started(cartpole.game(), autoreset_mode="off"), mask="info")
    assert told.reset(seed=1)[1]["action_mask"].tolist() == [1, 1]
    quiet = GameEnv(started(cartpole.game(), autoreset_mode="off"))
    assert "action_mask" not in quiet.reset(seed=1)[1]
    np.testing.assert_array_equal(quiet.action_masks(), [True, True])


def test_an_agent_that_is_not_asked_has_its_noop_alone():
    sim = started(UNLIKE, 2, autoreset_mode="off")
    agent_io = AgentIO(sim, (0, 1), mask="info")
    np.testing.assert_array_equal(agent_io.masks()["action_mask"], [[1, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0]] * 2)
    sim.states["acting"][1] = 1
    assert [m.tolist() for m in agent_io.masks_of(1)["action_mask"]] == [[1] * 3, [1] * 4, [1] * 4]
    assert [m.tolist() for m in agent_io.masks_of(0)["action_mask"]] == [[1, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(copy.deepcopy(agent_io).masks()["action_mask"][1], [1] * 11)


def test_real_numbers_have_no_masks():
    env = GameEnv(started(two_team_homogeneous.game(), autoreset_mode="off"), observation="dict")
    with pytest.raises(AttributeError, match="no attribute 'action_masks': its actions are real numbers"):
        env.action_masks()


def test_other_names_for_the_parts_of_an_observation():
    env = GameEnv(started(PAIRS, autoreset_mode="off"), mask="obs", mask_keys=("observations", "allowed"))
    observation, _ = env.reset(seed=1)
    assert list(observation)[:1] == ["observations"]
    assert observation in env.observation_space
    for keys in (("a",), ("a", "a"), ("candidates", "b"), (1, "b")):
        with pytest.raises(ValueError, match="mask_keys must be two names"):
            GameEnv(started(PAIRS, autoreset_mode="off"), mask="obs", mask_keys=keys)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=re.escape('it needs mask="obs"')):
        GameEnv(started(PAIRS, autoreset_mode="off"), mask_keys=("obs", "mask"))
