"""What a recorder of a simulation offers: see `palaestra.replay.Recorder`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from palaestra.core.simulation import Simulation


class RecorderProtocol(Protocol):
    """Receives all inputs of a simulation."""

    def before(self, sim: Simulation, which: np.ndarray | None) -> None:
        """Lanes ``which`` (bool ``[N]``) are about to start anew; None: a decision is about to be played as written."""
        ...

    def after(self, sim: Simulation) -> None:
        """It has happened. Not called where an action was refused."""
        ...
