"""One long random walk through many matches, watched by monitors; each monitor is a check of its own.

The walk is played once for all of them: by random players of several styles, by the game's scripts, with a horizon so
short that matches are truncated, and with other parameters in each lane.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import HORIZON
from palaestra.core.contract.fields import checked_bounds, values_of
from palaestra.game import ObservationField, Table
from palaestra.testing.drawn import Draw
from palaestra.testing.harness import require
from palaestra.testing.pay_record import PayRecord
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import agent_name
from palaestra.testing.subject import Level, Subject
from palaestra.testing.tally import Tally

CHANGED_RULES: dict[Level, int] = {"preset": 1, "fast": 1, "full": 12}
"""Walks with other parameters in each lane."""
LONGEST_DEFAULT = 500
"""Default horizon up to which matches are also walked beyond it."""


@dataclass
class WalkReport:
    """What the walk found: the first violation that each monitor saw.

    Attributes:
        violations: First message by monitor.
        lane_steps: Decisions played.
        ends: Matches that ended, by reason.
        deaths: Agents that left a running match.
        draw: Numbers that were drawn for it.
        tally: What adds up over whole matches.
        pay: When rewards were paid, and the records then.
    """

    tally: Tally
    pay: PayRecord
    violations: dict[str, str] = field(default_factory=dict)
    lane_steps: int = 0
    ends: Counter = field(default_factory=Counter)
    deaths: int = 0
    draw: Draw = field(default_factory=Draw)


@dataclass
class Monitor:
    """State of the monitors during one walk.

    Attributes:
        sim: The simulation, in ``autoreset_mode="same_step"``: finals and new matches are both seen.
        walk: The players and the seed, for messages.
        legally: The actions of this walk are legal by the masks.
        before: Agents alive before the step.
        dead: Agents that have left the running match.
        fixed: Observation fields that stay the same during a match, as they were last seen.
        bounds: Checked ranges of the observation fields.
    """

    sim: Any
    walk: str
    legally: bool
    before: np.ndarray
    dead: np.ndarray
    fixed: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    bounds: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @property
    def over(self) -> np.ndarray:
        """Lanes whose match ended in this step."""
        return self.sim.terminated | self.sim.truncated


def random_walk(subject: Subject) -> WalkReport:
    """The walk of this subject; played when first asked for."""
    if "survey" not in subject.memory:
        draw = Draw(subject.seed, subject.id, "random walk")
        found = WalkReport(Tally(subject.game), PayRecord(subject.game), draw=draw)
        share = (2300, 50_000) if subject.game.scripts else (4600, 100_000)
        _walk(subject, found, {}, draw.seed(), share)
        if subject.game.scripts:
            _walk(subject, found, subject.opponents(), draw.seed("seed of the scripts"), share)
        short = draw.integer("short horizon", 2, 8)
        _walk(subject, found, {}, draw.seed("seed of short matches"), (160, 1600), horizon=short)
        for number in range(CHANGED_RULES[subject.level] if subject.game.parameters else 0):
            _walk_changed_rules(subject, found, draw, is_long=number % 2 == 1)
        wrong = {"winners": found.tally.wrong_winner(), "newcomers": found.tally.never_asked()}
        found.violations.update({name: message for name, message in wrong.items() if message})
        subject.memory["survey"] = found
    return subject.memory["survey"]


def _walk_changed_rules(subject: Subject, found: WalkReport, draw: Draw, is_long: bool) -> None:
    """Other parameters in each lane; matches may take longer than the default horizon where ``is_long``."""
    default = subject.default_horizon
    range_ = (default + 1, 2 * default + 1) if is_long and default <= LONGEST_DEFAULT else (5, 60)
    horizon = draw.integer("horizon of changed rules", *range_)
    free = [p for p in subject.game.parameters if p.name not in (*subject.keywords, "horizon")]
    parameters = {p.name: draw.parameter(p.name, p, _lanes(subject), free) for p in free}
    _walk(subject, found, {}, draw.seed("seed of changed rules"), (480, 4000), parameters, horizon=horizon)


def _walk(
    subject: Subject,
    found: WalkReport,
    opponents: dict[str, str],
    seed: int,
    most: tuple[int, int],
    parameters: dict[str, np.ndarray] | None = None,
    **options: Any,
) -> None:
    lanes = _lanes(subject)
    sim = subject.batch(lanes, autoreset_mode="same_step", opponents=opponents, **options)
    players = "scripts" if opponents else "random players"
    walk = f"{players}, {lanes} lanes with seed {seed}, {options or 'default horizon'}"
    monitor = Monitor(sim, walk, subject.game.legal is not None, sim.alive.copy(), np.zeros_like(sim.alive))
    # What shapes a reward says nothing about the winner.
    sim.set_parameters(**{p.name: 0.0 for p in subject.game.parameters if p.shaping})
    if parameters:
        sim.set_parameters(**parameters)
        monitor.walk += ", parameters as drawn"
    sim.reset(seed=seed)
    _look(monitor, found, 0)
    found.tally.start(sim, changed_rules=parameters is not None)
    found.pay.start(sim)
    player = Player(sim)  # it follows the masks: the walk ends where one is found to be wrong
    least = 160 // lanes
    for number in subject.rounds(least, most[0] // lanes, most[1] // lanes, _seconds(subject)):
        if "masks" in found.violations:
            return
        monitor.before = sim.alive.copy()
        found.pay.before(sim)
        if not opponents:
            player.play(sim)
        sim.step()
        found.lane_steps += lanes
        _look(monitor, found, number + 1)
        found.tally.add(sim, monitor.before)
        found.pay.after(sim)
        over = monitor.over
        for reason in sim.final_info["end_reason"][over]:
            found.ends[int(reason)] += 1
        found.deaths += int(sim.agent_terminated[~over].sum())
        monitor.dead |= sim.agent_terminated
        monitor.dead[over] = False


def _lanes(subject: Subject) -> int:
    return 4 if subject.is_engine_game else 16


def _seconds(subject: Subject) -> float:
    return 60.0 if subject.level == "full" else 0.2


def _look(monitor: Monitor, found: WalkReport, step: int) -> None:
    for name, promise in PROMISES.items():
        if name not in found.violations and (message := promise(monitor)):
            found.violations[name] = f"{message} (step {step}; {monitor.walk})"


def report_on(subject: Subject, *promises: str) -> None:
    """Raises what the monitors saw on the walk, or notes how far it went."""
    seen = random_walk(subject)
    for name in promises:
        if name in seen.violations:
            subject.draw.numbers.update(seen.draw.numbers)
        require(name not in seen.violations, seen.violations.get(name, ""))
    subject.note(f"{seen.lane_steps} lane-steps, {sum(seen.ends.values())} ends, {seen.deaths} deaths")


# -- monitors: the first violation as text, or "" ----------------------------------------------------------------------


def _observations(monitor: Monitor) -> str:
    return wrong_observation(monitor.sim, monitor.bounds)


def wrong_observation(sim: Any, known: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] | None = None) -> str:
    """The first observation outside its table, last ones of matches that ended now included; or ``""``.

    Args:
        sim: The simulation, in ``autoreset_mode="same_step"``.
        known: Checked ranges by table and field, which are kept there between calls.
    """
    game = sim.game
    known = {} if known is None else known
    tables = [(role.name, role.observation) for role in game.roles]
    tables += [("team", game.team_observation), ("lane", game.lane_observation)]
    over = sim.terminated | sim.truncated
    parts: list[tuple[str, Any, np.ndarray | None]] = [("observation", sim.buffers.observations, None)]
    if over.any():
        parts.append(("final observation", sim.buffers.final_observations[: len(over)], np.flatnonzero(over)))
    for what, memory, lanes in parts:
        for name, table in tables:
            for f in (f for f in table if f.world is None):
                values = values_of(memory[name], f)
                if (name, f.name) not in known:
                    known[name, f.name] = _bounds(f, values.dtype)
                if message := _outside(known[name, f.name], values, lanes):
                    row, index, value, low, high = message
                    field = f"{_owner(game, name, index)}: {what} {_element(f, index if name == 'lane' else index[1:])}"
                    return f"lane {row}{field} = {value} is not in [{low:g}, {high:g}]"
    return ""


def _bounds(f: Any, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The checked range of a field, in the type of its values."""
    low, high = checked_bounds(f)
    with np.errstate(over="ignore"):
        return low.astype(dtype), high.astype(dtype)


