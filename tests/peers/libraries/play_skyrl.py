# pyright: reportMissingImports=false
"""SkyRL-gym: text search whose episodes are named by the rows of a dataset."""

from __future__ import annotations

from typing import Any

import skyrl_gym
from peers.libraries.search_turns import ID, SEARCH, check_alike, right
from peers.libraries.trials import main, trial

skyrl_gym.register("palaestra", "palaestra.adapters.skyrl:TextEnv")
SYSTEM = {"role": "system", "content": "Search before you answer."}


def episode(**extras: Any) -> list[Any]:
    """All that is returned in an episode of a search and the right answer."""
    env = skyrl_gym.make("palaestra", env_config={}, extras={"id": ID, **extras})
    messages, info = env.init([SYSTEM])
    assert messages[0] == SYSTEM
    assert messages[1]["role"] == "user"
    assert info["question"] in messages[1]["content"]
    seen = [messages, info, env.step(SEARCH), env.step(right(info))]
    assert [message["role"] for message in seen[-2]["observations"]] == ["user"]
    assert (seen[-2]["reward"], seen[-2]["done"]) == (0.0, False)
    assert (seen[-1]["reward"], seen[-1]["done"], seen[-1]["observations"]) == (1.0, True, [])
    env.close()
    return seen


@trial("adapter", "adapters.skyrl: episodes by the seed of a row")
def _() -> None:
    check_alike(episode(seed=7), episode(seed=7, reward_spec={"ground_truth": None}), episode(seed=8))


@trial("adapter", "adapters.skyrl: the turns of the generator end an episode")
def _() -> None:
    env = skyrl_gym.make("palaestra", extras={"id": ID, "seed": 7, "max_turns": 2})
    env.init([])
    assert [env.step(SEARCH)["done"] for _ in range(2)] == [False, True]


if __name__ == "__main__":
    main("skyrl-gym")
