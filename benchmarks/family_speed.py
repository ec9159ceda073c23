"""Decisions a second of the games that families name (`palaestra.game.Family.speed`), each with its bar."""

from __future__ import annotations

from measurement import Measurement, ReportProgress, timed
from palaestra import registry
from palaestra.cli.measure import Benchmark
from palaestra.game import Family
from team_speed import LANES, random_play


def decisions(report_progress: ReportProgress) -> list[Measurement]:
    """Decisions of a match a second on one core; all agents of a match decide at once, which counts as one."""
    found = []
    for family in registry.FAMILIES.values():
        report_progress(family.name)
        try:
            found += _of(family)
        except ImportError as reason:
            found.append(Measurement("", f"{family.name}, decisions a second", None, None, True, str(reason)))
    return found


def _of(family: Family) -> list[Measurement]:
    timings = timed(*(play(id, player) for id, player, _ in family.speed)) if family.speed else []
    return [
        Measurement("", f"{id}, {player}, batch of {LANES}: decisions a second", 1e9 / timing.ns, bar, True)
        for (id, player, bar), timing in zip(family.speed, timings, strict=True)
    ]


def play(id: str, player: str) -> Benchmark:
    """The batch loop of a game, all its agents by random actions or by a script; a match starts where one has ended."""
    if player == "random":
        return random_play(id, autoreset_mode="same_step")
    players = dict.fromkeys(registry.make_game(id)[0].teams, player)
    sim = registry.make_batch(id, LANES, opponents=players, autoreset_mode="same_step")
    sim.reset(seed=0)
    return Benchmark(id, sim.step, LANES, sim.close)
