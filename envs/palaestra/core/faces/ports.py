"""A port is what one learner sees and moves of a simulation: some slots, as batches.

The faces differ in whom they give a port (a team, or each agent) and in how they wrap what comes out of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from palaestra.core import spaces as spaces_of
from palaestra.core.actions import ActionError
from palaestra.core.buffers import observation_rows
from palaestra.core.faces.masks import mask_plan, mask_space, shape_masks
from palaestra.core.fields import Choice, Continuous, Field, is_homogeneous
from palaestra.core.game import Codec, Game, Role
from palaestra.core.simulation import Arrays, Simulation

PLAIN_INTEGERS = (int, np.int64, np.int32)
"""Types of a single choice that need no array to be checked: no bool, none that an int64 cannot hold."""
ObservationMode = Literal["flat", "dict"]
MaskMode = Literal["info", "obs"] | None


class Block:
    """Slots of one role within a port: where their rows are.

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
        actions = sim.actions if isinstance(sim.actions, np.ndarray) else sim.actions[role.name]
        self.actions = actions[:, self.rows]
        self.mixed = actions.dtype.names is not None


class Port:
    """Observations, masks and actions of some slots as batches ``[N, ...]``.

    Attributes:
        observation_space: Space of one lane.
        action_space: Space of one lane.
    """

    def __init__(
        self,
        sim: Simulation,
        slots: tuple[int, ...],
        observation: ObservationMode = "flat",
        mask: MaskMode = None,
        codec: str | None = None,
    ) -> None:
        """Makes the spaces.

        Args:
            sim: The simulation.
            slots: Slots of the match, in their order.
            observation: ``"flat"`` (one Box) or ``"dict"`` (one Box a field).
            mask: ``"obs"`` wraps observations as ``{"observation", "action_mask"}``, the mask of a composite (Dict)
                action being what ``action_space.sample(mask)`` takes; ``"info"`` and None leave them.
            codec: Name of one of the game's codecs; single slots only.

        Raises:
            ValueError: The game cannot be seen in this way; says what can be asked for.
        """
        game = sim.game
        self.sim, self.slots, self.mode, self.mask_mode = sim, slots, observation, mask
        if observation not in ("flat", "dict"):
            raise ValueError(f'observation must be "flat" or "dict", got {observation!r}')
        if mask not in (None, "info", "obs"):
            raise ValueError(f'mask must be None, "info" or "obs", got {mask!r}')
        if mask == "obs" and game.legal is None:
            raise ValueError(f"{game.name} forbids nothing: it has no masks (mask=None)")
        self.team = int(game.team_index[slots[0]])
        self.codec = _codec(game, codec, slots)
        self._take_views()
        role = self.blocks[0].role
        if self.codec is not None:
            base = self.codec.observation_space(role)
            self.action_space = self.codec.action_space(role)
        else:
            base = self._observation_space()
            self.action_space = self._action_space()
        self.observation_space = base
        if mask == "obs":
            width = sum(v.shape[1] for v in self._mask_views or ())
            composite = isinstance(self.action_space, spaces.Dict)
            self._plan = mask_plan(self.blocks) if composite else slice(0, width)
            self.observation_space = spaces.Dict({"observation": base, "action_mask": mask_space(self._plan)})

    def _take_views(self) -> None:
        """Finds the slots' rows in the memory of the simulation."""
        self.blocks = _blocks(self.sim, self.slots)
        if self.codec is None:  # a codec reads the record itself
            self._views = self._observation_views(self.sim.buffers.observations)
            self._final_views = self._observation_views(self.sim.buffers.final_observations)
        self._mask_views = self._legal_views(self.sim.legal)
        self._final_mask_views = self._legal_views(self.sim.final_legal)

    def __getstate__(self) -> dict[str, Any]:
        """A copy of a view is no view: copies of a port find the rows of their own simulation anew."""
        return {k: v for k, v in vars(self).items() if k != "blocks" and not k.endswith("_views")}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """See `__getstate__`."""
        vars(self).update(saved)
        self._take_views()

    @property
    def sees_plain_rows(self) -> bool:
        """Whether an observation is one row of the simulation's memory and nothing else."""
        return self.codec is None and self.mask_mode != "obs" and isinstance(self._views, np.ndarray)

    # -- observations --------------------------------------------------------------------------------------------------

    def observe(self, copy: bool = True) -> Any:
        """Observations of all lanes: an array, or a dict of arrays; views of the simulation's memory if not copied."""
        seen = self._gather(self._views, copy)
        if self.mask_mode == "obs":
            return {"observation": seen, "action_mask": self._shaped(self.masks(copy))}
        return seen

    def observe_lane(self, lane: int = 0, final: bool = False) -> Any:
        """Observation of one lane, a copy; of the match that just ended if ``final``."""
        if self.codec is not None:
            memory = self.sim.buffers.final_observations if final else self.sim.buffers.observations
            block = self.blocks[0]
            row = memory[block.role.name][lane, block.rows][0]
            seen: Any = self.codec.encode(block.role, row)
        else:
            seen = _lane_of(self._final_views if final else self._views, lane)
        if self.mask_mode == "obs":
            return {"observation": seen, "action_mask": self._shaped(self.mask_lane(lane, final))}
        return seen

    def masks(self, copy: bool = True, final: bool = False) -> np.ndarray | None:
        """Masks int8 ``[N, M]`` of all choices of the slots side by side, or None if the game forbids nothing."""
        views = self._final_mask_views if final else self._mask_views
        if views is None:
            return None
        if len(views) == 1:
            return views[0].copy() if copy else views[0]
        return np.concatenate(views, axis=1)

    def mask_lane(self, lane: int = 0, final: bool = False) -> np.ndarray | None:
        """Mask int8 ``[M]`` of one lane, a copy; of the match that just ended if ``final``."""
        views = self._final_mask_views if final else self._mask_views
        return None if views is None else np.concatenate([v[lane] for v in views])

    def _shaped(self, masks: np.ndarray | None) -> Any:
        return None if masks is None else shape_masks(self._plan, masks)

    # -- actions -------------------------------------------------------------------------------------------------------

    def write(self, actions: Any) -> None:
        """Takes the actions of all lanes in the batched form of `action_space`.

        Raises:
            ActionError: Wrong shape or kind. Ranges are the simulation's business.
        """
        if self.codec is not None:
            if len(actions) != self.sim.num_envs:
                raise ActionError(f"there are {self.sim.num_envs} lanes and {len(actions)} actions")
            decoded = [self.codec.decode(self.blocks[0].role, a) for a in actions]
            if isinstance(decoded[0], Mapping):
                self._write_block(self.blocks[0], {name: np.array([d[name] for d in decoded]) for name in decoded[0]})
            else:
                self._write_block(self.blocks[0], np.array(decoded))
        elif len(self.blocks) > 1:
            given = _fields_of(actions, [b.role.name for b in self.blocks])
            for block in self.blocks:
                self._write_block(block, given[block.role.name])
        else:
            self._write_block(self.blocks[0], actions)

    def write_one(self, action: Any) -> None:
        """Takes the action of the only lane in the form of `action_space`."""
        if self.codec is not None:
            action = self.codec.decode(self.blocks[0].role, action)
        block = self.blocks[0]
        if len(self.blocks) > 1:
            given = _fields_of(action, [b.role.name for b in self.blocks])
            for b in self.blocks:
                self._write_block(b, _batched(given[b.role.name]))
        elif type(action) in PLAIN_INTEGERS and block.actions.shape == (1, 1) and not block.mixed:
            try:
                block.actions[0, 0] = action  # the common case, without the price of arrays
            except OverflowError as error:
                raise ActionError(f"{block.role.action[0].name} = {action} is far outside its space") from error
        else:
            self._write_block(block, _batched(action))

    def _write_block(self, block: Block, given: Any) -> None:
        if block.mixed:
            parts = _fields_of(given, [f.name for f in block.role.action])
            for f in block.role.action:
                target = block.actions[f.name]
                target[...] = _checked(parts[f.name], target.shape, f)
        else:
            block.actions[...] = _checked(given, block.actions.shape, block.role.action[0])

    # -- spaces and views ----------------------------------------------------------------------------------------------

    def _shared_fields(self) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
        return self.sim.game.team_observation, self.sim.game.lane_observation

    def _observation_space(self) -> spaces.Space:
        team, lane = self._shared_fields()
        parts: dict[str, spaces.Space] = {}
        for block in self.blocks:
            own = block.role.observation
            if self.mode == "flat":
                space: spaces.Space = spaces_of.box_space([f for _ in range(block.count) for f in own])
            elif block.count == 1:
                space = spaces_of.dict_space(own)
            else:
                space = spaces_of.dict_space(own, block.count)
            parts[block.role.name] = space
        shared = [*team, *lane]
        if self.mode == "flat":
            if shared:
                parts["shared"] = spaces_of.box_space(shared)
            boxes = [b for b in parts.values() if isinstance(b, spaces.Box)]
            if len({b.dtype for b in boxes}) > 1:
                raise ValueError(f'{self.sim.game.name} has no flat observation: use observation="dict"')
            kind: Any = boxes[0].dtype.type
            low, high = np.concatenate([b.low for b in boxes]), np.concatenate([b.high for b in boxes])
            return spaces.Box(low, high, dtype=kind)
        only: Any = parts[self.blocks[0].role.name]
        members = dict(only.spaces) if len(self.blocks) == 1 else parts
        members.update(spaces_of.dict_space(shared).spaces if shared else {})
        return spaces.Dict(members)

    def _observation_views(self, memory: np.ndarray) -> Any:
        """Mirrors `_observation_space`: an array, a list to be joined, or a dict of these."""
        rows: dict[str, Any] = {b.role.name: memory[b.role.name][:, b.rows] for b in self.blocks}
        shared: dict[str, np.ndarray] = {}
        team, lane = self._shared_fields()
        if team:
            shared.update({f.name: memory["team"][:, self.team][f.name] for f in team})
        if lane:
            shared.update({f.name: memory["lane"][f.name] for f in lane})
        n = len(memory)
        if self.mode == "flat":
            flat = [_flat_view(memory, self.sim.game, b) for b in self.blocks]
            joined = [v.reshape(n, -1) for v in flat]  # views where the rows lie side by side
            parts = [j if np.may_share_memory(j, memory) else v for j, v in zip(joined, flat, strict=True)]
            parts += [v.reshape(n, -1) if v.ndim != 2 else v for v in shared.values()]
            return parts[0] if len(parts) == 1 and parts[0].ndim == 2 else parts
        blocks = {
            b.role.name: {
                f.name: rows[b.role.name][f.name][:, 0] if b.count == 1 else rows[b.role.name][f.name]
                for f in b.role.observation
            }
            for b in self.blocks
        }
        base: dict[str, Any] = blocks[self.blocks[0].role.name] if len(self.blocks) == 1 else dict(blocks)
        return {**base, **shared}

    def _gather(self, views: Any, copy: bool) -> Any:
        if isinstance(views, np.ndarray):
            return views.copy() if copy else views
        if isinstance(views, list):
            return np.concatenate([v.reshape(len(v), -1) for v in views], axis=1)
        return {name: self._gather(v, copy) for name, v in views.items()}

    def _action_space(self) -> spaces.Space:
        parts = {b.role.name: spaces_of.action_space(b.role.action, b.count) for b in self.blocks}
        return next(iter(parts.values())) if len(parts) == 1 else spaces.Dict(parts)

    def _legal_views(self, legal: Arrays | None) -> list[np.ndarray] | None:
        if legal is None:
            return None
        views = []
        for b in self.blocks:
            rows = (legal if isinstance(legal, np.ndarray) else legal[b.role.name])[:, b.rows]
            views += [rows[:, k] for k in range(b.count)]
        return views


