"""An agent interface is what one learner sees and moves of a simulation: some slots, as batches.

The faces differ in the owner of an agent interface (a team, or each agent) and in how they wrap what comes out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from palaestra.core.contract.actions import (
    PLAIN_INTEGERS,
    ActionError,
    as_array,
    parts_by_role,
    write_actions,
    write_choice,
)
from palaestra.core.contract.fields import Choice
from palaestra.core.contract.game_parts import AgentView, Codec
from palaestra.core.contract.rules import Game
from palaestra.core.faces.blocks import (
    Form,
    action_space,
    blocks_of,
    choices_alone,
    gather,
    lane_of,
    observation_space,
    observation_views,
)
from palaestra.core.faces.joint_choices import JointChoices
from palaestra.core.faces.masks import (
    Masks,
    OpenMasks,
    candidate_space,
    map_arrays,
    mask_plan,
    mask_space,
    mask_splitter,
    refuse_before_reset,
    split_masks,
)
from palaestra.core.run.simulation import Simulation

MaskMode = Literal["info", "obs", "auto"] | None
"""Where masks go. ``"auto"`` is the default of a face where the game forbids something, else None."""
ChoicesMode = Literal["separate", "discrete"]
MASK_KEYS = ("observation", "action_mask")
NOBODY, RUNNING = np.int64(-1), np.int64(0)
"""``winner`` and ``end_reason`` in the infos of a match that goes on."""
NO_CODEC = "none"
"""The word for plain arrays where a game has a default codec."""
_PLURALS = {"encode_many": "observations", "info_many": "values"}
"""What the methods of a codec for many matches give."""


class AgentIO:
    """Observations, masks and actions of some slots as batches ``[N, ...]``.

    Attributes:
        sim: The simulation.
        slots: Slots of the match, in their order.
        form: ``"flat"`` or ``"dict"``.
        mask_mode: ``"info"``, ``"obs"`` or None.
        mask_keys: Names of the observation and of its mask with ``mask="obs"``.
        mask_plan: Where the entries of a flat mask go in the form that ``action_space.sample`` takes, see
            `palaestra.core.faces.masks.split_masks`.
        split: Brings a flat mask of one lane into that form, see `palaestra.core.faces.masks.mask_splitter`.
        joint: The choices as one Discrete, or None.
        codec: Translator, or None.
        blocks: The slots by role.
        observation_space: Space of one lane.
        action_space: Space of one lane.
    """

    def __init__(
        self,
        sim: Simulation,
        slots: tuple[int, ...],
        observation: Form | None = None,
        mask: MaskMode = None,
        codec: str | None = None,
        choices: ChoicesMode = "separate",
        mask_keys: tuple[str, str] = MASK_KEYS,
    ) -> None:
        """Makes the spaces.

        Args:
            sim: The simulation.
            slots: Slots of the match, in their order.
            observation: ``"flat"`` (one Box) or ``"dict"`` (one Box a field); None is the game's default.
            mask: ``"obs"`` wraps observations as ``{"observation", "action_mask", "candidates"}``, of the last two
                those that the game has: dense masks, what ``action_space.sample(mask)`` takes (int8 ``[n]`` for one
                choice, a tuple of these for several, a dict where the action is one), and lists of ids int32 by
                choice, padded with -1. ``"info"`` and None leave observations alone. Where the game forbids nothing
                masks are all ones, and the no-op alone for an agent that is not asked.
            codec: Name of one of the game's codecs, for single slots; ``"none"`` for arrays. None is the game's
                default, which a team of several slots goes without.
            choices: ``"discrete"`` makes all choices of the slots one Discrete and multiplies their masks out; lists of
                candidates become part of the mask. See `palaestra.core.faces.joint_choices.JointChoices`.
            mask_keys: Other names for the observation and its mask with ``mask="obs"``: RLlib reads
                ``("observations", "action_mask")``, Tianshou ``("obs", "mask")``.

        Raises:
            ValueError: The game cannot be seen in this way; says what can be asked for.
        """
        game = sim.game
        self.sim, self.slots, self.mask_mode = sim, slots, mask
        self.form: Form = _form(game, observation)
        if mask not in (None, "info", "obs"):
            raise ValueError(f'mask must be None, "info" or "obs", got {mask!r}')
        if choices not in ("separate", "discrete"):
            raise ValueError(f'choices must be "separate" or "discrete", got {choices!r}')
        self.mask_keys = check_mask_keys(mask_keys, mask)
        self.team = int(game.team_index[slots[0]])
        self.codec = _codec(game, codec, slots)
        if self.codec is not None and choices == "discrete":
            raise ValueError('choices="discrete" is for plain arrays: give codec="none" too')
        self.blocks = blocks_of(sim, slots)
        self.joint = JointChoices(game.name, self.blocks) if choices == "discrete" else None
        self._widths = [b.count * sum(f.size for f in b.role.action) for b in self.blocks]
        self._one_array = choices_alone(self.blocks)
        self.mask_plan = mask_plan(self.blocks) if self.joint is None else slice(0, int(self.joint.space.n))
        if self.codec is not None:
            role = self.blocks[0].role
            base, self.action_space = self.codec.observation_space(role), self.codec.action_space(role)
        else:
            base = observation_space(sim, self.blocks, self.form)
            self.action_space = action_space(self.blocks) if self.joint is None else self.joint.space
        self._take_views()
        self.observation_space = base
        if mask == "obs":
            self.observation_space = spaces.Dict({self.mask_keys[0]: base, **self._mask_spaces()})

    def _mask_spaces(self) -> dict[str, spaces.Space]:
        parts: dict[str, spaces.Space] = {}
        masks = self._masks_now()
        if self.joint is not None:
            return {self.mask_keys[1]: mask_space(self.mask_plan)}
        if masks.dense:
            parts[self.mask_keys[1]] = mask_space(self.mask_plan)
        if masks.candidates:
            parts["candidates"] = candidate_space(self.blocks)
        return parts

    def _take_views(self) -> None:
        """Finds the slots' rows in the memory of the simulation."""
        sim, b = self.sim, self.sim.buffers
        self.views: Any = None
        self.final_views: Any = None
        if self.codec is None:  # a codec reads the record itself
            self.views, self.final_views = (
                observation_views(sim, memory, self.blocks, self.form, self.team)
                for memory in (b.observations, b.final_observations)
            )
        self._open: OpenMasks | None = None  # made when masks are first asked for
        self._masks = Masks(sim.legal, self.blocks) if sim.legal is not None else None
        self._final_masks = Masks(sim.final_legal, self.blocks) if sim.final_legal is not None else None
        self._agent_views: dict[tuple[int | None, bool], AgentView] = {}
        self._first_view: Any = None if self.codec is None else self.agent_view()
        self._row = self.views[0] if self.has_plain_rows else None
        self.split = mask_splitter(self.mask_plan)
        self._masked_row = self._row_and_mask()
        one_word = len(self.slots) == 1 and self.joint is None
        self._column = sim.action_table.single_choice(self.slots[0]) if one_word else None
        self._words = memoryview(b.action_words[0])
        self._choices = self._row_of_choices()
        self._choice = self.blocks[0].role.action[0]

    def __getstate__(self) -> dict[str, Any]:
        """A copy of a view is no view: copies of an agent interface find the rows of their own simulation anew."""
        return {k: v for k, v in vars(self).items() if k not in _VIEWS}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """See `__getstate__`."""
        vars(self).update(saved)
        self.blocks = blocks_of(self.sim, self.slots)
        self._take_views()

    @property
    def has_plain_rows(self) -> bool:
        """Whether an observation is one row of the simulation's memory and nothing else."""
        return self.codec is None and self.mask_mode != "obs" and isinstance(self.views, np.ndarray)

    def _row_and_mask(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Views of the first lane's observation and mask, where ``mask="obs"`` hands out these two and nothing else."""
        masks, is_plain = self._masks, self.mask_mode == "obs" and isinstance(self.views, np.ndarray)
        if masks is None or not is_plain or self.joint is not None:
            return None
        return (self.views[0], masks.dense[0][0]) if len(masks.dense) == 1 and not masks.candidates else None

    def _row_of_choices(self) -> np.ndarray | None:
        """View int64 of the first lane's choices, where these are all that is moved and lie side by side."""
        actions = self.blocks[0].actions[0]
        if len(self.blocks) > 1 or self.joint is not None or actions.dtype != np.int64:
            return None
        row = actions.reshape(-1)
        return row if np.may_share_memory(row, actions) else None

    # -- observations --------------------------------------------------------------------------------------------------

    def observe(self, copy: bool = True) -> Any:
        """Observations of all lanes: an array, or a dict of arrays; views of the simulation's memory if not copied.

        Under a codec a list of N objects.
        """
        if self.codec is not None:
            return self._encoded(np.arange(self.sim.num_envs))
        seen = gather(self.views, copy=copy)
        if self.mask_mode != "obs":
            return seen
        masks = self.masks(copy)
        if "action_mask" in masks:
            masks["action_mask"] = split_masks(self.mask_plan, masks["action_mask"])
        return self._with_masks(seen, masks)

    def observe_one(self, copy_world: bool = False) -> Any:
        """Observation of the only lane, as `observe_lane` gives it."""
        if self._row is not None:
            return self._row.copy()
        if self.codec is not None and self.mask_mode != "obs":
            return self.codec.encode(self._first_view)
        if self._masked_row is not None:
            row, mask = self._masked_row[0].copy(), self._masked_row[1].copy()
            return {self.mask_keys[0]: row, self.mask_keys[1]: mask if self.split is None else self.split(mask)}
        return self.observe_lane(copy_world=copy_world)

    def observe_lane(self, lane: int = 0, final: bool = False, copy_world: bool = False) -> Any:
        """Observation of one lane, a copy; of the match that just ended if ``final``.

        Fields that are an array of the world are read-only views of it unless ``copy_world``.
        """
        if self.codec is not None:
            seen: Any = self.codec.encode(self.agent_view(lane, final))
        else:
            seen = lane_of(self.final_views if final else self.views, lane, copy_world)
        return self._with_masks(seen, self.masks_of(lane, final)) if self.mask_mode == "obs" else seen

    def final_rows(self, lanes: np.ndarray) -> Any:
        """Last observations of the matches that just ended in ``lanes`` (indices): copies, without masks."""
        return gather(self.final_views, lanes)

    def final_observations(self, lanes: np.ndarray) -> Any:
        """Likewise, as the face shows them: one object a lane."""
        if self.has_plain_rows:
            return self.final_rows(lanes)
        if self.codec is not None:
            return self._encoded(lanes, final=True)
        return [self.observe_lane(lane, final=True) for lane in lanes.tolist()]

    def _encoded(self, lanes: np.ndarray, final: bool = False) -> list[Any]:
        """What the codec makes of ``lanes`` (indices), with masks where observations have them."""
        encode_many = getattr(self.codec, "encode_many", None)
        if encode_many is None:
            return [self.observe_lane(lane, final) for lane in lanes.tolist()]
        encoded = self._one_each("encode_many", encode_many(self._view_of(lanes, final)), lanes)
        if self.mask_mode != "obs":
            return encoded
        seen_in = zip(encoded, lanes.tolist(), strict=True)
        return [self._with_masks(seen, self.masks_of(lane, final)) for seen, lane in seen_in]

    def _one_each(self, method: str, given: Iterable[Any], lanes: np.ndarray) -> list[Any]:
        """What a method of the codec gave.

        Raises:
            ValueError: Not one a lane.
        """
        given = list(given)
        if len(given) != len(lanes):
            what = f"{type(self.codec).__name__}.{method} gave {len(given)} {_PLURALS[method]}"
            raise ValueError(f"{what} of {len(lanes)} lanes")
        return given

    def agent_view(self, lane: int | None = 0, final: bool = False) -> AgentView:
        """All that a codec may read of the agent interface's one slot, as views that cannot be written to.

        Of all lanes at once, arrays ``[N]`` of records, if ``lane`` is None.
        Of the match that just ended if ``final``: its record is None then, the memory holds that of the next match.
        """
        view = self._agent_views.get((lane, final))
        if view is None:
            view = self._agent_views[lane, final] = self._view_at(slice(None) if lane is None else lane, final)
        return view

    def _view_of(self, lanes: np.ndarray, final: bool = False) -> AgentView:
        """Likewise of ``lanes`` (indices, rising): arrays of records, copies if these are not all lanes."""
        return self.agent_view(None, final) if len(lanes) == self.sim.num_envs else self._view_at(lanes, final)

    def _view_at(self, which: Any, final: bool) -> AgentView:
        game, b, block = self.sim.game, self.sim.buffers, self.blocks[0]
        seen, masks = (b.final_observations, b.final_masks) if final else (b.observations, b.masks)
        role, k, shared = block.role, block.rows.start, seen.dtype.names or ()
        return AgentView(
            role=role,
            slot=self.slots[0],
            row=_locked(seen[role.name], (which, k)),
            team=_locked(seen["team"], (which, self.team)) if "team" in shared else None,
            lane=_locked(seen["lane"], which) if "lane" in shared else None,
            world=game.world,
            mask=_locked(masks[role.name], (which, k)) if role.name in (masks.dtype.names or ()) else None,
            record=None if final else _locked(b.states, which),
        )

    @property
    def tells(self) -> bool:
        """Whether the codec adds to ``info``."""
        return getattr(self.codec, "info", None) is not None

    def tell(self, info: dict[str, Any], lane: int = 0) -> None:
        """Adds to the info of a lane what the codec says of it.

        Raises:
            ValueError: A name that the face has a meaning for.
        """
        codec: Any = self.codec
        told, own = codec.info(self.agent_view(lane)), len(info)
        info.update(told)
        if len(info) != own + len(told):  # in half the time of a comparison of the names
            raise self._taken(told.keys() & list(info)[:own])

    def tell_lanes(self, info: dict[str, Any], lanes: np.ndarray, final: bool = False) -> None:
        """Likewise for the lanes of a vector environment (bool ``[N]``), as arrays of objects ``[N]``.

        Of the matches that just ended if ``final``. Raises as `tell`.
        """
        codec: Any = self.codec
        told: dict[str, np.ndarray] = {}
        which, info_many = np.flatnonzero(lanes), getattr(codec, "info_many", None)
        if info_many is not None:
            for name, values in info_many(self._view_of(which, final)).items():
                told[name] = np.full(len(lanes), None, object)
                told[name][which] = np.fromiter(self._one_each("info_many", values, which), object, len(which))
        else:
            for lane in which.tolist():
                for name, value in codec.info(self.agent_view(lane, final)).items():
                    if name not in told:
                        told[name] = np.full(len(lanes), None, object)
                    told[name][lane] = value
        if taken := info.keys() & told.keys():
            raise self._taken(taken)
        for name, values in told.items():
            info[name], info[f"_{name}"] = values, lanes

    def _taken(self, names: Iterable[str]) -> ValueError:
        name = type(self.codec).__name__
        return ValueError(f"{name}.info has the names {sorted(names)}, which are the face's own")

    # -- masks ---------------------------------------------------------------------------------------------------------

    def masks(self, copy: bool = True, final: bool = False) -> dict[str, Any]:
        """What may be chosen in all lanes.

        Returns:
            ``"action_mask"`` (int8 ``[N, M]``, the dense choices of the slots side by side) and ``"candidates"`` (see
            `palaestra.core.faces.masks.Masks`), of these what the game has.
        """
        masks = self._masks_now(final)
        found: dict[str, Any] = {}
        if self.joint is not None:
            return {"action_mask": self.joint.masks(masks.whole())}
        if masks.dense:
            found["action_mask"] = masks.flat(copy)
        if masks.candidates:
            found["candidates"] = map_arrays(np.copy, masks.candidates) if copy else masks.candidates
        return found

    def masks_of(self, lane: int = 0, final: bool = False) -> dict[str, Any]:
        """What may be chosen in one lane, copies; in the match that just ended if ``final``.

        Returns:
            As `masks`, of one lane; the ``"action_mask"`` in the form that ``action_space.sample`` takes.
        """
        masks = self._masks_now(final)
        found: dict[str, Any] = {}
        if self.joint is not None:
            return {"action_mask": self.joint.masks(masks.whole(slice(lane, lane + 1)))[0]}
        if masks.dense:
            flat = masks.flat_of(lane)
            found["action_mask"] = flat if self.split is None else self.split(flat)
        if masks.candidates:
            found["candidates"] = map_arrays(lambda ids: ids[lane].copy(), masks.candidates)
        return found

    @property
    def has_choices(self) -> bool:
        """Whether actions are choices, among other numbers perhaps, so that masks are of use."""
        return self.codec is None and any(isinstance(f, Choice) for b in self.blocks for f in b.role.action)

    def action_masks(self, final: bool = False) -> np.ndarray:
        """Masks bool ``[N, sum of n]`` of all choices side by side, lists of candidates made dense.

        With ``choices="discrete"`` those of the joint choice, ``[N, P]``. Of the matches that just ended if ``final``,
        valid in their lanes.

        Raises:
            AttributeError: The actions are real numbers alone.
            RuntimeError: No match has been started, so that nothing is allowed yet.
        """
        refuse_before_reset(self.sim)
        whole = self._masks_now(final).whole()
        if whole.shape[1] == 0:
            raise AttributeError(f"{self.sim.game.name} has no choices that could be masked")
        return whole if self.joint is None else self.joint.masks(whole).astype(np.bool_)

    def _masks_now(self, final: bool = False) -> Masks:
        kept = self._final_masks if final else self._masks
        if kept is not None:
            return kept
        if self._open is None:
            self._open = OpenMasks(self.sim)
            self._open_masks = Masks(self._open.legal, self.blocks)
        self._open.update()
        return self._open_masks

    def _with_masks(self, seen: Any, masks: dict[str, Any]) -> dict[str, Any]:
        own_key, mask_key = self.mask_keys
        if "action_mask" in masks:
            masks = {mask_key: masks.pop("action_mask"), **masks}
        return {own_key: seen, **masks}

    # -- actions -------------------------------------------------------------------------------------------------------

    def write(self, actions: Any, which: np.ndarray | None = None) -> None:
        """Takes the actions of all lanes in the batched form of `action_space`.

        A codec decodes those of the lanes ``which`` (bool ``[N]``), all if None.

        Raises:
            ActionError: Wrong shape or kind. Ranges are the simulation's business.
            ValueError: The codec does not understand an action.
        """
        if self.codec is None:
            self._write(actions, slice(None))
            return
        if len(actions) != self.sim.num_envs:
            raise ActionError(f"there are {self.sim.num_envs} lanes and {len(actions)} actions")
        self.sim.note_turns(self.slots[0], actions, which)
        decode_many = getattr(self.codec, "decode_many", None)
        if which is None and decode_many is not None:
            self._write(decode_many(self.agent_view(None), actions), slice(None))
            return
        lanes = range(self.sim.num_envs) if which is None else np.flatnonzero(which).tolist()
        decoded = [self.codec.decode(self.agent_view(lane), actions[lane]) for lane in lanes]
        if which is None and _are_alike(decoded):  # in a tenth of the time
            self._write(np.array(decoded), slice(None))
            return
        for lane, action in zip(lanes, decoded, strict=True):
            self._write(_batched(action), slice(lane, lane + 1))

    def write_one(self, action: Any) -> None:
        """Takes the action of the only lane in the form of `action_space`; raises as `write` does."""
        if self.codec is not None:
            self.sim.note_turns(self.slots[0], [action])
            action = self.codec.decode(self._first_view, action)
        if self._column is not None and type(action) in PLAIN_INTEGERS:
            write_choice(self._words, self._column, action, self._choice)
            return
        row = self._choices
        if row is not None and type(action) is np.ndarray and action.shape == row.shape and action.dtype == row.dtype:
            row[...] = action  # as below, in a fifth of the time
        else:
            self._write(_batched(action), slice(None))

    def _write(self, given: Any, lanes: slice) -> None:
        if self.joint is not None:
            given = self.joint.split(given, len(self.blocks[0].actions[lanes]))
        if len(self.blocks) == 1:
            block = self.blocks[0]
            write_actions(block.role, block.actions[lanes], given, flat=True)
            return
        names = [b.role.name for b in self.blocks]
        parts = self._by_role(given, names) if self._one_array else parts_by_role(given, names)
        for block in self.blocks:
            write_actions(block.role, block.actions[lanes], parts[block.role.name], flat=True)

    def _by_role(self, given: Any, names: list[str]) -> dict[str, np.ndarray]:
        """The choices of several roles, side by side in ``given``, by role."""
        array, width = as_array(given, "actions"), sum(self._widths)
        if array.ndim != 2 or array.shape[1] != width:
            raise ActionError(f"action of {', '.join(names)} must have {width} numbers a lane, got shape {array.shape}")
        edges = np.cumsum([0, *self._widths])
        return {name: array[:, edges[k] : edges[k + 1]] for k, name in enumerate(names)}


_VIEWS = (
    "blocks",
    "_open",
    "_open_masks",
    "views",
    "final_views",
    "_masks",
    "_masked_row",
    "split",
    "_final_masks",
    "_agent_views",
    "_first_view",
    "_row",
    "_words",
    "_choices",
)
"""Attributes that are views of the simulation's memory."""


def where_masks_go(mask: MaskMode, default: Literal["info", "obs"], game: Game) -> MaskMode:
    """What ``mask`` means at a face whose default is ``default``."""
    if mask is None or (isinstance(mask, str) and mask in ("info", "obs")):
        return mask
    if isinstance(mask, str) and mask == "auto":
        return default if game.legal is not None else None
    raise ValueError(f'mask must be None, "info", "obs" or "auto", got {mask!r}')


def controlled_slots(sim: Simulation, team: str) -> tuple[int, ...]:
    """Slots of the team that a Gymnasium user plays.

    Raises:
        ValueError: Opponents play all of them.
    """
    slots = sim.open_slots(team)
    if not slots:
        raise ValueError(f"all of {team} is played by opponents: no agent is left to control")
    return slots


def check_mask_keys(keys: Any, mask: MaskMode) -> tuple[str, str]:
    """The names of an observation and of its mask.

    Raises:
        ValueError: Not two different names, or other names than `MASK_KEYS` where no observation has parts.
    """
    names = tuple(keys) if isinstance(keys, list | tuple) else ()
    if len(names) != 2 or not all(isinstance(name, str) for name in names) or len({*names, "candidates"}) < 3:
        raise ValueError(f"mask_keys must be two names, of the observation and of its mask, got {keys!r}")
    if names != MASK_KEYS and mask != "obs":
        raise ValueError(f'mask_keys={names} names the parts of an observation: it needs mask="obs"')
    return names


def _form(game: Game, observation: str | None) -> Form:
    if observation is None:  # the default may name a representation, with or without its form
        name, _, form = game.default_observation.partition(":")
        observation = name if name in ("flat", "dict") else form or "flat"
    if observation == "flat" or observation == "dict":
        return observation
    raise ValueError(f'observation must be "flat" or "dict", got {observation!r}')


def speaks_text(game: Game) -> bool:
    """Whether the agents of a game read and write texts, if nobody asks for arrays."""
    if game.default_codec is None:
        return False
    codec = game.codecs[game.default_codec]
    return all(isinstance(codec.action_space(role), spaces.Text) for role in game.roles)


def _codec(game: Game, name: str | None, slots: tuple[int, ...]) -> Codec | None:
    if name is None and len(slots) == 1:
        name = game.default_codec
    if name is None or name == NO_CODEC:
        return None
    if not isinstance(name, str) or name not in game.codecs:
        known = ", ".join(game.codecs) or "none"
        having = (word for word, shown in game.representations.items() if str(name) in shown.codecs)
        hint = "".join(f'; say observation="{word}"' for word in having)
        raise ValueError(f"codec: {game.name} has no codec {name!r} (it has: {known}){hint}")
    if len(slots) > 1:
        raise ValueError(f"codec={name!r} speaks for one agent, not for a team of {len(slots)}")
    return game.codecs[name]


def _locked(records: np.ndarray, at: Any) -> Any:
    """A record that cannot be written to, a view."""
    view = records.view()
    view.flags.writeable = False
    return view[at]


def _are_alike(actions: Sequence[Any]) -> bool:
    """Whether they are arrays of one type and shape."""
    first = actions[0]
    if type(first) is not np.ndarray:
        return False
    return all(type(a) is np.ndarray and a.dtype == first.dtype and a.shape == first.shape for a in actions)


def _batched(action: Any) -> Any:
    if type(action) is np.ndarray:  # the common case
        return action[None]
    if isinstance(action, Mapping):
        return {name: _batched(a) for name, a in action.items()}
    return as_array(action, "action")[None]
