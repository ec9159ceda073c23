"""The players of a simulation as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palaestra.core.compile.batch_loop import CALLER, RANDOM
from palaestra.core.run.opponents import MIXTURES, player_name
from palaestra.core.run.simulation import Simulation

LONGEST_NAME = 80
MOST_STRENGTHS = 8


def outside_names(sim: Simulation) -> dict[str, list[str]]:
    """Names of the Python players by team, or by agent where they play some of a team; others are left out."""
    names = dict[str, list[str]]()
    for team, assignments in sim.opponent_assignments.items():
        if all(assignment.agents.any(axis=0).all() for assignment in assignments):
            names[team] = [_printable(player_name(assignment.opponent)) for assignment in assignments]
            continue
        for place, slot in enumerate(sim.game.teams[team]):
            own = [_printable(player_name(a.opponent)) for a in assignments if a.agents[:, place].any()]
            names |= {sim.game.agents[slot]: own} if own else {}
    return names


def player_texts(sim: Simulation, outside: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Players by team; agent by agent where a team has several.

    Args:
        sim: Its match records hold which scripts play.
        outside: What to call those whose actions come from outside, by team or agent.
    """
    texts = {}
    for team, slots in sim.game.teams.items():
        names = {slot: list(outside.get(sim.game.agents[slot], outside.get(team, []))) for slot in slots}
        by_agent = {sim.game.agents[slot]: _player_of(sim, slot, names[slot]) for slot in slots}
        one = len(set(by_agent.values())) == 1
        texts[team] = by_agent[sim.game.agents[slots[0]]] if one else "; ".join(f"{a} {p}" for a, p in by_agent.items())
    return texts


def _player_of(sim: Simulation, slot: int, outside: list[str]) -> str:
    numbers = {int(number) for number in sim.states["assigned_player"][:, slot]}
    strengths = sorted(set(sim.states["strength"][:, slot].tolist()))
    shown = [f"{strength:g}" for strength in strengths[:MOST_STRENGTHS]] + ["..."][: len(strengths) > MOST_STRENGTHS]
    grade = "" if strengths == [1.0] else ":" + "|".join(shown)
    names = [_player_name(sim, number) + grade for number in sorted(numbers - {CALLER})]
    if CALLER in numbers:
        names += outside or ["caller"]
    return ", ".join(dict.fromkeys(names))


def _player_name(sim: Simulation, number: int) -> str:
    return {RANDOM: "random", **{MIXTURES[name]: name for name in MIXTURES}}.get(number) or sim.game.scripts[number]


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name[:LONGEST_NAME])
