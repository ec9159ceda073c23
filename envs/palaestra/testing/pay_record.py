"""Finds rewards that come one decision late: they follow from the record that was there before the decision.

Where a reward is paid late, something in the record already showed it, one decision earlier: an entry that is not zero
(what is owed), or one that has changed (a goal was counted). The pattern of such an entry over many decisions is then
that of the rewards, shifted by one. A pattern alone may be chance. So each such reward is played again from its record
with other actions and other random draws: a reward of the decision itself changes in one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import CALLER
from palaestra.game import Game
from palaestra.testing.players import Player

MOST_ENTRIES = 400
"""Entries of a record that are looked at."""
LARGEST = 16
"""Largest array in it that is looked at entry by entry."""
LEAST = 8
"""Decisions with and without a reward that a pattern needs."""
KEPT = 24
"""Rewards that are played again."""
MOST_PAID = 8
"""Paid decisions that are kept, of different moments."""
VARIANTS = 8
"""Other actions and draws of each."""


class PayRecord:
    """Rewards of running matches beside what the records showed one decision before and in the decision itself.

    A *payee* is a team, or an agent where each has its own rewards. ``shifted`` and ``prompt`` bool ``[payees, 2 E]``
    hold which entries have matched so far, by being other than zero and by having changed.

    Attributes:
        names: Of the payees.
        shifted: See above; one decision before the rewards.
        prompt: In the decision of the rewards.
        counts: int64 ``[payees, 2]``, decisions without and with a reward.
        paid: Some paid decisions of running matches: the record ``[1]`` before each, and its action words.
    """

    def __init__(self, game: Game) -> None:
        """Everything matches yet."""
        by_team = game.reward == "team"
        self._payees = [slots[0] for slots in game.teams.values()] if by_team else list(range(len(game.agents)))
        self.names = list(game.teams) if by_team else list(game.agents)
        self._views = _views(game)
        of_info = [np.full(size, path[0] == "info") for path, size in self._views]
        self._of_info = np.concatenate([np.zeros(0, np.bool_), *of_info])[:MOST_ENTRIES]
        count = 2 * len(self._of_info)
        self.shifted = np.ones((len(self._payees), count), np.bool_)
        self.prompt = self.shifted.copy()
        self.counts = np.zeros((len(self._payees), 2), np.int64)
        self._kept: list[list[np.ndarray]] = [[] for _ in self._payees]
        self.paid: list[tuple[np.ndarray, np.ndarray]] = []
        self._records = np.zeros(0)

    def start(self, sim: Any) -> None:
        """A walk starts."""
        self._entries = self._read(sim)
        self._shown = np.zeros((sim.num_envs, self.shifted.shape[1]), np.bool_)
        self._age = np.zeros(sim.num_envs, np.int64)

    def before(self, sim: Any) -> None:
        """Keeps the records for a moment."""
        if len(self.paid) < MOST_PAID or self.shifted.any():
            self._records = sim.states.copy()

    def after(self, sim: Any) -> None:
        """A decision was played."""
        over = sim.terminated | sim.truncated
        if len(self.paid) < MOST_PAID:
            for lane in np.flatnonzero(sim.rewards.any(axis=1) & ~over)[:1]:
                self.paid.append((self._records[lane : lane + 1], sim.buffers.action_words[lane].copy()))
        if not self.shifted.any():
            return  # nothing is left to be found
        entries = self._read(sim)
        shown = np.concatenate([entries != 0, entries != self._entries], axis=1)
        self._age = np.where(over, 0, self._age + 1)
        running = np.flatnonzero(~over & (self._age > 1))  # what is shown in the first decision has no decision before
        paid = (sim.rewards[:, self._payees] != 0.0)[running]
        if len(running):
            for k in range(len(self._payees)):
                wanted = paid[:, k : k + 1]
                self.shifted[k] &= (self._shown[running] == wanted).all(axis=0)
                self.prompt[k] &= (shown[running] == wanted).all(axis=0)
                self.counts[k] += np.count_nonzero(~wanted), np.count_nonzero(wanted)
                if len(self._kept[k]) < KEPT and self.shifted[k].any():
                    lanes = running[np.flatnonzero(wanted[:, 0])][:2]
                    self._kept[k] += [self._records[lane : lane + 1] for lane in lanes]
        self._entries, self._shown = entries, shown

    def _read(self, sim: Any) -> np.ndarray:
        parts = [_at(sim.states, path).reshape(sim.num_envs, -1).astype(np.float64) for path, _ in self._views]
        whole = np.concatenate(parts, axis=1) if parts else np.zeros((sim.num_envs, 0))
        return whole[:, :MOST_ENTRIES]

    def suspects(self) -> list[int]:
        """Payees whose rewards show in the record one decision before, and in nothing of the decision itself.

        A body that moves on with the velocity that it had pays for its new place at once: that place has changed. What
        the info shows is compared with the info alone: a rule may keep books on what it has shown.
        """
        enough = (self.counts >= LEAST).all(axis=1)
        of_info = np.tile(self._of_info, 2)
        late, prompt = self.shifted & ~self.prompt, self.prompt & ~self.shifted
        wrong = (late.any(axis=1) & ~prompt.any(axis=1)) | (late & of_info).any(axis=1) & ~(prompt & of_info).any(
            axis=1
        )
        return np.flatnonzero(enough & wrong).tolist()

    def entry(self, payee: int) -> str:
        """Name of an entry of the record that shows the payee's rewards one decision before."""
        entries = np.flatnonzero(self.shifted[payee] & ~self.prompt[payee])
        number = int(entries[-1]) % len(self._of_info)
        for path, size in self._views:
            if number < size:
                return f"s.{'.'.join(path)}{f'[{number}]' if size > 1 else ''}"
            number -= size
        raise AssertionError("an entry of no field")

    def is_settled(self, payee: int, probe: Any, seeds: np.ndarray) -> bool:
        """Whether all kept rewards come out the same under other actions and draws.

        Args:
            payee: Number of the payee.
            probe: A simulation of `VARIANTS` lanes in ``autoreset_mode="off"``, without opponents.
            seeds: uint64 ``[VARIANTS]`` that decide the actions and draws.
        """
        slot = self._payees[payee]
        for record in self._kept[payee]:
            probe.load_states(np.repeat(record, probe.num_envs))
            probe.states["rng"] ^= seeds
            probe.states["current_player"] = CALLER
            probe.lane_seeds[...] = seeds
            Player(probe).play(probe)
            probe.step()
            if (probe.rewards[:, slot] != probe.rewards[0, slot]).any():
                return False
        return bool(self._kept[payee])


def _views(game: Game) -> list[tuple[tuple[str, ...], int]]:
    """Paths and sizes of the author's own entries of a record, and of the info."""
    found = [((name,), game.state_dtype[name]) for name, *_ in game.state]
    found += [(("info", f.name), game.info_dtype[f.name]) for f in game.info]
    sizes = [(path, int(np.prod(kind.shape, dtype=int)), kind.base) for path, kind in found]
    return [(path, size) for path, size, base in sizes if size <= LARGEST and base.kind in "biuf"]


def _at(states: np.ndarray, path: tuple[str, ...]) -> np.ndarray:
    for name in path:
        states = states[name]
    return states
