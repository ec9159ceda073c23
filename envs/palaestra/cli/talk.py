"""A match of an agent that reads and writes words, in the terminal: for games whose default codec speaks text."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.run.simulation import Simulation


def talk(sim: Simulation, agents: Sequence[str], seed: int) -> Iterator[str]:
    """Plays one match by lines from the standard input; what is not understood is asked for again.

    Args:
        sim: One lane, whose other agents have players.
        agents: Who is asked, in this order in each decision.
        seed: Of the match.

    Yields:
        What to print: what an agent reads before it is asked, refusals, and how the match ended.
    """
    game = sim.game
    slots = {agent: game.agents.index(agent) for agent in agents}
    ios = {agent: AgentIO(sim, (slot,)) for agent, slot in slots.items()}
    sim.reset(seed=seed)
    score, team = 0.0, agents[0].rpartition("_")[0]
    while not (sim.terminated[0] or sim.truncated[0]):
        for agent, agent_io in ios.items():
            if not sim.acting[0, slots[agent]]:
                continue
            yield f"{agent} reads: {agent_io.observe_lane()}"
            refusal = "?"
            while refusal:
                if (line := _line(agent)) is None:
                    yield f"seed {seed}: not over after {int(sim.states['steps'][0])} decisions, score {score:+g}"
                    return
                refusal = _refusal(agent_io, line)
                if refusal:
                    yield refusal
        sim.step()
        score += float(sim.team_rewards(team)[0])
    for agent, agent_io in ios.items():
        yield f"{agent} reads: {agent_io.observe_lane()}"
    winner, reason = int(sim.info["winner"][0]), game.end_reason(int(sim.info["end_reason"][0]))
    who = f"{list(game.teams)[winner]} won ({reason})" if winner >= 0 else reason
    yield f"seed {seed}: {who} after {int(sim.states['steps'][0])} decisions, score {score:+g}"


def _line(agent: str) -> str | None:
    """The next line of the standard input without its end; None after the last."""
    if sys.stdin.isatty():
        print(f"{agent}> ", end="", flush=True)
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


def _refusal(agent_io: Any, line: str) -> str:
    """Takes an action in words; what is wrong with it, or an empty text."""
    if line not in agent_io.action_space:
        return f"{line!r} is not in {agent_io.action_space}"
    try:
        agent_io.write_one(line)
    except ValueError as error:
        return str(error)
    return ""
