"""Millions of decisions by random players and scripts: zero-sum rewards, equal rewards of members, mirror symmetry.

::

    python benchmarks/fuzz.py --steps 1000000 --seed 0
    python benchmarks/fuzz.py palaestra/GridSoccer-v0 --steps 100000000

Without ids all zero-sum ones are played. The random player plays half of the steps, scripts of every strength a
quarter, and held and extreme actions a quarter. Games with a mirror play as many decisions again, mirrored. The exit
code is 1 where a promise was broken.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from palaestra import make_batch, registry
from palaestra.console import find_id, print_table
from palaestra.core.compile.batch_loop import CALLER
from palaestra.game import Game
from palaestra.testing.checks.mirror_checks import walk, why_no_mirror
from palaestra.testing.harness import CheckError
from palaestra.testing.players import Player

LANES, ENGINE_LANES = 2048, 8
DECISIONS = 500
"""Decisions that a lane plays at least before more lanes are played: matches should end."""
STRENGTHS = ("", ":0.75", ":0.5", ":0.25")
RUN_BITS = 32
"""Parts of a run have seeds this many bits apart, so that no two lanes play the same match."""


@dataclass
class Verdict:
    """What was played of one id, and the first promise that was broken.

    Attributes:
        id: Registered id.
        steps: Lane-steps, mirrored ones not counted.
        matches: Matches that ended.
        ends: How, by name.
        mirrored: Lane-steps that were compared with their mirror.
        violation: The broken promise as text, or ``""``.
        seconds: Wall time.
    """

    id: str
    steps: int = 0
    matches: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    mirrored: int = 0
    violation: str = ""
    seconds: float = 0.0


def fuzz(id: str, steps: int = 1_000_000, seed: int = 0, **keywords: Any) -> Verdict:
    """Plays an id at length.

    Args:
        id: Registered id of a zero-sum game.
        steps: Lane-steps, at least; as many again mirrored where the game has a mirror.
        seed: Number of the run.
        **keywords: Keywords of the id.

    Raises:
        ValueError: The game is not zero-sum, or a number is out of range.
    """
    game, _ = registry.make_game(id, **keywords)
    if not game.zero_sum:
        raise ValueError(f"{id} is not zero-sum: there is nothing to add up")
    if steps < 1 or not 0 <= seed < 2**16:
        raise ValueError(f"steps must be at least 1 and seed in [0, 2**16), got {steps} and {seed}")
    verdict, started = Verdict(id), time.perf_counter()
    try:
        for number, (players, share) in enumerate(_parts(game)):
            first = (seed << RUN_BITS + 8) + (number << RUN_BITS)
            budget = int(steps * share)
            lanes = _lanes(budget, ENGINE_LANES if game.physics else LANES)
            sim = make_batch(id, lanes, autoreset_mode="same_step", opponents=players, **keywords)
            _add_up(sim, first, budget, verdict)
            sim.close()
            if not why_no_mirror(game):
                _compare_mirrors(id, players, first, budget, verdict, keywords)
    except CheckError as broken:
        verdict.violation = str(broken)
    verdict.seconds = time.perf_counter() - started
    return verdict


def _parts(game: Game) -> Iterator[tuple[dict[str, str], float]]:
    """Player of each team (none: `Player` of the kit), and its share of the steps."""
    red, blue = game.teams
    yield {red: "random", blue: "random"}, 0.5
    yield {}, 0.25
    pairs = [(a, b) for a in game.scripts for b in (*game.scripts, "random")]
    for number, (a, b) in enumerate(pairs):
        strong, weak = STRENGTHS[number % 4], STRENGTHS[number // 4 % 4]
        yield {red: a + strong, blue: b + (weak if b != "random" else "")}, 0.25 / len(pairs)


def _lanes(budget: int, most: int) -> int:
    return max(1, min(budget // DECISIONS, most))


def _add_up(sim: Any, seed: int, budget: int, verdict: Verdict) -> None:
    """Plays and adds up the rewards of every step."""
    player = Player(sim) if not (sim.states["assigned_player"] != CALLER).any() else None
    sim.reset(seed=seed)
    played = 0
    while played < budget:
        if player is not None:
            player.play(sim)
        sim.step()
        played += sim.num_envs
        if wrong := unbalanced(sim):
            verdict.steps += played
            raise CheckError(f"{wrong} (step {played // sim.num_envs}, lanes seeded from {seed})")
        over = sim.terminated | sim.truncated
        if over.any():
            verdict.matches += int(over.sum())
            reasons, counts = np.unique(sim.final_info["end_reason"][over], return_counts=True)
            verdict.ends.update({sim.game.end_reason(int(r)): int(n) for r, n in zip(reasons, counts, strict=True)})
    verdict.steps += played


def unbalanced(sim: Any) -> str:
    """Where the two team rewards do not add up to exactly 0, or members' rewards are not bitwise equal; or ``""``."""
    (red, of_red), (blue, of_blue) = sim.game.teams.items()
    rewards = sim.rewards
    off = np.flatnonzero(rewards[:, of_red[0]].astype(np.float64) + rewards[:, of_blue[0]] != 0.0)
    if len(off):
        lane = off[0]
        return f"lane {lane}: {red} gets {rewards[lane, of_red[0]]}, {blue} gets {rewards[lane, of_blue[0]]}"
    bits = rewards.view(np.uint32)
    for slots in (of_red, of_blue):
        unlike = np.argwhere(bits[:, list(slots)] != bits[:, slots[:1]])
        if len(unlike):
            lane, member = unlike[0][0], slots[unlike[0][1]]
            agents, first = sim.game.agents, slots[0]
            return f"lane {lane}: {agents[first]} gets {rewards[lane, first]}, {agents[member]} {rewards[lane, member]}"
    return ""


