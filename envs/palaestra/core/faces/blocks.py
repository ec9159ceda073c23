"""Where the rows of some slots are in a simulation: views of observations and actions, and their spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from palaestra.core.contract import spaces as spaces_of
from palaestra.core.contract.fields import Choice, Field, ObservationField, values_of
from palaestra.core.contract.game_parts import Role
from palaestra.core.run.buffers import observation_rows
from palaestra.core.run.simulation import Simulation

Form = Literal["flat", "dict"]


class Block:
    """Slots of one role: where their rows are.

    Attributes:
        role: The role.
        rows: The slots within the role.
        count: Their number.
        actions: View of their actions, ``[N, count]``, ``[N, count, K]`` or records ``[N, count]``.
        mixed: Whether an action is a record of choices and real numbers.
    """

    def __init__(self, sim: Simulation, role: Role, rows: list[int]) -> None:
        """Finds views of the rows.

        Raises:
            ValueError: The rows are not evenly spaced, so that no view has them.
        """
        step = rows[1] - rows[0] if len(rows) > 1 else 1
        if rows != list(range(rows[0], rows[-1] + 1, step)):
            team = role.agents[rows[0]].rpartition("_")[0]
            listed = ", ".join(map(str, rows))
            raise ValueError(f"{team}'s slots {listed} of the role {role.name} are not evenly spaced")
        self.role, self.rows, self.count = role, slice(rows[0], rows[-1] + 1, step), len(rows)
        self.actions = of_role(sim.actions, role)[:, self.rows]
        self.mixed = self.actions.dtype.names is not None

    def members(self, array: np.ndarray) -> np.ndarray:
        """The block's part of a role's array ``[N, A_role, ...]``: ``[N, count, ...]``, ``[N, ...]`` for one slot."""
        rows = array[:, self.rows]
        return rows[:, 0] if self.count == 1 else rows


def of_role(arrays: Any, role: Role) -> np.ndarray:
    """A role's array among those of a simulation, which has no dict where there is one role."""
    return arrays if isinstance(arrays, np.ndarray) else arrays[role.name]


def blocks_of(sim: Simulation, slots: tuple[int, ...]) -> list[Block]:
    """The slots by role."""
    found: dict[str, tuple[Role, list[int]]] = {}
    for slot in slots:
        role, index = sim.game.role_of(slot)
        found.setdefault(role.name, (role, []))[1].append(index)
    return [Block(sim, role, rows) for role, rows in found.values()]


def action_space(blocks: list[Block]) -> spaces.Space:
    """Space of the joint action: that of the role; of several roles one MultiDiscrete, or a Dict by role."""
    parts = {b.role.name: spaces_of.action_space(b.role.action, b.count) for b in blocks}
    if len(parts) == 1:
        return next(iter(parts.values()))
    if not choices_alone(blocks):
        return spaces.Dict(parts)
    return spaces.MultiDiscrete(choice_sizes(blocks))


def choice_sizes(blocks: Sequence[Block]) -> list[int]:
    """Alternatives of every choice of the slots: role after role, slot after slot, each in the order of its table."""
    choices = [(b.count, [f for f in b.role.action if isinstance(f, Choice)]) for b in blocks]
    return [c.n for count, own in choices for _ in range(count) for c in own for _ in range(c.size)]


def choices_alone(blocks: Sequence[Block]) -> bool:
    """Whether no action of the slots is a real number."""
    return all(isinstance(f, Choice) for b in blocks for f in b.role.action)


def observation_space(sim: Simulation, blocks: list[Block], form: Form) -> spaces.Space:
    """Space of what the slots of some blocks see together.

    Raises:
        ValueError: The fields have different dtypes and the form is ``"flat"``.
    """
    game = sim.game
    shared = [*game.team_observation, *game.lane_observation]
    if form == "flat":
        return _flat_space(game.name, blocks, shared)
    parts: dict[str, spaces.Space] = {
        b.role.name: spaces_of.dict_space(b.role.observation, None if b.count == 1 else b.count) for b in blocks
    }
    only: Any = parts[blocks[0].role.name]
    members = dict(only.spaces) if len(blocks) == 1 else parts
    return spaces.Dict({**members, **(spaces_of.dict_space(shared).spaces if shared else {})})


