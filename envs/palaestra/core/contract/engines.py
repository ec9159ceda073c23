"""What an engine outside offers that moves the bodies of a game between `Game.command` and `Game.evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from palaestra.core.contract.rules import Game

Saved = Mapping[str, np.ndarray]
"""What an engine keeps outside the match records: arrays by name, one row a lane."""


class PhysicsEngine(Protocol):
    """An engine that moves the bodies of N matches. It may also be a `SavingEngine` and a `DrawingEngine`.

    What it does to a lane depends on that lane alone: on its bodies, on the fields of its record that the rules leave
    as they are during a match, and on its inputs since `load`. Lanes are named by their indices, int64, in
    ascending order.

    Its code and the constants that it uses belong to the digest of the rules
    (`palaestra.core.compile.identity.rules_digest`): write tables as tuples, read-only mappings, arrays or frozen
    dataclasses. What it shares in the process beyond one simulation, a pool say, is kept in a list, a dict or an
    object, which count by their class alone.

    Attributes:
        body_field: Field of the match record that holds the bodies, ``[K]`` records a lane.
        command_fields: Members of a body that the engine reads as inputs in each period. They best stand side by side:
            without `SavingEngine` everything between the first and the last of them is logged.
    """

    body_field: str
    command_fields: tuple[str, ...]

    def __init__(self, game: Game, lanes: int, threads: int, **options: Any) -> None:
        """Makes the engine.

        Args:
            game: The rules; ``game.state_dtype`` has the layout of the bodies.
            lanes: N.
            threads: Threads that the user gave the simulation; the bits must not depend on it.
            **options: `Game.physics_options`.
        """
        ...

    def load(self, states: np.ndarray, lanes: np.ndarray) -> None:
        """Starts the bodies of ``lanes`` at the initial conditions in their records; writes all outputs.

        What the bodies did before must not matter, nor where an interrupt (Ctrl-C) has ended another call.
        """
        ...

    def advance(self, states: np.ndarray, lanes: np.ndarray) -> None:
        """Reads the inputs of ``lanes``, runs one period, writes all outputs."""
        ...

    def close(self) -> None:
        """Frees the engine."""
        ...


@runtime_checkable
class SavingEngine(Protocol):
    """The part of an engine that saves what it keeps outside the match records, exactly."""

    def save(self, lanes: np.ndarray) -> Saved:
        """Copies of what is kept of ``lanes``: arrays by name, the first axis in the order of ``lanes``.

        They are pickled with snapshots. Where there is no array to give, rows of dtype object hold anything.
        """
        ...

    def load_saved(self, saved: Saved, lanes: np.ndarray) -> None:
        """Takes back what `save` gave; the match records are restored already."""
        ...


@runtime_checkable
class DrawingEngine(Protocol):
    """The part of an engine that draws, for games with ``render="engine"``."""

    def render(self, states: np.ndarray, lane: int) -> np.ndarray:
        """Picture of one match as its record says, uint8 ``[H, W, 3]``, drawn without a display."""
        ...
