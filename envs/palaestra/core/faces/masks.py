"""Masks of some slots: dense ones side by side, lists of candidates by name, and what ``space.sample(mask)`` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.contract.fields import Choice
from palaestra.core.faces.blocks import Block, choices_alone, of_role
from palaestra.core.run.simulation import Simulation

Plan = Any
"""Where the entries of a flat mask go: a slice, a tuple of slices, None (nothing to mask), or a dict of plans."""


class Unmasked(spaces.Space[None]):
    """Holds None alone, the only mask that a Box can be sampled with."""

    @property
    def is_np_flattenable(self) -> bool:
        """None is no number."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> None:
        """None."""
        return None

    def contains(self, x: Any) -> bool:
        """Whether it is None."""
        return x is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unmasked)

    def __hash__(self) -> int:
        return hash(Unmasked)

    def __repr__(self) -> str:
        return "Unmasked()"


class Masks:
    """Views of what some slots may choose in all lanes.

    Attributes:
        dense: int8 ``[N, M_k]``: masks of the choices without candidates, slot after slot. Side by side they are the
            ``action_mask``.
        width: Their columns in all.
        candidates: Ids int32 of the choices with candidates, -1 beyond the list: a dict by name, ``[N, room]``, with
            axes before ``room`` for several slots and for a choice of several words; of dicts by role where the slots
            have several roles. Empty where no choice has candidates.
    """

    def __init__(self, legal: Any, blocks: Sequence[Block]) -> None:
        """Finds the views in ``legal`` (or ``final_legal``) of a simulation."""
        self._parts: list[tuple[Choice, np.ndarray]] = []  # choice after choice of slot after slot
        self.dense: list[np.ndarray] = []
        self._rows: list[np.ndarray] = []  # of the blocks whose choices are all dense, [N, slots, M_role]
        lists: dict[str, dict[str, np.ndarray]] = {}
        for block in blocks:
            rows = of_role(legal, block.role)[:, block.rows]
            self._rows += [rows] if rows.dtype.names is None else []
            if rows.dtype.names is None:
                self.dense += [rows[:, k] for k in range(block.count)]
            for k in range(block.count):
                self._take_slot(block, rows[:, k])
            named = [c for c in block.role.action if isinstance(c, Choice) and c.candidates is not None]
            if named:
                ids = {c.name: of_role(legal, block.role)[c.name]["ids"] for c in named}
                lists[block.role.name] = {name: block.members(array) for name, array in ids.items()}
        self.dense = [view for view in self.dense if view.shape[1]]
        self._rows = self._rows if len(self._rows) == len(blocks) else []
        self._first = self._first_lane()
        self.width = sum(view.shape[1] for view in self.dense)
        self.candidates: dict[str, Any] = lists if len(blocks) > 1 else next(iter(lists.values()), {})

    def _take_slot(self, block: Block, rows: np.ndarray) -> None:
        start = 0
        for c in (c for c in block.role.action if isinstance(c, Choice)):
            if rows.dtype.names is None:
                view = rows[:, start : start + c.size * c.n]
                start += c.size * c.n
            elif c.candidates is None:
                view = rows[c.name].reshape(len(rows), -1)
                self.dense.append(view)
            else:
                view = rows[c.name]["ids"]
            self._parts.append((c, view))

    def _first_lane(self) -> np.ndarray | None:
        """View int8 ``[M]`` of the first lane, the only one of a single match; None where its parts lie apart."""
        if len(self._rows) != 1:
            return None
        row = self._rows[0][0].reshape(-1)
        return row if np.may_share_memory(row, self._rows[0]) else None

    def flat(self, copy: bool = True) -> np.ndarray:
        """The ``action_mask`` of all lanes, int8 ``[N, M]``."""
        if len(self.dense) == 1:
            return self.dense[0].copy() if copy else self.dense[0]
        return np.concatenate(self.dense, axis=1)

    def flat_of(self, lane: int) -> np.ndarray:
        """A copy of one lane, int8 ``[M]``."""
        if lane == 0 and self._first is not None:  # the common case
            return self._first.copy()
        if len(self._rows) == 1:
            return self._rows[0][lane].flatten()
        return np.concatenate([view[lane] for view in self.dense])

    def whole(self, lanes: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Masks bool ``[N, sum of n]`` of all choices in their order, made from the lists where there are lists.

        Of some lanes alone where they are named; ``[N, 0]`` where the actions are real numbers.
        """
        parts = [_dense(c, view[lanes]) for c, view in self._parts]
        return np.concatenate(parts, axis=1) if parts else np.zeros((0, 0), np.bool_)


NO_CHOICES = "its actions are real numbers, or what a codec makes of them: there are no choices to mask"
"""Why a face has no ``action_masks``."""


def refuse_before_reset(sim: Simulation) -> None:
    """Masks belong to a match.

    Raises:
        RuntimeError: No match has been started.
    """
    if not sim.started:
        raise RuntimeError("action_masks before reset: call reset() first")


class OpenMasks:
    """Masks of a game that forbids nothing: all ones, and the no-op alone for a slot that is not asked.

    Attributes:
        legal: int8 ``[N, A_role, M]`` by role, as `Simulation.legal` of games that forbid something.
    """

    def __init__(self, sim: Simulation) -> None:
        """Allows everything."""
        self._sim = sim
        self.legal: dict[str, np.ndarray] = {}
        self._idle: dict[str, np.ndarray] = {}
        self._slots: dict[str, slice] = {}
        start = 0
        for role in sim.game.roles:
            noops = [np.arange(c.n) == c.noop for c in role.action if isinstance(c, Choice) for _ in range(c.size)]
            self._idle[role.name] = np.concatenate([np.zeros(0, np.int8), *noops]).astype(np.int8)
            shape = (sim.num_envs, len(role.agents), len(self._idle[role.name]))
            self.legal[role.name] = np.ones(shape, np.int8)
            self._slots[role.name] = slice(start, start + len(role.agents))
            start += len(role.agents)

    def update(self) -> None:
        """Writes the masks of this moment."""
        for name, slots in self._slots.items():
            self.legal[name][...] = 1
            idle = ~self._sim.acting[:, slots]
            if idle.any():
                self.legal[name][idle] = self._idle[name]


def _dense(choice: Choice, view: np.ndarray) -> np.ndarray:
    if choice.candidates is None:
        return view != 0
    ids = view.reshape(-1, choice.candidates)
    mask = np.zeros((len(ids), choice.n + 1), np.bool_)
    np.put_along_axis(mask, np.where(ids < 0, choice.n, ids), True, axis=1)  # the column behind takes the -1s
    return mask[:, : choice.n].reshape(len(view), -1)


def map_arrays(function: Callable[[np.ndarray], np.ndarray], tree: Any) -> Any:
    """Applies a function to the arrays of nested dicts."""
    if isinstance(tree, Mapping):
        return {name: map_arrays(function, part) for name, part in tree.items()}
    return function(tree)


def mask_plan(blocks: Sequence[Block]) -> Plan:
    """The plan for slots whose masks stand side by side, slot after slot, the choices of each in their order.

    It makes what ``sample(mask)`` of their action space takes: an array for a Discrete, a tuple of arrays, one a
    choice, for a MultiDiscrete, a dict of these for a Dict. A choice with candidates has no place in it: nothing masks
    it.
    """
    plans: dict[str, Plan] = {}
    side_by_side: list[slice] = []
    start = 0
    for block in blocks:
        slices: dict[str, list[slice]] = {f.name: [] for f in block.role.action}
        in_order = []
        for _ in range(block.count):
            for f in block.role.action:
                if isinstance(f, Choice) and f.candidates is None:
                    for _ in range(f.size):
                        in_order.append(slice(start, start + f.n))
                        slices[f.name].append(in_order[-1])
                        start += f.n
        by_field = {name: _leaf(found) for name, found in slices.items()}
        plans[block.role.name] = by_field if block.mixed else _leaf(in_order)
        side_by_side += in_order
    if len(plans) == 1:
        return next(iter(plans.values()))
    return _leaf(side_by_side) if choices_alone(blocks) else plans


def _leaf(slices: list[slice]) -> Plan:
    if not slices:
        return None
    return slices[0] if len(slices) == 1 else tuple(slices)


def mask_space(plan: Plan) -> spaces.Space:
    """Space of the masks that `split_masks` makes of one lane."""
    if isinstance(plan, Mapping):
        return spaces.Dict({name: mask_space(part) for name, part in plan.items()})
    if isinstance(plan, tuple):
        return spaces.Tuple([mask_space(part) for part in plan])
    return Unmasked() if plan is None else spaces.Box(0, 1, (plan.stop - plan.start,), np.int8)


def candidate_space(blocks: Sequence[Block]) -> spaces.Dict:
    """Space of `Masks.candidates` of one lane."""
    parts: dict[str, dict[str, spaces.Space]] = {}
    for b in blocks:
        for c in b.role.action:
            if isinstance(c, Choice) and c.candidates is not None:
                shape = (*((b.count,) if b.count > 1 else ()), *c.shape, c.candidates)
                parts.setdefault(b.role.name, {})[c.name] = spaces.Box(-1, c.n - 1, shape, np.int32)
    if len(blocks) == 1:
        return spaces.Dict(next(iter(parts.values())))
    return spaces.Dict({name: spaces.Dict(part) for name, part in parts.items()})


def mask_splitter(plan: Plan) -> Callable[[np.ndarray], Any] | None:
    """What brings the masks of one lane, int8 ``[M]``, into the shape of the plan, as views; None for one choice."""
    if isinstance(plan, slice):
        return None
    if isinstance(plan, tuple):
        return itemgetter(*plan)  # as `split_masks`, in half the time
    return lambda flat: split_masks(plan, flat)


def split_masks(plan: Plan, flat: np.ndarray) -> Any:
    """Masks of one lane (int8 ``[M]``) or of many (``[N, M]``) in the shape of the plan, as views."""
    if isinstance(plan, Mapping):
        return {name: split_masks(part, flat) for name, part in plan.items()}
    if isinstance(plan, tuple):
        return tuple(split_masks(part, flat) for part in plan)
    if plan is None:
        return None if flat.ndim == 1 else (None,) * len(flat)
    return flat[..., plan]
