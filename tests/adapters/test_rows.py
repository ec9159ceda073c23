"""The promises of `palaestra.adapters.rows`: the agents of all lanes as rows of a Gymnasium VectorEnv."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from games import depot
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import palaestra
from palaestra import zoo
from palaestra.adapters.rows import rows
from palaestra.core.contract.actions import ActionError
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Choice, Continuous, Field, Game, Role
from palaestra.players.padding import ActionPadding, common_action

TAG, CARTPOLE, SPEAKER = "palaestra/TeamTag-v0", "palaestra/CartPole-v0", "palaestra/SpeakerListener-v0"
LAST = 4
DIGGERS, CARRIERS = (0, 1), (2, 3)


def reset(s, world):
    s.cargo = 0


def step(s, world, actions, rewards, scratch):
    """Rewards show what was chosen: a digger's tool, a carrier's 10 * way + load; red_0 leaves after two decisions."""
    for k in range(2):
        rewards[DIGGERS[k]] = actions.digger[k].tool
        rewards[CARRIERS[k]] = 10 * actions.carrier[k].way + actions.carrier[k].load
    if s.steps == 2:
        s.alive[0] = 0
    s.cargo += 1
    s.info.cargo = s.cargo
    if actions.carrier[1].load == 3:
        s.info.winner, s.info.end_reason = 1, 2
        return True
    return False


def observe(s, world, observations, scratch):
    for k in range(2):
        if s.alive[DIGGERS[k]]:
            observations.digger[k].number = 1 + DIGGERS[k]
        observations.carrier[k].number = 1 + CARRIERS[k]
        observations.carrier[k].cargo[0], observations.carrier[k].cargo[1] = s.cargo, -1.0


def legal(s, world, mask):
    for k in range(2):
        for j in range(3):
            mask.carrier[k].way[j] = j < 2
        for j in range(2):
            mask.digger[k].tool[j] = j == 0 or s.cargo % 2 == 0
        for j in range(4):
            mask.carrier[k].load[j] = j != 1


def workshop(**changes: Any) -> Game:
    """Diggers see one number and choose one of two tools, carriers see three and choose a way and a load."""
    digger = Role("digger", ("red_0", "blue_0"), (Field("number", (), 0, 9),), (Choice("tool", 2, noop=1),))
    sees = (Field("number", (), 0, 9), Field("cargo", (2,), -5, 20))
    carrier = Role("carrier", ("red_1", "blue_1"), sees, (Choice("way", 3), Choice("load", 4, noop=2)))
    given: dict[str, Any] = {
        "name": "Workshop",
        "roles": (digger, carrier),
        "state": (("cargo", "i8"),),
        "reset": reset,
        "step": step,
        "observe": observe,
        "horizon": LAST,
        "info": (Field("cargo", (), 0, 20, dtype="i8"),),
        "end_reasons": ("loaded",),
        "reward": "agent",
    }
    return Game(**{**given, **changes})


def simulation(game: Game | None = None, lanes: int = 2, **opponents: str) -> KernelSimulation:
    return KernelSimulation(
        game or workshop(), lanes, autoreset_mode="same_step", compiled=False, opponents=opponents or None
    )


def play(envs: Any, actions: Any, steps: int = 1) -> Any:
    result = None
    for _ in range(steps):
        result = envs.step(np.asarray(actions))
    return result


WAIT = np.zeros((8, 2), np.int64)


# -- rows of the batch -------------------------------------------------------------------------------------------------


def test_rows_are_the_batch_bit_for_bit_lane_by_lane():
    envs = rows(TAG, 3, horizon=7)
    sim = palaestra.make_batch(TAG, 3, horizon=7, autoreset_mode="same_step")
    observations, _ = envs.reset(seed=5)
    np.testing.assert_array_equal(observations, sim.reset(seed=5).reshape(12, -1))
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(20):
        actions = rng.integers(0, 5, 12)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        sim.step(actions.reshape(3, 4))
        np.testing.assert_array_equal(observations, sim.observations.reshape(12, -1))
        np.testing.assert_array_equal(rewards, sim.rewards.reshape(-1))
        np.testing.assert_array_equal(terminated, sim.terminated.repeat(4))
        np.testing.assert_array_equal(truncated, sim.truncated.repeat(4))
        np.testing.assert_array_equal(infos["tags"], sim.info["tags"].repeat(4))
        if truncated.any():
            ends += 1
            np.testing.assert_array_equal(np.stack(infos["final_obs"]), sim.final_observations.reshape(12, -1))
            np.testing.assert_array_equal(infos["final_info"]["winner"], sim.final_info["winner"].repeat(4))
    assert ends == 2


def test_rows_stand_in_the_order_of_pettingzoos_agents_lane_after_lane():
    envs = rows(TAG, 2)
    parallel = zoo.team_tag_v0.parallel_env()
    assert envs.agents == tuple(parallel.possible_agents)
    assert envs.lane.tolist() == [0] * 4 + [1] * 4
    assert envs.team.tolist() == [0, 0, 0, 1] * 2
    seen, _ = parallel.reset(seed=3)
    np.testing.assert_array_equal(envs.reset(seed=3)[0][:4], [seen[a] for a in envs.agents])


def test_one_agent_a_lane_is_gymnasiums_own_vector_of_the_game():
    ours = rows(CARTPOLE, 3, horizon=30)
    theirs = SyncVectorEnv([lambda: gymnasium.make(CARTPOLE, horizon=30)] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    np.testing.assert_array_equal(ours.reset(seed=1)[0], theirs.reset(seed=1)[0])
    rng, ends = np.random.default_rng(1), 0
    for _ in range(100):
        actions = rng.integers(0, 2, 3)
        *own, infos = ours.step(actions)
        *others, expected = theirs.step(actions)
        for mine, other in zip(own, others, strict=True):
            np.testing.assert_array_equal(mine, other)
        assert ("final_obs" in infos) == ("final_obs" in expected)
        if "final_obs" in infos:
            ends += 1
            np.testing.assert_array_equal(infos["_final_obs"], expected["_final_obs"])
            for mine, other in zip(infos["final_obs"], expected["final_obs"], strict=True):
                np.testing.assert_array_equal(mine, other)
    assert ends > 3


def test_agents_of_a_team_with_an_opponent_have_no_row():
    envs = rows(simulation(blue="random"))
    assert envs.agents == ("red_0", "red_1")
    assert envs.team.tolist() == [0] * 4
    np.testing.assert_array_equal(envs.reset(seed=0)[0][:, 0], [1, 3, 1, 3])
    assert rows(TAG, 2, team="blue", opponent="random").agents == ("blue_0",)


def test_an_agent_with_an_opponent_has_no_row():
    envs = rows(simulation(depot.game(), blue_0="random"))
    assert envs.agents == ("red_0", "red_1", "blue_1")
    envs.reset(seed=0)
    observations, rewards, *_ = envs.step(np.array([2, 0, 0, 12, 3, 0]))
    np.testing.assert_allclose(rewards, [1 / 3, 0, 0, 1 / 3, 2 / 3, 0])
    assert observations[:, 0].tolist() == [1, 1, 0, 11, 2, 0]  # blue_1 has not arrived


def test_a_lane_may_be_one_row():
    envs = rows(simulation(blue="random"), agents="joint", observation="dict")
    assert envs.num_envs == 2
    assert envs.single_action_space == spaces.MultiDiscrete([2, 3, 4])
    _, infos = envs.reset(seed=0)
    assert infos["alive"].shape == (2,)
    _, rewards, _, _, _ = envs.step(np.array([[1, 2, 0], [0, 1, 2]]))
    np.testing.assert_array_equal(rewards, [21, 12])


def test_a_team_in_one_row_is_alive_while_one_of_it_is():
    envs = rows(simulation(depot.game(), blue="random"), agents="joint")
    _, infos = envs.reset(seed=0)
    for order in (2, 1, 2):  # red_0 goes to and fro until its fuel is spent
        *_, infos = play(envs, [[order, 0], [order, 0]])
    assert envs.sim.alive[:, :2].tolist() == [[False, True]] * 2
    assert infos["alive"].tolist() == infos["acting"].tolist() == [True, True]


def test_a_list_of_seeds_has_one_a_lane_and_none_goes_on():
    envs = rows(TAG, 2)
    first = envs.reset(seed=[7, 3])[0]
    np.testing.assert_array_equal(first[:4], rows(TAG, 1).reset(seed=7)[0])
    again = envs.reset(seed=[7, None])[0]
    np.testing.assert_array_equal(again[:4], first[:4])
    lane = rows(TAG, 1)
    lane.reset(seed=3)
    np.testing.assert_array_equal(again[4:], lane.reset()[0])


def test_what_a_step_returned_does_not_change_later():
    envs = rows(simulation())
    observations, infos = envs.reset(seed=0)
    kept = [observations, infos["cargo"], *play(envs, WAIT)[:4]]
    before = [array.copy() for array in kept]
    play(envs, WAIT, 3)
    for array, copy in zip(kept, before, strict=True):
        np.testing.assert_array_equal(array, copy)


# -- unlike roles ------------------------------------------------------------------------------------------------------


def test_observations_of_unlike_roles_end_with_zeros():
    envs = rows(simulation())
    assert envs.agents == ("red_0", "blue_0", "red_1", "blue_1")
    space = spaces.Box(np.array([0, -5, -5], np.float32), np.array([9, 20, 20], np.float32))
    assert envs.single_observation_space == space
    observations, _ = envs.reset(seed=0)
    np.testing.assert_array_equal(observations, [[1, 0, 0], [2, 0, 0], [3, 0, -1], [4, 0, -1]] * 2)
    assert play(envs, WAIT)[0] in envs.observation_space


def test_actions_of_unlike_roles_are_as_large_as_the_largest_and_surplus_ones_are_noops():
    envs = rows(simulation(workshop(legal=legal)))
    assert envs.single_action_space == spaces.MultiDiscrete([3, 4])
    envs.reset(seed=0)
    actions = np.array([[0, 3], [2, 0], [1, 0], [1, 2]] * 2)  # blue's digger has no third tool: it takes its noop, 1
    _, rewards, _, _, infos = envs.step(actions)
    np.testing.assert_array_equal(rewards, [0, 1, 10, 12] * 2)
    assert not infos["illegal"].any()
    with pytest.raises(ActionError, match="lane 0, blue_0: tool = 3 is not an integer"):
        envs.step(np.array([[0, 0], [3, 0], [0, 0], [0, 0]] * 2))


def test_masks_forbid_what_a_role_does_not_have_and_what_the_game_forbids():
    digger, carrier = [1, 1, 0, 1, 0, 0, 0], [1, 1, 0, 1, 0, 1, 1]  # carriers have a third way that nothing allows
    envs = rows(simulation(workshop(legal=legal)))
    _, infos = envs.reset(seed=0)
    assert infos["action_mask"].dtype == np.int8
    np.testing.assert_array_equal(infos["action_mask"], [digger, digger, carrier, carrier] * 2)
    np.testing.assert_array_equal(envs.action_masks(), infos["action_mask"])
    assert envs.action_masks().dtype == np.bool_
    digger[1] = 0
    np.testing.assert_array_equal(play(envs, WAIT)[4]["action_mask"][:2], [digger, digger])


def test_masks_are_all_ones_where_roles_are_alike_and_nothing_is_forbidden():
    envs = rows(CARTPOLE, 2)
    _, infos = envs.reset(seed=0)
    assert "action_mask" not in infos
    np.testing.assert_array_equal(envs.action_masks(), np.ones((2, 2), bool))
    seen, _ = rows(CARTPOLE, 2, mask="obs").reset(seed=0)
    np.testing.assert_array_equal(seen["action_mask"], np.ones((2, 2), np.int8))
    pusher = Role("pusher", ("red_0", "blue_0"), (Field("number", (), 0, 9),), (Continuous("push", (), -1, 1),))
    with pytest.raises(AttributeError, match="real numbers"):
        rows(simulation(workshop(roles=(pusher,)))).action_masks()


def test_a_row_that_is_not_asked_may_do_nothing():
    envs = rows(simulation())
    envs.reset(seed=0)
    play(envs, WAIT, 2)
    np.testing.assert_array_equal(envs.action_masks()[:2], [[0, 1, 0, 1, 0, 0, 0], [1, 1, 0, 1, 0, 0, 0]])


def test_masks_in_observations():
    envs = rows(simulation(workshop(legal=legal)), mask="obs", mask_keys=("obs", "mask"))
    seen, infos = envs.reset(seed=0)
    assert seen in envs.observation_space
    assert "action_mask" not in infos
    *_, infos = play(envs, WAIT, LAST)
    dead, alive = infos["final_obs"][:2]
    assert dead in envs.single_observation_space
    np.testing.assert_array_equal(dead["mask"], [0, 1, 0, 1, 0, 0, 0])  # the noop of its tool
    np.testing.assert_array_equal(alive["mask"], [1, 1, 0, 1, 0, 0, 0])
    assert (dead["obs"].tolist(), alive["obs"].tolist()) == ([0, 0, 0], [2, 0, 0])


def test_masks_of_the_last_observations_are_in_the_final_infos():
    envs = rows(simulation(workshop(legal=legal, horizon=1)))
    envs.reset(seed=0)
    *_, infos = play(envs, WAIT)
    assert infos["action_mask"][0].tolist() == [1, 1, 0, 1, 0, 0, 0]  # of the next match
    assert infos["final_info"]["action_mask"][0].tolist() == [1, 0, 0, 1, 0, 0, 0]


def test_choices_of_a_row_as_one_number():
    envs = rows(simulation(workshop(legal=legal)), choices="discrete")
    assert envs.single_action_space == spaces.Discrete(12)
    envs.reset(seed=0)
    allowed = [np.flatnonzero(mask).tolist() for mask in envs.action_masks()[:4]]
    assert allowed == [[0, 1], [0, 1], [0, 2, 3, 4, 6, 7], [0, 2, 3, 4, 6, 7]]
    _, rewards, *_ = envs.step(np.array([0, 11, 6, 4] * 2))
    np.testing.assert_array_equal(rewards, [0, 1, 12, 10] * 2)  # blue_0 has two tools: 11 is their noop


def test_a_list_of_candidates_is_a_dense_mask():
    envs = rows(simulation(depot.game("full")), mask="info")
    envs.reset(seed=0)
    masks = envs.action_masks().reshape(2, 4, -1)
    assert masks.shape[2] == 13 + 2 + 3 + 3
    assert np.flatnonzero(masks[0, 1, :13]).tolist() == [0, 1, 3]


def test_real_numbers_that_a_role_does_not_have_are_ignored():
    short, long = spaces.Box(-1, 1, (1,)), spaces.Box(np.array([-2, 0], "f4"), np.array([0.5, 3], "f4"))
    common = common_action("Game", [short, long])
    assert common == spaces.Box(np.array([-2, 0], "f4"), np.array([1, 3], "f4"))
    given = np.array([[[0.5, 9.0]]], np.float32)
    np.testing.assert_array_equal(ActionPadding(short, common, []).own_actions(given), [[[0.5]]])


def test_what_cannot_be_padded_is_refused_with_the_cure():
    with pytest.raises(ValueError, match="Workshop: the roles digger, carrier have different spaces: give pad=True"):
        rows(simulation(), pad=False)
    with pytest.raises(ValueError, match='one vector of the same dtype: give observation="flat"'):
        rows(simulation(), observation="dict")
    game = workshop()
    mover = Role("carrier", game.roles[1].agents, game.roles[1].observation, (Continuous("push", (), -1, 1),))
    with pytest.raises(ValueError, match="all are real numbers, not Discrete and Box: choose a team"):
        rows(simulation(workshop(roles=(game.roles[0], mover))))


@pytest.mark.check
def test_speaker_and_listener_share_a_policy():
    envs = rows(SPEAKER, 2)
    envs.reset(seed=0)
    assert envs.single_action_space == spaces.Discrete(5)
    np.testing.assert_array_equal(envs.action_masks(), [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]] * 2)
    batch = palaestra.make_batch(SPEAKER, 2, autoreset_mode="same_step")
    batch.reset(seed=0)
    observations, rewards, *_ = envs.step(np.array([2, 4, 1, 3]))
    batch.step({"speaker": np.array([[2], [1]]), "listener": np.array([[4], [3]])})
    np.testing.assert_array_equal(rewards, batch.rewards.reshape(-1))
    np.testing.assert_array_equal(observations[1::2], batch.observations["listener"][:, 0])


def test_fields_of_team_and_lane_follow_an_agents_own():
    envs = rows(simulation(depot.game()))
    envs.reset(seed=0)
    observations, *_ = envs.step(np.array([2, 0, 0, 0] * 2))  # red_0 has driven, blue has not
    sim: Any = envs.sim
    for row, (lane, team) in enumerate(zip(envs.lane, envs.team, strict=True)):
        shared = [sim.team_observations["fuel"][lane, team], sim.lane_observations["time"][lane]]
        expected = [*sim.observations[lane, row % 4], *shared, *sim.game.world.hops.reshape(-1)]
        np.testing.assert_array_equal(observations[row], expected)
    assert observations[0].tolist() != observations[2].tolist()


def test_composite_actions_of_equal_roles_are_a_dict():
    envs = rows(simulation(depot.game("mixed")))
    envs.reset(seed=0)
    actions = envs.action_space.sample()
    actions["order"] = np.array([2, 0, 4, 0] * 2)
    _, rewards, *_ = envs.step(actions)
    np.testing.assert_allclose(rewards, [1 / 3, 0, 1, 0] * 2)


# -- deaths and ends ---------------------------------------------------------------------------------------------------


def test_a_dead_agents_row_stays_sees_zeros_and_is_done_when_the_match_ends():
    envs = rows(simulation())
    _, infos = envs.reset(seed=0)
    assert infos["alive"].all()
    observations, _, terminated, truncated, infos = play(envs, WAIT, 2)
    assert infos["alive"].tolist() == infos["acting"].tolist() == [False, True, True, True] * 2
    assert not observations[0].any()
    assert observations[1].any()
    assert not (terminated | truncated).any()
    chosen = np.array([[1, 0], [1, 0], [1, 2], [0, 0]] * 2)
    _, rewards, terminated, truncated, infos = play(envs, chosen, LAST - 2)
    np.testing.assert_array_equal(rewards, [1, 1, 12, 0] * 2)  # as the batch pays: here, the dead too
    assert truncated.all()
    assert infos["alive"].all()  # of the next match


def test_infos_are_numbers_under_the_same_keys_in_every_step():
    envs = rows(simulation())
    _, first = envs.reset(seed=0)
    assert {"cargo", "winner", "end_reason", "team", "acting", "alive"} < first.keys()
    for _ in range(LAST + 1):
        *_, infos = play(envs, WAIT)
        assert infos.keys() - {"final_obs", "_final_obs", "final_info", "_final_info"} == first.keys()
        for name, value in infos.items():
            if not name.lstrip("_").startswith("final_"):
                assert value.dtype.kind in "iufb"
                assert value.shape[0] == envs.num_envs
    np.testing.assert_array_equal(first["team"], envs.team)


def test_the_end_of_a_match_is_in_the_final_infos_of_its_rows_alone():
    envs = rows(simulation())
    envs.reset(seed=0)
    actions = WAIT.copy()
    actions[3] = [0, 3]  # blue_1 of the first lane ends its match
    observations, _, terminated, truncated, infos = play(envs, actions)
    assert terminated.tolist() == infos["_final_info"].tolist() == [True] * 4 + [False] * 4
    assert not truncated.any()
    final = infos["final_info"]
    assert final["winner"].tolist() == [1] * 4 + [-1] * 4
    assert final["end_reason"].tolist() == [2] * 4 + [0] * 4
    assert final["cargo"].tolist() == [1] * 4 + [0] * 4
    assert infos["winner"].tolist() == [-1] * 8
    assert infos["cargo"].tolist() == [0] * 4 + [1] * 4
    assert [None if row is None else row.tolist() for row in infos["final_obs"]][2:5] == [[3, 1, -1], [4, 1, -1], None]
    assert not (final["alive"] | final["acting"]).any()
    np.testing.assert_array_equal(observations[2], [3, 0, -1])  # the next match
    *_, infos = play(envs, WAIT, LAST - 1)
    assert infos["final_info"]["cargo"].tolist() == [0] * 4 + [LAST] * 4  # nothing of the match before


def test_gymnasiums_statistics_count_rows():
    envs = RecordEpisodeStatistics(rows(simulation()))
    envs.reset(seed=0)
    *_, infos = play(envs, [[1, 0], [1, 0], [1, 2], [0, 0]] * 2, LAST)
    np.testing.assert_array_equal(infos["episode"]["r"], [4, 4, 48, 0] * 2)
    np.testing.assert_array_equal(infos["episode"]["l"], [LAST] * 8)


# -- keywords and attributes -------------------------------------------------------------------------------------------


def test_parameters_and_pictures_by_row():
    envs = rows(CARTPOLE, 2, render_mode="rgb_array")
    envs.reset(seed=0)
    envs.set_attr("force_n", [5.0, 10.0])
    assert envs.get_attr("force_n") == (5.0, 10.0)
    assert envs.get_attr("action_space") == (spaces.Discrete(2),) * 2
    assert len(envs.render()) == len(envs.call("render")) == 2
    with pytest.raises(AttributeError, match="no parameter 'speed'; "):
        envs.set_attr("speed", 1.0)
    with pytest.raises(AttributeError, match=r"rows have no step\(\) of their own"):
        envs.call("step")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"agents": "all"}, ValueError, "agents must be"),
        ({"mask": "all"}, ValueError, "mask must be"),
        ({"team": "green"}, ValueError, "no team 'green'"),
        ({"control": "red"}, TypeError, "control: not a keyword of rows, give team='red'"),
        ({"opponent": "random"}, TypeError, "opponent= needs team="),
        ({"autoreset_mode": "off"}, ValueError, 'rows knows autoreset_mode="same_step" only'),
        ({"team": "red", "codec": "text"}, TypeError, "codec: not a keyword of rows"),
        ({"chaser": 2}, TypeError, "chaser"),
    ],
)
def test_keywords_that_mean_nothing_are_refused(arguments: dict[str, Any], error: type[Exception], says: str):
    with pytest.raises(error, match=says):
        rows(TAG, 2, **arguments)


def test_simulations_that_cannot_be_rows_are_refused_with_the_cure():
    with pytest.raises(ValueError, match='autoreset_mode="same_step"'):
        rows(palaestra.make_batch(CARTPOLE, 2))
    with pytest.raises(TypeError, match="num_envs: only for an id"):
        rows(simulation(), 4)
    with pytest.raises(ValueError, match=r"blue has no player: call sim\.set_opponent"):
        rows(simulation(), team="red")


def test_wrong_actions_and_resets_are_refused():
    envs = rows(simulation())
    envs.reset(seed=0)
    with pytest.raises(ActionError, match=r"8 rows, and actions of shape \(3, 2\)"):
        envs.step(WAIT[:3])
    with pytest.raises(ActionError, match=r"shape \(2,\), got \(3,\)"):
        envs.step(np.zeros((8, 3), int))
    with pytest.raises(ActionError, match="integers, got float64"):
        envs.step(np.zeros((8, 2)))
    with pytest.raises(ValueError, match=r"an option of gymnasium\.make_vec alone"):
        envs.reset(options={"reset_mask": np.ones(8, bool)})
