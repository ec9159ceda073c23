"""A match that is played by turns of text: what the adapters for libraries of language models share."""

from __future__ import annotations

from typing import Any

from palaestra import jsonable
from palaestra.wrappers.transcript import text_env


class TextSession:
    """One match at a time of a text environment.

    Attributes:
        env: The environment.
        question: Of the match, for players that call tools: without the words of the prompt about tags. The whole
            prompt where the environment tells no question.
        info: What the environment told last, in plain Python values; right answers are in it, so it is not for players.
        reward: Of the last turn.
        total: Sum of the rewards of the match so far.
        terminated, truncated: See `gymnasium.Env.step`.
    """

    def __init__(self, id: str, **keywords: Any) -> None:
        """Makes the environment; `reset` begins a match. See `palaestra.wrappers.transcript.text_env`."""
        self.env = text_env(id, **keywords)
        self.question, self.reward, self.total = "", 0.0, 0.0
        self.info: dict[str, Any] = {}
        self.terminated, self.truncated = False, True

    @property
    def is_over(self) -> bool:
        """Whether no turn can be said."""
        return self.terminated or self.truncated

    def reset(self, seed: int | None = None) -> str:
        """Begins a match; equal seeds begin equal ones. Returns the prompt."""
        prompt, info = self.env.reset(seed=seed)
        self.info = jsonable(info)
        self.question = self.info.get("question", prompt)
        self.reward, self.total, self.terminated, self.truncated = 0.0, 0.0, False, False
        return prompt

    def say(self, turn: str) -> str:
        """Plays a turn; returns what the environment says anew.

        Raises:
            ValueError: The match is over, or the environment does not understand the text.
        """
        if self.is_over:
            raise ValueError("the episode is over")
        text, reward, terminated, truncated, info = self.env.step(turn)
        self.info, self.reward = jsonable(info), float(reward)
        self.total += self.reward
        self.terminated, self.truncated = bool(terminated), bool(truncated)
        return text

    def search(self, query: str) -> str:
        """Plays a turn that searches; see `say`."""
        return self.say(f"<search>{query}</search>")

    def answer(self, text: str) -> str:
        """Plays a turn that answers; see `say`."""
        return self.say(f"<answer>{text}</answer>")
