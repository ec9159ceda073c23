"""What the trials of libraries for language models say in a search environment."""

from __future__ import annotations

import json
from typing import Any

from palaestra.wrappers.transcript import text_env

ID = "palaestra/SearchQA-2Hop-v1"
SEARCH, WRONG = "<search>the mayor</search>", "<answer>nobody at all</answer>"


def right(info: dict[str, Any]) -> str:
    """The turn that answers the question of an info."""
    return f"<answer>{info['answers'][0]}</answer>"


def check_alike(one: Any, other: Any, third: Any) -> None:
    """Two episodes of one seed are equal, in JSON too, and that of another seed is not."""
    assert json.dumps(one) == json.dumps(other)
    assert one == other == json.loads(json.dumps(one))
    assert one != third


MATCHES = 32


def script(seed: int, info: dict[str, Any]) -> list[str]:
    """Turns of the match of a seed: both searches and the right answer, a wrong one, one by luck, or searches alone."""
    searches = [f"<search>{relation} of {subject}</search>" for subject, relation, _ in info["path"]]
    return [[*searches, right(info)], [searches[0], WRONG], [right(info)], [SEARCH] * 9][seed % 4]


def played_alone(seed: int, **keywords: Any) -> tuple[list[str], list[str], float]:
    """The turns of a match as far as it goes, what the environment says, and its return, without any adapter."""
    env = text_env(ID, **keywords)
    prompt, info = env.reset(seed=seed)
    said, texts, total = [], [prompt], 0.0
    for turn in script(seed, info):
        text, reward, terminated, truncated, _ = env.step(turn)
        said.append(turn)
        texts.append(text)
        total += float(reward)
        if terminated or truncated:
            break
    return said, texts, total


def check_returns(returns: list[float], alone: list[float]) -> str:
    """The returns of `MATCHES` matches are the environment's own; some are 0, some are not."""
    assert returns == alone, (returns, alone)
    assert len(returns) == MATCHES
    assert 0 < sum(total > 0 for total in returns) < MATCHES
    return f"{MATCHES} matches, {sum(returns):g} in all, equal to the environment's own"
