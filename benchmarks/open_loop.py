"""Players that see nothing: sequences of actions that are fixed before a match, and a search for good ones.

Where such a player wins, a benchmark does not need observations (Ellis et al. 2023, who asked SMAC's maps this way).
The action of agent k at decision t is always the same, whatever happens; an order that is illegal then is replaced by
``stop``, as the suite does with all illegal orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Choice, Game
from palaestra.games.skirmish.orders import EAST, FIRST, NORTH, STOP, WEST

CANDIDATES, GENERATIONS, SURVIVORS = 64, 40, 16
MOST_LANES = 4096
"""Matches at the same time."""
LONGEST_RUN = 12
"""Decisions of a run of equal actions that the search writes into a sequence, at most."""
WALKS = (0, 3, 6, 10)
"""Decisions that a planned sequence walks east before it attacks."""


@dataclass(frozen=True)
class Found:
    """What a search has found.

    Attributes:
        sequences: int64 ``[CANDIDATES, decisions, agents]``, the best on the seeds of the search first.
        wins: Share of the seeds of the search that each wins, ``[CANDIDATES]``.
    """

    sequences: np.ndarray
    wins: np.ndarray


def play(game: Game, sequences: np.ndarray, seeds: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Plays every sequence once on every seed, red by the sequence, blue by its default script.

    Args:
        game: A battle whose red team has one role.
        sequences: Actions ``[K, decisions, agents]``; a match that lasts longer than a sequence repeats its last ones.
        seeds: Of the matches, S.

    Returns:
        Whether red won, bool ``[K, S]``, and what red was paid in the match, float ``[K, S]``.
    """
    pairs = [(k, seed) for k in range(len(sequences)) for seed in seeds]
    won, paid = np.zeros(len(pairs), np.bool_), np.zeros(len(pairs))
    for start in range(0, len(pairs), MOST_LANES):
        part = pairs[start : start + MOST_LANES]
        rows = slice(start, start + len(part))
        chosen = sequences[[k for k, _ in part]]
        won[rows], paid[rows] = _matches(game, chosen, np.array([seed for _, seed in part], np.uint64))
    shape = (len(sequences), len(seeds))
    return won.reshape(shape), paid.reshape(shape)


def _matches(game: Game, actions: np.ndarray, seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One match a row of actions ``[N, decisions, agents]``: whether red won, and what it was paid."""
    sim = KernelSimulation(game, len(seeds), autoreset_mode="off")
    try:
        sim.set_opponent("blue", game.default_opponent)
        sim.reset(seed=seeds)
        running = np.ones(len(seeds), np.bool_)
        won, paid = np.zeros(len(seeds), np.bool_), np.zeros(len(seeds))
        decision = 0
        while running.any():
            sim.actions["red"][...] = actions[:, min(decision, actions.shape[1] - 1)]
            sim.step()
            paid += np.where(running, sim.team_rewards("red"), 0.0)
            over = running & (sim.terminated | sim.truncated)
            won[over] = sim.info["winner"][over] == 0
            running &= ~over
            decision += 1
        return won, paid
    finally:
        sim.close()


def search(
    game: Game,
    seeds: Sequence[int],
    *,
    generations: int = GENERATIONS,
    seed: int = 0,
    report_progress: Callable[[int, int], object] = lambda done, total: None,
) -> Found:
    """Improves `CANDIDATES` sequences on some seeds: planned and random ones first, then by selection and variation.

    The `SURVIVORS` that win most, of equals those that are paid most, are kept; all others become children of two of
    them, with changes. A player that knew nothing but these seeds would do so too: it learns them by heart.

    Args:
        game: A battle whose red team has one role.
        seeds: Of the matches that candidates are judged by.
        generations: How often the candidates are improved.
        seed: Of the search.
        report_progress: Called with the numbers of finished and of all generations.
    """
    rng = np.random.default_rng(seed)
    order = game.roles[0].action[0]
    assert isinstance(order, Choice)
    agents, actions = len(game.teams["red"]), order.n
    sequences = first_candidates(int(game.horizon), agents, actions, rng)
    for generation in range(generations + 1):
        won, paid = play(game, sequences, seeds)
        best_first = np.lexsort((-paid.sum(axis=1), -won.sum(axis=1)))
        sequences, wins = sequences[best_first], won[best_first].mean(axis=1)
        report_progress(generation + 1, generations + 1)
        if generation == generations:
            return Found(sequences, wins)
        for k in range(SURVIVORS, len(sequences)):
            mother, father = sequences[rng.integers(SURVIVORS, size=2)]
            sequences[k] = child(mother, father, actions, rng)
    raise ValueError(f"generations must not be negative, got {generations}")


def first_candidates(decisions: int, agents: int, actions: int, rng: np.random.Generator) -> np.ndarray:
    """Planned sequences, filled up with random ones: int64 ``[CANDIDATES, decisions, agents]``."""
    targets = actions - FIRST
    time, agent = np.arange(decisions)[:, None], np.arange(agents)[None, :]
    attacks = [np.full((decisions, agents), k) for k in range(targets)]
    attacks += [(time // hold + apart * agent) % targets for hold in (1, 2, 4, 8) for apart in (0, 1)]
    attacks = attacks[: CANDIDATES // len(WALKS)]
    planned = [np.where(time < walk, EAST, FIRST + attack) for walk in WALKS for attack in attacks]
    while len(planned) < CANDIDATES:
        planned.append(random_runs(np.full((decisions, agents), STOP), decisions, actions, rng))
    return np.array(planned[:CANDIDATES], np.int64)


def random_runs(sequence: np.ndarray, runs: int, actions: int, rng: np.random.Generator) -> np.ndarray:
    """A sequence in which runs of equal actions, of one agent or of all, are overwritten."""
    changed = sequence.copy()
    decisions, agents = sequence.shape
    for _ in range(runs):
        start, length = rng.integers(decisions), rng.integers(1, LONGEST_RUN + 1)
        who = slice(None) if rng.random() < 0.5 else rng.integers(agents)
        is_walk = rng.random() < 0.3
        action = rng.integers(NORTH, WEST + 1) if is_walk else rng.integers(STOP, actions)
        changed[start : start + length, who] = action
    return changed


def child(mother: np.ndarray, father: np.ndarray, actions: int, rng: np.random.Generator) -> np.ndarray:
    """A sequence of two: by agents or from a decision on, at times shifted in time, with some runs overwritten.

    Changes are drawn early in the match more often, where most is decided.
    """
    decisions, agents = mother.shape
    if rng.random() < 0.5:
        born = np.where(rng.random(agents) < 0.5, mother, father)
    else:
        cut = int(decisions * rng.random() ** 2)
        born = np.concatenate([mother[:cut], father[cut:]])
    if rng.random() < 0.2:
        born = np.roll(born, rng.integers(-3, 4), axis=0)
    early = max(1, int(decisions * rng.random()))
    born[:early] = random_runs(born[:early], int(rng.integers(1, 6)), actions, rng)
    return born
