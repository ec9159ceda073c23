"""Text environments in verifiers (``verifiers.v1``), for ``vf-eval``, prime-rl and whoever runs its environments.

verifiers finds an environment by the name of a module on Python's path. Yours has two lines, say ``search_qa.py``::

    from palaestra.adapters.verifiers import TextEnv, TextTaskset
    __all__ = ["TextEnv", "TextTaskset"]

    vf-eval search-qa --env.taskset.game SearchQA-2Hop --env.taskset.matches 100

A task is the match of a seed. The model writes turns with tags, the environment answers as the user.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palaestra.adapters.text_session import TextSession
from palaestra.console import find_id
from palaestra.game import Importing

with Importing(
    "verifiers",
    "palaestra.adapters.verifiers needs verifiers, which is not installed: pip install verifiers",
):
    import verifiers.v1 as vf
    from pydantic import Field

MEASURES = ("exact_match", "f1", "malformed")
"""Entries of an environment's info that become metrics."""


class TextTasksetConfig(vf.TasksetConfig):
    """Which matches are played.

    Attributes:
        game: Id of the environment.
        keywords: Of the environment.
        first_seed: Of the first match; the next ones count up.
        matches: Number of them.
    """

    game: str
    keywords: dict[str, Any] = Field(default_factory=dict)
    first_seed: int = 0
    matches: int = 1000


class TextData(vf.TaskData):
    """A match: what `TextSession` takes."""

    game: str
    keywords: dict[str, Any]
    seed: int


class TextTask(vf.Task[TextData]):
    """The match of a seed. Its reward is its return, which `TextEnv` records."""


class TextTaskset(vf.Taskset[TextTask, TextTasksetConfig]):
    """The matches of consecutive seeds."""

    def load(self) -> Iterator[TextTask]:
        """Yields them, each with its prompt."""
        config = self.config
        game = find_id(config.game)
        session = TextSession(game, **config.keywords)
        for seed in range(config.first_seed, config.first_seed + config.matches):
            match = {"game": game, "keywords": config.keywords, "seed": seed}
            yield TextTask(TextData(name=f"{game}#{seed}", prompt=session.reset(seed), **match), config.task)


class TextEnvConfig(vf.EnvConfig):
    """The player has no tools but its turns, so that it needs no sandbox."""

    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime=vf.SubprocessConfig())


class TextEnv(vf.Env[TextEnvConfig]):
    """Plays a task: each reply of the player is a turn, what the environment says is the user's next message."""

    async def run(self, task: TextTask, agents: vf.Agents) -> None:
        """Plays the match; records its return and `MEASURES`."""
        session = TextSession(task.data.game, **task.data.keywords)
        session.reset(task.data.seed)
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                try:
                    text = session.say(segment.last_reply)
                except ValueError:  # how environments refuse a text that they do not understand
                    break
                if session.is_over:
                    break
                segment = await interaction.turn(text)
        interaction.trace.record_reward("match_return", session.total)
        measured = {name: float(session.info[name]) for name in MEASURES if name in session.info}
        interaction.trace.record_metrics(measured)
        session.env.close()
