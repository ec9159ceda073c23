"""What a recorder of a simulation offers: see `palaestra.replay.Recorder`."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np

Call = Literal[
    "seed", "reset", "step", "set_opponent", "set_parameters", "snapshot", "restore", "refresh", "load_states"
]
"""The calls of a simulation that decide how its matches go on."""


class RecorderProtocol(Protocol):
    """Receives the calls that decide how the matches of a simulation go on.

    Attributes:
        keep_outputs: Whether it reads `OpponentAssignment.outputs` before a step.
    """

    keep_outputs: bool

    def before(self, call: Call, which: np.ndarray | None = None, what: Any = None) -> None:
        """A call is about to happen; an exception refuses it, and nothing has changed.

        Args:
            call: Which one. ``"step"`` finds the actions in the simulation's buffers.
            which: Lanes that it is for, bool ``[N]``; None for all.
            what: ``set_opponent``: the name of the team or agent. ``set_parameters``: their names. ``snapshot`` and
                ``restore``: the `Snapshot`. Else None.
        """
        ...

    def after(self) -> None:
        """It has happened. Not called where it was refused or failed."""
        ...
