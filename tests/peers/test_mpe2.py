"""The particle games next to mpe2: from the same state the same actions give the same states, observations and rewards.

States are compared as float64: they are bitwise equal except for what the contact force leaves out (4e-19 N). What
leaves a simulation is float32 in both, rewards are compared as mpe2's float64 rounded to float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.teams import reference, speaker_listener, spread, tag

pytestmark = pytest.mark.peers

DECISIONS = 400
LEFT_OUT = 1e-17
"""What a left-out force adds to a speed in hundreds of decisions, m/s."""


@dataclass(frozen=True)
class Pair:
    """One scenario of mpe2 and our game.

    Attributes:
        module: Module of mpe2.
        game: ``game(actions)``.
        keywords: For mpe2.
        walkers: Which of mpe2's agents are our moving bodies.
        words: Words that each agent can say.
    """

    module: str
    game: Callable[[Any], Any]
    keywords: dict[str, Any]
    walkers: tuple[int, ...]
    words: int = 0


PAIRS = {
    "tag 3v1": Pair("simple_tag_v3", lambda a: tag.game(actions=a, rules="mpe"), {}, (0, 1, 2, 3)),
    "tag 2v3": Pair(
        "simple_tag_v3",
        lambda a: tag.game(2, 3, 4, actions=a, rules="mpe"),
        {"num_adversaries": 2, "num_good": 3, "num_obstacles": 4},
        (0, 1, 2, 3, 4),
    ),
    "spread": Pair("simple_spread_v3", lambda a: spread.game(actions=a, rules="mpe"), {}, (0, 1, 2)),
    "reference": Pair("simple_reference_v3", lambda a: reference.game(actions=a, rules="mpe"), {}, (0, 1), 10),
    "speaker": Pair("simple_speaker_listener_v4", lambda a: speaker_listener.game(actions=a), {}, (1,), 3),
}


def started(pair: Pair, actions: str, seed: int) -> tuple[Any, Any, Any]:
    """mpe2's ParallelEnv, its world, and our simulation in the same state."""
    scenario = pytest.importorskip(f"mpe2.{pair.module}", reason='pip install "mpe2>=1.1"')
    theirs = scenario.parallel_env(
        max_cycles=10**6, continuous_actions=actions == "continuous", render_mode=None, **pair.keywords
    )
    theirs.reset(seed=seed)
    world = theirs.unwrapped.world
    ours: Any = KernelSimulation(pair.game(actions), 1, autoreset_mode="off", parameters={"horizon": 10**6})
    ours.reset(seed=seed)
    ours.states["position_m"][0] = [e.state.p_pos for e in moving(pair, world) + world.landmarks]
    if "goal" in ours.states.dtype.names:
        ours.states["goal"][0] = goals(pair, world)
    return theirs, world, ours


def moving(pair: Pair, world: Any) -> list[Any]:
    return [world.agents[k] for k in pair.walkers]


def goals(pair: Pair, world: Any) -> Any:
    """Landmarks that our agents should go to."""
    index = {id(landmark): k for k, landmark in enumerate(world.landmarks)}
    if len(pair.walkers) == 1:
        return index[id(world.agents[0].goal_b)]
    return [index[id(world.agents[1 - k].goal_b)] for k in range(2)]


def decide(pair: Pair, theirs: Any, ours: Any, actions: str, rng: np.random.Generator) -> Any:
    """The same random actions for both. Plays them; returns what mpe2's step does."""
    joint: dict[str, Any] = {}
    for k, agent in enumerate(theirs.possible_agents):
        role, index = ours.game.role_of(k)
        own = ours.buffers.action_records[role.name][0, index]
        speaks, walks = pair.words > 0 and not theirs.unwrapped.world.agents[k].silent, k in pair.walkers
        if actions == "discrete":
            move, word = int(rng.integers(5)), int(rng.integers(max(pair.words, 1)))
            joint[agent] = (move if walks else 0) + (word * (5 if walks else 1) if speaks else 0)
            if walks:
                own["move"] = move
            if speaks:
                own["word"] = word
        else:
            thrust = rng.random(5).astype(np.float32) if walks else np.zeros(0, np.float32)
            words = rng.random(pair.words).astype(np.float32) if speaks else np.zeros(0, np.float32)
            joint[agent] = np.concatenate([thrust, words])
            if walks:
                own["force"] = thrust[2] - thrust[1], thrust[4] - thrust[3]
            if speaks:
                own["words"] = words
    ours.step()
    return theirs.step(joint)


def our_observations(ours: Any) -> list[np.ndarray]:
    """One flat vector an agent, in the order of mpe2's agents."""
    seen = ours.buffers.observations
    return [seen[role.name][0, k : k + 1].view("f4") for role in ours.game.roles for k in range(len(role.agents))]


@pytest.mark.parametrize("actions", ["discrete", "continuous"])
@pytest.mark.parametrize("name", PAIRS)
def test_hundreds_of_decisions_are_the_same_as_in_mpe2(name: str, actions: str):
    pair, rng, touches, exact = PAIRS[name], np.random.default_rng(3), 0, []
    theirs, world, ours = started(pair, actions, seed=3)
    for number in range(DECISIONS):
        if number % 50 == 0 and number:
            gather(pair, world, ours, rng)
        seen, rewards, *_ = decide(pair, theirs, ours, actions, rng)
        where = f"{name}, {actions}, decision {number}"
        for field, attribute in (("position_m", "p_pos"), ("velocity_mps", "p_vel")):
            expected = np.array([getattr(e.state, attribute) for e in moving(pair, world)])
            found = ours.states[field][0, : len(expected)]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=LEFT_OUT, err_msg=f"{where}: {field}")
            exact.append((found == expected).all())
        for agent, own, theirs_seen in zip(seen, our_observations(ours), seen.values(), strict=True):
            np.testing.assert_allclose(own, theirs_seen, rtol=2e-7, atol=1e-16, err_msg=f"{where}: {agent} sees")
        expected = np.array(list(rewards.values()), np.float32)
        np.testing.assert_allclose(ours.rewards[0], expected, rtol=2e-7, err_msg=f"{where}: rewards")
        touches += int((np.abs(np.diff(expected)) > 0).any())
    assert np.mean(exact) > 0.9, "nearly all states are bitwise equal"
    assert touches > 0 or pair.words, "at least one touch happened"


def gather(pair: Pair, world: Any, ours: Any, rng: np.random.Generator) -> None:
    """Puts all bodies near the middle, at rest, so that the next decisions have contacts."""
    for k, entity in enumerate(moving(pair, world)):
        entity.state.p_pos = rng.uniform(-0.3, 0.3, 2)
        entity.state.p_vel = np.zeros(2)
        ours.states["position_m"][0, k] = entity.state.p_pos
        ours.states["velocity_mps"][0, k] = 0.0


@pytest.mark.parametrize("name", PAIRS)
def test_each_decision_from_the_same_state_is_the_same_to_the_last_bits(name: str):
    pair, rng = PAIRS[name], np.random.default_rng(4)
    theirs, world, ours = started(pair, "discrete", seed=4)
    worst = 0.0
    for _ in range(DECISIONS):
        gather(pair, world, ours, rng)
        decide(pair, theirs, ours, "discrete", rng)
        expected = np.array([e.state.p_vel for e in moving(pair, world)])
        found = ours.states["velocity_mps"][0, : len(expected)]
        worst = max(worst, float(np.abs(found - expected).max()))
    assert worst < 1e-14