def controlled_slots(sim: Simulation, team: str) -> tuple[int, ...]:
    """Slots of the team that a Gymnasium user plays.

    Raises:
        ValueError: Opponents play all of them.
    """
    slots = sim.open_slots(team)
    if not slots:
        raise ValueError(f"all of {team} is played by opponents: nobody is left to control")
    return slots


def _blocks(sim: Simulation, slots: tuple[int, ...]) -> list[Block]:
    found: dict[str, tuple[Role, list[int]]] = {}
    for slot in slots:
        role, index = sim.game.role_of(slot)
        found.setdefault(role.name, (role, []))[1].append(index)
    return [Block(sim, role, rows) for role, rows in found.values()]


def _codec(game: Game, name: str | None, slots: tuple[int, ...]) -> Codec | None:
    if name is None:
        return None
    if name not in game.codecs:
        raise ValueError(f"{game.name} has no codec {name!r} (it has: {', '.join(game.codecs) or 'none'})")
    if len(slots) > 1:
        raise ValueError(f"codec={name!r} speaks for one agent, not for a team of {len(slots)}")
    return game.codecs[name]


def _flat_view(memory: np.ndarray, game: Game, block: Block) -> np.ndarray:
    """Rows of a block as ``[N, count, size]``, without a copy."""
    if not is_homogeneous(block.role.observation):
        raise ValueError(f'{game.name} has no flat observation for {block.role.name}: use observation="dict"')
    return observation_rows(memory, block.role)[:, block.rows]


