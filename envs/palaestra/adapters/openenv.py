"""Text environments in OpenEnv.

For its server: ``create_app(partial(TextEnvironment, "palaestra/SearchQA-2Hop-v1"), TextAction, TextObservation)``.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

from palaestra.adapters.text_session import TextSession
from palaestra.game import Importing

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
        self._session, self._state = TextSession(game_id, **keywords), State()

    @property
    def state(self) -> State:
        """Of the episode: ``episode_id``, ``step_count``, and the environment's ``info``."""
        return self._state

    def reset(self, seed: int | None = None, episode_id: str | None = None) -> TextObservation:
        """Starts an episode."""
        text = self._session.reset(seed)
        self._state = State(episode_id=episode_id, info=self._session.info)
        return TextObservation(text=text)

    def step(self, action: TextAction, timeout_s: float | None = None) -> TextObservation:
        """Plays one turn, which is too quick for a time limit."""
        text = self._session.say(action.text)
        self._state.step_count += 1
        self._state.info = self._session.info
        return TextObservation(text=text, reward=self._session.reward, done=self._session.is_over)