def _outside(bounds: tuple[np.ndarray, np.ndarray], values: np.ndarray, lanes: np.ndarray | None) -> tuple | None:
    """Lane, index, value and range of the first value of these lanes (None: of all) that is outside its range."""
    low, high = bounds
    lanes = np.arange(len(values)) if lanes is None else lanes
    values = values if len(lanes) == len(values) else values[lanes]
    inside = (values >= low) & (values <= high)
    if inside.all():
        return None
    lane, *index = (int(i) for i in np.argwhere(~inside)[0])
    at = (lane, *index)
    low, high = (np.broadcast_to(b, values.shape)[at] for b in (low, high))
    return int(lanes[lane]), tuple(index), values[at], low, high


def _owner(game: Any, name: str, index: tuple[int, ...]) -> str:
    if name == "lane":
        return ""
    if name == "team":
        return f", team {list(game.teams)[index[0]]}"
    return f", {agent_name(game, name, index[0])}"


def _element(f: ObservationField, index: tuple[int, ...]) -> str:
    """A number of a field: ``velocity_mps[2]``, ``units[4].offset_m[1]``."""
    if isinstance(f, Table):
        row, number = index
        for column in f.columns:
            if number < column.size:
                at = np.unravel_index(number, column.shape) if column.shape else ()
                return f"{f.name}[{row}].{_element(column, tuple(map(int, at)))}"
            number -= column.size
    return f"{f.name}{list(index) if index else ''}"


