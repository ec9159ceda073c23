"""One space for agents of unlike roles: observations end with zeros, actions are as long as the longest.

Of several choices each has as many alternatives as its largest. A mask forbids the surplus alternatives; one that is
chosen all the same acts as the choice's ``noop``, as an illegal one does. Choices and real numbers behind a role's own
are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.faces.blocks import choice_sizes as choice_sizes_of
from palaestra.game import Choice


def common_observation(name: str, own: Sequence[spaces.Space]) -> spaces.Space:
    """The space of rows that see ``own``: the same, or a Box ``[size of the largest]`` that holds zeros behind each.

    Raises:
        ValueError: They cannot be padded; names the game ``name`` and gives what to change.
    """
    if all(space == own[0] for space in own):
        return own[0]
    boxes = [space for space in own if isinstance(space, spaces.Box)]
    if len(boxes) < len(own) or len({box.dtype for box in boxes}) > 1:
        raise ValueError(
            f"{name}: roles with different observations are padded only where each is one vector of the same dtype: "
            'give observation="flat", or choose a team'
        )
    size = max(box.low.size for box in boxes)
    low = np.min([_with_zeros(box.low, size) for box in boxes], axis=0)
    high = np.max([_with_zeros(box.high, size) for box in boxes], axis=0)
    kind: Any = boxes[0].dtype.type
    return spaces.Box(low, high, dtype=kind)


def common_action(name: str, own: Sequence[spaces.Space]) -> spaces.Space:
    """The space of rows that act in ``own``: the same, or one that is as large as the largest in each number.

    Raises:
        ValueError: They cannot be padded; names the game ``name`` and gives what to change.
    """
    if all(space == own[0] for space in own):
        return own[0]
    if all(isinstance(space, spaces.Box) for space in own):
        size = max(space.low.size for space in own)  # type: ignore[attr-defined]
        sides = [
            [np.pad(getattr(space, side), (0, size - space.low.size), constant_values=np.nan) for space in own]  # type: ignore[attr-defined]
            for side in ("low", "high")
        ]
        return spaces.Box(np.nanmin(sides[0], axis=0), np.nanmax(sides[1], axis=0), dtype=np.float32)
    sizes = [choice_sizes(space) for space in own]
    if not all(sizes):
        raise ValueError(
            f"{name}: actions of unlike roles are padded where all are choices or all are real numbers, not "
            f"{' and '.join(dict.fromkeys(type(space).__name__ for space in own))}: choose a team"
        )
    longest = max(map(len, sizes))
    largest = np.max([_with_zeros(np.array(n), longest) for n in sizes], axis=0)
    return spaces.Discrete(int(largest[0])) if longest == 1 else spaces.MultiDiscrete(largest)


def choice_sizes(space: spaces.Space) -> list[int]:
    """Numbers of alternatives of the choices of a space, empty where it is neither Discrete nor MultiDiscrete."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    return space.nvec.tolist() if isinstance(space, spaces.MultiDiscrete) else []


def _with_zeros(numbers: np.ndarray, size: int) -> np.ndarray:
    return np.pad(numbers, (0, size - numbers.size))


class ActionPadding:
    """What of the common action space of all rows is a role's own.

    Attributes:
        mask_width: Alternatives of all common choices, 0 where actions are real numbers.
    """

    def __init__(self, own: spaces.Space, common: spaces.Space, noops: Sequence[int]) -> None:
        """Compares the spaces; ``noops`` are the alternatives that surplus ones act as, one an own choice."""
        self.shape, self.size = common.shape or (), 0 if own.shape is None else int(np.prod(own.shape))
        own_sizes, sizes = choice_sizes(own), choice_sizes(common)
        self.mask_width = sum(sizes)
        self._own, self._common = np.array(own_sizes), np.array(sizes[: len(own_sizes)])
        self._noops = np.array(noops)
        starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, np.int64)
        self._template = np.zeros(self.mask_width, np.bool_)
        self._template[starts[len(own_sizes) :]] = True
        self._places = [start + i for start, n in zip(starts.tolist(), own_sizes, strict=False) for i in range(n)]

    def masks(self, own: np.ndarray) -> np.ndarray:
        """Masks of the common space, bool ``[N, count, M]``, from those of the role's own choices side by side."""
        masks = np.tile(self._template, (*own.shape[:2], 1))
        masks[:, :, self._places] = own
        return masks

    def own_actions(self, given: np.ndarray) -> np.ndarray:
        """The role's part of common actions ``[N, count, ...]``, surplus alternatives as noops.

        Raises:
            ActionError: Not in the shape of the common space, or choices that are no integers.
        """
        if given.shape[2:] != self.shape:
            raise ActionError(f"the action of a row must have shape {self.shape}, got {given.shape[2:]}")
        columns = given.reshape(*given.shape[:2], -1)[:, :, : self.size]
        if not self.mask_width:
            return columns
        if columns.dtype.kind not in "iu":
            raise ActionError(f"actions must be integers, got {columns.dtype}")
        return np.where((columns >= self._own) & (columns < self._common), self._noops, columns)


class Part:
    """Neighbouring rows of each lane that are one `AgentIO`: agents of one role, or a team as one.

    Attributes:
        io: What they see and move.
        at: Their places among the rows of a lane.
        count: Number of these.
        mask_width: Numbers in the mask of a row.
        padding: Of their actions, None where they have those of all rows.
    """

    def __init__(self, io: AgentIO, start: int, count: int, own: spaces.Space, common: spaces.Space) -> None:
        self.io, self.at, self.count = io, slice(start, start + count), count
        self.padding: ActionPadding | None = None
        self.mask_width = (int(io.joint.space.n) if io.joint else sum(choice_sizes_of(io.blocks))) // count
        if own != common:  # then a row is one agent
            noops = [f.noop for f in io.blocks[0].role.action if isinstance(f, Choice) for _ in range(f.size)]
            noops = [int(np.ravel_multi_index(noops, io.joint.sizes))] if io.joint else noops
            self.padding = ActionPadding(own, common, noops)
            self.mask_width = self.padding.mask_width

    def masks(self, final: bool) -> np.ndarray:
        """Masks bool ``[N, count, M]``, of the matches that just ended if ``final``."""
        own = self.io.action_masks(final)
        own = own.reshape(len(own), self.count, -1)
        return own if self.padding is None else self.padding.masks(own)

    def write(self, actions: Any) -> None:
        """Takes actions ``[N, A, ...]`` of all rows, or a dict of such."""
        if isinstance(actions, dict):
            self.io.write({name: array[:, self.at] for name, array in actions.items()})
            return
        own = actions[:, self.at]
        own = own if self.padding is None else self.padding.own_actions(own)
        self.io.write(own.reshape(len(own), -1))
