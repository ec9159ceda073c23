"""The subject of the checks: an id, its keywords, and how its faces are made."""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Literal

from palaestra import registry
from palaestra.core.contract import factories
from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.core.faces.agent_io import NO_CODEC
from palaestra.game import Game
from palaestra.testing.drawn import Draw
from palaestra.testing.players import Player

Level = Literal["preset", "fast", "full"]
"""``"preset"`` is for ids whose kernel another id has passed with: what an id has of its own, and a few decisions."""

SECONDS: dict[Level, float] = {"preset": 0.0, "fast": 0.08, "full": 10.0}
"""Processor time that one loop of steps may take once it has done its least number."""


class Subject:
    """An environment under test. Subclasses may break a face on purpose, to show that a check sees it.

    Attributes:
        id: Registered id.
        level: ``"preset"``, ``"fast"`` or ``"full"``.
        keywords: Keywords of the id.
        seed: Seed of the run: what the checks draw depends on it.
        draw: Numbers that the running check draws.
    """

    def __init__(self, id: str, level: Level = "fast", **keywords: Any) -> None:
        """Makes nothing yet.

        Args:
            id: Registered id.
            level: How much is looked at.
            **keywords: Keywords of the id, as every face takes them.

        Raises:
            ValueError: Unknown level.
        """
        if level not in SECONDS:
            raise ValueError(f"level must be one of {', '.join(SECONDS)}, got {level!r}")
        self.level: Level = level
        self.id, self.keywords = id, keywords
        self.seed = 0
        self.draw = Draw(self.seed, id)
        self.memory: dict[str, Any] = {}
        self._game: Game | None = None
        self._note = ""
        self._open: list[Any] = []

    # -- faces ---------------------------------------------------------------------------------------------------------

    @property
    def batch_keywords(self) -> dict[str, Any]:
        """The keywords that a batch takes too."""
        return {k: v for k, v in self.keywords.items() if k not in registry.FACE_KEYWORDS}

    @property
    def rules_keywords(self) -> dict[str, Any]:
        """The keywords that the rules take too."""
        return {k: v for k, v in self.batch_keywords.items() if k not in registry.SIMULATION_KEYWORDS}

    @property
    def gymnasium_keywords(self) -> dict[str, Any]:
        """The keywords that Gymnasium's faces take too."""
        return {k: v for k, v in self._plain.items() if k not in registry.PETTINGZOO_KEYWORDS}

    @property
    def parallel_keywords(self) -> dict[str, Any]:
        """The keywords that a PettingZoo ParallelEnv takes too."""
        return {k: v for k, v in self._plain.items() if k not in registry.GYMNASIUM_KEYWORDS}

    @property
    def _plain(self) -> dict[str, Any]:
        """The keywords; where the id or the game has a default codec, with the option for plain arrays."""
        has_codec = self.game.default_codec is not None or "codec" in registry.row(self.id).kwargs
        return {"codec": NO_CODEC, **self.keywords} if has_codec else self.keywords

    def shown(self, form: str) -> str:
        """What ``observation=`` has to be for the representation of the keywords in another form, flat or dict."""
        rules, _ = registry.make_game(self.id, **{**self.rules_keywords, "observation": None})
        option = self.keywords.get("observation") or rules.default_observation
        name = option.partition(":")[0]
        return f"{name}:{form}" if name in rules.representations else form

    def with_codecs(self) -> list[Subject]:
        """This subject, and as many others as representations have codecs of their own: those of them with codecs."""
        rules, _ = registry.make_game(self.id, **{**self.rules_keywords, "observation": None})
        found: list[Subject] = [self] if self.game.codecs else []
        for name, shown in rules.representations.items() if "observation" not in self.keywords else ():
            if shown.codecs:
                other = copy.copy(self)  # what it makes is closed with what this one makes
                other.keywords, other._game = {**self.keywords, "observation": name}, None
                found.append(other)
        return found

    @property
    def game(self) -> Game:
        """The rules."""
        if self._game is None:
            self._game, _ = registry.make_game(self.id, **self.rules_keywords)
        return self._game

    def game_anew(self) -> Game:
        """A new game from the factory, not the cached one of the process."""
        entry = registry.row(self.id)
        factory = factories.load(entry.factory)
        keywords = {**entry.kwargs, **self.rules_keywords}
        return factory(**{k: keywords[k] for k in inspect.signature(factory).parameters if k in keywords})

    def batch(self, num_envs: int = 1, **options: Any) -> Any:
        """A new simulation."""
        return self.keep(registry.make_batch(self.id, num_envs, **{**self.batch_keywords, **options}))

    def env(self, **options: Any) -> Any:
        """A new Gymnasium Env, without the wrappers of `gymnasium.make`."""
        import gymnasium

        made = gymnasium.make(self.id, disable_env_checker=True, **{**self.gymnasium_keywords, **options})
        return self.keep(made.unwrapped)

    def vec(self, num_envs: int, **options: Any) -> Any:
        """A new Gymnasium VectorEnv."""
        import gymnasium

        return self.keep(gymnasium.make_vec(self.id, num_envs=num_envs, **{**self.gymnasium_keywords, **options}))

    def parallel(self, **options: Any) -> Any:
        """A new PettingZoo ParallelEnv."""
        return self.keep(registry.make_parallel(self.id, **{**self.parallel_keywords, **options}))

    def aec(self, **options: Any) -> Any:
        """A new PettingZoo AECEnv."""
        return self.keep(GameAECEnv(self.parallel(**options)))

    def keep(self, made: Any) -> Any:
        """Closes something with everything else that was made for this check."""
        self._open.append(made)
        return made

    def close(self) -> None:
        """Closes everything that was made."""
        while self._open:
            self._open.pop().close()

    def warm_up(self) -> None:
        """Compiles and plays one decision, so that no check pays for it.

        Raises:
            ImportError: An optional package is missing; names the command that installs it.
        """
        for options in ({"autoreset_mode": "off"}, {"threads": 2}):
            if "threads" in options and (self.is_engine_game or self.level == "preset"):
                continue
            sim = self.batch(2, **options)
            sim.reset(seed=0)
            Player(sim).play(sim)
            sim.step()
            sim.state()
        self.close()

    # -- what it is ----------------------------------------------------------------------------------------------------

    @property
    def is_engine_game(self) -> bool:
        """Whether another engine moves the bodies."""
        return self.game.physics is not None

    @property
    def default_horizon(self) -> int:
        """Decisions until a match is truncated, with these keywords."""
        return int(self.batch(1).states["parameters"]["horizon"][0])

    def opponents(self, but: str | None = None) -> dict[str, str]:
        """Scripts (or the random player) for all teams, or for all teams but one."""
        player = "mix" if self.game.scripts else "random"
        return {team: player for team in self.game.teams if team != but}

    def why_not_drawn(self, human: bool = False) -> str:
        """Why pictures cannot be looked at, or ``""``."""
        if self.game.render is None:
            return "the game has no picture"
        packages = ("PIL", "pygame") if human else ("PIL",)
        missing = [p for p in packages if find_spec(p) is None]
        return f'pip install "palaestra[render]" ({", ".join(missing)} missing)' if missing else ""

    # -- how much is looked at -----------------------------------------------------------------------------------------

    def rounds(self, least: int, fast: int, full: int, seconds: float | None = None) -> Iterator[int]:
        """Counts rounds: always ``least``, then up to the level's number as long as there is time.

        Args:
            least: Rounds that are always played, whatever they cost.
            fast: Most rounds at the level ``"fast"``.
            full: Most rounds at the level ``"full"``.
            seconds: Limit of processor time; the level's if None.
        """
        limit = SECONDS[self.level] if seconds is None else seconds
        levels: dict[Level, int] = {"preset": least, "fast": fast, "full": full}
        most = levels[self.level]
        end = time.process_time() + limit  # a busy machine makes a check slower, not weaker
        for number in range(most):
            if number >= least and time.process_time() > end:
                return
            yield number

    def note(self, text: str) -> None:
        """Says in the report how much was looked at."""
        self._note = f"{self._note}, {text}" if self._note else text

    def take_note(self) -> str:
        """What was noted since the last call."""
        note, self._note = self._note, ""
        return note


@contextlib.contextmanager
def without_display() -> Iterator[None]:
    """Windows open on no screen within this block."""
    before = {
        name: os.environ.get(name) for name in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER", "PYGAME_HIDE_SUPPORT_PROMPT")
    }
    os.environ.update(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy", PYGAME_HIDE_SUPPORT_PROMPT="1")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
