"""Modules of PyTorch as players."""

from __future__ import annotations

from typing import Any

from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.game import Importing
from palaestra.players.array_models import ArrayModel

with Importing("torch"):
    import torch


class TorchModel(ArrayModel):
    """A module on float tensors; it is asked in evaluation mode."""

    def __init__(self, module: torch.nn.Module, observation: Form | None, choices: ChoicesMode) -> None:
        """Keeps the module."""
        super().__init__(type(module).__name__, observation, choices)
        self.module = module

    def output(self, rows: Any) -> Any:
        """The module's output as an array; tuples and other things as they are."""
        weight = next(self.module.parameters(), None)
        kind = weight.dtype if weight is not None and weight.is_floating_point() else torch.float32
        tensor = lambda a: torch.as_tensor(a, dtype=kind, device=None if weight is None else weight.device)  # noqa: E731
        given = {name: tensor(a) for name, a in rows.items()} if isinstance(rows, dict) else tensor(rows)
        training = [part for part in self.module.modules() if part.training]
        try:
            for part in training:
                part.training = False
            with torch.no_grad():
                out = self.module(given)
        finally:
            for part in training:
                part.training = True
        return out.detach().cpu().numpy() if isinstance(out, torch.Tensor) else out
