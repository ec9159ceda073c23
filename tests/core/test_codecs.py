"""Text codecs: they translate between texts and arrays in every face."""

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from games import duel, two_team
from games.play import simulation

import palaestra
from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.game import AgentView, Game, Role, TextSpace
from palaestra.testing.snapshot_view import unlike

GAME = two_team.game()


@pytest.fixture
def env() -> GameParallelEnv:
    env = GameParallelEnv(simulation(GAME, 1, autoreset_mode="off"), mask=None, codec="text")
    env.reset(seed=1)
    return env


def test_an_agent_reads_and_writes_text(env: GameParallelEnv):
    words = dict.fromkeys(env.agents, "move 0")
    observations, *_ = env.step(words | {"red_0": "move 1"})
    node, energy = env.sim.states["node"][0], env.sim.states["energy"][0]
    assert observations["red_0"] == f"node {node[0]}, energy {energy[0]:.2f}, goals 0, blue to move"
    assert node[0] == 1
    assert all(env.observation_space(agent).contains(text) for agent, text in observations.items())
    assert env.action_space("red_0").contains("move 1")


def test_a_composite_action_can_be_said(env: GameParallelEnv):
    env.sim.states["node"][0, 2] = env.sim.states["node"][0, 3]
    env.sim.restore(env.sim.snapshot())
    env.step(dict.fromkeys(env.agents, "move 0") | {"red_2": "strike 0.5"})
    assert env.sim.info["strikes"][0].tolist() == [0, 0, 0, 1, 0]
    assert env.sim.actions["guard"]["effort"][0, 0] == 0.5


def test_what_is_not_understood_is_refused(env: GameParallelEnv):
    with pytest.raises(ValueError, match=r"a scout understands 'move 0' to 'move 3', not 'fly'"):
        env.step(dict.fromkeys(env.agents, "move 0") | {"red_0": "fly"})
    assert env.sim.states["steps"][0] == 0


@pytest.mark.parametrize(("slot", "word"), [(0, "move 1"), (3, "move 2"), (3, "strike 0.5")])
def test_a_batch_is_a_list_of_words(slot: int, word: str):
    sim = simulation(GAME, 3)
    sim.reset(seed=1)
    agent_io = AgentIO(sim, (slot,), codec="text")
    agent_io.write([word, "move 0", word])
    sim.step()
    moved = sim.states["node"][:, slot] != 0
    assert moved.tolist() == ([True, False, True] if word.startswith("move") else [False] * 3)
    assert [agent_io.observe_lane(lane) for lane in range(3)][1].startswith("node 0")
    with pytest.raises(ActionError, match="there are 3 lanes and 2 actions"):
        agent_io.write([word, word])


def test_a_codec_speaks_for_one_agent():
    with pytest.raises(ValueError, match="'text' speaks for one agent, not for a team of 3"):
        GameEnv(simulation(GAME, 1, autoreset_mode="off"), control="red", codec="text")


def test_an_unknown_codec_gets_the_known_ones_named():
    with pytest.raises(ValueError, match=r"Raid has no codec 'morse' \(it has: text\)"):
        AgentIO(simulation(GAME, 1), (0,), codec="morse")


def test_a_codec_says_what_the_arrays_say():
    sim = simulation(GAME, 4)
    sim.reset(seed=1)
    agent_io = AgentIO(sim, (4,), codec="text")
    energies = [float(agent_io.observe_lane(lane).split(",")[1].split()[-1]) for lane in range(4)]
    np.testing.assert_allclose(energies, sim.observations["guard"]["energy"][:, 1], atol=0.005)


