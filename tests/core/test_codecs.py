"""Users who speak text: a codec stands between them and the arrays, in every face."""

import numpy as np
import pytest
from games import two_team

from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.ports import Port
from palaestra.core.kernel import KernelSimulation
from palaestra.core.simulation import ActionError

GAME = two_team.game()


@pytest.fixture
def env() -> GameParallelEnv:
    env = GameParallelEnv(KernelSimulation(GAME, 1, autoreset_mode="off"), mask=None, codec="text")
    env.reset(seed=1)
    return env


def test_an_agent_reads_and_writes_text(env: GameParallelEnv):
    words = dict.fromkeys(env.agents, "move 0")
    observations, *_ = env.step(words | {"red_0": "move 1"})
    node, energy = env.sim.states["node"][0], env.sim.states["energy"][0]
    assert observations["red_0"] == f"node {node[0]}, energy {energy[0]:.2f}"
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
    with pytest.raises(ValueError, match=r"scout understands 'move 0' to 'move 3'.*not 'fly'"):
        env.step(dict.fromkeys(env.agents, "move 0") | {"red_0": "fly"})
    assert env.sim.states["steps"][0] == 0


@pytest.mark.parametrize(("slot", "word"), [(0, "move 1"), (3, "move 2"), (3, "strike 0.5")])
def test_a_batch_is_a_list_of_words(slot: int, word: str):
    sim = KernelSimulation(GAME, 3)
    sim.reset(seed=1)
    port = Port(sim, (slot,), codec="text")
    port.write([word, "move 0", word])
    sim.step()
    moved = sim.states["node"][:, slot] != 0
    assert moved.tolist() == ([True, False, True] if word.startswith("move") else [False] * 3)
    assert [port.observe_lane(lane) for lane in range(3)][1].startswith("node 0")
    with pytest.raises(ActionError, match="there are 3 lanes and 2 actions"):
        port.write([word, word])


def test_a_codec_speaks_for_one_agent():
    with pytest.raises(ValueError, match="'text' speaks for one agent, not for a team of 3"):
        GameEnv(KernelSimulation(GAME, 1, autoreset_mode="off"), control="red", codec="text")


def test_an_unknown_codec_gets_the_known_ones_named():
    with pytest.raises(ValueError, match=r"Raid has no codec 'morse' \(it has: text\)"):
        Port(KernelSimulation(GAME, 1), (0,), codec="morse")


def test_a_codec_says_what_the_arrays_say():
    sim = KernelSimulation(GAME, 4)
    sim.reset(seed=1)
    port = Port(sim, (4,), codec="text")
    energies = [float(port.observe_lane(lane).split()[-1]) for lane in range(4)]
    np.testing.assert_allclose(energies, sim.observations["guard"]["energy"][:, 1], atol=0.005)
