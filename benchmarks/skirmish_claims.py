"""The measurements of Skirmish that need matches, not a clock: ``python benchmarks/skirmish_claims.py``.

::

    python benchmarks/skirmish_claims.py                          # all of them, about a quarter of an hour
    python benchmarks/skirmish_claims.py --only random scripts
    python benchmarks/skirmish_claims.py --matches 200            # quicker, less certain
    python benchmarks/skirmish_claims.py --out FOLDER             # writes FOLDER/skirmish_measurements.csv too

It prints every measurement with its bar and verdict; the exit code is 1 where a bar is missed. Those of speed are part
of ``python benchmarks/speed.py``, figures of learning of ``python benchmarks/learn.py``.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import open_loop
from measurement import VERDICTS, Measurement, print_measurements
from palaestra import registry
from palaestra.cli.common import positive_count
from palaestra.cli.progress_bar import Progress
from palaestra.core.files import write_atomically
from palaestra.evaluation import EVALUATION_RUN, MatchTable, evaluate, wilson_interval
from palaestra.games.skirmish import maps

EXPLOSIONS = ("bane_vs_bane", "so_many_baneling")
"""Maps that chains of explosions decide: random play, which spreads the units, wins on them."""
CLIFF, CLIFF_BAR, OVERLAP_BAR = "2c_vs_64zg", 60.0, 2.0
"""Per cent of the matches, and of the decisions of units in which two bodies overlap by over half."""
RANDOM_BAR, FOCUS_BAR, KITE_BAR = 1.0, 90.0, 60.0
"""Per cent of the matches; KITE_BAR in points."""
MIRRORED_MAPS = ("3m", "8m", "MMM", "2s3z", "3s5z")
MIRRORED_SCRIPTS = ("nearest", "weakest", "focus_fire", "kite", "retreat_heal")
MIRRORED_BAR = 2.0
"""How far red's share may be from 50 %, points, in 10,000 matches."""
EVEN_MAPS = (*MIRRORED_MAPS, "25m", "1c3s5z", "bane_vs_bane")
EVEN_SCRIPTS = (*MIRRORED_SCRIPTS, "split", "surround")
EVEN_BAR = 4.0
"""The same in 1,024 matches."""
DUEL, GENERATED = "palaestra/SkirmishDuel-v0", "palaestra/SkirmishGen-a5v5-v0"
OPEN_LOOP_BAR, SEARCH_SEEDS = 15.0, range(8)
LEARNING = "python benchmarks/learn.py skirmish"
SMAC_MAPS = {
    "3m": ("T", "T", 0, 3, 3),
    "8m": ("T", "T", 0, 8, 8),
    "25m": ("T", "T", 0, 25, 25),
    "5m_vs_6m": ("T", "T", 0, 5, 6),
    "8m_vs_9m": ("T", "T", 0, 8, 9),
    "10m_vs_11m": ("T", "T", 0, 10, 11),
    "27m_vs_30m": ("T", "T", 0, 27, 30),
    "MMM": ("T", "T", 3, 10, 10),
    "MMM2": ("T", "T", 3, 10, 12),
    "2s3z": ("P", "P", 2, 5, 5),
    "3s5z": ("P", "P", 2, 8, 8),
    "3s5z_vs_3s6z": ("P", "P", 2, 8, 9),
    "3s_vs_3z": ("P", "P", 0, 3, 3),
    "3s_vs_4z": ("P", "P", 0, 3, 4),
    "3s_vs_5z": ("P", "P", 0, 3, 5),
    "1c3s5z": ("P", "P", 3, 9, 9),
    "2m_vs_1z": ("T", "P", 0, 2, 1),
    "corridor": ("P", "Z", 0, 6, 24),
    "6h_vs_8z": ("Z", "P", 0, 6, 8),
    "2s_vs_1sc": ("P", "Z", 0, 2, 1),
    "so_many_baneling": ("P", "Z", 0, 7, 32),
    "bane_vs_bane": ("Z", "Z", 2, 24, 24),
    "2c_vs_64zg": ("P", "Z", 0, 2, 64),
}
"""a_race, b_race, unit_type_bits, n_agents and n_enemies of smac_maps.py (github.com/oxwhirl/smac, MIT, commit
d6aab33)."""