def _infos(monitor: Monitor) -> str:
    sim = monitor.sim
    for what, shown, lanes in (
        ("info", sim.info, np.flatnonzero(~monitor.over)),
        ("final info", sim.final_info, np.flatnonzero(monitor.over)),
    ):
        for f in sim.game.info if len(lanes) else ():
            if ("", f.name) not in monitor.bounds:
                monitor.bounds["", f.name] = _bounds(f, np.dtype("f8"))
            if message := _outside(monitor.bounds["", f.name], shown[f.name][lanes].astype("f8"), lanes):
                lane, index, value, low, high = message
                return f"lane {lane}: {what} {_element(f, index)} = {value} is not in [{low:g}, {high:g}]"
    return ""


def _finite_rewards(monitor: Monitor) -> str:
    bad = np.argwhere(~np.isfinite(monitor.sim.rewards))
    if len(bad) == 0:
        return ""
    lane, slot = bad[0]
    return f"lane {lane}, {monitor.sim.game.agents[slot]}: reward {monitor.sim.rewards[lane, slot]}"


def _equal_rewards(monitor: Monitor) -> str:
    sim = monitor.sim
    if sim.game.reward == "agent":
        return ""
    for team, slots in sim.game.teams.items():
        rewards = sim.rewards[:, list(slots)]
        bad = np.argwhere(rewards != rewards[:, :1])
        if len(bad):
            lane, k = bad[0]
            first, other = sim.game.agents[slots[0]], sim.game.agents[slots[k]]
            return f"lane {lane}, team {team}: {first} gets {rewards[lane, 0]} but {other} gets {rewards[lane, k]}"
    return ""


def _late_pay(monitor: Monitor) -> str:
    sim = monitor.sim
    if sim.game.reward != "agent":
        return ""
    gone = monitor.dead & ~sim.alive & ~monitor.over[:, None]
    for lane, slot in np.argwhere(gone & (sim.rewards != 0.0)):
        paid = f"lane {lane}, {sim.game.agents[slot]} gets {sim.rewards[lane, slot]}"
        return f"{paid} after it has left the match: only a game with team rewards pays agents that have left"
    return ""


