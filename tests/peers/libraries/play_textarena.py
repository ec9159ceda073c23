# pyright: reportMissingImports=false
"""TextArena: text search as a game of one player, alone and in its wrapper for language models."""

from __future__ import annotations

import random
from typing import Any

import textarena
from peers.libraries.search_turns import ID, SEARCH, check_alike, right
from peers.libraries.trials import main, trial

textarena.register("SearchQA", "palaestra.adapters.textarena:TextEnv", game_id=ID)


def episode(seed: int) -> list[Any]:
    """All that is returned in an episode of a search and the right answer."""
    env = textarena.make("SearchQA")
    env.reset(num_players=1, seed=seed)
    seen: list[Any] = []

    def observe() -> None:
        player, messages = env.get_observation()
        seen.append([player, *([sender, text, kind.name] for sender, text, kind in messages)])

    observe()
    for turn in (SEARCH, right(env.state.game_state)):
        seen.append(list(env.step(turn)))
        observe()
    assert [message[2] for messages in (seen[0], seen[2]) for message in messages[1:]] == [
        "PROMPT", "PLAYER_ACTION", "GAME_MESSAGE",
    ]  # fmt: skip
    assert (seen[1][0], seen[3][0]) == (False, True)
    rewards, infos = env.close()
    assert rewards == {0: 1.0}
    assert (infos[0]["turn_count"], infos[0]["invalid_move"]) == (2, False)
    assert infos[0]["info"] == seen[3][1]
    return seen


@trial("adapter", "adapters.textarena: episodes by seed")
def _() -> None:
    random.seed(3)
    before = random.getstate()
    check_alike(episode(7), episode(7), episode(8))
    assert random.getstate() == before, "Python's own generator is left alone"


@trial("adapter", "adapters.textarena: LLMObservationWrapper")
def _() -> None:
    env = textarena.wrappers.LLMObservationWrapper(textarena.make("SearchQA"))
    env.reset(num_players=1, seed=7)
    (_, first), _ = env.get_observation(), env.step(SEARCH)
    _, second = env.get_observation()
    assert second.startswith(first)
    assert f"[Player] {SEARCH}\n[GAME]" in second[len(first) :]


if __name__ == "__main__":
    main("textarena")
