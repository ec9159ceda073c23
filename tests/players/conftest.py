"""Fixtures of tests of players."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from games.play import simulation

from palaestra.core.files import FileError
from palaestra.players.agent_rows import AgentRows


class Spaces(gymnasium.Env):
    """An environment that is only asked for its spaces."""

    def __init__(self, rows: Any) -> None:
        self.observation_space, self.action_space = rows.observation_space, rows.action_space


@pytest.fixture
def spaces_env() -> Callable[..., gymnasium.Env]:
    """``spaces_env(game, team, agents, form, choices)``: an environment with the spaces that a learner sees."""

    def make(game: Any, team: str | None = "red", agents: Any = "joint", form: Any = None, choices: Any = "separate"):
        others = {other: "random" for other in game.teams if team is not None and other != team}
        sim = simulation(game, 1, compiled=False, autoreset_mode="same_step", opponents=others)
        return Spaces(AgentRows(sim, team, agents, form, choices))

    return make


@pytest.fixture
def moments() -> Callable[..., list[tuple[Any, Any, Any]]]:
    """``moments(game, team, agents, form, player, decisions)``: what a face shows, its masks, and what was played."""

    def play(game: Any, team: str, agents: Any, form: Any, player: Any, decisions: int = 3, choices: Any = "separate"):
        others = {other: "random" for other in game.teams if other != team}
        learner = simulation(game, 4, compiled=False, autoreset_mode="same_step", opponents=others)
        match = simulation(game, 4, compiled=False, autoreset_mode="same_step", opponents={**others, team: player})
        rows = AgentRows(learner, team, agents, form, choices)
        learner.reset(seed=3)
        match.reset(seed=3)
        found = []
        for _ in range(decisions):
            seen, masks = rows.observe(), rows.action_masks() if rows.mask_width else None
            match.step()
            acting = learner.acting[:, list(game.teams[team])].copy()
            slots = {name: indices for name, indices in game.team_roles(team).items()}
            parts = [match.actions if isinstance(match.actions, np.ndarray) else match.actions[name] for name in slots]
            played = [part[:, indices].copy() for part, indices in zip(parts, slots.values(), strict=True)]
            found.append((seen, masks, played, acting))
            learner.load_states(match.states.copy())
            learner.states["assigned_player"][:, list(game.teams[team])] = -1
            learner.states["current_player"][:, list(game.teams[team])] = -1
        return found

    return play


@pytest.fixture
def refused_by_name() -> Callable[[Path], AbstractContextManager]:
    """``with refused_by_name(path)``: lets a `FileError` pass that begins with the path, and no other error."""

    @contextmanager
    def allow(path: Path) -> Iterator[None]:
        with suppress(FileError):
            try:
                yield
            except FileError as error:
                if not str(error).startswith(str(path)):
                    raise AssertionError(f"{error} does not name {path}") from error
                raise

    return allow
