"""Text environments in OpenEnv.

For its server: ``create_app(partial(TextEnvironment, "palaestra/SearchQA-2Hop-v1"), TextAction, TextObservation)``.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

from palaestra import jsonable
from palaestra.game import Importing
from palaestra.wrappers.transcript import text_env

with Importing(
    "openenv",
    "palaestra.adapters.openenv needs OpenEnv, which is not installed: pip install openenv",
):
    from openenv.core.env_server import Action, Environment, Observation, State


class TextAction(Action):
    """What the agent says."""

    text: str


class TextObservation(Observation):
    """What the environment says anew. What ``info`` tells, such as right answers, is in the state alone."""

    text: str


class TextEnvironment(Environment):
    """One episode at a time of a text environment."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, game_id: str, **keywords: Any) -> None:
        """Makes the environment; see `palaestra.wrappers.transcript.text_env`."""
        super().__init__()
        self.env, self._state = text_env(game_id, **keywords), State()

    @property
    def state(self) -> State:
        """Of the episode: ``episode_id``, ``step_count``, and the environment's ``info``."""
        return self._state

    def reset(self, seed: int | None = None, episode_id: str | None = None) -> TextObservation:
        """Starts an episode."""
        text, info = self.env.reset(seed=seed)
        self._state = State(episode_id=episode_id, info=jsonable(info))
        return TextObservation(text=text)

    def step(self, action: TextAction, timeout_s: float | None = None) -> TextObservation:
        """Plays one turn, which is too quick for a time limit."""
        text, reward, terminated, truncated, info = self.env.step(action.text)
        self._state.step_count += 1
        self._state.info = jsonable(info)
        return TextObservation(text=text, reward=float(reward), done=terminated or truncated)
