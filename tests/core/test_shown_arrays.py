"""What the representations of the families show, on all faces: hashes of arrays from before they were representations.

The rules run as plain Python. The hashes are the same on all machines: these games are ``cross-platform``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

from palaestra import registry
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import snapshot_view

STEPS = 3
PURSUIT: dict[str, Any] = {"graph": ["grid:4x4", "petersen"], "pursuers": 3, "evaders": 2, "vision": 2, "exits": 1}
CONFRONT: dict[str, Any] = {"graph": ["grid:4x4", "petersen"], "red": 2, "vision": 2}
SHOWN: dict[str, tuple[str, dict[str, Any], str]] = {
    "hops": ("palaestra/GraphPursuit-v0", {"observation": "hops", **PURSUIT}, "3b27d6dc16119811"),
    "nodes": ("palaestra/GraphPursuit-v0", {"observation": "nodes", **PURSUIT}, "5028b6985ddce8e4"),
    "graph": ("palaestra/GraphPursuit-v0", {"observation": "nodes", **PURSUIT, "codec": "graph"}, "66f52aec8fb6983e"),
    "confront hops": ("palaestra/GraphConfront-v0", {"observation": "hops", **CONFRONT}, "edcf52fa4862ec13"),
    "confront nodes": ("palaestra/GraphConfront-v0", {"observation": "nodes", **CONFRONT}, "ca5c37bcc21ae21c"),
    "smac": ("palaestra/Skirmish-MMM-v0", {"observation": "smac", "smac_rules": True}, "a3604e688644b159"),
    "smac sparse": (
        "palaestra/Skirmish-2s3z-v0",
        {"observation": "smac", "smac_rules": True, "reward": "sparse"},
        "6d49f6f0b48791be",
    ),
}


def numbers(value: Any) -> Iterator[bytes]:
    """Names and bytes of all that a face returns, in order, without the padding of records."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield str(name).encode()
            yield from numbers(member)
    elif isinstance(value, tuple | list):
        for member in value:
            yield from numbers(member)
    elif isinstance(value, np.ndarray) and value.dtype.names:
        yield from numbers({name: value[name] for name in value.dtype.names})
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from numbers(value.tolist())
    else:
        yield str(value).encode() if isinstance(value, str | None) else np.ascontiguousarray(value).tobytes()


def batch(id: str, **keywords: Any) -> Iterator[Any]:
    keywords.pop("codec", None)
    sim = registry.make_batch(id, 2, compiled=False, **keywords)
    player = Player(sim)
    for opponents in (None, "mix"):
        for team in sim.game.teams:
            sim.set_opponent(team, opponents)
        sim.reset(seed=3)
        for _ in range(STEPS):
            player.play(sim)
            sim.step()
            yield snapshot_view(sim)
            yield sim.observations
            yield [sim.states[name] for name, *_ in sim.game.state]


def gym_env(id: str, **keywords: Any) -> Iterator[Any]:
    if "codec" in keywords:
        keywords["control"], keywords["evaders"] = "evader", 1
    env: Any = gymnasium.make(id, compiled=False, disable_env_checker=True, **keywords)
    env.action_space.seed(3)
    seen, info = env.reset(seed=3)
    for _ in range(STEPS):
        yield seen, info
        seen, *ends, info = env.step(env.action_space.sample(info.get("action_mask")))
        yield ends


def vector_env(id: str, **keywords: Any) -> Iterator[Any]:
    keywords.pop("codec", None)
    envs: Any = gymnasium.make_vec(id, 2, compiled=False, **keywords)
    envs.action_space.seed(3)
    yield envs.reset(seed=3)
    for _ in range(STEPS):
        yield envs.step(envs.action_space.sample())


def parallel_env(id: str, **keywords: Any) -> Iterator[Any]:
    env = registry.make_parallel(id, compiled=False, **keywords)
    for agent in env.possible_agents:
        env.action_space(agent).seed(3)
    seen, infos = env.reset(seed=3)
    for _ in range(STEPS):
        yield seen, infos, env.state()
        seen, *ends, infos = env.step({a: env.action_space(a).sample(infos[a].get("action_mask")) for a in env.agents})
        yield ends


def aec_env(id: str, **keywords: Any) -> Iterator[Any]:
    env: Any = registry.make_aec(id, compiled=False, **keywords)
    for agent in env.possible_agents:
        env.action_space(agent).seed(3)
    env.reset(seed=3)
    for agent in env.agent_iter(12):
        yield (last := env.last())
        env.step(None if last[2] or last[3] else env.action_space(agent).sample(last[4].get("action_mask")))


@pytest.mark.check
@pytest.mark.parametrize("name", SHOWN)
def test_what_a_representation_shows_on_all_faces_is_what_it_was(name: str):
    id, keywords, wanted = SHOWN[name]
    digest = hashlib.sha256()
    for face in (batch, gym_env, vector_env, parallel_env, aec_env):
        for shown in face(id, **keywords):
            for part in numbers(shown):
                digest.update(part)
    assert digest.hexdigest()[:16] == wanted