class Listener:
    """Remembers the views that it is given, and says how many steps the match has."""

    total = True

    def __init__(self) -> None:
        self.views: list[AgentView] = []

    def observation_space(self, role: Role) -> TextSpace:
        return TextSpace(40)

    def action_space(self, role: Role) -> TextSpace:
        return TextSpace(40, min_length=0, charset=None)

    def encode(self, view: AgentView) -> str:
        self.views.append(view)
        return f"step{view.record['steps']}" if view.record is not None else "over"

    def decode(self, view: AgentView, action: str) -> Any:
        self.views.append(view)
        return {"move": 0, "trigger": 0, "effort": 0.1} if view.role is two_team.GUARD else 0


def listened(**changes: Any) -> tuple[Game, Listener]:
    listener = Listener()
    return replace(GAME, codecs={"listener": listener}, **changes), listener


def test_a_view_shows_all_that_concerns_an_agent():
    game, _ = listened()
    sim: Any = simulation(game, 2)
    sim.reset(seed=1)
    sim.states["info"]["goals"][1] = (1, 2)
    sim.refresh()
    view: Any = AgentIO(sim, (4,), codec="listener").agent_view(1)  # blue_1, the second guard
    assert (view.role, view.slot, view.world) == (two_team.GUARD, 4, game.world)
    assert view.row["energy"] == np.float32(sim.states["energy"][1, 4])
    assert (view.team["goals"], view.lane["phase"]) == (2, two_team.RED)
    np.testing.assert_array_equal(view.mask["move"], sim.legal["guard"][1, 1, :4])
    assert view.record["rng"] == sim.states["rng"][1]


def test_a_view_is_live_and_cannot_be_written():
    game, _ = listened()
    sim = simulation(game, 1)
    sim.reset(seed=1)
    view = AgentIO(sim, (0,), codec="listener").agent_view()
    sim.step()
    assert view.record["steps"] == 1
    for record, field in ((view.row, "node"), (view.team, "goals"), (view.lane, "phase"), (view.record, "steps")):
        with pytest.raises(ValueError, match="read-only"):
            record[field] = 3


def test_the_views_of_a_copied_face_are_its_own():
    game, _ = listened()
    env = GameParallelEnv(simulation(game, 1, autoreset_mode="off"), mask=None, codec="listener")
    env.reset(seed=1)
    twin = deepcopy(env)
    env.step(dict.fromkeys(env.agents, ""))
    seen, *_ = twin.step(dict.fromkeys(twin.agents, ""))
    assert seen["red_0"] == "step1"
    assert env.sim.states["steps"][0] == 1


def test_decoding_sees_what_the_agent_sees():
    game, listener = listened()
    sim = simulation(game, 2)
    sim.reset(seed=1)
    agent_io = AgentIO(sim, (0,), codec="listener")
    agent_io.write(["", "anything"])
    assert [view.record["rng"] for view in listener.views] == sim.states["rng"].tolist()


def test_the_default_codec_is_used_where_one_agent_plays_and_none_gives_arrays():
    game, _ = listened(default_codec="listener")
    make = lambda **options: AgentIO(simulation(game, 1), (0,), "dict", **options)  # noqa: E731
    assert make().codec is game.codecs["listener"]
    assert make(codec="none").codec is None
    assert make(codec="none").observe_lane().keys() == {"node", "exits", "energy", "goals", "phase", "time_left"}
    assert AgentIO(simulation(game, 1), (0, 1), "dict").codec is None  # a codec speaks for one
    env = GameParallelEnv(simulation(game, 1, autoreset_mode="off"), mask=None)
    assert env.reset(seed=1)[0]["red_0"] == "step0"


def solo() -> tuple[Game, Listener]:
    """Each team is one agent, so that a codec can stand behind Gymnasium's faces."""
    listener = Listener()
    return duel.game(codecs={"listener": listener}, default_codec="listener"), listener


def test_a_vector_face_gives_a_list_and_last_observations_from_what_was_seen():
    game, _ = solo()
    env = GameVectorEnv(simulation(game, 3, autoreset_mode="same_step", parameters={"horizon": 2}))
    env.sim.set_opponent("blue", "random")
    observations, _ = env.reset(seed=1)
    assert observations == ["step0"] * 3
    observations, *_ = env.step(["go"] * 3)
    assert observations == ["step1"] * 3
    observations, *_, info = env.step(["go"] * 3)
    assert observations == ["step0"] * 3
    assert info["final_obs"].tolist() == ["over"] * 3