def _lane_of(views: Any, lane: int) -> Any:
    if isinstance(views, np.ndarray):
        return np.array(views[lane])
    if isinstance(views, list):
        return np.concatenate([v[lane].reshape(-1) for v in views])
    return {name: _lane_of(v, lane) for name, v in views.items()}


def _batched(action: Any) -> Any:
    if isinstance(action, Mapping):
        return {name: _batched(a) for name, a in action.items()}
    return np.asarray(action)[None]


def _fields_of(given: Any, names: list[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or set(given) != set(names):
        raise ActionError(f"the action must be a dict with {', '.join(names)}, got {type(given).__name__}")
    return given


def _checked(given: Any, shape: tuple[int, ...], f: Choice | Continuous) -> np.ndarray:
    """The values in the memory's shape; a batch may come flattened as the spaces are.

    Raises:
        ActionError: Wrong size or kind; says what was expected.
    """
    array = np.asarray(given)
    discrete = isinstance(f, Choice)
    if array.dtype.kind not in ("iu" if discrete else "iuf"):
        raise ActionError(f"{f.name} must be {'integers' if discrete else 'real numbers'}, got {array.dtype}")
    if array.shape == shape:
        return array
    if array.ndim == 0 or array.shape[0] != shape[0] or array.size != math.prod(shape):
        size, n = math.prod(shape[1:]), shape[0]
        raise ActionError(f"{f.name} must have {size} numbers in each of {n} lanes, got shape {array.shape}")
    return array.reshape(shape)
