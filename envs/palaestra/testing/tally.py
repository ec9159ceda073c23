"""Sums over whole matches of the random walk: winners, acting agents, and rewards that the record implies."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import HORIZON
from palaestra.game import Game

MATCHES = 3
"""Matches that contradict a rule before it is called broken."""
SHARE = 0.1
"""Of the matches that end for one reason, which may contradict it: a rule may have reasons of its own now and then."""
ARRIVALS, ALIVE = 3, 30
"""How often an agent has to arrive, and to be there, before it must have been asked."""


class Tally:
    """Counts over the walks of one game, all of them under ``autoreset_mode="same_step"``.

    Attributes:
        won: Per end reason, of the matches whose last decision pays an agent or that end at the horizon: those whose
            winner was paid more than 0 by the last decision or by all of them, and those whose winner paid by one of
            the two and gained by none.
        unpaid: Won matches without any reward, and others.
        arrived: int64 ``[A]``, arrivals in a running match.
        present: int64 ``[A]``, decisions for which agents that arrived were present.
        asked: int64 ``[A]``, decisions in which agents that arrived acted.
        ever_asked: bool ``[A]``, asked at all.
    """

    def __init__(self, game: Game) -> None:
        """Starts at zero."""
        self._game = game
        self.won: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(2, np.int64))
        self.unpaid = np.zeros(2, np.int64)
        count = len(game.agents)
        self.arrived, self.present, self.asked = (np.zeros(count, np.int64) for _ in range(3))
        self.ever_asked = np.zeros(count, np.bool_)

    def start(self, sim: Any, changed_rules: bool = False) -> None:
        """A walk starts; with changed parameters the winner may differ from the team that is paid."""
        self._counts_winners = self._game.zero_sum and not changed_rules
        self._earned = np.zeros(sim.num_envs)
        self._paid = np.zeros(sim.num_envs, np.bool_)
        self._late = np.zeros((sim.num_envs, len(self._game.agents)), np.bool_)

    def add(self, sim: Any, before: np.ndarray) -> None:
        """A decision was played; ``before`` holds which agents were alive before it."""
        over = sim.terminated | sim.truncated
        running = ~over[:, None]
        came = running & sim.alive & ~before
        self._late |= came
        there = self._late & sim.alive & running
        self.arrived += came.sum(axis=0)
        self.present += there.sum(axis=0)
        self.asked += (there & sim.acting).sum(axis=0)
        self.ever_asked |= sim.acting.any(axis=0)
        if self._counts_winners:
            last = sim.team_rewards(next(iter(self._game.teams))).astype(np.float64)
            self._earned += last
            self._paid |= last != 0.0
            for lane in np.flatnonzero(over).tolist():
                self._end(sim, lane, last[lane])
            self._earned[over], self._paid[over] = 0.0, False
        self._late[over] = False

    def _end(self, sim: Any, lane: int, last: float) -> None:
        winner = int(sim.final_info["winner"][lane])
        if winner not in (0, 1):
            return
        sign = 1.0 if winner == 0 else -1.0
        reason = int(sim.final_info["end_reason"][lane])
        if last != 0.0 or reason == HORIZON:
            of_last, of_all = sign * last, sign * self._earned[lane]
            gains = of_last > 0.0 or of_all > 0.0
            self.won[reason] += gains, not gains and (of_last < 0.0 or of_all < 0.0)
        self.unpaid[int(self._paid[lane])] += 1

    def wrong_winner(self) -> str:
        """Why the winners of a zero-sum game contradict what is paid, or ``""``.

        A winner gains by the last decision or by the match as a whole. Where the last decision pays no agent,
        something unpaid may have decided, such as the number of agents left. At the horizon another measure may decide:
        there the winners are wrong where fewer gain than pay.
        """
        for reason, (gain, lose) in self.won.items():
            most = gain if reason == HORIZON else SHARE * (gain + lose)
            if lose >= MATCHES and lose > most:
                return (
                    f"in {lose} of {gain + lose} matches that end by {self._game.end_reason(reason)!r} the winner is "
                    "paid less than 0, by the last decision or by all of them: info.winner is the number of the team "
                    "that has won"
                )
        never, some = self.unpaid.tolist()
        if never >= 2 * MATCHES and some == 0:
            return f"{never} matches of a zero-sum game have a winner, but none of their decisions pays an agent"
        return ""

    def never_asked(self) -> str:
        """Who arrives in matches and is never asked, though teammates are, or ``""``."""
        for slots in self._game.teams.values():
            members = list(slots)
            if not self.ever_asked[members].any():
                continue  # scenery
            for slot in members:
                if self.arrived[slot] >= ARRIVALS and self.present[slot] >= ALIVE and self.asked[slot] == 0:
                    return (
                        f"{self._game.agents[slot]} has arrived in {self.arrived[slot]} matches and was there for "
                        f"{self.present[slot]} decisions, but never acting: set s.acting[{slot}] = 1 too"
                    )
        return ""