class Batched(Listener):
    """A listener that encodes all lanes at once."""

    def encode_many(self, view: AgentView) -> list[str]:
        self.views.append(view)
        return [f"step{steps}" for steps in view.record["steps"]]


@pytest.mark.parametrize("mask", [None, "obs"])
def test_a_codec_that_encodes_many_gives_what_the_loop_over_lanes_gives(mask: Any, monkeypatch: pytest.MonkeyPatch):
    game, batched = replace(GAME, codecs={"loop": Listener(), "batched": Batched()}), []
    sim = simulation(game, 3, parameters={"horizon": [1, 2, 9]})
    sim.reset(seed=1)
    expected = AgentIO(sim, (4,), codec="loop", mask=mask)
    at_once = AgentIO(sim, (4,), codec="batched", mask=mask)
    monkeypatch.setattr(Batched, "encode", lambda self, view: batched.append(view))
    for _ in range(4):
        assert unlike(expected.observe(), at_once.observe()) == ""
        sim.step()
    assert not batched


class Telling(Listener):
    """A listener that says in words what it sees."""

    def info(self, view: AgentView) -> dict[str, Any]:
        return {"said": "over" if view.record is None else f"at {int(view.record['steps'])}", "path": [1, "two"]}


def telling(**options: Any) -> Any:
    game = duel.game(codecs={"telling": Telling()}, default_codec="telling")
    sim = simulation(game, **options)
    sim.set_opponent("blue", "random")
    return sim


def test_what_a_codec_tells_stands_in_the_info_of_every_face():
    env = GameEnv(telling(autoreset_mode="off"), control="red")
    assert env.reset(seed=1)[1]["said"] == "at 0"
    info = env.step("go")[4]
    assert (info["said"], info["path"], int(info["winner"])) == ("at 1", [1, "two"], -1)
    assert json.loads(json.dumps(palaestra.jsonable(info)))["said"] == "at 1"
    parallel = GameParallelEnv(simulation(env.sim.game, autoreset_mode="off"), mask=None)
    _, infos = parallel.reset(seed=1)
    assert [info["said"] for info in infos.values()] == ["at 0"] * 2
    infos = parallel.step(dict.fromkeys(parallel.agents, "go"))[4]
    assert [info["said"] for info in infos.values()] == ["at 1"] * 2


def test_a_vector_face_has_what_is_told_by_lane_and_of_matches_that_ended():
    env = GameVectorEnv(telling(num_envs=3, autoreset_mode="same_step", parameters={"horizon": [1, 3, 1]}))
    env.reset(seed=1)
    info = env.step(["go"] * 3)[4]
    assert info["said"].tolist() == ["at 0", "at 1", "at 0"]
    assert info["_said"].all()
    assert info["final_info"]["said"].tolist() == ["over", None, "over"]
    assert info["final_info"]["_said"].tolist() == [True, False, True]


class OneByOne(Listener):
    """A listener that repeats what it sees."""

    def encode(self, view: AgentView) -> str:
        return view.row.tobytes().hex()

    def info(self, view: AgentView) -> dict[str, Any]:
        return {"row": self.encode(view)}