@dataclass(frozen=True)
class Plan:
    """How measurements are measured.

    Attributes:
        matches: Of each number; None for the number that the measurement asks for.
        report_progress: Called with the numbers of finished and of all matches and what is played.
    """

    matches: int | None = None
    report_progress: Callable[[int, int, str], object] = lambda done, total, note: None

    def played(self, id: str, a: str, b: str, matches: int, note: str, **keywords: object) -> MatchTable:
        """Matches of two scripts, red's first."""
        count = self.matches or matches
        report = lambda done, total: self.report_progress(done, total, note)  # noqa: E731
        return evaluate(id, a, b, matches=count, swap=False, progress=report, **keywords)  # type: ignore[arg-type]


def sizes(plan: Plan) -> list[Measurement]:
    """Observations, state and actions of all maps with ``observation="smac"`` next to SMAC's own formulas."""
    wrong = []
    for done, map in enumerate(SMAC_MAPS):
        plan.report_progress(done, len(SMAC_MAPS), map)
        ours, theirs = sizes_of(map), smac_sizes(*SMAC_MAPS[map])
        if ours != theirs:
            wrong.append(f"{map} {ours}, SMAC {theirs}")
    wrong += [f"{map} missing" for map in sorted(set(SMAC_MAPS) ^ set(maps.names()))]
    about = f"maps of {len(SMAC_MAPS)} whose observations, state or actions differ in size from SMAC's"
    return [Measurement("sizes", about, float(len(wrong)), 0.0, False, "; ".join(wrong))]


def sizes_of(map: str) -> tuple[int, int, int]:
    """Numbers in an observation of an agent and in the state, and actions of an agent, of the simulation itself."""
    sim = registry.make_batch(f"palaestra/Skirmish-{map}-v0", 1, observation="smac", compiled=False)
    sim.reset(seed=0)
    legal: Any = sim.legal
    sizes = sim.observations["red"].shape[-1], sim.state().shape[-1], legal["red"].shape[-1]
    sim.close()
    return sizes


def smac_sizes(ally: str, enemy: str, types: int, agents: int, enemies: int) -> tuple[int, int, int]:
    """get_obs_size, get_state_size and get_total_actions of SMAC with its default options.

    A unit of Protoss has a number for its shield, and each has ``types`` numbers for its kind.
    """
    own, other = types + (ally == "P"), types + (enemy == "P")
    actions = 6 + enemies
    moves, seen = 4, 4 + 1  # attackable or visible, distance, x, y; hit points
    observation = moves + enemies * (seen + other) + (agents - 1) * (seen + own) + 1 + own
    state = agents * (4 + own) + enemies * (3 + other) + agents * actions  # the last actions too
    return observation, state, actions


def random_play(plan: Plan) -> list[Measurement]:
    """Uniformly random legal orders against the built-in script."""
    measurements = []
    for map in maps.names():
        table = plan.played(f"palaestra/Skirmish-{map}-v0", "random", "builtin", 1024, f"random {map}")
        bar, note = (None, "chains of explosions decide; ") if map in EXPLOSIONS else (RANDOM_BAR, "")
        won = percent_won(table)
        measurements.append(Measurement("random", f"{map}: random wins, %", won, bar, False, note + ends(table)))
    return measurements


def cliff(plan: Plan) -> list[Measurement]:
    """The map on which two colossi stand on a cliff: what scripts win, and how much bodies overlap at its foot."""
    id = f"palaestra/Skirmish-{CLIFF}-v0"
    measurements = []
    for script in ("random", "hold", *EVEN_SCRIPTS):
        table = plan.played(id, script, "builtin", 512, f"{script} {CLIFF}")
        won = percent_won(table)
        measurements.append(Measurement("cliff", f"{CLIFF}: {script} wins, %", won, CLIFF_BAR, False, ends(table)))
    for done, script in enumerate(("random", "hold", "nearest")):
        plan.report_progress(done, 3, "overlap")
        about = f"{CLIFF}: {script}, decisions of units that overlap by over half, %"
        measurements.append(Measurement("cliff", about, 100 * overlap_share(id, script), OVERLAP_BAR, False))
    return measurements


