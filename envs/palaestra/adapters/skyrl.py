"""Text environments in SkyRL-gym.

    skyrl_gym.register("palaestra", "palaestra.adapters.skyrl:TextEnv")
    env = skyrl_gym.make("palaestra", extras={"id": "palaestra/SearchQA-2Hop-v1", "seed": 7})

A row of a SkyRL dataset names its episode by ``id``, ``seed`` and, if needed, ``keywords``. Its prompt holds at most a
system message: the environment's own prompt comes after it.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

from palaestra import registry
from palaestra.adapters.text_session import TextSession
from palaestra.core.files import FileError, printable
from palaestra.game import Importing
from palaestra.wrappers.transcript import Message

with Importing(
    "skyrl_gym",
    "palaestra.adapters.skyrl needs SkyRL-gym, which is not installed: pip install skyrl-gym",
):
    from skyrl_gym.envs.base_text_env import BaseTextEnv


class TextEnv(BaseTextEnv):
    """One episode of a text environment."""

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        """Makes the environment of ``extras["id"]``.

        Args:
            env_config: Of the training; ``{"trust_paths": True}`` where the data set is yours and its keywords name
                files, models or functions.
            extras: Of the row: ``id``, and if wanted ``seed``, ``keywords`` and ``max_turns``; others are ignored.

        Raises:
            ValueError: The row names no environment.
            FileError: The row could import, call or open something of the user's.
        """
        super().__init__()
        extras = extras or {}
        if "id" not in extras:
            raise ValueError('extras has no "id": name an environment, such as "palaestra/SearchQA-2Hop-v1"')
        id, keywords = extras["id"], extras.get("keywords") or {}
        if not dict(env_config or {}).get("trust_paths", False):
            imports = not isinstance(id, str) or ":" in id  # Gymnasium takes "module:Name-v0"
            reason = "names a module to import" if imports else registry.refused_keyword(id, keywords)
            if reason is not None:
                raise FileError(
                    f"a row of the data set, {printable(id)}: {reason}: if you trust its author to open files of yours "
                    'and to run code, env_config={"trust_paths": True}'
                )
        self.session = TextSession(id, **keywords)
        self.seed, self.max_turns = extras.get("seed"), extras.get("max_turns")

    def init(self, prompt: list[Message]) -> tuple[list[Message], dict[str, Any]]:
        """Starts the episode."""
        self.turns = 0
        text = self.session.reset(self.seed)
        return [*prompt, {"role": "user", "content": text}], self.session.info

    def step(self, action: str) -> dict[str, Any]:
        """Plays one turn; no message comes after the last one."""
        self.turns += 1
        text = self.session.say(action)
        done = self.session.is_over or self.turns == self.max_turns
        observations = [] if done else [{"role": "user", "content": text}]
        return {
            "observations": observations,
            "reward": self.session.reward,
            "done": done,
            "metadata": self.session.info,
        }

    def close(self) -> None:
        """Frees the environment."""
        self.session.env.close()
