"""Groups of `palaestra.adapters.torchrl`: agents of one team and one role, as tensors ``[N, A, ...]``."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.contract import spaces as spaces_of
from palaestra.core.contract.actions import ActionError, write_actions
from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Block, Form, observation_views, of_role
from palaestra.core.faces.joint_choices import JointChoices
from palaestra.core.faces.masks import Masks
from palaestra.core.run.simulation import Simulation
from palaestra.game import Importing

with Importing("torchrl"):
    import torch
    from torchrl.data import Bounded, Categorical, Composite, MultiCategorical, TensorSpec, Unbounded


class Group:
    """Views of the rows of some agents.

    Attributes:
        name: Name of the group.
        team: Number of the team.
        slots: Slots of the agents.
        shape: ``(N, A)``.
        observation_space: Space of one agent's observations.
        action_space: Space of one agent's actions.
    """

    def __init__(
        self, sim: Simulation, team: int, block: Block, slots: list[int], name: str, form: Form, choices: ChoicesMode
    ) -> None:
        """Finds the views.

        Args:
            sim: The simulation.
            team: Number of the team.
            block: Rows of the agents among those of their role.
            slots: Slots of the agents.
            name: Name of the group.
            form: ``"flat"`` or ``"dict"``.
            choices: ``"separate"``, or ``"discrete"`` for the choices of an agent as one.

        Raises:
            ValueError: The fields have different dtypes and the form is ``"flat"``, or actions cannot be one choice.
        """
        game, role = sim.game, block.role
        self.team, self.name, self.slots, self._block = team, name, slots, block
        self.shape = (sim.num_envs, len(slots))
        which = slice(slots[0], slots[-1] + 1, slots[1] - slots[0] if len(slots) > 1 else 1)
        self._rewards, self._acting = sim.rewards[:, which, None], sim.acting[:, which]
        shared = [*game.team_observation, *game.lane_observation]
        fields = [*role.observation, *shared]
        self.observation_space = spaces_of.box_space(fields) if form == "flat" else spaces_of.dict_space(fields)
        self._shared = {f.name for f in shared}
        self._seen: Any = observation_views(sim, sim.buffers.observations, [block], form, team)
        self.action_space = spaces_of.action_space(role.action)
        self._joint = JointChoices(game.name, [Block(sim, role, [0])]) if choices == "discrete" else None
        if self._joint is not None:
            self.action_space = self._joint.space
        self._take_masks(sim)

    def _take_masks(self, sim: Simulation) -> None:
        """Finds the masks bool ``[N, A, M]`` of games that forbid something."""
        self._masks: Callable[[], np.ndarray] | None = None
        masks = Masks(sim.legal, [self._block]) if sim.legal is not None else None
        if masks is not None and masks.candidates:
            self._masks = lambda: masks.whole().reshape(*self.shape, -1)
        elif masks is not None and masks.dense:
            rows = of_role(sim.legal, self._block.role)[:, self._block.rows]
            self._masks = lambda: rows != 0

    # -- what is seen --------------------------------------------------------------------------------------------------

    def read(self, paid: bool) -> dict[str, Any]:
        """Copies of the rows' entries; of the rewards too if ``paid``."""
        found: dict[str, Any] = {"observation": self._observe(), "mask": torch.from_numpy(self._acting.copy())}
        if self._masks is not None:
            found["action_mask"] = torch.from_numpy(self._joint_masks(self._masks()))
        if paid:
            found["reward"] = torch.from_numpy(self._rewards.copy())
        return found

    def _observe(self) -> Any:
        if isinstance(self._seen, dict):
            return {name: self._members(array, name in self._shared) for name, array in self._seen.items()}
        own, *shared = self._seen if isinstance(self._seen, list) else [self._seen]
        rows = torch.from_numpy(own.reshape(*self.shape, -1).copy())
        if shared:
            parts = [self._members(array.reshape(len(array), -1), True) for array in shared]
            rows = torch.cat([rows, *parts], -1)
        return rows

    def _members(self, array: np.ndarray, is_shared: bool) -> torch.Tensor:
        """A field ``[N, A, ...]``, expanded over the agents where they share it, over the lanes where these do."""
        n, count = self.shape
        tensor = torch.from_numpy(array[: 1 if array.strides[0] == 0 else n].copy())
        if is_shared or count == 1:
            tensor = tensor.unsqueeze(1)
        if tensor.ndim == 2:
            tensor = tensor.unsqueeze(2)
        return tensor.expand(n, count, *tensor.shape[2:])

    def _joint_masks(self, masks: np.ndarray) -> np.ndarray:
        """Masks ``[N, A, M]``, multiplied out where the choices are one."""
        if self._joint is None:
            return masks
        return (self._joint.masks(masks.reshape(-1, masks.shape[-1])) != 0).reshape(*self.shape, -1)

    # -- what is done --------------------------------------------------------------------------------------------------

    def write(self, actions: Any) -> None:
        """Takes the actions of all agents.

        Raises:
            ActionError: Wrong shape or kind, or no joint choice. Other ranges are the simulation's business.
        """
        if isinstance(self.action_space, spaces.Dict):
            given: Any = {name: actions.get(name).cpu().numpy() for name in self.action_space}
        else:
            given = actions.cpu().numpy()
            given = given if self._joint is None else self._choices_of(given, self._joint.table)
        write_actions(self._block.role, self._block.actions, given, flat=True)

    def _choices_of(self, numbers: np.ndarray, table: np.ndarray) -> np.ndarray:
        """The choices behind the joint ones."""
        wrong = np.argwhere((numbers < 0) | (numbers >= len(table)))
        if len(wrong):
            lane, k = wrong[0]
            agent = self._block.role.agents[self._block.rows][k]
            raise ActionError(
                f"lane {lane}, {agent}: joint choice = {numbers[lane, k]} is not an integer in [0, {len(table)})"
            )
        return table[numbers]

    # -- specs ---------------------------------------------------------------------------------------------------------

    def observation_spec(self) -> Composite:
        """Spec of what `read` gives, rewards left aside."""
        members: dict[str, Any] = {
            "observation": _spec(self.observation_space, self.shape),
            "mask": flags(self.shape),
        }
        if self._masks is not None:
            width = self._joint_masks(self._masks()).shape[-1]
            members["action_mask"] = flags((*self.shape, width))
        return Composite(members, shape=self.shape)

    def action_spec(self) -> Composite:
        """Spec of what `write` takes."""
        return Composite({"action": _spec(self.action_space, self.shape)}, shape=self.shape)

    def reward_spec(self) -> Composite:
        """Spec of the rewards."""
        return Composite({"reward": unbounded(self._rewards)}, shape=self.shape)


