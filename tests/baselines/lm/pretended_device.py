"""A device that no machine has: its tensors hold their numbers on the CPU, and mixing them with others is an error.

It stands for a GPU in tests: code that forgets to move a tensor fails here as it would there. To torch it is called
``meta``, the one device of every build without a driver.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

NAME = "meta"


class OnDevice(torch.Tensor):
    """A tensor of the device; ``held`` has its numbers."""

    held: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # pyright: ignore[reportAssignmentType]

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> OnDevice:
        kept = {"strides": held.stride(), "storage_offset": held.storage_offset(), "dtype": held.dtype}
        return torch.Tensor._make_wrapper_subclass(cls, held.size(), device=torch.device(NAME), **kept)

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


class PretendedDevice(TorchDispatchMode):
    """While it is entered, the device is there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


def computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What an operation gives: on the device if its tensors are there or it is told so.

    Raises:
        RuntimeError: Its tensors are on two devices.
    """
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    there = [x for x in tensors if isinstance(x, OnDevice)]
    told, is_move = kwargs.get("device"), func._schema.name in ("aten::_to_copy", "aten::copy_")
    if there and not is_move and any(x.ndim for x in tensors if not isinstance(x, OnDevice)):
        raise RuntimeError(f"{func}: tensors are on two devices")
    stays = torch.device(told).type == NAME if told is not None else bool(there)
    if told is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    whole = {id(x.held): x for x in there}
    args, kwargs = tree_map(lambda x: x.held if isinstance(x, OnDevice) else x, (args, kwargs))
    found = func(*args, **kwargs)

    def placed(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        return whole[id(x)] if id(x) in whole else OnDevice(x) if stays else x

    return tree_map(placed, found)