def _compare_mirrors(
    id: str, players: dict[str, str], seed: int, budget: int, verdict: Verdict, keywords: dict[str, Any]
) -> None:
    lanes = _lanes(budget, LANES)
    sim, twin = (make_batch(id, lanes, autoreset_mode="off", **keywords) for _ in range(2))
    for team, player in players.items():
        sim.set_opponent(team, player)
    played, _ = walk(sim, twin, seed, range(-(-budget // lanes)), None if players else Player(sim))
    verdict.mirrored += played
    sim.close()
    twin.close()


def zero_sum_ids() -> list[str]:
    """All registered ids of zero-sum games."""
    return [id for id in registry.ROWS if registry.make_game(id)[0].zero_sum]


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python benchmarks/fuzz.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("ids", metavar="ID", nargs="*", help="ids to play (default: all that are zero-sum)")
    parser.add_argument("--steps", type=int, default=1_000_000, help="lane-steps of each (default 1,000,000)")
    parser.add_argument("--seed", type=int, default=0, help="number of the run (default 0)")
    args = parser.parse_args(argv)
    verdicts = []
    for id in [find_id(text) for text in args.ids] or zero_sum_ids():
        try:
            verdicts.append(fuzz(id, args.steps, args.seed))
        except (ValueError, ImportError) as error:  # no zero-sum game, or an optional package is missing
            parser.error(str(error))
        verdict_text = verdicts[-1].violation or "holds"
        print(f"{id}: {verdict_text}, {verdicts[-1].seconds:.1f} s", file=sys.stderr, flush=True)
    print_table([_row(verdict) for verdict in verdicts], ["id", "steps", "matches", "mirrored", "s", "verdict", "ends"])
    for verdict in verdicts:
        if verdict.violation:
            print(f"{verdict.id}: {verdict.violation}")
    return int(any(verdict.violation for verdict in verdicts))


def _row(v: Verdict) -> list[str]:
    ends = ", ".join(f"{name} {count:,}" for name, count in v.ends.most_common())
    numbers = [f"{n:,}" for n in (v.steps, v.matches, v.mirrored)]
    return [v.id, *numbers, f"{v.seconds:.1f}", "BROKEN" if v.violation else "holds", ends]


if __name__ == "__main__":
    sys.exit(main())
