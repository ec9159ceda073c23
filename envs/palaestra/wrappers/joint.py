"""Joint spaces: observations and actions of several agents as those of one, and the inverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

Kind = Literal["own", "discrete", "multi", "box", "dict"]


class Joint:
    """The members of one team as one agent.

    A single member keeps its own spaces. Observations of equal Boxes are stacked (``[members, ...]``), others are a
    Dict by agent. Actions are one MultiDiscrete (choices) or one flat Box (real numbers), member after member, else a
    Dict by agent. Where every member observes ``{"observation", "action_mask"}``, so does the team, and its mask is
    what ``action_space.sample(mask)`` takes. Where a member observes lists of ``"candidates"``, the team's observation
    is a Dict of the members' own by agent, masks and lists among them.

    Attributes:
        members: Names, in their order.
        masked: Whether the team's observation carries a joint mask.
        listed: Whether members observe lists of candidates.
        observation_space: Of the team.
        action_space: Of the team.
    """

    def __init__(
        self, members: Sequence[str], observations: Mapping[str, spaces.Space], actions: Mapping[str, spaces.Space]
    ) -> None:
        """Joins the spaces of the members."""
        self.members = tuple(members)
        self._seen = [observations[m] for m in members]
        self._actions: list[Any] = [actions[m] for m in members]
        self.masked = all(_is_masked(s) for s in self._seen)
        self.listed = any(isinstance(s, spaces.Dict) and {"observation", "candidates"} <= set(s) for s in self._seen)
        bare: list[Any] = [s["observation"] if self.masked else s for s in self._seen]  # type: ignore[index]
        self._stacked = len(bare) > 1 and all(isinstance(s, spaces.Box) and _alike(s, bare[0]) for s in bare)
        if len(bare) == 1:
            joined: spaces.Space = bare[0]
        elif self._stacked:
            low, high = np.stack([s.low for s in bare]), np.stack([s.high for s in bare])
            joined = spaces.Box(low, high, dtype=bare[0].dtype)
        else:
            joined = spaces.Dict(dict(zip(self.members, bare, strict=True)))
        self._kind = _kind(self._actions)
        self.action_space = self._action_space()
        self.observation_space = joined
        if self.masked:
            self.observation_space = spaces.Dict({"observation": joined, "action_mask": self._mask_space()})

    def observe(self, seen: Mapping[str, Any]) -> Any:
        """The members' observations as the team's; members that have left show zeros and have one choice."""
        rows = [seen[m] if m in seen else blank(space) for m, space in zip(self.members, self._seen, strict=True)]
        bare = [row["observation"] for row in rows] if self.masked else rows
        if len(bare) == 1:
            joined: Any = bare[0]
        elif self._stacked:
            joined = np.stack(bare)
        else:
            joined = dict(zip(self.members, bare, strict=True))
        if not self.masked:
            return joined
        masks = [
            row["action_mask"] if m in seen else _first_alone(row["action_mask"], action)
            for m, row, action in zip(self.members, rows, self._actions, strict=True)
        ]
        return {"observation": joined, "action_mask": self._join_masks(masks)}

    def split(self, action: Any) -> dict[str, Any]:
        """The team's action as the members' actions."""
        if self._kind == "own":
            return {self.members[0]: action}
        if self._kind == "dict":
            return {m: action[m] for m in self.members}
        flat, parts, start = np.asarray(action), {}, 0
        if flat.shape != self.action_space.shape:
            size = self.action_space.shape[0]  # type: ignore[index]
            raise ValueError(f"the action of {', '.join(self.members)} has {size} numbers, got shape {flat.shape}")
        for member, space in zip(self.members, self._actions, strict=True):
            size = 1 if self._kind == "discrete" else int(np.prod(space.shape))
            own = flat[start : start + size]
            parts[member] = own[0] if self._kind == "discrete" else own.reshape(space.shape)
            start += size
        return parts

    def _action_space(self) -> spaces.Space:
        own = self._actions
        if self._kind == "own":
            return own[0]
        if self._kind == "discrete":
            return spaces.MultiDiscrete([int(s.n) for s in own], start=[int(s.start) for s in own])
        if self._kind == "multi":
            return spaces.MultiDiscrete(
                np.concatenate([s.nvec.ravel() for s in own]), start=np.concatenate([s.start.ravel() for s in own])
            )
        if self._kind == "box":
            low, high = (np.concatenate([getattr(s, side).ravel() for s in own]) for side in ("low", "high"))
            return spaces.Box(low, high, dtype=own[0].dtype)
        return spaces.Dict(dict(zip(self.members, own, strict=True)))

    def _mask_space(self) -> spaces.Space:
        own: list[Any] = [s["action_mask"] for s in self._seen]  # type: ignore[index]
        if self._kind == "own":
            return own[0]
        if self._kind == "dict":
            return spaces.Dict(dict(zip(self.members, own, strict=True)))
        sizes = self.action_space.nvec  # type: ignore[attr-defined]
        return spaces.Tuple([spaces.Box(0, 1, (int(n),), np.int8) for n in sizes])

    def _join_masks(self, masks: list[Any]) -> Any:
        if self._kind == "own":
            return masks[0]
        if self._kind == "dict":
            return dict(zip(self.members, masks, strict=True))
        flat = np.concatenate([np.concatenate(m) if isinstance(m, tuple) else m for m in masks]).astype(np.int8)
        edges = np.cumsum(self.action_space.nvec)[:-1]  # type: ignore[attr-defined]
        return tuple(np.split(flat, edges))


def blank(space: spaces.Space) -> Any:
    """The value of a space that is nearest to zero."""
    if isinstance(space, spaces.Dict):
        return {name: blank(part) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(blank(part) for part in space.spaces)
    if isinstance(space, spaces.Box):
        return np.array(np.clip(np.zeros(space.shape), space.low, space.high), space.dtype)
    if isinstance(space, spaces.Discrete):
        return space.start
    if isinstance(space, spaces.MultiDiscrete):
        return space.start.copy()
    return space.sample()


def flat_mask(mask: Any) -> np.ndarray | None:
    """A team's mask as one row, int8 ``[M]``; None where its actions are a Dict."""
    if isinstance(mask, tuple):
        return np.concatenate(mask)
    return mask if isinstance(mask, np.ndarray) else None


def _is_masked(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Dict) and set(space.spaces) == {"observation", "action_mask"}


def _alike(a: spaces.Space, b: spaces.Space) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype


def _kind(actions: Sequence[spaces.Space]) -> Kind:
    if len(actions) == 1:
        return "own"
    kinds: tuple[tuple[Kind, type], ...] = (
        ("discrete", spaces.Discrete),
        ("multi", spaces.MultiDiscrete),
        ("box", spaces.Box),
    )
    for kind, cls in kinds:
        if all(isinstance(s, cls) for s in actions) and (kind != "box" or len({s.dtype for s in actions}) == 1):
            return kind
    return "dict"


def _first_alone(mask: Any, action: Any) -> Any:
    """A mask, all zeros, that leaves the first alternative of each choice."""
    if isinstance(mask, Mapping):
        return {name: _first_alone(part, action[name]) for name, part in mask.items()}
    if isinstance(mask, tuple):
        return tuple(_first_alone(part, None) for part in mask)
    if mask is None:
        return None
    mask = np.array(mask)
    sizes = action.nvec.ravel() if isinstance(action, spaces.MultiDiscrete) else [len(mask)]
    mask[np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)] = 1
    return mask
