"""Models without declared spaces: anything from arrays of observations to an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.core.run.opponents import player_name
from palaestra.players.choosing import Chance, as_choices, as_reals, choose
from palaestra.players.errors import first_line
from palaestra.players.views import TeamView


class ArrayModel:
    """A model whose output is read by its kind and shape; see `palaestra.players.model_player.Model`.

    Real numbers ``[rows, sum of alternatives]`` where the team makes choices are logits (or action values), integers
    ``[rows]`` or ``[rows, K]`` the choices themselves; where actions are real, ``[rows, K]`` are the actions.
    """

    spaces = ""

    def __init__(self, name: str, observation: Form | None, choices: ChoicesMode) -> None:
        """Keeps the options of the user."""
        self.name = name
        self.forms: tuple[Form | None, ...] = (observation,)
        self.choices: tuple[ChoicesMode, ...] = (choices,)
        self.outputs: Mapping[str, np.ndarray] = {}

    def output(self, rows: Any) -> Any:
        """The model's array for rows of observations."""
        raise NotImplementedError

    def refusal(self, view: TeamView) -> str:
        """See `Model`: tries the model with zeros."""
        rows = view.empty()
        try:
            given = self.output(rows)
            self._read(view, given, _count(rows))
        except Exception as error:  # whatever a model raises for an input of another shape
            shapes = {name: a.shape for name, a in rows.items()} if isinstance(rows, dict) else rows.shape
            return f"for observations {shapes}: {first_line(error)}"
        return ""

    def act(self, view: TeamView, rows: Any, masks: np.ndarray | None, chance: Chance | None) -> np.ndarray:
        """See `Model`."""
        given = self._read(view, self.output(rows), _count(rows))
        self.outputs = {"score": given} if view.sizes and given.dtype.kind == "f" else {}
        if not view.sizes or given.dtype.kind in "iu":
            if chance is not None:
                what = "integers" if view.sizes else "real numbers"
                raise ValueError(f"the model gives {what}, no distribution to draw from: deterministic=True")
            return given if view.sizes else as_reals(given, view.action_space)
        return as_choices(choose(given, masks, view.sizes, chance), view.action_space)

    def _read(self, view: TeamView, given: Any, count: int) -> np.ndarray:
        """The output for ``count`` rows: integers as in the space, logits ``[rows, M]`` or reals ``[rows, K]``.

        Raises:
            ValueError: Another kind or shape.
        """
        if isinstance(given, tuple | list | dict):
            raise ValueError(f"it gives a {type(given).__name__}: wrap it so that it gives the actions or logits alone")
        array = np.asarray(given)
        shape: tuple[int, ...] = view.action_space.shape or ()
        if not view.sizes:
            if array.dtype.kind in "iuf" and array.shape == (count, *shape):
                return array
            raise ValueError(f"it gives {array.dtype} {array.shape}, not real numbers {(count, *shape)}")
        if array.dtype.kind in "iu" and array.shape in ((count, *shape), (count, len(view.sizes))):
            return array.reshape(count, *shape)
        logits: list[tuple[int, ...]] = [(count, sum(view.sizes))]
        if len(set(view.sizes)) == 1:
            logits.append((count, len(view.sizes), view.sizes[0]))
        if array.dtype.kind == "f" and array.shape in logits:
            return array.reshape(count, -1)
        raise ValueError(
            f"it gives {array.dtype} {array.shape}, neither logits {logits[0]} nor integers {(count, *shape)}"
        )


def _count(rows: Any) -> int:
    """Number of rows of an array or of a dict of arrays."""
    return len(next(iter(rows.values()))) if isinstance(rows, dict) else len(rows)


class CallableModel(ArrayModel):
    """A callable on NumPy arrays."""

    def __init__(self, function: Callable[[Any], Any], observation: Form | None, choices: ChoicesMode) -> None:
        """Keeps it."""
        super().__init__(player_name(function), observation, choices)
        self.function = function

    def output(self, rows: Any) -> Any:
        """Calls it."""
        return self.function(rows)
