"""Every keyword of every face changes something that can be seen, or is refused by an error that names it."""

import gc
import multiprocessing
from typing import Any

import numpy as np
import pytest
from games import duel, macros, two_team_homogeneous
from gymnasium.vector import AutoresetMode

from palaestra import registry
from palaestra.adapters.rows import rows
from palaestra.core.compile.batch_loop import CALLER, MIX
from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game, Parameter
from palaestra.wrappers import SelfPlayPool

DUEL, MELEE, ALONE, TALK = "words/Duel-v0", "words/Melee-v0", "palaestra/CartPole-v0", "words/Talk-v0"
FACES: dict[str, Any] = {
    "env": registry.make_env,
    "vector": registry.make_vec,
    "parallel": registry.make_parallel,
    "aec": registry.make_aec,
    "batch": registry.make_batch,
    "rows": rows,
}
ALL = tuple(FACES)
GYMNASIUM, PETTINGZOO = ("env", "vector"), ("parallel", "aec")
SHOWN = (*GYMNASIUM, *PETTINGZOO, "rows")


@pytest.fixture(autouse=True)
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Games of the tests under ids, for this test alone."""
    games = {DUEL: duel.game, MELEE: two_team_homogeneous.game, TALK: macros.game}
    more = {id: registry.Row(id, factory) for id, factory in games.items()}
    monkeypatch.setattr(registry, "ROWS", {**registry.ROWS, **more})


def make(face: str, id: Any = DUEL, **keywords: Any) -> Any:
    """A face of an interpreted game; its `sim` is that of the innermost environment."""
    made = FACES[face](id, **{"compiled": False, **keywords})
    return made if face == "batch" else made.unwrapped


def sim_of(made: Any) -> Any:
    return getattr(made, "sim", made)


def table(*cases: tuple[tuple[str, ...], dict[str, Any], str]) -> Any:
    """One test a face and case; its name shows both."""
    params = [
        pytest.param(face, words, message, id=f"{face}-{', '.join(f'{k}={v!r}'[:40] for k, v in words.items())}")
        for faces, words, message in cases
        for face in faces
    ]
    return pytest.mark.parametrize(("face", "words", "message"), params)


# -- words that are refused --------------------------------------------------------------------------------------------


@table(
    (ALL, {"colour": 1}, "unexpected keyword argument 'colour'"),
    (ALL, {"player": 1}, "'player'.* did you mean 'players'"),
    (ALL, {"changes": 1}, "unexpected keyword argument 'changes'"),
    (SHOWN, {"mask": "garbage"}, "mask must be .*'garbage'"),
    (SHOWN, {"mask": ""}, "mask must be .*''"),
    (SHOWN, {"mask": False}, "mask must be .*False"),
    (SHOWN, {"mask": []}, r"mask must be .*\[\]"),
    (SHOWN, {"mask_keys": "ab", "mask": "obs"}, "mask_keys must be two names"),
    (SHOWN, {"mask_keys": None, "mask": "obs"}, "mask_keys must be two names"),
    (SHOWN, {"choices": "all"}, "choices must be .*'all'"),
    (SHOWN, {"choices": None}, "choices must be .*None"),
    ((*GYMNASIUM, *PETTINGZOO), {"codec": "morse"}, "codec.*'morse'"),
    ((*GYMNASIUM, *PETTINGZOO), {"codec": ""}, "codec.*''"),
    ((*GYMNASIUM, *PETTINGZOO), {"codec": 0}, "codec.* 0"),
    (SHOWN, {"render_mode": "pictures"}, "render.*'pictures'"),
    (SHOWN, {"render_mode": ""}, "render.*''"),
    (ALL, {"observation": "round"}, "observation.*'round'"),
    (ALL, {"observation": ""}, "observation.*''"),
    (ALL, {"observation": 0}, "observation.* 0"),
    (GYMNASIUM, {"control": ""}, "control is one of red, blue"),
    (GYMNASIUM, {"control": "green"}, "no team 'green'"),
    (GYMNASIUM, {"control": 0}, "control is one of red, blue"),
    (PETTINGZOO, {"control": "red"}, "control= is for Gymnasium"),
    (("batch",), {"control": "red"}, "unexpected keyword argument 'control'"),
    (("rows",), {"control": "red"}, "give team='red'"),
    (("rows",), {"team": "green"}, "no team 'green'"),
    (("rows",), {"team": ""}, "no team ''"),
    (("rows",), {"agents": "all"}, "agents must be .*'all'"),
    (("rows",), {"pad": "yes"}, "pad must be True or False"),
    ((*GYMNASIUM, *PETTINGZOO), {"autoreset_mode": "x"}, "autoreset_mode .*'x'"),
    (("env", *PETTINGZOO), {"autoreset_mode": "next_step"}, "autoreset_mode .*'next_step'"),
    (("env", *PETTINGZOO), {"autoreset_mode": ""}, "autoreset_mode .*''"),
    (("batch",), {"autoreset_mode": ""}, "autoreset_mode .*''"),
    (("vector",), {"autoreset_mode": []}, r"autoreset_mode .*\[\]"),
    (("rows",), {"autoreset_mode": "off"}, "autoreset_mode=.*not 'off'"),
    (GYMNASIUM, {"opponent": ""}, "opponent ''"),
    (GYMNASIUM, {"opponent": 0}, "opponent must be a name, .* got int"),
    (GYMNASIUM, {"opponent": []}, "opponent must be a name, .* got list"),
    (GYMNASIUM, {"opponent": "nope"}, "opponent 'nope'"),
    (GYMNASIUM, {"opponent": "presser", "opponents": {"blue": "random"}}, "opponent= would play nobody"),
    (GYMNASIUM, {"opponents": {"blue": None}}, "nobody plays 'blue'"),
    (GYMNASIUM, {"opponents": {"red": "random"}}, "'red' is the one you control"),
    (PETTINGZOO, {"opponent": "presser"}, "opponent= is for Gymnasium"),
    (("batch",), {"opponent": "presser"}, "'opponent'.*make_batch takes opponents="),
    (("rows",), {"opponent": "presser"}, "opponent= needs team="),
    (ALL, {"opponents": ""}, "opponents must be a dict"),
    (ALL, {"opponents": []}, "opponents must be a dict"),
    (ALL, {"opponents": "presser"}, "opponents must be a dict"),
    (ALL, {"opponents": {"green": "presser"}}, "no team 'green'"),
    (("env", *PETTINGZOO), {"copy": False}, "copy= is for"),
    (("batch", "rows"), {"copy": False}, "copy"),
    (("vector",), {"copy": "no"}, "copy must be True or False, got 'no'"),
    (PETTINGZOO, {"fixed_agents": "no"}, "fixed_agents must be True or False, got 'no'"),
    (GYMNASIUM, {"fixed_agents": True}, "fixed_agents= is for PettingZoo"),
    (("batch", "rows"), {"fixed_agents": True}, "fixed_agents"),
    (ALL, {"compiled": "no"}, "compiled must be True or False, got 'no'"),
    (ALL, {"compiled": 0}, "compiled must be True or False, got 0"),
    (ALL, {"workers": -1}, "workers must be an integer from 0 .* got -1"),
    (ALL, {"workers": "2"}, "workers must be an integer from 0 .* got '2'"),
    (ALL, {"workers": True}, "workers must be an integer from 0 .* got True"),
    (ALL, {"threads": 0}, "threads must be"),
    (ALL, {"threads": "2"}, "threads must be .*'2'"),
    (ALL, {"threads": None}, "threads must be .*None"),
    (ALL, {"render_size": (640, 63)}, r"render_size must be \(width, height\), two integers from 64 .*got \(640, 63\)"),
    (ALL, {"render_size": (4096, 480)}, "render_size must be .*to 2048 such as"),
    (ALL, {"render_size": (640.0, 480)}, "render_size must be"),
    (ALL, {"render_size": (640, True)}, "render_size must be"),
    (ALL, {"render_size": 640}, "render_size must be .*got 640"),
    (ALL, {"render_size": "640x480"}, "render_size must be"),
    (ALL, {"width": 320, "height": 240}, r"'width': pictures have one keyword, render_size=\(320, 240\)"),
    (ALL, {"height": 200}, r"'height': pictures have one keyword, render_size=\(640, 200\)"),
    (ALL, {"out_of_range": "wrap"}, "out_of_range must be"),
    (ALL, {"out_of_range": ""}, "out_of_range must be"),
    (("vector", "batch", "rows"), {"num_envs": 0}, "num_envs must be"),
    (("vector", "batch", "rows"), {"num_envs": -1}, "num_envs must be"),
    (("vector", "batch", "rows"), {"num_envs": 2.5}, "num_envs must be .*2.5"),
    (("vector", "batch", "rows"), {"num_envs": "3"}, "num_envs must be .*'3'"),
    (("vector", "batch"), {"num_envs": None}, "num_envs must be .*None"),
    (ALL, {"max_cycles": 2.5}, "horizon must be a whole number, got 2.5"),
    (ALL, {"max_cycles": 0}, r"horizon must be in \[1, "),
    (ALL, {"max_cycles": "ten"}, "horizon .*'ten'"),
    (ALL, {"max_cycles": float("nan")}, "horizon must be .*nan"),
    (ALL, {"max_cycles": 9, "horizon": 10}, "horizon= and max_cycles="),
)
def test_a_wrong_word_is_refused_by_its_name(face: str, words: dict[str, Any], message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        make(face, **words)


@pytest.mark.parametrize("face", GYMNASIUM)
@pytest.mark.parametrize("opponent", ["random", "nope", "", 0, lambda seen: seen])
def test_a_game_of_one_team_has_no_opponent(face: str, opponent: Any):
    with pytest.raises(ValueError, match=r"CartPole-v0 has one team, 'cart'.*leave opponent= out"):
        make(face, ALONE, opponent=opponent)
    assert sim_of(make(face, ALONE, opponent=None)).num_envs == 1


@pytest.mark.filterwarnings("ignore:.*initialised with render_mode='nope'")  # gymnasium.make's own
@pytest.mark.parametrize("words", [{"mask": "nope"}, {"choices": "nope"}, {"render_mode": "nope"}])
@pytest.mark.parametrize("face", GYMNASIUM)
def test_a_refused_word_leaves_no_simulation_open(face: str, words: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    closed, close = [], Simulation.close
    monkeypatch.setattr(Simulation, "close", lambda sim: closed.append(sim) or close(sim))
    with pytest.raises(ValueError, match="nope"):
        make(face, **words)
    assert len(closed) == 1


@pytest.mark.check
def test_a_wrong_player_is_refused_before_processes_are_started(monkeypatch: pytest.MonkeyPatch):
    def no_processes(method: str) -> Any:
        raise AssertionError("a process is about to be started")

    monkeypatch.setattr(multiprocessing, "get_context", no_processes)
    wrong: list[dict[str, Any]] = [{"opponent": "nope"}, {"opponents": {"blue": "nope"}}, {"control": "green"}]
    for words in wrong:
        with pytest.raises(ValueError, match=r"nope|green"):
            make("env", workers=1, **words)
    gc.collect()


# -- words that are heard ----------------------------------------------------------------------------------------------


def assigned(made: Any, team: str) -> set[int]:
    sim = sim_of(made)
    return set(sim.states["assigned_player"][0, list(sim.game.teams[team])].tolist())


@pytest.mark.parametrize("face", ["env", "vector"])
def test_control_and_opponent_say_who_plays(face: str):
    made = make(face, control="blue", opponent="random")
    assert made.control == "blue"
    assert assigned(made, "blue") == {CALLER} != assigned(made, "red")
    assert assigned(make(face, opponent="mix"), "blue") == {MIX}
    assert assigned(make(face, opponent="random"), "blue") != assigned(make(face, opponent="presser"), "blue")
    assert assigned(make(face), "blue") == assigned(make(face, opponent=None), "blue") != {CALLER}


@pytest.mark.parametrize("face", ALL)
def test_opponents_say_who_plays_on_every_face(face: str):
    made = make(face, opponents={"blue": "presser"})
    assert assigned(made, "blue") == {0}
    assert assigned(make(face, opponents={}), "red") == assigned(make(face, opponents=None), "red") == {CALLER}


@table(
    (ALL, {"mates": "nope"}, "opponent 'nope' is neither a script"),
    (ALL, {"mates": 3}, "opponent must be a name, .* got int"),
    (ALL, {"mates": []}, "mates= is a player, or a list of players .* got none"),
    (ALL, {"mates": ["mix", "random"]}, "'mix' draws scripts itself"),
    (ALL, {"mates": "held_out"}, "holds no scripts out"),
    (
        ALL,
        {"mates": "chaser", "opponents": {"red_1": "random"}},
        "both say who plays red_1: mates= leaves red_0 to you",
    ),
    (ALL, {"mates": "chaser", "opponents": {"red_0": "random"}}, "both say who plays red_0"),
    (
        (*PETTINGZOO, "batch", "rows"),
        {"mates": "chaser", "opponents": dict.fromkeys(("red", "blue"), "chaser")},
        "names every",
    ),
)
def test_mates_that_cannot_play_are_refused(face: str, words: dict[str, Any], message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        make(face, MELEE, **words)


@pytest.mark.parametrize("face", ALL)
def test_mates_play_all_of_a_team_but_its_first_agent_on_every_face(face: str):
    made = make(face, MELEE, mates="chaser", opponents={"blue": "random"})
    sim = sim_of(made)
    assert sim.open_slots("red") == sim.game.teams["red"][:1]
    assert set(sim.states["assigned_player"][:, list(sim.game.teams["red"][1:])].ravel()) == {0}
    if face in PETTINGZOO:
        assert made.possible_agents == ["red_0"]
    if face in GYMNASIUM:
        assert getattr(made, "single_action_space", made.action_space).shape == (2,)
        other = sim_of(make(face, MELEE, control="blue", mates="chaser"))
        assert other.open_slots("blue") == other.game.teams["blue"][:1]


@pytest.mark.parametrize("face", GYMNASIUM)
def test_one_of_a_list_of_mates_plays_each_match_and_nothing_says_which(face: str):
    thrust = lambda seen: np.full((len(seen), 5, 2), 0.5)  # noqa: E731
    made = make(face, MELEE, mates=[thrust, "chaser"], horizon=1)
    sim, seen = sim_of(made), set()
    alone = make(face, MELEE, horizon=1)
    known = [set(alone.reset(seed=1)[1]), set(alone.step(np.zeros(alone.action_space.shape))[-1])]
    for seed in range(12):
        _, info = made.reset(seed=seed)
        *_, after = made.step(np.zeros(made.action_space.shape))
        assert [set(info), set(after)] == known
        (assignment,) = sim.opponent_assignments["red"]
        assert assignment.agents[0].tolist() == [False, True, True, True, True]
        players = {tuple(row) for row in sim.states["current_player"][:, 1:5].tolist()}
        assert players <= {(0,) * 4, (-1,) * 4}, "one player plays all mates"
        seen |= players
        assert (sim.actions[0, 1:5] == 0.5).all() == (sim.states["current_player"][0, 1] == -1)
    assert len(seen) == 2


def test_one_player_that_is_no_script_has_all_mates():
    calls = []

    def act(seen):
        calls.append(len(seen))
        return np.full((len(seen), 5, 2), 0.25)

    sim = make("batch", MELEE, mates=act, opponents={"blue": "random"}, num_envs=3)
    sim.reset(seed=1)
    sim.step(np.zeros((3, 10, 2)))
    assert calls == [3]
    assert sim.actions[:, :5, 0].tolist() == [[0.0, 0.25, 0.25, 0.25, 0.25]] * 3


def test_a_team_of_one_has_no_mates():
    with pytest.raises(ValueError, match=r"cart_0 is all of cart and has no teammates: leave mates= out"):
        make("env", ALONE, mates="random")


@pytest.mark.parametrize("face", ["env", "vector"])
def test_an_empty_pool_is_the_opponent_all_the_same(face: str):
    pool = SelfPlayPool(MELEE)
    made = make(face, MELEE, opponent=pool)
    assert len(pool) == 0
    assert list(sim_of(made).opponent_assignments) == ["blue"]
    pool.add(lambda seen: np.zeros((len(seen), 5, 2)))
    made.reset(seed=1)
    made.step(made.action_space.sample())
    made.close()


@pytest.mark.parametrize("face", ["env", *PETTINGZOO])
def test_a_face_of_one_match_takes_the_autoreset_mode_that_it_has(face: str):
    assert sim_of(make(face, autoreset_mode="off")).autoreset_mode == "off"
    assert sim_of(make(face, autoreset_mode=None)).autoreset_mode == "off"


@pytest.mark.parametrize(
    ("mode", "name"),
    [(None, "next_step"), ("same_step", "same_step"), (AutoresetMode.DISABLED, "off"), ("next_step", "next_step")],
)
def test_a_vector_takes_gymnasiums_modes_and_ours(mode: Any, name: str):
    assert make("vector", autoreset_mode=mode).sim.autoreset_mode == name


@pytest.mark.parametrize("face", ALL)
@pytest.mark.parametrize("name", ["max_cycles", "horizon", "max_episode_steps"])
def test_a_horizon_has_three_names_on_every_face(face: str, name: str):
    if (face, name) == ("vector", "max_episode_steps"):
        pytest.skip("warns, see test_registration")
    assert sim_of(make(face, **{name: 7})).parameters["horizon"].tolist() == [7.0]
    assert sim_of(make(face, **{name: np.int64(7)})).parameters["horizon"].tolist() == [7.0]


def test_the_users_horizon_goes_before_that_of_the_id(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(registry.ROWS, DUEL, registry.Row(DUEL, duel.game, kwargs={"max_cycles": 25}))
    assert make("batch").parameters["horizon"][0] == 25
    assert make("batch", horizon=9).parameters["horizon"][0] == 9
    assert make("batch", max_episode_steps=9).parameters["horizon"][0] == 9


@pytest.mark.parametrize("face", ALL)
def test_a_structural_keyword_and_a_parameter_reach_the_rules(face: str):
    assert len(sim_of(make(face, players=2)).game.agents) == 4
    assert sim_of(make(face, MELEE, damage=0.5)).parameters["damage"].tolist() == [0.5]


@pytest.mark.parametrize("face", SHOWN)
def test_the_words_of_masks_and_choices_change_the_spaces(face: str):
    def spaces(**words: Any) -> str:
        made = make(face, players=2, **words)
        if face in PETTINGZOO:
            return f"{made.observation_space('red_0')} {made.action_space('red_0')}"
        return f"{made.observation_space} {made.action_space}"

    plain, keys = spaces(mask=None), ("observations", "allowed")
    assert spaces(mask="obs") != plain
    assert "allowed" in spaces(mask="obs", mask_keys=keys)
    assert spaces(mask=None, observation="dict") != plain
    assert (spaces(mask=None, choices="discrete") != plain) == (face in GYMNASIUM)


def test_a_name_is_a_keyword_of_the_factory_or_a_parameter_but_not_both(monkeypatch: pytest.MonkeyPatch):
    def shadowed(respawn: int = 5) -> Game:
        return duel.game(parameters=(Parameter("respawn", 5, 0, 9),))

    monkeypatch.setitem(registry.ROWS, "words/Shadow-v0", registry.Row("words/Shadow-v0", shadowed))
    with pytest.raises(ValueError, match=r"'respawn' is a keyword of the factory and a Parameter.*rename one"):
        make("batch", "words/Shadow-v0", respawn=9)


# -- the order of calls ------------------------------------------------------------------------------------------------


def test_a_step_before_the_first_reset_is_refused():
    env: GameParallelEnv = make("parallel")
    with pytest.raises(RuntimeError, match="step before reset"):
        env.step({"red_0": 0, "blue_0": 0})
    env.reset(seed=1)
    env.step({"red_0": 0, "blue_0": 0})


@pytest.mark.parametrize("actions", [None, 5, [0, 0], "red_0", np.zeros(2, int), {"red_0"}])
def test_actions_of_a_parallel_env_are_a_dict(actions: Any):
    env = make("parallel")
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"actions must be a dict \{agent: action\} of red_0, blue_0, got"):
        env.step(actions)


@pytest.mark.parametrize("id", [DUEL, MELEE])
@pytest.mark.parametrize("face", ALL)
def test_lists_of_unlike_lengths_are_no_actions(face: str, id: str):
    made = make(face, id)
    made.reset(seed=1)
    ragged: Any = [[1.0, 0.5], [0.5]]
    with pytest.raises(ActionError, match=r"must be numbers in rows of one length, got \[\[1"):
        made.step({agent: ragged for agent in made.agents} if face in PETTINGZOO else ragged)


def test_a_lane_or_a_team_that_is_not_there_is_named_with_those_that_are():
    sim = registry.make_batch("palaestra/TeamPong-v0", 2)
    sim.reset(seed=0)
    for lane in (2, -3, 1.5):
        with pytest.raises(ValueError, match=rf"lane must be an integer from -2 to 1, got {lane}"):
            sim.render(lane)  # type: ignore[arg-type]
    for ask in (sim.team_rewards, sim.open_slots, lambda team: sim.team_view(team, "observations")):
        with pytest.raises(ValueError, match="team must be one of 'red', 'blue', got 'green'"):
            ask("green")


@pytest.mark.parametrize("face", ALL)
def test_render_size_is_the_size_of_the_pictures_of_each_face(face: str):
    words = {} if face == "batch" else {"render_mode": "rgb_array"}
    made = make(face, render_size=(200, 120), **words)
    made.reset(seed=1)
    shown = made.render()
    assert {picture.shape for picture in (shown if isinstance(shown, tuple) else [shown])} == {(120, 200, 3)}
