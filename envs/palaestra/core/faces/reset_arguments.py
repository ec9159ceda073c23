"""Validation of ``seed=`` and ``options=`` of ``reset`` and ``step``: one rule and one message for all faces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from palaestra.core.contract.keywords import picked_lanes
from palaestra.core.run.simulation import Simulation

PETTINGZOO_TEST = {"options": 1}
"""What the tests of PettingZoo give to every environment as ``options``: the PettingZoo faces let it pass."""


def check_options(sim: Simulation, options: Any, known: tuple[str, ...] = (), call: str = "reset") -> Mapping[str, Any]:
    """The ``options`` of a reset or a step, a dict also where None was given.

    Args:
        sim: The simulation.
        options: What the user gave.
        known: Keys that the face has a meaning for.
        call: ``"reset"`` or ``"step"``, for messages.

    Raises:
        ValueError: No dict, or a key without a meaning; names it and says what to write instead.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ValueError(f"{call}: options must be a dict or None, got {options!r}")
    for key in options:
        if key in known:
            continue
        if key in sim.parameters:
            raise ValueError(
                f"{call}: {key!r} is no option but a parameter of the rules: give {key}= to make, or call "
                f"sim.set_parameters({key}=...) of the unwrapped environment before reset"
            )
        if key == "reset_mask" and call == "reset":
            raise ValueError("reset: 'reset_mask' is an option of gymnasium.make_vec alone, whose lanes can wait")
        raise ValueError(f"{call}: unknown option {key!r}; known here: {', '.join(map(repr, known)) or 'none'}")
    return options


def start_matches(
    sim: Simulation, options: Any, known: tuple[str, ...] = (), mask: np.ndarray | None = None, seed: Any = None
) -> None:
    """Starts matches with ``options`` of ``reset``: parameters that say ``at_start``, for these matches alone.

    Args:
        sim: The simulation.
        options: What the user gave. A value is one number or word, or an array of one a lane.
        known: Keys that the face has a meaning for; it has dealt with them.
        mask: Lanes that start, bool ``[N]``; all if None.
        seed: As of `seed_some`.

    Raises:
        ValueError: As of `check_options`, or a value that the parameter cannot have. No match has started.
    """
    own = tuple(p.name for p in sim.game.parameters if p.at_start)
    given = {name: v for name, v in check_options(sim, options, (*known, *own)).items() if name not in known}
    if not given:
        sim.reset(mask, seed=seed_some(sim, seed))
        return
    lanes = picked_lanes(mask, sim.num_envs)
    kept = {name: sim.states["next_parameters"][name].copy() for name in given}
    sim.set_parameters(mask, **{name: _of_lanes(value, lanes, sim.num_envs) for name, value in given.items()})
    try:
        sim.reset(mask, seed=seed_some(sim, seed))
    finally:
        sim.set_parameters(**kept)


def _of_lanes(value: Any, lanes: slice | np.ndarray, num_envs: int) -> Any:
    """The values of the lanes that start, of one value or one a lane of all."""
    return np.asarray(value)[lanes] if np.shape(value) == (num_envs,) else value


def seed_some(sim: Simulation, seed: Any) -> Any:
    """What `Simulation.reset` takes of a ``seed`` that may be a list in which some lanes have None.

    Such lanes go on with their streams; the others are seeded at once, and nothing is left for the reset.

    Raises:
        ValueError: What `palaestra.core.rng.lane_seeds` refuses.
    """
    if not isinstance(seed, list | tuple) or None not in seed:
        return seed
    sim.seed([0 if s is None else s for s in seed], np.array([s is not None for s in seed]))
    return None
