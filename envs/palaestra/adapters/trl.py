"""Search environments in TRL's GRPOTrainer, as tools.

    GRPOTrainer(model, train_dataset=rows, environment_factory=environment("palaestra/SearchQA-2Hop-v1"), ...)

Rows have a ``seed``, so that all rollouts of a row answer one question, and a ``prompt``: messages, to the last of
which the question is appended, such as ``[{"role": "user", "content": ""}]``.
"""

from __future__ import annotations

from typing import Any

from palaestra.wrappers.transcript import text_env


def environment(id: str, **keywords: Any) -> type:
    """Makes a class of environments; see `palaestra.wrappers.transcript.text_env` for the arguments.

    The environment understands ``<search>`` and ``<answer>``. TRL takes every public method of the class as a tool.
    """

    class SearchEnvironment:
        def __init__(self) -> None:
            self._env, self._return, self._is_over = text_env(id, **keywords), 0.0, True

        def reset(self, seed: int | None = None, **row: Any) -> str:
            if seed is None and row:
                raise ValueError('the dataset has no "seed": rollouts of a group would answer different questions')
            prompt, info = self._env.reset(seed=seed)
            self._return, self._is_over = 0.0, False
            return info.get("question", prompt)  # the prompt explains tags, which nobody has to write here

        def get_reward(self) -> float:
            return self._return

        def search(self, query: str) -> str:
            """Searches the passages.

            Args:
                query: What to look for.
            """
            return self._say(f"<search>{query}</search>")

        def answer(self, text: str) -> str:
            """Answers the question. Nothing can be done after it.

            Args:
                text: The answer alone, without a sentence around it.
            """
            return self._say(f"<answer>{text}</answer>")

        def _say(self, turn: str) -> str:
            if self._is_over:
                raise ValueError("the episode is over")
            text, reward, terminated, truncated, _ = self._env.step(turn)
            self._return, self._is_over = self._return + float(reward), terminated or truncated
            return text

    return SearchEnvironment
