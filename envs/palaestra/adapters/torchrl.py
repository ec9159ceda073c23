"""TorchRL's EnvBase on a simulation: N matches are one environment of batch size ``[N]``.

    from palaestra.adapters.torchrl import TorchRLEnv

    env = TorchRLEnv("palaestra/TeamTag-v0", 512)  # self-play; opponents={"blue": "random"} plays blue
    data = env.rollout(100, break_when_any_done=False)

A group is the agents of a team that have no opponent; where these have several roles, those of one role
(``"agent_speaker"``). ``env.group_map`` names the agents of each. With A agents in a group the keys are

======================================  ==============================================================================
``(group, "observation")``              ``[N, A, size]``; with ``observation="dict"`` a dict of fields ``[N, A, ...]``
``(group, "action")``                   int64 ``[N, A]`` (one choice) or ``[N, A, K]`` (several), float32 ``[N, A, K]``
                                        (real numbers), a dict by name where an agent has both
``(group, "action_mask")``              bool ``[N, A, M]``, the choices side by side, in games that forbid something
``(group, "mask")``                     bool ``[N, A]``, the action counts now: the agent is alive and asked
``(group, "reward")``                   float ``[N, A, 1]``; the dead earn their team's reward until the match ends
``"state"``                             float32 ``[N, S]``, the global state for centralised critics
``("info", name)``                      ``winner`` (number of a team, -1 for none), ``end_reason``, the game's own
``"done", "terminated", "truncated"``   bool ``[N, 1]``, of the match; a finished match waits for its (partial) reset
======================================  ==============================================================================

Tensors are copies: nothing that the simulation does later changes them. An illegal choice is replaced by the game's
no-op. Agents that are dead or not asked are only offered the no-op, and their actions are ignored.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form, blocks_of
from palaestra.core.run.simulation import Simulation
from palaestra.game import Importing

with Importing(
    "torchrl",
    "palaestra.adapters.torchrl needs TorchRL, which is not installed: pip install torchrl tensordict",
):
    import torch
    from tensordict import TensorDict, TensorDictBase
    from torchrl.data import Composite
    from torchrl.envs import EnvBase

from palaestra.adapters.torchrl_groups import Group, flags, unbounded


class TorchRLEnv(EnvBase):
    """N matches as one TorchRL environment; see the module for its keys.

    Attributes:
        sim: The simulation.
        group_map: Names of the agents of each group, in the order of the agent axis.
        team_of_group: Name of the team of each group.
    """

    def __init__(
        self,
        sim: Simulation | str,
        num_envs: int | None = None,
        *,
        observation: str | None = None,
        choices: ChoicesMode = "separate",
        state: bool = True,
        device: Any = "cpu",
        **keywords: Any,
    ) -> None:
        """Wraps a simulation or makes one.

        Args:
            sim: A simulation in ``autoreset_mode="off"``, or an id.
            num_envs: Number of lanes N, for an id only; 1 if None.
            observation: ``"flat"`` or ``"dict"``, or for an id one of the game's representations; None is the game's
                default.
            choices: ``"separate"``, or ``"discrete"`` to make the choices of an agent one and multiply their masks out.
            state: Whether there is a global state.
            device: Where the tensors go; the simulation itself runs on the CPU.
            **keywords: For an id: as for `palaestra.make_batch` (``opponents``, ``threads``, parameters, ...).

        Raises:
            ValueError: The simulation cannot be seen in this way; the message gives what to change.
            TypeError: Keywords that go with an id only.
        """
        if choices not in ("separate", "discrete"):
            raise ValueError(f'choices must be "separate" or "discrete", got {choices!r}')
        if isinstance(sim, str) and observation is None:
            observation = registry.row(sim).kwargs.get("observation")
        made = _simulation(sim, num_envs, observation, keywords)
        super().__init__(device=device, batch_size=(made.num_envs,))
        self.sim = made
        self._choices: ChoicesMode = choices
        self._has_state = state
        self._form = made.game.shown_as(observation)[1]
        self._take_views()
        self.group_map = {g.name: [made.game.agents[slot] for slot in g.slots] for g in self._groups}
        self.team_of_group = {g.name: list(made.game.teams)[g.team] for g in self._groups}
        self._make_specs()

    def _take_views(self) -> None:
        """Finds in the simulation's memory what every step reads and writes."""
        sim = self.sim
        self._groups = _groups(sim, self._form, self._choices)
        self._info = {name: a for name, a in sim.info.items() if name != "illegal" or sim.legal is not None}

    def __getstate__(self) -> dict[str, Any]:
        """A copy of a view is no view: copies find the rows of their own simulation anew."""
        return {k: v for k, v in vars(self).items() if k not in ("_groups", "_info")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """See `__getstate__`."""
        super().__setstate__(state)
        self._take_views()

    def _make_specs(self) -> None:
        shape, device = self.batch_size, self.device
        seen: dict[str, Any] = {g.name: g.observation_spec() for g in self._groups}
        seen["info"] = Composite({name: unbounded(_column(a)) for name, a in self._info.items()}, shape=shape)
        if self._has_state:
            seen["state"] = unbounded(self.sim.buffers.state)
        ends = {name: flags((*shape, 1)) for name in ("done", "terminated", "truncated")}
        self.observation_spec = Composite(seen, shape=shape).to(device)
        self.action_spec = Composite({g.name: g.action_spec() for g in self._groups}, shape=shape).to(device)
        self.reward_spec = Composite({g.name: g.reward_spec() for g in self._groups}, shape=shape).to(device)
        self.done_spec = Composite(ends, shape=shape).to(device)

    # -- TorchRL's methods---------------------------------------------------------------------------------------------

    def _set_seed(self, seed: int | None) -> None:
        """Gives lane i the stream ``seed + i`` from its next draw on; None leaves the streams as they are."""
        if seed is not None:
            self.sim.seed(seed)

    def _reset(self, tensordict: TensorDictBase | None = None, **keywords: Any) -> TensorDictBase:
        """Starts matches in all lanes, or where ``"_reset"`` is set.

        Raises:
            ValueError: A keyword, of which there are none; seeds are given by ``set_seed``.
        """
        if keywords:
            raise ValueError(f"reset: unknown {', '.join(keywords)}; for a seed call set_seed(seed) before reset()")
        which = tensordict.get("_reset", None) if tensordict is not None else None
        self.sim.reset(None if which is None else which.reshape(-1).cpu().numpy())
        return self._read(paid=False)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Plays one decision.

        Raises:
            ActionError: An action outside its space; names lane and agent. No match has moved.
        """
        for group in self._groups:
            group.write(tensordict.get((group.name, "action")))
        self.sim.step()
        return self._read(paid=True)

    def _read(self, paid: bool) -> TensorDict:
        sim, shape, device = self.sim, self.batch_size, self.device
        found: dict[str, Any] = {g.name: TensorDict(g.read(paid), g.shape, device=device) for g in self._groups}
        info = {name: torch.from_numpy(_column(array).copy()) for name, array in self._info.items()}
        found["info"] = TensorDict(info, shape, device=device)
        if self._has_state:
            found["state"] = torch.from_numpy(sim.state().copy())
        found["terminated"] = torch.from_numpy(sim.terminated[:, None].copy())
        found["truncated"] = torch.from_numpy(sim.truncated[:, None].copy())
        found["done"] = found["terminated"] | found["truncated"]
        return TensorDict(found, shape, device=device)

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Frees the simulation; may be called twice."""
        self.is_closed = True
        self.sim.close()


def _simulation(
    sim: Simulation | str, num_envs: int | None, observation: str | None, keywords: dict[str, Any]
) -> Simulation:
    """A simulation that was made already, or that of an id."""
    if isinstance(sim, str):
        keywords |= {"observation": observation} if observation is not None else {}
        sim = registry.make_batch(sim, 1 if num_envs is None else num_envs, **{"autoreset_mode": "off", **keywords})
    elif given := [*keywords, *(["num_envs"] if num_envs is not None else [])]:
        raise TypeError(f"{', '.join(given)}: only for an id; a simulation has them already")
    made: Any = sim
    if made.autoreset_mode != "off":
        raise ValueError(f'TorchRL resets by itself: use autoreset_mode="off", not {made.autoreset_mode!r}')
    return made


def _groups(sim: Simulation, form: Form, choices: ChoicesMode) -> list[Group]:
    groups = []
    for number, team in enumerate(sim.game.teams):
        slots = sim.open_slots(team)
        blocks = blocks_of(sim, slots)
        for block in blocks:
            members = [slot for slot in slots if sim.game.role_of(slot)[0] is block.role]
            name = team if len(blocks) == 1 else f"{team}_{block.role.name}"
            groups.append(Group(sim, number, block, members, name, form, choices))
    if not groups:
        raise ValueError(f"every team of {sim.game.name} is played by an opponent: no agent is left to control")
    return groups


def _column(array: np.ndarray) -> np.ndarray:
    """Numbers get an axis of their own, as TorchRL wants it."""
    return array[:, None] if array.ndim == 1 else array