def unbounded(array: np.ndarray) -> Unbounded:
    """Spec of tensors like the array, without bounds."""
    return Unbounded(array.shape, dtype=torch.from_numpy(array[:0].copy()).dtype)


def flags(shape: tuple[int, ...]) -> Categorical:
    """Spec of bools."""
    return Categorical(2, shape, dtype=torch.bool)


def _spec(space: Any, shape: tuple[int, int]) -> TensorSpec:
    """Spec of ``shape`` values of a space; numbers get an axis of their own."""
    if isinstance(space, spaces.Dict):
        return Composite({name: _spec(member, shape) for name, member in space.items()}, shape=shape)
    if isinstance(space, spaces.Discrete):
        return Categorical(int(space.n), shape, dtype=torch.int64)
    if isinstance(space, spaces.MultiDiscrete):
        return MultiCategorical(space.nvec.tolist(), (*shape, len(space.nvec)), dtype=torch.int64)
    low, high = (torch.from_numpy(np.atleast_1d(bound)) for bound in (space.low, space.high))
    size = (*shape, *low.shape)
    if not np.isfinite(space.low).all() or not np.isfinite(space.high).all():
        return Unbounded(size, dtype=low.dtype)
    return Bounded(low.expand(size), high.expand(size), size, dtype=low.dtype)