class AtOnce(Listener):
    """The same of many matches."""

    def info(self, view: AgentView) -> dict[str, Any]:
        pytest.fail("was asked for one match")

    encode: Any = info
    decode: Any = info

    def encode_many(self, view: AgentView) -> list[str]:
        return [row.tobytes().hex() for row in view.row]

    def info_many(self, view: AgentView) -> dict[str, list[str]]:
        return {"row": self.encode_many(view)}

    def decode_many(self, view: AgentView, actions: list[str]) -> np.ndarray:
        return np.zeros(len(actions), np.int64)


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_a_codec_of_many_matches_plays_as_the_loop_over_lanes(mode: str):
    envs, codecs = [], [OneByOne(), AtOnce()]
    for codec in codecs:
        sim = simulation(duel.game(codecs={"rows": codec}, default_codec="rows"), 3, autoreset_mode=mode)
        sim.set_opponent("blue", "random")
        envs.append(GameVectorEnv(sim))
        sim.set_parameters(horizon=np.array([1, 3, 2]))
    assert unlike(*(env.reset(seed=1) for env in envs)) == ""
    for _ in range(4):
        assert unlike(*(env.step(["go"] * 3) for env in envs)) == ""


def test_a_codec_that_tells_too_little_is_refused():
    env: Any = GameVectorEnv(telling(num_envs=2))
    env.agent_io.codec.info_many = lambda view: {"said": ["at 0"]}
    with pytest.raises(ValueError, match=r"Telling\.info_many gave 1 values of 2 lanes"):
        env.reset(seed=1)


def test_a_codec_may_not_take_a_name_of_the_face():
    env = GameEnv(telling(autoreset_mode="off"), control="red")
    codec: Any = env.agent_io.codec
    codec.info = lambda view: {"winner": "me"}
    with pytest.raises(ValueError, match=r"Telling\.info has the names \['winner'\], which are the face's own"):
        env.reset(seed=1)
    vector = GameVectorEnv(telling(num_envs=2))
    vector.agent_io.codec.info = codec.info  # type: ignore[union-attr, method-assign]
    with pytest.raises(ValueError, match="which are the face's own"):
        vector.reset(seed=1)


def test_plain_values_are_those_of_numpys_arrays_and_records():
    record = np.array([(1, [0.5, 2.0])], [("n", "i4"), ("x", "f4", 2)])
    given = {"a": np.float32(0.5), 3: (np.arange(2), None), "r": record, "o": np.array([{"k": np.True_}], object)}
    assert palaestra.jsonable(given) == {
        "a": 0.5,
        "3": [[0, 1], None],
        "r": [{"n": 1, "x": [0.5, 2.0]}],
        "o": [{"k": True}],
    }
    assert type(palaestra.jsonable(np.int64(3))) is int
    for wrong in (object(), {1, 2}, np.array([1j])):
        with pytest.raises(TypeError, match="has no plain form"):
            palaestra.jsonable(wrong)


def test_a_view_of_all_lanes_is_that_of_each_lane():
    game, _ = listened()
    sim = simulation(game, 3)
    sim.reset(seed=1)
    agent_io = AgentIO(sim, (4,), codec="listener")
    whole = agent_io.agent_view(None)
    for lane in range(3):
        view = agent_io.agent_view(lane)
        for name in ("row", "team", "lane", "mask", "record"):
            assert getattr(whole, name)[lane] == getattr(view, name)
            assert not getattr(whole, name).flags.writeable


def test_a_codec_that_loses_lanes_is_refused():
    game = replace(GAME, codecs={"batched": Batched()})
    sim = simulation(game, 3)
    sim.reset(seed=1)
    agent_io: Any = AgentIO(sim, (4,), codec="batched")
    agent_io.codec.encode_many = lambda view: ["step0"]
    with pytest.raises(ValueError, match=r"Batched\.encode_many gave 1 observations of 3 lanes"):
        agent_io.observe()


def test_masks_are_seen_beside_words():
    env = GameParallelEnv(simulation(GAME, 1, autoreset_mode="off"), mask="obs", codec="text")
    observations, _ = env.reset(seed=1)
    assert observations["red_2"]["observation"].startswith("node 0")
    mask = observations["red_2"]["action_mask"]  # by choice, as without words
    assert {name: m.tolist() for name, m in mask.items() if m is not None} == {"move": [1, 1, 1, 0], "trigger": [1, 0]}
    assert env.observation_space("red_2").contains(observations["red_2"])
