"""An opponent that in a share of its decisions does what is worst for the learner, by the values of a policy.

Robust adversarial learning asks how a policy fares against one that mixes its usual play with what hurts most; in
Reddi, Tölle, Peters, Chalvatzaki and D'Eramo, "Robust Adversarial Reinforcement Learning via Bounded Rationality
Curricula" (arXiv 2311.01642) a temperature says how rational the adversary is. Here a share of its decisions does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import CALLER
from palaestra.core.contract.action_shapes import actions_by_role
from palaestra.core.rng import GOLDEN, SHIFT_11, TO_UNIT, mix64
from palaestra.core.run.opponents import (
    DEFAULT,
    MIXTURES,
    Opponent,
    OpponentSpec,
    player_name,
    resolve,
    split_strength,
)
from palaestra.game import Game
from palaestra.wrappers.pool import put_rows, room_for, rows_of

PREFIX = "adversary:"
SALT = np.uint64(0x6164_7665_7273_6172)
DECISIONS, OWN = range(2)
"""Cells of the memory: decisions in the lane so far, then the numbers of the player and of the policy."""


@dataclass(frozen=True)
class Adversary:
    """Becomes an `AdversaryPlayer` of the team that it is assigned to.

    ::

        adversary = Adversary("default", "trained_against_me.safetensors", share=0.2)
        envs = gymnasium.make_vec("palaestra/TeamTag-v0", num_envs=64, opponent=adversary)

    Attributes:
        player: Who plays else: a script with a strength or without, ``"random"``, a file, or an `Opponent`. A mixture
            of scripts is a `palaestra.wrappers.SelfPlayPool` of them.
        policy: Who plays a share of the decisions: the file of a policy, or an `Opponent`. The greedy players of
            learnt files do what is worth most to their own team, which in a zero-sum game is worst for the other.
        share: Probability in [0, 1] with which a decision of the team is the policy's, drawn anew for each.
    """

    player: OpponentSpec
    policy: OpponentSpec
    share: float

    def for_team(self, game: Game, team: str) -> AdversaryPlayer:
        """The player of one team.

        Raises:
            ValueError: A share outside [0, 1], a mixture of scripts, a script as the policy, or a player that does not
                fit the team.
        """
        if not 0.0 <= self.share <= 1.0:
            raise ValueError(f"share is a probability in [0, 1], got {self.share}")
        name, strength = split_strength(game, self.player)
        if isinstance(name, str) and name in MIXTURES and name not in game.scripts:
            raise ValueError(
                f"{name!r} draws a script for each match: give SelfPlayPool(id, team, [scripts]) as player"
            )
        player, policy = resolve(game, team, name), resolve(game, team, self.policy)
        if CALLER in (player, policy) or isinstance(policy, int):
            raise ValueError(
                "an adversary needs a player and a policy (a file or an Opponent; scripts have no values), got "
                f"{self.player!r} and {self.policy!r}"
            )
        return AdversaryPlayer(game, team, player, strength, policy, self.share)


def read_name(text: str) -> Adversary:
    """The adversary of ``adversary:SHARE:FILE``: the game's default opponent, and a share of its decisions by a policy.

    Raises:
        ValueError: Not of that form, or the share is no probability; says what to write.
    """
    digits, _, policy = text.removeprefix(PREFIX).partition(":")
    try:
        share = float(digits)
    except ValueError:
        share = -1.0
    if not policy or not 0.0 <= share <= 1.0:
        raise ValueError(
            f'{text!r}: write "adversary:SHARE:FILE", a probability in [0, 1] and the file of the policy that plays '
            'this share of the decisions, as in "adversary:0.2:blue.safetensors"; the default opponent plays the others'
        )
    return Adversary(DEFAULT, policy, share)


class AdversaryPlayer:
    """Plays one team: see `Adversary`, and `palaestra.core.run.opponents.Opponent` for its attributes."""

    def __init__(
        self, game: Game, team: str, player: int | Opponent, strength: float, policy: Opponent, share: float
    ) -> None:
        """See `Adversary.for_team`; a script is its number."""
        self.game, self.team, self.player, self.strength, self.policy, self.share = (
            *(game, team, player, strength, policy, share),
        )
        if hasattr(player, "reward_at") or hasattr(policy, "reward_at"):
            raise ValueError("a player that reads its rewards cannot be part of an adversary: it passes none on")
        if getattr(policy, "kept_size", 0):
            raise ValueError(f"{player_name(policy)} remembers more than a match: give a policy that does not")
        self.kept_size = OWN + getattr(player, "kept_size", 0)
        self.sizes = [0 if isinstance(part, int) else part.memory_size for part in (player, policy)]
        self.memory_size = OWN + sum(self.sizes)
        self.name = f"adversary of {player_name(policy)}"
        self.script_players: tuple[np.ndarray, np.ndarray] | None = None

    def act(
        self,
        observations: Any,
        legal: Any,
        acting: np.ndarray,
        first: np.ndarray,
        seeds: np.ndarray,
        memory: np.ndarray,
    ) -> Any:
        """See `palaestra.core.run.opponents.Opponent`. Both players see all decisions, so that both remember them."""
        memory[:, DECISIONS] += 1.0
        with np.errstate(over="ignore"):
            bits = mix64(mix64(seeds ^ SALT) + GOLDEN * memory[:, DECISIONS].astype(np.uint64))
        is_adverse = (bits >> SHIFT_11).astype(np.float64) * TO_UNIT < self.share
        middle = OWN + self.sizes[0]
        chosen = self._in_one_form(
            self.policy.act(observations, legal, acting, first, seeds, memory[:, middle:]), len(memory)
        )
        if isinstance(self.player, int):
            self.script_players = np.where(is_adverse, CALLER, self.player), np.full(len(memory), self.strength)
            return chosen
        usual = self.player.act(observations, legal, acting, first, seeds, memory[:, OWN:middle])
        named = getattr(self.player, "script_players", None)
        numbers, strengths = named or (np.full(len(memory), CALLER), np.ones(len(memory)))
        self.script_players = np.where(is_adverse, CALLER, numbers), strengths
        rows = np.flatnonzero(~is_adverse & (numbers == CALLER))
        if rows.size:
            both = room_for(chosen, len(memory))
            put_rows(both, np.arange(len(memory)), chosen)
            put_rows(both, rows, rows_of(self._in_one_form(usual, len(memory)), rows))
            chosen = both
        return chosen

    def _in_one_form(self, actions: Any, n: int) -> Any:
        """The actions of a player for n lanes: players may give them in different shapes."""
        parts = actions_by_role(self.game, self.team, actions, n)
        return parts if len(parts) > 1 else next(iter(parts.values()))
