"""One walk of a ParallelEnv through matches of several styles; each promise about its dicts is a check of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from palaestra.testing.drawn import Draw
from palaestra.testing.drivers import ParallelDriver
from palaestra.testing.harness import require
from palaestra.testing.players import STYLES
from palaestra.testing.subject import SECONDS, Subject

PARTS = ("observations", "rewards", "terminations", "truncations", "infos")


@dataclass
class ParallelReport:
    """What the walk found.

    Attributes:
        violations: First message by promise.
        decisions: Decisions played.
        departures: Agents that left a running match.
        draw: Numbers that were drawn for it.
    """

    draw: Draw
    violations: dict[str, str] = field(default_factory=dict)
    decisions: int = 0
    departures: int = 0


@dataclass
class Moment:
    """One decision.

    Attributes:
        face: The ParallelEnv.
        before: Its agents before the decision.
        left: Agents that have left the running match before.
        keys: Keys of the infos by agent, as they were first seen.
        result: The five dicts; after a reset two.
        place: For messages.
    """

    face: Any
    before: list[str]
    left: set[str]
    keys: dict[str, list[str]]
    result: tuple[dict[str, Any], ...]
    place: str

    @property
    def present(self) -> list[str]:
        """Agents alive in the match record, in the order of possible_agents."""
        slot = {a: k for k, a in enumerate(self.face.sim.game.agents)}
        return [a for a in self.face.possible_agents if self.face.sim.states["alive"][0, slot[a]]]


def parallel_walk(subject: Subject) -> ParallelReport:
    """The walk of this subject; played when first asked for."""
    if "parallel walk" not in subject.memory:
        found = ParallelReport(Draw(subject.seed, subject.id, "parallel walk"))
        seed = found.draw.seed()
        short = {"horizon": found.draw.integer("horizon", 2, 9)}
        for number in range(len(STYLES) + 1):
            options = short if number == len(STYLES) else {}
            driver = ParallelDriver(subject.parallel(**options), seed - seed % len(STYLES) + number % len(STYLES))
            _walk(subject, driver, found)
        subject.memory["parallel walk"] = found
    return subject.memory["parallel walk"]


def _walk(subject: Subject, driver: ParallelDriver, found: ParallelReport) -> None:
    face, left, keys = driver.face, set(), {}
    moment = Moment(face, [], left, keys, driver.start(), "ParallelEnv, reset")
    _look(moment, found)
    for number in subject.rounds(20, 100, 1000, 0.25 * SECONDS[subject.level]):
        before = list(face.agents)
        result = driver.play()
        if len(result) == 2:
            left.clear()
            before = []
        _look(Moment(face, before, left, keys, result, f"ParallelEnv, decision {number}"), found)
        if len(result) == 5:
            gone = {a for a in before if result[2].get(a) or result[3].get(a)}
            left |= gone
            found.departures += len(gone) if face.agents else 0
            found.decisions += 1


def _look(moment: Moment, found: ParallelReport) -> None:
    for name, promise in PROMISES.items():
        if name not in found.violations and (message := promise(moment)):
            found.violations[name] = f"{moment.place}: {message}"


def report_on_parallel(subject: Subject, promise: str) -> None:
    """Raises what the walk has found, or notes how far it went."""
    seen = parallel_walk(subject)
    if promise in seen.violations:
        subject.draw.numbers.update(seen.draw.numbers)
    require(promise not in seen.violations, seen.violations.get(promise, ""))
    subject.note(f"{seen.decisions} decisions, {seen.departures} left before the end")


def _order(moment: Moment) -> str:
    face, result = moment.face, moment.result
    slots = {a: k for k, a in enumerate(face.sim.game.agents)}
    if sorted(face.possible_agents, key=slots.__getitem__) != face.possible_agents:
        return f"possible_agents are {face.possible_agents}, not in the order of the game's agents"
    present = moment.present
    over = bool(face.sim.terminated[0] or face.sim.truncated[0]) and len(result) == 5
    expected = [] if over else present
    if face.agents != expected:
        return f"agents are {face.agents}, but {expected} are in the match, in the order of possible_agents"
    before = set(moment.before)
    wanted = [*moment.before, *(a for a in present if a not in before)]
    for name, part in zip(PARTS if len(result) == 5 else ("observations", "infos"), result, strict=True):
        if list(part) != wanted:
            return f"{name} hold {list(part)}, not {wanted}: agents in their order, new agents last"
    return ""


def _flags(moment: Moment) -> str:
    if len(moment.result) == 2:
        return ""
    _, rewards, terminations, truncations, infos = moment.result
    for agent in rewards:
        if terminations.get(agent) and truncations.get(agent):
            return f"{agent} is terminated and truncated"
    if moment.face.agents:
        return ""
    flag = lambda a: "terminated" if terminations.get(a) else "truncated" if truncations.get(a) else "neither"  # noqa: E731
    flags = {agent: flag(agent) for agent in rewards}
    if len(set(flags.values())) != 1 or "neither" in flags.values():
        return f"at the end the flags are {flags}"
    for agent in rewards:
        if not infos.get(agent, {}).get("end_reason", 0) > 0:
            return f"the match is over, but infos[{agent!r}] has no end_reason"
    return ""


def _departures(moment: Moment) -> str:
    face, result = moment.face, moment.result
    agents, rewards = set(face.agents), dict(zip(face.sim.game.agents, face.sim.rewards[0].tolist(), strict=True))
    for agent in moment.before:
        for name, part in zip(PARTS, result, strict=True):
            if agent not in part:
                return f"{agent} was in the match but is not in the {name}"
        flagged = result[2][agent] or result[3][agent]
        still = agent in agents
        if flagged == still:
            return f"{agent} has {'a' if flagged else 'no'} flag and is {'still' if still else 'not'} in agents"
        if result[1][agent] != rewards[agent]:
            return f"{agent} gets the reward {result[1][agent]}, in the batch {rewards[agent]}"
    if back := moment.left & agents:
        return f"{', '.join(sorted(back))} had left and is back in agents"
    strange = agents - set(face.possible_agents)
    return f"{', '.join(sorted(strange))} is not among possible_agents" if strange else ""


def _infos(moment: Moment) -> str:
    for agent, info in moment.result[-1].items():
        expected = moment.keys.setdefault(agent, sorted(info))
        if message := wrong_info(info, expected):
            return f"{agent}: {message}"
    return _told(moment)


def _told(moment: Moment) -> str:
    """Compares ends and teams in infos with the match record."""
    sim = moment.face.sim
    over = len(moment.result) == 5 and bool(sim.terminated[0] or sim.truncated[0])
    row = sim.states["info"][0]
    teams = dict(zip(sim.game.agents, sim.game.team_index.tolist(), strict=True))
    for agent, info in moment.result[-1].items():
        known = {"team": teams[agent], "winner": -1, "end_reason": 0}
        if over:
            known |= {"winner": row["winner"], "end_reason": row["end_reason"]}
        for name, value in known.items():
            if name in info and info[name] != value:
                return f"{agent}: info {name} is {info[name]}, in the match {value}"
    return ""


def wrong_info(info: dict[Any, Any], expected: list[Any], in_mask: bool = False) -> str:
    """Why an info has other keys than before, or something that is no number of NumPy's; or ``""``."""
    if sorted(info) != expected:
        return f"info has {sorted(info)}, before {expected}"
    for key, value in info.items():
        is_mask = in_mask or key == "action_mask"
        if is_mask and value is None:  # a real number: nothing masks it
            continue
        parts = dict(enumerate(value)) if is_mask and isinstance(value, tuple) else value
        if isinstance(parts, dict):
            if message := wrong_info(parts, sorted(parts), is_mask):
                return f"{key}: {message}"
        elif not (isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biuf"):
            return f"info {key} is {value!r}, no number of NumPy's"
    return ""


PROMISES: dict[str, Callable[[Moment], str]] = {
    "order": _order,
    "flags": _flags,
    "departures": _departures,
    "infos": _infos,
}