def _zero_sum(monitor: Monitor) -> str:
    sim = monitor.sim
    if not sim.game.zero_sum:
        return ""
    names = list(sim.game.teams)
    red, blue = (sim.team_rewards(team) for team in names)
    bad = np.flatnonzero(red.astype(np.float64) + blue != 0.0)
    if len(bad) == 0:
        return ""
    return f"lane {bad[0]}: {names[0]} gets {red[bad[0]]}, {names[1]} gets {blue[bad[0]]}: they do not add up to 0"


def _masks(monitor: Monitor) -> str:
    sim = monitor.sim
    if sim.legal is None:
        return ""
    masks = sim.buffers.mask_bytes
    idle = ~(sim.alive & sim.acting)
    for number, (word, name) in enumerate(zip(sim.action_table.words, sim.action_table.names, strict=True)):
        if word["n"] == 0:
            continue
        agent = int(word["agent"])
        if message := _mask_entries(sim, masks, number):
            return message
        entries = sim.action_table.allowed(masks, number)
        offers = entries.any(axis=1)
        if not offers.all():
            empty = np.flatnonzero(~offers)
            return f"lane {empty[0]}, {sim.game.agents[agent]}: the mask of {name} forbids all {word['n']} alternatives"
        is_wrong = idle[:, agent] & ((entries.sum(axis=1) != 1) | (entries[:, word["noop"]] != 1))
        if is_wrong.any():
            wrong = np.flatnonzero(is_wrong)
            place = f"lane {wrong[0]}, {sim.game.agents[agent]}"
            allowed = np.flatnonzero(entries[wrong[0]]).tolist()
            return f"{place} is not acting, but its mask of {name} allows {allowed}, not the no-op alone"
    return ""


def _mask_entries(sim: Any, masks: np.ndarray, number: int) -> str:
    """What is wrong with the entries of a mask, or with a list of candidates."""
    word, name = sim.action_table.words[number], sim.action_table.names[number]
    agent = sim.game.agents[int(word["agent"])]
    start, n = int(word["mask_offset"]), int(word["n"])
    if word["candidates"] == 0:
        entries = masks[:, start : start + n]
        is_bad = (entries != 0) & (entries != 1)
        if is_bad.any():
            bad = np.argwhere(is_bad)
            return (
                f"lane {bad[0][0]}, {agent}: mask entry {bad[0][1]} of {name} is {entries[tuple(bad[0])]}, not 0 or 1"
            )
        return ""
    ids, counts = sim.action_table.listed(masks, number)
    for lane in range(len(masks)):
        listed, rest = ids[lane, : counts[lane]], ids[lane, counts[lane] :]
        if ((listed < 0) | (listed >= n)).any() or len(set(listed.tolist())) != len(listed) or (rest != -1).any():
            return f"lane {lane}, {agent}: the candidates of {name} are {ids[lane].tolist()}: no list of ids below {n}"
    offered = np.ascontiguousarray(masks[:, start : start + 4]).view(np.int32)[:, 0]
    over = np.flatnonzero(offered > word["candidates"])
    if len(over):
        return f"lane {over[0]}, {agent}: {name} has {offered[over[0]]} candidates and room for {word['candidates']}"
    return ""


def _legal_counts(monitor: Monitor) -> str:
    if not monitor.legally:
        return ""
    sim = monitor.sim
    for counts in (sim.info["illegal"], sim.final_info["illegal"][: sim.num_envs]):
        bad = np.argwhere(counts != 0)
        if len(bad):
            lane, slot = bad[0]
            player = (
                "a script"
                if sim.states["current_player"][lane, slot] >= -1 and sim.states["assigned_player"][lane, slot] != -1
                else "a player"
            )
            return (
                f"lane {lane}, {sim.game.agents[slot]}: {counts[lane, slot]} illegal actions counted, though {player} "
                "chose among what the mask allows"
            )
    return ""


def _flags(monitor: Monitor) -> str:
    sim = monitor.sim
    both = np.flatnonzero(sim.terminated & sim.truncated)
    return f"lane {both[0]}: terminated and truncated in one step" if len(both) else ""