def overlap_share(id: str, script: str, matches: int = 32) -> float:
    """Share of the decisions of living units in which a unit overlaps another one by over half, see `overlapping`."""
    sim = registry.make_batch(id, matches, opponents={"red": script, "blue": "builtin"}, autoreset_mode="off")
    sim.reset(seed=0)
    states: Any = sim.states
    deep = living = 0
    while not (sim.terminated | sim.truncated).all():
        for s in states[~(sim.terminated | sim.truncated)]:
            over_half = overlapping(sim.game.world.units, s)
            deep, living = deep + int(over_half.sum()), living + len(over_half)
        sim.step()
    sim.close()
    return deep / living


def overlapping(units: np.ndarray, state: Any) -> np.ndarray:
    """Whether each living unit overlaps another one by over half of the sum of their radii: bool ``[living]``."""
    alive = np.flatnonzero(state["alive"])
    bodies, place = units[state["kind"][alive]], state["position"][alive]
    away = np.hypot(*(place[:, None] - place).transpose(2, 0, 1))
    touch = bodies["separation_radius"][:, None] + bodies["separation_radius"]
    layer = bodies["flying"][:, None] == bodies["flying"]
    return ((away < 0.5 * touch) & layer & ~np.eye(len(alive), dtype=bool)).any(axis=1)


def scripts(plan: Plan) -> list[Measurement]:
    """Scripts that fight well where their idea matters."""
    focus = plan.played("palaestra/Skirmish-2s3z-v0", "focus_fire", "builtin", 1024, "focus_fire 2s3z")
    kite, nearest = (
        plan.played("palaestra/Skirmish-3s_vs_5z-v0", script, "builtin", 1024, f"{script} 3s_vs_5z")
        for script in ("kite", "nearest")
    )
    gained = percent_won(kite) - percent_won(nearest)
    note = f"kite {ends(kite)}; nearest {ends(nearest)}"
    return [
        Measurement("scripts", "2s3z: focus_fire wins, %", percent_won(focus), FOCUS_BAR, True, ends(focus)),
        Measurement("scripts", "3s_vs_5z: kite wins more than nearest by, points", gained, KITE_BAR, True, note),
    ]


def mirrored(plan: Plan) -> list[Measurement]:
    """The same script on both sides of a mirrored map."""
    measurements = []
    for map in MIRRORED_MAPS:
        for script in MIRRORED_SCRIPTS:
            table = plan.played(DUEL, script, script, 10_000, f"{script} {map}", map=map)
            measurements.append(mirrored_measurement(map, script, table, MIRRORED_BAR))
    return measurements


def even(plan: Plan) -> list[Measurement]:
    """The same script on both sides of every map of equal sides, in Skirmish and as a duel."""
    measurements = []
    for map in EVEN_MAPS:
        for script in EVEN_SCRIPTS:
            table = plan.played(f"palaestra/Skirmish-{map}-v0", script, script, 1024, f"{script} {map}")
            measurements.append(mirrored_measurement(map, script, table, EVEN_BAR))
            if map != "bane_vs_bane":  # refused: mirrored in y
                table = plan.played(DUEL, script, script, 1024, f"{script} duel {map}", map=map)
                measurements.append(mirrored_measurement(f"duel {map}", script, table, EVEN_BAR))
    return measurements


