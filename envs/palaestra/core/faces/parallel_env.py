"""PettingZoo's ParallelEnv: one match, every agent in the user's hands, or those of the teams without an opponent."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from palaestra.core.contract.actions import PLAIN_INTEGERS, ActionError, write_choice
from palaestra.core.contract.game_parts import Role
from palaestra.core.contract.keywords import check_flag
from palaestra.core.faces.agent_io import (
    MASK_KEYS,
    NOBODY,
    RUNNING,
    AgentIO,
    ChoicesMode,
    MaskMode,
    where_masks_go,
)
from palaestra.core.faces.attributes import RuleAttributes
from palaestra.core.faces.blocks import Form
from palaestra.core.faces.reset_arguments import PETTINGZOO_TEST, start_matches
from palaestra.core.faces.screen import Screen, check_render_mode, render_modes
from palaestra.core.faces.shared_copies import SharedCopies
from palaestra.core.rng import check_seed
from palaestra.core.run.buffers import observation_rows
from palaestra.core.run.simulation import Simulation

MANY = 24
"""Agents from which on what is alike for all is done for all at once."""
_INTEGERS = frozenset(PLAIN_INTEGERS)


class GameParallelEnv(RuleAttributes, ParallelEnv):
    """One match of a `Simulation` with ``num_envs=1``.

    What an agent sees is its row of a copy that the step made for all agents of its role: nobody else's, and no later
    step changes it, but whoever keeps it keeps the whole copy in memory.

    A dead agent gets its last reward and flag in the step in which it dies, then leaves `agents`; a newcomer joins it.
    In the last step all remaining agents get the same flag. ``infos[agent]`` holds numbers (NumPy scalars and arrays)
    under the same keys in every step: ``team`` (its number), ``acting`` (whether its next action counts), ``winner`` (a
    team's number, -1 while there is none), ``end_reason`` (a number, 0 while the match goes on), the game's own fields,
    ``illegal`` where the game forbids actions, ``action_mask`` and ``candidates`` if asked for there.

    With ``fixed_agents=True`` `agents` are the `possible_agents` from the reset to the end of the match, for learners
    that want the same agents in every step: a dead agent, or one that has not arrived, sees what the game shows to it
    (zeros, as a rule), may do nothing (its actions are ignored and may be left out) and is paid like its batch row; no
    agent's flag is set before the match ends for all.

    Parameters of the rules are attributes that may be set, see `palaestra.core.faces.attributes.RuleAttributes`.

    Attributes:
        sim: The simulation.
        agent interfaces: What each agent sees and moves.
        teams: Agents by team.
        team_of: Team of each agent.
        team_names: Names of the numbers of teams, ``""`` for -1.
        end_reasons: Names of ``infos[agent]["end_reason"]`` by number, ``""`` for 0.
        fixed_agents: See above.
    """

    def __init__(
        self,
        sim: Simulation,
        *,
        observation: Form | None = None,
        mask: MaskMode = "auto",
        mask_keys: tuple[str, str] = MASK_KEYS,
        choices: ChoicesMode = "separate",
        codec: str | None = None,
        render_mode: str | None = None,
        fixed_agents: bool = False,
        name: str | None = None,
    ) -> None:
        """Wraps a simulation of one lane in ``autoreset_mode="off"``.

        Args:
            sim: The simulation; teams with an opponent and agents given to a player are not shown.
            observation: ``"flat"`` or ``"dict"``; the game's default if None.
            mask: ``"obs"`` gives ``{"observation", "action_mask", "candidates"}``, of the masks those that the game
                has; ``"info"`` puts them into the infos. A mask is what ``action_space(agent).sample`` takes: int8
                ``[n]`` for one choice, a tuple of these for several, a dict where the action is a Dict. The default is
                ``"obs"`` where the game forbids something, else None.
            mask_keys: Names of the observation and its mask with ``mask="obs"``.
            choices: ``"discrete"`` makes an agent's choices one Discrete.
            codec: One of the game's codecs, or ``"none"``; the game's default if None.
            render_mode: ``"rgb_array"``, ``"human"``, ``"ansi"`` or None, of these what the game has.
            fixed_agents: Whether `agents` stays the same during a match.
            name: ``metadata["name"]``.
        """
        check_flag("fixed_agents", fixed_agents)
        game = sim.game
        self.sim, self.fixed_agents = sim, fixed_agents
        self.metadata = {
            "name": name or game.name,
            "render_modes": render_modes(game),
            "render_fps": game.render_fps,
            "is_parallelizable": True,
            "zero_sum": game.zero_sum,
        }
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"], game.name)
        open_slots = {team: sim.open_slots(team) for team in game.teams}
        self.teams = {team: tuple(game.agents[s] for s in slots) for team, slots in open_slots.items() if slots}
        self._slot = {game.agents[s]: s for s in sorted(s for slots in open_slots.values() for s in slots)}
        self.team_of = {a: t for t, members in self.teams.items() for a in members}
        self.possible_agents = list(self._slot)
        self.agents: list[str] = []
        mask = where_masks_go(mask, "obs", game)
        self.agent_ios = {
            a: AgentIO(sim, (slot,), observation, mask, codec, choices, mask_keys) for a, slot in self._slot.items()
        }
        self.team_names, self.end_reasons = game.team_names, game.all_end_reasons
        self.observation_spaces = {a: p.observation_space for a, p in self.agent_ios.items()}
        self.action_spaces = {a: p.action_space for a, p in self.agent_ios.items()}
        self._screen = Screen(game)
        self._state_space: spaces.Box | None = None
        self._flags = [dict.fromkeys(self._slot, flag) for flag in (False, True)]
        self._columns: np.ndarray | None = None  # of the words of those present, if they are written together
        self._take_views()
        self._take_rules(sim)

    def _take_views(self) -> None:
        """Finds in the simulation's memory what every step reads and writes: many small matches are played here.

        Where all agents see plain rows, those of a role are copied together. An agent that makes one choice has one
        word, written without an array in between.
        """
        sim = self.sim
        agent_ios = self.agent_ios.values()
        self._plain_rows = all(agent_io.has_plain_rows for agent_io in agent_ios)
        self._role_rows = [observation_rows(sim.buffers.observations, r)[0] for r in self._plain_roles()]
        self._copies = SharedCopies(self.agent_ios)
        columns = {agent: sim.action_table.single_choice(slot) for agent, slot in self._slot.items()}
        fields = {a: agent_io.blocks[0].role.action[0] for a, agent_io in self.agent_ios.items()}
        self._one_word = {
            a: (c, fields[a]) for a, c in columns.items() if c is not None and not self.agent_ios[a].codec
        }
        self._words = sim.buffers.action_words[0]
        self._word_memory = memoryview(self._words)
        self._everybody = list(sim.game.agents)
        self._alive_row, self._acting_row = sim.alive[0], sim.acting[0]
        self._all_acting = bytes([1] * len(self._everybody))
        numbers = {team: np.int64(number) for number, team in enumerate(sim.game.teams)}
        running: dict[str, Any] = {"acting": np.True_, "winner": NOBODY, "end_reason": RUNNING}
        self._base_infos = {a: {"team": numbers[team], **running} for a, team in self.team_of.items()}
        self._alive_before = self._alive_row.tobytes()
        self._own_numbers = [(f.name, sim.info[f.name]) for f in sim.game.info if not f.shape]
        self._own_arrays = [(f.name, sim.info[f.name][0]) for f in sim.game.info if f.shape]
        self._illegal = sim.info["illegal"][0] if sim.legal is not None else None
        self._says_masks = any(agent_io.mask_mode == "info" for agent_io in agent_ios)
        self._tells = any(agent_io.tells for agent_io in agent_ios)
        self._base_is_all = not (sim.game.info or self._says_masks or self._illegal is not None or self._tells)

    def _plain_roles(self) -> tuple[Role, ...]:
        return self.sim.game.roles if self._plain_rows else ()

    def __getstate__(self) -> dict[str, Any]:
        """A copy of a view is no view: copies find the memory of their own simulation anew."""
        return {k: v for k, v in vars(self).items() if k not in _VIEWS}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """See `__getstate__`."""
        super().__setstate__(saved)
        self._take_views()

    @property
    def max_cycles(self) -> int:
        """Decisions until a match is truncated; may be set."""
        return int(self.sim.states["parameters"]["horizon"][0])

    @max_cycles.setter
    def max_cycles(self, value: int) -> None:
        self.sim.set_parameters(horizon=value)

    @property
    def state_space(self) -> spaces.Box:
        """Space of `state`."""
        if self._state_space is None:
            size = self.sim.buffers.state.shape[1]
            info = np.finfo(np.float32)
            self._state_space = spaces.Box(info.min, info.max, (size,), np.float32)
        return self._state_space

    def observation_space(self, agent: str) -> spaces.Space:
        """Space of an agent's observations, the same object each time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """Space of an agent's actions, the same object each time."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Starts a match; see `pettingzoo.ParallelEnv.reset`.

        Raises:
            ValueError: A wrong seed, or an option that is no parameter of the start of a match.
        """
        options = None if options == PETTINGZOO_TEST else options
        start_matches(self.sim, options, seed=None if seed is None else check_seed(seed))
        self.agents = self._present()
        if self.render_mode == "human":
            self.render()
        return self._observe(self.agents), self._infos(self.agents, False)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Plays one decision.

        Agents that are not asked now may be left out; actions of agents that left the match are ignored.

        Raises:
            ActionError: An action outside its space, one missing of an agent that is asked, or actions in no dict.
            RuntimeError: No match has been started.
            KeyError: An action of an agent that does not exist.
        """
        sim = self.sim
        if not self.agents:
            if not sim.started:
                raise RuntimeError("step before reset: call reset() first")
            return {}, {}, {}, {}, {}
        if type(actions) is not dict and not isinstance(actions, Mapping):  # the first says yes five times as fast
            raise ActionError(
                f"actions must be a dict {{agent: action}} of {', '.join(self.agents)}, got {type(actions).__name__}"
            )
        self._write(actions)
        sim.step()
        terminated, truncated = sim.terminated.item(0), sim.truncated.item(0)
        over = terminated or truncated
        seen = present = self.agents
        ends, cuts = self._flags[terminated].copy(), self._flags[truncated].copy()
        if not self.fixed_agents and self._alive_row.tobytes() != self._alive_before:
            before, left, slot = self._flags[False], sim.agent_terminated[0], self._slot
            present = self._present()
            seen = [*seen, *(a for a in present if a not in before)]
            ends = {a: terminated or (bool(left[slot[a]]) and not truncated) for a in seen}
            cuts = dict.fromkeys(seen, truncated)
        result: Any = (
            self._observe(seen),
            self._of_agents(seen, sim.rewards[0].tolist()),
            ends,
            cuts,
            self._infos(seen, over),
        )
        if over:
            self.agents = []
        elif present is not self.agents:
            self.agents = present
        if self.render_mode == "human":
            self.render()
        return result

    def _present(self) -> list[str]:
        self._alive_before = self._alive_row.tobytes()
        alive = self._alive_row.tolist()
        present = [a for a, slot in self._slot.items() if self.fixed_agents or alive[slot]]
        self._flags = [dict.fromkeys(present, flag) for flag in (False, True)]
        self._columns = None
        if len(present) >= MANY and self._one_word.keys() >= self._flags[False].keys():
            self._columns = np.array([self._one_word[a][0] for a in present])
        return present

    def _of_agents(self, agents: list[str], by_slot: Any) -> dict[str, Any]:
        """What stands in each agent's slot."""
        if agents == self.possible_agents and len(agents) == len(self.sim.game.agents):  # the common case
            return dict(
                zip(agents, by_slot, strict=False)
            )  # an array that is asked for more rows takes its time to say no
        slot = self._slot
        return {a: by_slot[slot[a]] for a in agents}

    def _write(self, actions: dict[str, Any]) -> None:
        agents, one_word, memory = self.agents, self._one_word, self._word_memory
        present = self._flags[False]
        if self.fixed_agents and not self._alive_row.all():
            slot = self._slot
            actions = {a: action for a, action in actions.items() if a not in slot or self._alive_row[slot[a]]}
        if self._columns is not None and list(actions) == agents and _INTEGERS.issuperset(map(type, actions.values())):
            with contextlib.suppress(OverflowError):  # of whom is said below
                self._words[self._columns] = np.fromiter(actions.values(), np.int64, len(agents))
                return
        for agent, action in actions.items():
            if agent not in present:
                if agent in self._slot:
                    continue
                raise KeyError(f"{agent!r} is no agent: possible_agents are {', '.join(self.possible_agents)}")
            if type(action) in PLAIN_INTEGERS and agent in one_word:
                column, choice = one_word[agent]
                try:
                    memory[column] = action
                except (OverflowError, ValueError):
                    write_choice(memory, column, action, choice)  # says what is wrong
            else:
                self.agent_ios[agent].write_one(action)
        if len(actions) < len(agents):
            missing = [a for a in agents if a not in actions and self._acting_row[self._slot[a]]]
            if missing:
                raise ActionError(f"no action for {', '.join(missing)}")

    def _observe(self, agents: list[str]) -> dict[str, Any]:
        """What these agents see, copies."""
        if not self._plain_rows:
            return self._copies.observe(agents)
        if len(self._role_rows) == 1:
            return self._of_agents(agents, self._role_rows[0].copy())
        return self._of_agents(agents, [row for block in self._role_rows for row in block.copy()])

    def _infos(self, agents: list[str], over: bool) -> dict[str, dict[str, Any]]:
        """Infos of these agents."""
        sim = self.sim
        base: Any = self._base_infos
        all_act = self._acting_row.tobytes() == self._all_acting
        if all_act and self._base_is_all and not over:  # the common case
            return {a: base[a].copy() for a in agents}
        common: dict[str, Any] = {name: value[0] for name, value in self._own_numbers}
        if over:
            row = sim.states["info"][0]
            common |= {"winner": row["winner"], "end_reason": row["end_reason"], "acting": np.False_}
        illegal = self._illegal
        if len(agents) < MANY:
            infos = {a: base[a] | common for a in agents}
        else:  # a copy takes half the time
            if illegal is not None:
                common["illegal"] = illegal.dtype.type(0)
            of_team = {team: base[members[0]] | common for team, members in self.teams.items()}
            infos = {a: of_team[self.team_of[a]].copy() for a in agents}
            illegal = None if illegal is None or not illegal.any() else list(illegal)
        if not (over or all_act):
            for a, info in infos.items():
                info["acting"] = self._acting_row[self._slot[a]]
        for name, value in self._own_arrays:
            for info in infos.values():
                info[name] = value.copy()
        if illegal is not None:
            for a, info in infos.items():
                info["illegal"] = illegal[self._slot[a]]
        if self._says_masks:
            for a, masks in self._copies.masks(agents).items():
                infos[a].update(masks)
        if self._tells:
            for a, info in infos.items():
                self.agent_ios[a].tell(info)
        return infos

    def state(self) -> np.ndarray:
        """Global state float32, for centralised critics."""
        return self.sim.state()[0].copy()

    def render(self) -> Any:
        """Picture (uint8 ``[H, W, 3]``) or text of the match as ``render_mode`` asks."""
        return self._screen.show(self.sim, self.render_mode)

    def close(self) -> None:
        """Closes the window and frees what the simulation holds; the next call takes it again."""
        self._screen.close()
        self.sim.suspend()


_VIEWS = (
    "_role_rows",
    "_copies",
    "_words",
    "_word_memory",
    "_alive_row",
    "_acting_row",
    "_own_numbers",
    "_own_arrays",
    "_illegal",
)
"""Attributes that are views of the simulation's memory."""