def _reasons(monitor: Monitor) -> str:
    sim, game = monitor.sim, monitor.sim.game
    known = 2 + len(game.end_reasons) + len(game.truncation_reasons)
    for lane in range(sim.num_envs):
        over = bool(sim.terminated[lane] or sim.truncated[lane])
        reason = int((sim.final_info if over else sim.info)["end_reason"][lane])
        winner = int((sim.final_info if over else sim.info)["winner"][lane])
        if not over and reason != 0:
            return f"lane {lane}: end_reason is {reason} while the match is running"
        if over and not 0 < reason < known:
            return f"lane {lane}: the match is over, but end_reason is {reason}, not one of 1 to {known - 1}"
        cut = reason == HORIZON or reason >= 2 + len(game.end_reasons)
        if over and cut != bool(sim.truncated[lane]):
            flag = "truncated" if sim.truncated[lane] else "terminated"
            kind = "truncation" if cut else "a rule's end"
            return f"lane {lane}: {flag} with end_reason {reason} ({game.end_reason(reason)!r}), a reason of {kind}"
        if not -1 <= winner < len(game.teams):
            return f"lane {lane}: winner is {winner}, not a team (0 to {len(game.teams) - 1}) and not -1"
        if not over and winner != -1:
            return f"lane {lane}: winner is {winner} while the match is running"
    return ""


def _deaths(monitor: Monitor) -> str:
    sim = monitor.sim
    running = ~monitor.over
    for lane, slot in np.argwhere(running[:, None] & monitor.dead & sim.alive):
        return (
            f"lane {lane}, {sim.game.agents[slot]}: had left the match and is back: a newcomer needs a slot of its own"
        )
    left = monitor.before & ~sim.alive
    for lane, slot in np.argwhere(running[:, None] & (left != sim.agent_terminated)):
        is_terminated = bool(sim.agent_terminated[lane, slot])
        was, now = monitor.before[lane, slot], sim.alive[lane, slot]
        place = f"lane {lane}, {sim.game.agents[slot]}"
        return f"{place}: alive {was} before and {now} after the step, but agent_terminated is {is_terminated}"
    for lane, slot in np.argwhere(sim.acting & ~sim.alive):
        return f"lane {lane}, {sim.game.agents[slot]}: has to act but is not alive"
    return ""


def _fixed(monitor: Monitor) -> str:
    sim, game = monitor.sim, monitor.sim.game
    tables = [*((r.name, r.observation) for r in game.roles), ("team", game.team_observation)]
    for name, table in (*tables, ("lane", game.lane_observation)):
        for f in (f for f in table if f.at == "reset" and f.world is None):
            now = values_of(sim.buffers.observations[name], f).copy()
            was = monitor.fixed.get((name, f.name))
            monitor.fixed[name, f.name] = now
            if was is None:
                continue
            last = values_of(sim.buffers.final_observations[name], f)
            changed = (now != was).reshape(len(now), -1).any(axis=1) & ~monitor.over
            lost = (last != was).reshape(len(now), -1).any(axis=1) & monitor.over
            for lane in np.flatnonzero(changed | lost):
                where = "in the last observation" if lost[lane] else "in a running match"
                return f"lane {lane}: {f.name} is fixed during a match (at reset), but it changed {where}"
    return ""


def _hidden_slots(monitor: Monitor) -> str:
    game, visible = monitor.sim.game, len(monitor.sim.game.agents)
    for what in ("alive", "acting"):
        bad = np.argwhere(monitor.sim.states[what][:, visible:])
        if len(bad):
            lane, k = bad[0]
            return f"lane {lane}: slot {visible + k} is {what}, but there are {visible} agents ({game.slots} slots)"
    bad = np.argwhere(monitor.sim.buffers.rewards[:, visible:])
    return f"lane {bad[0][0]}: slot {visible + bad[0][1]}, beyond the agents, has a reward" if len(bad) else ""


PROMISES = {
    "observations": _observations,
    "infos": _infos,
    "finite rewards": _finite_rewards,
    "late pay": _late_pay,
    "equal rewards": _equal_rewards,
    "zero sum": _zero_sum,
    "masks": _masks,
    "legal counts": _legal_counts,
    "flags": _flags,
    "reasons": _reasons,
    "deaths": _deaths,
    "fixed": _fixed,
    "hidden slots": _hidden_slots,
}