def mirrored_measurement(map: str, script: str, table: MatchTable, bar: float | None) -> Measurement:
    """How far red's share of the decided matches is from 50 %."""
    decided = table.wins + table.losses
    about = f"{map}: red's share of {script} against {script}, from 50 %, points"
    if decided == 0:
        return Measurement("mirrored", about, None, bar, False, f"no decided match, draws {table.draws}")
    low, high = wilson_interval(table.wins, decided)
    note = (
        f"{100 * table.wins / decided:.1f} % of {decided} decided ({100 * low:.1f} to {100 * high:.1f}), "
        f"draws {table.draws}, {100 * table.score:.1f} % if a draw is half"
    )
    return Measurement("mirrored", about, abs(100 * table.wins / decided - 50), bar, False, note)


def open_loops(plan: Plan) -> list[Measurement]:
    """The best of 64 fixed sequences of actions, searched on eight seeds and played on others.

    All of them are played on the other seeds, and the best there counts: its share is a little too high, never too low.
    """
    game, _ = registry.make_game(GENERATED)
    found = open_loop.search(
        game, SEARCH_SEEDS, report_progress=lambda done, total: plan.report_progress(done, total, "search")
    )
    matches = plan.matches or 1024
    seeds = [(EVALUATION_RUN << 32) + k for k in range(matches)]
    wins = []
    for k, sequence in enumerate(found.sequences):
        plan.report_progress(k, len(found.sequences), "sequences")
        won, _ = open_loop.play(game, sequence[None], seeds)
        wins.append(int(won.sum()))
    return [open_loop_measurement(found.wins.tolist(), wins, matches)]


def open_loop_measurement(searched: Sequence[float], wins: Sequence[int], matches: int) -> Measurement:
    """The most wins on the other seeds; the first of the sequences is the best of the search."""
    low, high = (100 * end for end in wilson_interval(max(wins), matches))
    note = (
        f"of {matches} other matches, {low:.1f} to {high:.1f}; the best of the search "
        f"{100 * wins[0] / matches:.1f} % there, {100 * searched[0]:.0f} % on its {len(SEARCH_SEEDS)} seeds"
    )
    about = f"{GENERATED.split('/')[1]}: best of {len(wins)} fixed sequences of actions wins, %"
    return Measurement("open_loop", about, 100 * max(wins) / matches, OPEN_LOOP_BAR, False, note)


def percent_won(table: MatchTable) -> float:
    """Per cent of the matches that red won."""
    return 100 * table.wins / table.matches


def ends(table: MatchTable) -> str:
    """Wins with Wilson's 95 % interval, and the draws."""
    low, high = (100 * end for end in table.win_interval)
    return f"{table.wins} of {table.matches} ({low:.1f} to {high:.1f} %), draws {table.draws}"


GROUPS: dict[str, Callable[[Plan], list[Measurement]]] = {
    "sizes": sizes,
    "random": random_play,
    "scripts": scripts,
    "mirrored": mirrored,
    "even": even,
    "cliff": cliff,
    "open_loop": open_loops,
}


def write_csv(path: Path, measurements: Sequence[Measurement]) -> None:
    """Writes one row a measurement: group, measurement, measured, bar, at_least, verdict, note."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["group", "measurement", "measured", "bar", "at_least", "verdict", "note"])
    for measurement in measurements:
        row = [measurement.name, measurement.about, measurement.value, measurement.bar, measurement.at_least]
        writer.writerow([*row, VERDICTS[measurement.holds], measurement.note])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: file.write(text.getvalue().encode()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns 1 where a bar was missed."""
    parser = argparse.ArgumentParser(description="The measurements of Skirmish")
    parser.add_argument("--only", nargs="+", choices=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--matches", type=positive_count, help="of each number (default: 1,024; mirrored maps 10,000)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write skirmish_measurements.csv there")
    args = parser.parse_args(arguments)
    plan = Plan(args.matches)
    measurements: list[Measurement] = []
    for group in args.only or GROUPS:
        with Progress(group) as bar:
            measurements += GROUPS[group](replace(plan, report_progress=bar))
    print_measurements(measurements)
    print(f"learning, hours: {LEARNING}")
    if args.out:
        write_csv(args.out / "skirmish_measurements.csv", measurements)
    return 1 if any(measurement.holds is False for measurement in measurements) else 0


if __name__ == "__main__":
    sys.exit(main())
