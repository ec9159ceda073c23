# pyright: reportMissingImports=false
"""GEM: text search by id, alone, as its vector environments, and as copies in the same state."""

from __future__ import annotations

from typing import Any

import gem
from peers.libraries.search_turns import ID, SEARCH, check_alike, right
from peers.libraries.trials import main, trial

from palaestra.adapters.gem import register

register()
register()  # twice is once


def episode(env: Any, seed: int | None) -> list[Any]:
    """All that is returned in an episode of a search and the right answer."""
    text, info = env.reset(seed=seed)
    seen = [text, info, list(env.step(SEARCH)), list(env.step(right(info)))]
    assert seen[-2][1:4] == [0.0, False, False], seen[-2]
    assert seen[-1][1:4] == [1.0, True, False], seen[-1]
    return seen


@trial("adapter", "adapters.gem: episodes by seed through gem.make, spawn")
def _() -> None:
    env = gem.make(ID)
    check_alike(episode(env, 7), episode(gem.make(ID), 7), episode(env, 8))
    assert episode(gem.make(ID, seed=7), None) == episode(env, 7)
    assert isinstance(env.sample_random_action(), str)
    env.reset(seed=7)
    copied = env.spawn(same_state=True)
    assert copied.step(SEARCH) == env.step(SEARCH)
    fresh = env.spawn()
    assert fresh is not env
    assert episode(fresh, 7) == episode(env, 7)


@trial("adapter", "adapters.gem: a group of one seed in gem.make_vec, in one process and in several")
def _() -> None:
    seen = []
    for async_mode in (False, True):
        envs = gem.make_vec([ID] * 3, vec_kwargs=[{"seed": seed} for seed in (7, 7, 8)], async_mode=async_mode)
        texts, infos = envs.reset()
        assert texts[0] == texts[1] != texts[2]
        _, rewards, terminated, _, _ = envs.step([right(infos[0]), SEARCH, right(infos[2])])
        assert (rewards.tolist(), terminated.tolist()) == ([1.0, 0.0, 1.0], [True, False, True])
        seen.append(envs.reset(seed=1)[0])
    assert seen[0] == seen[1]


if __name__ == "__main__":
    main("gem-llm")
