"""Text environments whose observations hold all that was said: as one text, or as chat messages.

An Env with ``Text`` spaces observes the prompt first and after each action only what is new. A language model reads all
of it::

    env = Transcript(gymnasium.make("palaestra/SearchQA-2Hop-v1", form="text"))
    env = Messages(gymnasium.make("palaestra/SearchQA-2Hop-v1", form="text"), system="Answer by searching.")

`text_env` makes the environments of `palaestra.adapters` for libraries of language models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from palaestra import registry
from palaestra.core.contract import factories
from palaestra.core.contract.options import options_of
from palaestra.core.run.opponents import CHAT
from palaestra.game import TextSpace

ROLES = ("system", "user", "assistant")
LONGEST = 1_000_000
"""Characters of a transcript where no horizon bounds it."""

Message = dict[str, str]
"""``{"role": one of ROLES, "content": text}``."""


class Transcript(gymnasium.Wrapper, RecordConstructorArgs):
    """Observes the whole text: the prompt, then each action and what the environment answered."""

    def __init__(self, env: gymnasium.Env, max_length: int | None = None) -> None:
        """Wraps an environment.

        Args:
            env: Its observations and actions are ``Text``.
            max_length: Largest number of characters; None for what fits into ``env.spec.max_episode_steps``, or
                `LONGEST` without such a horizon.

        Raises:
            TypeError: Other spaces.
        """
        RecordConstructorArgs.__init__(self, max_length=max_length)
        gymnasium.Wrapper.__init__(self, env)
        seen, done = text_spaces(env)
        if max_length is None:
            horizon = env.spec.max_episode_steps if env.spec is not None else None
            turn = seen.max_length + done.max_length
            max_length = LONGEST if horizon is None else seen.max_length + horizon * turn
        self.observation_space = TextSpace(max_length, min_length=0, charset=None)
        self._text = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode; see `gymnasium.Env.reset`."""
        self._text, info = self.env.reset(seed=seed, options=options)
        return self._text, info

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Plays one turn; see `gymnasium.Env.step`.

        Raises:
            ValueError: The text is longer than ``max_length``.
        """
        segment, *outcome = self.env.step(action)
        self._text = f"{self._text}{action}{segment}"
        limit = self.observation_space.max_length  # pyright: ignore[reportAttributeAccessIssue]
        if len(self._text) > limit:
            raise ValueError(f"the text has {len(self._text)} characters, at most {limit} fit: raise max_length=")
        return self._text, *outcome  # pyright: ignore[reportReturnType]


class Messages(gymnasium.Wrapper, RecordConstructorArgs):
    """Observes a tuple of chat messages ``{"role": ..., "content": ...}``, as chat templates take them.

    The prompt and what the environment answers are of the role ``"user"``, actions of ``"assistant"``. An empty answer
    to the last action is no message.
    """

    def __init__(self, env: gymnasium.Env, system: str | None = None) -> None:
        """Wraps an environment.

        Args:
            env: Its observations and actions are ``Text``.
            system: Text of a first message of the role ``"system"``; None for no such message.

        Raises:
            TypeError: Other spaces.
        """
        RecordConstructorArgs.__init__(self, system=system)
        gymnasium.Wrapper.__init__(self, env)
        longest = max(len(system or ""), *(space.max_length for space in text_spaces(env)))
        role = TextSpace(max(map(len, ROLES)), charset="".join(sorted({*"".join(ROLES)})))
        content = TextSpace(longest, min_length=0, charset=None)
        self.observation_space = spaces.Sequence(spaces.Dict({"role": role, "content": content}))
        self._first = [] if system is None else [{"role": "system", "content": system}]
        self._messages: list[Message] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[Message, ...], dict[str, Any]]:
        """Starts an episode; see `gymnasium.Env.reset`."""
        prompt, info = self.env.reset(seed=seed, options=options)
        self._messages = [*self._first, {"role": "user", "content": prompt}]
        return self._observe(), info

    def step(self, action: str) -> tuple[tuple[Message, ...], Any, bool, bool, dict[str, Any]]:
        """Plays one turn; see `gymnasium.Env.step`."""
        segment, reward, terminated, truncated, info = self.env.step(action)
        self._messages.append({"role": "assistant", "content": action})
        if segment or not (terminated or truncated):
            self._messages.append({"role": "user", "content": segment})
        return self._observe(), reward, terminated, truncated, info

    def _observe(self) -> tuple[Message, ...]:
        return tuple(dict(message) for message in self._messages)


def text_spaces(env: gymnasium.Env) -> tuple[spaces.Text, spaces.Text]:
    """The spaces of the observations and of the actions.

    Raises:
        TypeError: They are not both ``Text``.
    """
    seen, done = env.observation_space, env.action_space
    if not isinstance(seen, spaces.Text) or not isinstance(done, spaces.Text):
        raise TypeError(
            f"{env} observes {seen} and takes actions of {done}: both must be Text, as those of "
            'gymnasium.make("palaestra/SearchQA-2Hop-v1", form="text")'
        )
    return seen, done


def text_ids() -> list[str]:
    """Registered ids that are made as text by ``form="text"``; imports all factories."""
    return [id for id in registry.ROWS if has_text_form(id)]


def has_text_form(id: str) -> bool:
    """Whether the factory of a registered id has an option ``form="text"``. What cannot be imported has none."""
    try:
        table = options_of(factories.load(registry.ROWS[id].factory))
    except ImportError:
        return False
    return any(option.name == "form" and "text" in option.words for option in table)


def text_keywords(id: str, keywords: Mapping[str, Any], players: Iterable[Any]) -> dict[str, Any]:
    """Keywords of an id, with ``form="text"`` where the id has this form and a player reads and writes nothing else.

    That is a text which begins with `palaestra.core.run.opponents.CHAT`, or an object whose ``reads_text`` is
    true.
    """
    for player in players:
        is_named = isinstance(player, str) and player.startswith(CHAT)
        if (is_named or getattr(player, "reads_text", False)) and has_text_form(id):
            return {"form": "text", **keywords}
    return dict(keywords)


def text_env(id: str, **keywords: Any) -> gymnasium.Env[str, str]:
    """Makes an environment whose observations and actions are ``Text``.

    Args:
        id: Of Gymnasium's; those of `text_ids` are made with ``form="text"``.
        **keywords: As for `gymnasium.make`.

    Raises:
        TypeError: The environment has other spaces.
    """
    if id in registry.ROWS and has_text_form(id):
        keywords = {"form": "text", **keywords}
    env = gymnasium.make(id, disable_env_checker=True, **keywords)
    text_spaces(env)
    return env
