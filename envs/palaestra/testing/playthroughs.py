"""A match as text: what its agents see, what they do and what they get for it, decision by decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.contract.fields import values_of
from palaestra.core.faces.agent_io import AgentIO, speaks_text
from palaestra.game import Choice, ObservationField
from palaestra.testing.players import Player

UNIFORM_SEED = 4
"""Seed of a playthrough: one of the style "uniform", with new values in each decision (`players.STYLES`)."""
DECISIONS, LOOK_EVERY = 25, (5, 10, 15, 25)
"""Length of a playthrough, and how often it shows what is seen: as often as `MOST_LINES` allows."""
MOST_LINES = 200
SHOWN = 12
"""Numbers of an array that a playthrough writes out."""


def playthrough(id: str) -> str:
    """The first decisions of one match of an id, by a random player, as text of at most `MOST_LINES` lines.

    Args:
        id: Registered id.

    Raises:
        KeyError: No such id; suggests the near one.
    """
    game, _ = registry.make_game(id)
    sim = registry.make_batch(id, 1, autoreset_mode="off", compiled=False)
    player = Player(sim)
    talkers = _talkers(sim)
    sim.reset(seed=UNIFORM_SEED)
    how = "all say samples of their action spaces" if talkers else "all play uniformly at random among what is legal"
    lines = [f"{id}, seed {UNIFORM_SEED}, {how}", "", "start"]
    lines += (look := _look(sim, talkers))
    looks = (MOST_LINES - len(lines) - 4 * DECISIONS) // len(look)  # a decision has a line for what may happen besides
    every = next((n for n in LOOK_EVERY if DECISIONS // n <= looks), DECISIONS)
    for number in range(1, DECISIONS + 1):
        player.play(sim)
        asked = [bool(sim.alive[0, a] and sim.acting[0, a]) for a in range(len(game.agents))]
        decided = _said(talkers, asked) if talkers else _actions(sim, asked)
        sim.step()
        over = bool(sim.terminated[0] or sim.truncated[0])
        lines += [f"decision {number}", f"  {'; '.join(decided) or 'no agent is asked'}", f"  rewards  {_rewards(sim)}"]
        left = [a for k, a in enumerate(game.agents) if sim.agent_terminated[0, k]]
        lines += [f"  left     {', '.join(left)}"] if left else []
        if over or number % every == 0:
            lines += _look(sim, talkers)
        if over:
            flag = "terminated" if sim.terminated[0] else "truncated"
            winner = int(sim.info["winner"][0])
            name = list(game.teams)[winner] if winner >= 0 else "none"
            lines += ["", f"{flag}: {game.end_reason(int(sim.info['end_reason'][0]))}, winner {name}"]
            break
    sim.close()
    return "\n".join(lines) + "\n"


def _talkers(sim: Any) -> dict[str, AgentIO]:
    """The agents of a game whose default codec speaks text."""
    if not speaks_text(sim.game):
        return {}
    talkers = {agent: AgentIO(sim, (slot,)) for slot, agent in enumerate(sim.game.agents)}
    for slot, agent_io in enumerate(talkers.values()):
        agent_io.action_space.seed(UNIFORM_SEED + slot)
    return talkers


def _said(talkers: Mapping[str, AgentIO], asked: list[bool]) -> list[str]:
    """Lets the agents say samples of their action spaces. What is not understood is said, and a legal action played."""
    lines = []
    for (agent, agent_io), is_asked in zip(talkers.items(), asked, strict=True):
        if is_asked:
            text = agent_io.action_space.sample()
            lines.append(f"{agent} says {text!r}")
            try:
                agent_io.write_one(text)
            except ValueError:
                lines[-1] += " (not understood)"
    return lines


def _actions(sim: Any, asked: list[bool]) -> list[str]:
    lines = []
    slot = 0
    for role in sim.game.roles:
        rows = sim.buffers.action_records[role.name][0]
        for k, agent in enumerate(role.agents):
            if asked[slot] and sim.states["current_player"][0, slot] == -1:
                parts = [f"{f.name} {_action(f, rows[f.name][k])}" for f in role.action]
                lines.append(f"{agent} does {', '.join(parts)}")
            slot += 1
    return lines


def _action(f: Any, value: Any) -> str:
    if isinstance(f, Choice) and not f.shape:
        meaning = f.meanings[int(value) : int(value) + 1]
        return f"{int(value)} ({meaning[0]})" if meaning else str(int(value))
    return f"{_value(value)}{_unit(f.unit)}"


def _rewards(sim: Any) -> str:
    return ", ".join(f"{team} {_value(sim.team_rewards(team)[0])}" for team in sim.game.teams)


def _look(sim: Any, talkers: Mapping[str, AgentIO]) -> list[str]:
    """Observations of the first agent of each role, of the teams and of the lane, and the info; or in words."""
    game, memory = sim.game, sim.buffers.observations
    if talkers:
        seen = {agent: str(talkers[agent].observe_lane()) for agent in (role.agents[0] for role in game.roles)}
        return [line for agent, text in seen.items() for line in (f"  {agent} reads", *_indented(text))]
    lines = []
    for role in game.roles:
        lines += [f"  {role.agents[0]} sees", *_table(role.observation, memory[role.name][0, 0])]
        masks = [c for c in role.action if isinstance(c, Choice)] if game.legal is not None else []
        for c in masks:
            allowed = _allowed(c, sim.buffers.masks[role.name][c.name][0, 0])
            lines += [f"    {'may ' + name:<28} {_value(ids)}" for name, ids in allowed.items()]
    for number, team in enumerate(game.teams if game.team_observation else ()):
        lines += [f"  team {team} sees", *_table(game.team_observation, memory["team"][0, number])]
    if game.lane_observation:
        lines += ["  all agents see", *_table(game.lane_observation, memory["lane"][0])]
    if game.info:
        lines += ["  info", *(f"    {f.name:<28} {_value(sim.info[f.name][0])}{_unit(f.unit)}" for f in game.info)]
    return lines


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines() or [""]]


def _allowed(choice: Choice, mask: Any) -> dict[str, np.ndarray]:
    """The alternatives that a mask, or a list of candidates, allows; of many lists those with more than the no-op."""
    if choice.candidates is None:
        return {choice.name: np.flatnonzero(mask)}
    if not choice.shape:
        return {choice.name: mask["ids"][: mask["count"]]}
    lists = {f"{choice.name}{list(at)}": mask[at]["ids"][: mask[at]["count"]] for at in np.ndindex(choice.shape)}
    return {name: ids for name, ids in lists.items() if ids.tolist() != [choice.noop]}


def _table(fields: Sequence[ObservationField], row: Any) -> list[str]:
    shown = [f for f in fields if f.world is None]
    return [f"    {f.name:<28} {_value(values_of(np.asarray(row), f))}{_unit(f.unit)}" for f in shown]


def _unit(unit: str) -> str:
    return "" if unit in ("", "1") else f" x {unit}" if unit[0].isdigit() else f" {unit}"


def _value(value: Any) -> str:
    array = np.asarray(value)
    if array.ndim == 0:
        number = array.item()
        return str(int(number)) if isinstance(number, bool | int) else f"{number + 0.0:.6g}"
    flat = array.reshape(-1)
    text = ", ".join(_value(v) for v in flat[:SHOWN])
    rest = "" if flat.size <= SHOWN else f", ... ({flat.size} numbers, sum {_value(np.float64(flat.sum()))})"
    return f"[{text}{rest}]"