def _flat_space(name: str, blocks: list[Block], shared: list[ObservationField]) -> spaces.Box:
    boxes = [spaces_of.box_space([f for _ in range(b.count) for f in b.role.observation]) for b in blocks]
    boxes += [spaces_of.box_space(shared)] if shared else []
    if len({box.dtype for box in boxes}) > 1:
        raise ValueError(f'{name} has no flat observation: use observation="dict"')
    kind: Any = boxes[0].dtype.type
    return spaces.Box(np.concatenate([b.low for b in boxes]), np.concatenate([b.high for b in boxes]), dtype=kind)


def observation_views(sim: Simulation, memory: np.ndarray, blocks: list[Block], form: Form, team: int) -> Any:
    """Views of what the slots see: an array, a list of arrays to be joined, or a dict of arrays.

    Fields that are an array of the world are read-only views of it, the same for all lanes.
    """
    shared = _shared_views(sim, memory, team)
    if form == "dict":
        parts = {b.role.name: _field_views(memory, b) for b in blocks}
        members = parts[blocks[0].role.name] if len(blocks) == 1 else parts
        return {**members, **shared}
    n = len(memory)
    flat = [observation_rows(memory, b.role)[:, b.rows] for b in blocks]
    joined = [v.reshape(n, -1) for v in flat]  # views where the rows lie side by side
    views = [j if np.may_share_memory(j, memory) else v for j, v in zip(joined, flat, strict=True)]
    views += list(shared.values())
    return views[0] if len(views) == 1 and views[0].ndim == 2 else views


def _field_views(memory: np.ndarray, block: Block) -> dict[str, np.ndarray]:
    rows = block.members(memory[block.role.name])
    return {f.name: in_box(values_of(rows, f)) for f in block.role.observation}


def _shared_views(sim: Simulation, memory: Any, team: int) -> dict[str, np.ndarray]:
    game, n = sim.game, len(memory)
    views = {f.name: in_box(values_of(memory["team"][:, team], f)) for f in game.team_observation}
    for f in game.lane_observation:
        if isinstance(f, Field) and f.world is not None:
            views[f.name] = in_box(sim.world_observations[f.name][:n])
        else:
            views[f.name] = in_box(values_of(memory["lane"], f))
    return views


def in_box(values: np.ndarray) -> np.ndarray:
    """Values ``[N, ...]`` of a field in the shape of its Box: a number a lane is ``[N, 1]``."""
    return values[:, None] if values.ndim == 1 else values


def gather(views: Any, lanes: np.ndarray | None = None, copy: bool = True) -> Any:
    """What views show of all lanes, or of some (indices): arrays of the caller's own, or live ones if not ``copy``.

    Arrays of the world are never copied: what is returned is a new view, read-only and the same for all lanes.
    """
    if isinstance(views, list):
        chosen = views if lanes is None else [v[lanes] for v in views]
        return np.concatenate([v.reshape(len(v), -1) for v in chosen], axis=1)
    if isinstance(views, dict):
        return {name: gather(v, lanes, copy) for name, v in views.items()}
    if not views.flags.writeable:
        return views[: len(views if lanes is None else lanes)]
    if lanes is not None:
        return views[lanes]
    return views.copy() if copy else views


def lane_of(views: Any, lane: int, copy_world: bool = False) -> Any:
    """What views show of one lane, arrays of the caller's own; those of the world are new views unless copied too."""
    if isinstance(views, list):
        return np.concatenate([v[lane].reshape(-1) for v in views])
    if isinstance(views, dict):
        return {name: lane_of(v, lane, copy_world) for name, v in views.items()}
    row = views[lane]
    return np.array(row) if copy_world or views.flags.writeable else row.view()
