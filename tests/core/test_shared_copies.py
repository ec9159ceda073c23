"""Many agents of one match: what they get together is what each would get alone, and everybody's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from games import crowd, orchard, size_game

from palaestra.core.contract.actions import ActionError
from palaestra.core.faces import parallel_env, shared_copies
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.game import Choice, Game


def with_two_choices() -> Game:
    """Fighters that shout too: their masks are tuples."""
    game = crowd.battle(5, 5, 4, masks=False)
    (fighter,) = game.roles
    return replace(game, roles=(replace(fighter, action=(*fighter.action, Choice("shout", 3))),))


CASES: dict[str, tuple[Callable[[], Game], dict[str, Any]]] = {
    "roles, tables, teams, the world, lists": (orchard.game, {"observation": "dict"}),
    "masks beside it": (orchard.game, {"observation": "dict", "mask": "info"}),
    "some agents alone": (lambda: orchard.game(pickers=4, carriers=1), {"observation": "dict"}),
    "newcomers": (size_game.game, {"observation": "dict"}),
    "newcomers, flat with the world": (size_game.game, {"observation": "flat", "mask": "info"}),
    "deaths": (lambda: crowd.battle(5, 5, 4), {"observation": "dict"}),
    "deaths, flat": (lambda: crowd.battle(5, 5, 4), {"observation": "flat", "mask_keys": ("seen", "legal")}),
    "nothing forbidden": (lambda: crowd.battle(5, 5, 4, masks=False), {"observation": "flat", "mask": "obs"}),
    "masks in parts": (with_two_choices, {"observation": "dict", "mask": "obs"}),
    "one number": (with_two_choices, {"choices": "discrete", "mask": "info"}),
}  # fmt: skip


@pytest.fixture(params=CASES)
def env(request: pytest.FixtureRequest, rules: Any, monkeypatch: pytest.MonkeyPatch) -> GameParallelEnv:
    """A match in which few agents are many."""
    monkeypatch.setattr(shared_copies, "MANY", {"flat": 2, "dict": 2})
    make, options = CASES[request.param]
    env = GameParallelEnv(rules(make(), autoreset_mode="off"), **options)
    for number, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(number)
    return env


def leaves(tree: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of nested dicts and tuples, by their way from the root."""
    if isinstance(tree, np.ndarray):
        yield "", tree
    elif isinstance(tree, dict | tuple):
        for name, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from ((f"/{name}{way}", leaf) for way, leaf in leaves(part))


def looks(tree: Any) -> list[Any]:
    """All that a user can tell of arrays in dicts: the order of keys, bytes, kinds, and what may be done with them."""
    return [
        (way, a.tobytes(), a.dtype, a.shape, a.flags.writeable, a.flags.c_contiguous, a.flags.aligned)
        for way, a in leaves(tree)
    ]


def decisions(env: GameParallelEnv, count: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Observations and infos of the first decisions, the reset's first; fighters die soon."""
    yield env.reset(seed=3)
    if "hit_points" in env.sim.states.dtype.names:
        env.sim.states["hit_points"] = 1 + 4 * np.arange(10)
    rng = np.random.default_rng(0)
    for _ in range(count):
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        if env.sim.game.name == "Crowd":  # who stays hits those around it
            actions = {agent: action * int(rng.random() < 0.5) for agent, action in actions.items()}
        observations, _, _, _, infos = env.step(actions)
        yield observations, infos
        if not env.agents:
            return


def test_what_agents_get_together_is_what_each_gets_alone(env: GameParallelEnv):
    numbers = set()
    for observations, infos in decisions(env, 6):
        numbers.add(len(observations))
        alone = {agent: env.agent_ios[agent].observe_one() for agent in observations}
        assert looks(observations) == looks(alone)
        if env.agent_ios[env.possible_agents[0]].mask_mode == "info":
            masks = {agent: env.agent_ios[agent].masks_of() for agent in infos}
            got = {agent: {name: infos[agent][name] for name in masks[agent]} for agent in infos}
            assert looks(got) == looks(masks)
    assert len(numbers) > 1 or env.sim.game.name == "Orchard"


def test_an_agent_owns_what_it_got(env: GameParallelEnv):
    live = env.sim.buffers.live().values()
    kept: list[tuple[np.ndarray, bytes]] = []
    for observations, infos in decisions(env, 3):
        own = [a for _, a in [*leaves(observations), *leaves(infos)] if a.flags.writeable]
        assert all(array.tobytes() == content for array, content in kept)
        kept = []
        for number, array in enumerate(own):
            array[...] = number % 2
        assert all((array == number % 2).all() for number, array in enumerate(own))
        assert not any(np.may_share_memory(array, memory) for array in own for memory in live)
        kept = [(array, array.tobytes()) for array in own]


def test_an_agents_action_is_not_looked_for_among_those_of_all_others(rules: Any, monkeypatch: pytest.MonkeyPatch):
    env = GameParallelEnv(rules(crowd.battle(30, 30, 20), autoreset_mode="off"))
    env.reset(seed=0)
    monkeypatch.setattr(crowd.Name, "comparisons", 0)
    env.step({crowd.Name(agent): 0 for agent in env.agents})
    assert crowd.Name.comparisons < 10 * len(env.agents)


def forty(rules: Any, **changes: Any) -> GameParallelEnv:
    """A match of 20 against 20 that has begun."""
    env = GameParallelEnv(rules(crowd.battle(20, 20, 9, **changes), autoreset_mode="off"))
    env.reset(seed=0)
    return env


@pytest.mark.parametrize("kind", [int, np.int64, np.int32])
def test_the_plain_actions_of_many_are_written_together(
    rules: Any, monkeypatch: pytest.MonkeyPatch, kind: Callable[[int], Any]
):
    env = forty(rules)
    monkeypatch.setattr(env, "_word_memory", None)  # into which actions are written one by one
    for leaving in ([1, 2, 25], []):
        env.sim.states["hit_points"][0, leaving] = 0
        given = {agent: kind(number % 7) for number, agent in enumerate(env.agents)}
        with monkeypatch.context() as without_rules:
            without_rules.setattr(env.sim, "step", lambda: None)
            env.step(given)
        written = dict(zip(env.possible_agents, env.sim.actions[0].tolist(), strict=True))
        assert {agent: written[agent] for agent in given} == given
        env.step(given)
    assert len(given) == 37


@pytest.mark.parametrize("wrong", [10, -1, 1 << 70, True, 1.5, "up", np.uint64(1 << 63)])
def test_a_wrong_action_among_those_of_many_is_refused_as_among_few(
    rules: Any, monkeypatch: pytest.MonkeyPatch, wrong: Any
):
    said = []
    for many in (parallel_env.MANY, 1000):
        monkeypatch.setattr(parallel_env, "MANY", many)
        env = forty(rules)
        with pytest.raises(ActionError) as refusal:
            env.step(dict.fromkeys(env.agents, 0) | {"blue_3": wrong})
        said.append(str(refusal.value))
    assert said[0] == said[1]


def test_infos_of_many_are_their_own_and_count_each_ones_illegal_choices(rules: Any):
    env, slots = forty(rules), range(40)
    for decision in range(3):
        _, _, _, _, infos = env.step({agent: 5 * (slot % 3 // 2) for slot, agent in enumerate(env.agents)})
        assert [info["illegal"] for info in infos.values()] == [(decision + 1) * (slot % 3 // 2) for slot in slots]
        assert [info["team"] for info in infos.values()] == [slot // 20 for slot in slots]
        for slot, info in enumerate(infos.values()):
            info["team"] = slot
        assert [info["team"] for info in infos.values()] == [*slots]
