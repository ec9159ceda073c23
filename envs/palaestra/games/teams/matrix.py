"""Matrix games of two against two: the smallest games in which a team must agree, and their right answers are known.

## Description

All four players choose one of two or three alternatives at the same time. A table holds red's payoff for the joint
choice, in [-1, 1], and blue gets the opposite. The same table is played for a number of rounds; each player observes
what all have chosen in the last.

``game=`` names the table. In the first three, what red gets is what its own joint choice is worth less what blue's is:

* ``"saddle"``: (x + y + x y) / 3, where x is 0, 1/3 or 1 by the first member's choice and y is 1/3, 1 or 0 by the
  second's. It rises in both, so each player has one dominant choice, and a monotone mixture of
  utilities can hold the table: FM3Q must be exact here. A sum of utilities (VDN) cannot, though it finds the choices.
* ``"climb"``: 11 -30 0 / -30 7 6 / 0 0 5, divided by 41, with a row for each choice of the first member. Coordination
  under risk (Claus and Boutilier, AAAI 1998): the best, 0 0, is a disaster for a member that chooses it alone.
* ``"nonmonotone"``: 8 -12 -12 / -12 0 0 / -12 0 0, divided by 20 (Son et al., QTRAN, ICML 2019). No monotone mixture
  holds this table or the one before.
* ``"pennies"``: each team shows a side of a coin, and red wins 1 if both show the same, blue if they do not. A team
  whose members differ shows nothing and loses 1 to one that shows something; if both show nothing it is a draw.
* ``"repeated"``: the same with rock, paper and scissors: 1 beats 0, 2 beats 1, 0 beats 2. Over several rounds the art
  is to predict the other team from its last choice and to stay unpredictable.

In ``"saddle"``, ``"climb"`` and ``"nonmonotone"`` both teams have a best joint choice that needs no chance, 2 1 in the
first and 0 0 in the others, and the value is 0. The other two have no such choice. With a shared random signal that the
opponents do not see, a team can be sure of 0 a round: that is the value of the table, and what `palaestra.exact`
computes. Members that draw independently are sure of -1/2 in ``"pennies"`` (each shows either side at even chances) and
of 5 - 4 sqrt 2 = -0.657 in ``"repeated"`` (each plays one choice with probability sqrt 2 - 1, else the one that beats
it), without chance of -1: measure decentralised policies against these.

``payoff=`` takes a table of one's own, ``payoff[red_0, red_1, blue_0, blue_1]`` of equal sizes from 2 to 8, finite and
in [-1, 1].

The scripts: ``maximin`` plays the joint choice whose worst outcome is best, and of several those that are best against
the random player, one by a shared random signal: in all five tables that is the best there is. ``counter`` plays
the best answer to what the other team chose in the last round, and ``maximin`` in the first. A script at less than full
strength has members that fail each other: in ``"climb"`` a team at a quarter is no better than the random player.

## Action Space

<!-- table: action -->

## Observation Space

Choices are one-hot. Teammates and opponents are distinguished by their numbers, as the tables do. ``is_blue`` is there
unless exchanging the teams turns a table into its opposite: where it does (all but ``"pennies"``), both see the same
game.

<!-- table: observation -->

## Rewards

In every round red's members get the entry of the table, blue's members its negative.

## Starting State

Always the same: no choice has been made yet.

## Episode End

By rule after the last round (``over``); the team with the greater sum has won; a draw if both have 0. Never truncated
unless ``horizon`` is less than ``rounds``.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palaestra.game import Choice, Enumeration, Field, Game, Option, Role, integer, with_options

TABLES = ("saddle", "pennies", "climb", "nonmonotone", "repeated")

RED, BLUE = 0, 1
PLAYERS = 4
OVER = 2
"""Number of the end reason."""
MAXIMIN, COUNTER = 0, 1
"""Numbers of the scripts."""
COINS = 1024
"""Outcomes of the coin that the members of a team see. Only scripts look at it."""
DEAD_HEAT = 1e-9
"""Sums of payoffs that differ from 0 by less are rounding."""
MOST_CHOICES, MOST_ROUNDS = 8, 100
AGENTS = ("red_0", "red_1", "blue_0", "blue_1")

SADDLE_MARKS = ((0.0, 1 / 3, 1.0), (1 / 3, 1.0, 0.0))
"""What a choice of the first and of the second member is worth."""
CLIMBING = ((11, -30, 0), (-30, 7, 6), (0, 0, 5))
"""Claus and Boutilier, "The dynamics of reinforcement learning in cooperative multiagent systems", AAAI 1998."""
NONMONOTONE = ((8, -12, -12), (-12, 0, 0), (-12, 0, 0))
"""Son et al., "QTRAN: learning to factorize with transformation for cooperative multi-agent RL", ICML 2019."""


class Matrix(NamedTuple):
    """What does not change during a match.

    Attributes:
        payoff: What red gets, float64 [k, k, k, k], by the choices of red_0, red_1, blue_0 and blue_1.
        maximin: Joint choices of the script, by team, number and member, int64 [2, ties, 2].
        ties: How many of them each team has, int64 [2].
        counter: Best answer by team, joint choice of the other team and member, int64 [2, k, k, 2].
        rounds: Of a match.
    """

    payoff: np.ndarray
    maximin: np.ndarray
    ties: np.ndarray
    counter: np.ndarray
    rounds: int


# -- rules -------------------------------------------------------------------------------------------------------------


def reset(s, world):
    """No choice has been made."""
    s.coin = integer(s, COINS * COINS)
    s.played = 0
    s.total = 0.0


def step(s, world, actions, rewards, scratch):
    """One round."""
    for slot in range(PLAYERS):
        s.last[slot] = actions.player[slot].choice
    paid = world.payoff[s.last[0], s.last[1], s.last[2], s.last[3]]
    for slot in range(PLAYERS):
        rewards[slot] = paid if slot < 2 else -paid
    s.total += paid
    s.played += 1
    s.coin = integer(s, COINS * COINS)
    if s.played < world.rounds:
        return False
    s.info.end_reason = OVER
    if abs(s.total) > DEAD_HEAT:
        s.info.winner = RED if s.total > 0.0 else BLUE
    return True


def observe(s, world, observations, scratch):
    """The time and the last joint choice; all fields are zero before."""
    for slot in range(PLAYERS):
        seen = observations.player[slot]
        seen.is_second = slot & 1
        seen.time_left = 1.0 - s.played / world.rounds
        if s.played > 0:
            seen.last_own[s.last[slot]] = 1.0
            seen.last_teammate[s.last[slot ^ 1]] = 1.0
            seen.last_opponents[0, s.last[2 if slot < 2 else 0]] = 1.0
            seen.last_opponents[1, s.last[3 if slot < 2 else 1]] = 1.0


def observe_sides(s, world, observations, scratch):
    """The same where it matters which team one is."""
    observe(s, world, observations, scratch)
    for slot in range(PLAYERS):
        observations.player[slot].is_blue = slot >= 2


def script(s, world, slot, which, actions, scratch):
    """Tables made by `matrix`. Among equally good joint choices the team's own random draw decides."""
    team, member = slot // 2, slot & 1
    if which == COUNTER and s.played > 0:
        opponent = 2 - 2 * team
        actions.player[slot].choice = world.counter[team, s.last[opponent], s.last[opponent + 1], member]
    else:
        coin = s.coin // COINS if team == RED else s.coin % COINS
        actions.player[slot].choice = world.maximin[team, coin * world.ties[team] // COINS, member]


# -- tables ------------------------------------------------------------------------------------------------------------


def payoff_of(table: str) -> np.ndarray:
    """The payoffs to red of a named game, float64 [k, k, k, k]."""
    if table == "pennies":
        return contest(2, lambda red, blue: 1.0 if red == blue else -1.0)
    if table == "repeated":
        return contest(3, lambda red, blue: (0.0, 1.0, -1.0)[(red - blue) % 3])
    if table == "saddle":
        x, y = np.array(SADDLE_MARKS[0])[:, None], np.array(SADDLE_MARKS[1])
        return difference((x + y + x * y) / 3)
    if table == "climb":
        return difference(np.array(CLIMBING) / 41)
    return difference(np.array(NONMONOTONE) / 20)


def difference(own: np.ndarray) -> np.ndarray:
    """What each team's joint choice is worth by itself [k, k], red's less blue's."""
    return own[:, :, None, None] - own[None, None, :, :]


def contest(choices: int, beats: Any) -> np.ndarray:
    """Teams whose members agree meet by ``beats(red's choice, blue's)``; those whose members differ lose to them."""
    payoff = np.zeros((choices,) * PLAYERS)
    for joint in np.ndindex(*payoff.shape):
        red_agrees, blue_agrees = joint[0] == joint[1], joint[2] == joint[3]
        both = red_agrees and blue_agrees
        payoff[joint] = beats(joint[0], joint[2]) if both else float(red_agrees) - float(blue_agrees)
    return payoff


def checked(payoff: ArrayLike) -> np.ndarray:
    """A table of the user's, float64 [k, k, k, k].

    Raises:
        ValueError: It is no such table; the message gives the reason.
    """
    table = np.array(payoff, np.float64)
    if table.ndim != PLAYERS or len(set(table.shape)) != 1 or not 2 <= len(table) <= MOST_CHOICES:
        raise ValueError(
            f"payoff must have shape (k, k, k, k), k from 2 to {MOST_CHOICES}, one axis a player "
            f"({', '.join(AGENTS)}), got {table.shape}"
        )
    for joint in np.argwhere(~(np.abs(table) <= 1.0)):  # NaN too
        where = ", ".join(map(str, joint))
        raise ValueError(f"payoffs must be in [-1, 1], but payoff[{where}] is {table[tuple(joint)]}")
    return table


def is_antisymmetric(payoff: np.ndarray) -> bool:
    """Whether exchanging the teams gives the opposite table."""
    return bool((payoff == -payoff.transpose(2, 3, 0, 1)).all())


def matrix(payoff: np.ndarray, rounds: int) -> Matrix:
    """The world of a game: the table and what the scripts make of it."""
    choices = len(payoff)
    gains = payoff.reshape(choices**2, choices**2)
    best_choices, counter = [], []
    for own in (gains, -gains.T):  # [own joint choice, theirs]
        worst, mean = own.min(1), own.mean(1)
        mean[worst < worst.max() - DEAD_HEAT] = -np.inf
        best = np.flatnonzero(mean >= mean.max() - DEAD_HEAT)
        best_choices.append(np.stack(np.divmod(best, choices), 1))
        counter.append(np.stack(np.divmod(own.argmax(0), choices), 1).reshape(choices, choices, 2))
    ties = np.array([len(best) for best in best_choices])
    maximin = np.zeros((2, ties.max(), 2), np.int64)
    for team, best in enumerate(best_choices):
        maximin[team, : len(best)] = best
    return Matrix(payoff, maximin, ties, np.array(counter), int(rounds))


# -- positions ---------------------------------------------------------------------------------------------------------


def write_state(choices: int, states: Any, numbers: np.ndarray) -> None:
    """See `Enumeration.write_state`: number 0 is the start, then come the joint choices of each round but the last."""
    rounds, joint = np.divmod(np.asarray(numbers, np.int64) - 1, choices**PLAYERS)
    states["played"] = rounds + 1
    states["last"] = np.stack(np.unravel_index(joint, (choices,) * PLAYERS), -1) * (rounds >= 0)[:, None]
    states["alive"] = states["acting"] = 1


def state_index(choices: int, states: Any) -> np.ndarray:
    """See `Enumeration.state_index`. Leaves out the sum of payoffs (for the winner) and the coin (for scripts)."""
    last = states["last"]
    joint = np.ravel_multi_index([last[:, slot] for slot in range(PLAYERS)], (choices,) * PLAYERS)
    return np.where(states["played"] == 0, 0, 1 + (states["played"] - 1) * choices**PLAYERS + joint)


def mirror(states: Any, actions: Any) -> None:
    """Exchanges the teams. The coin falls on the other side."""
    exchanged = [2, 3, 0, 1]
    for name in ("last", "alive", "acting"):
        states[name] = states[name][:, exchanged]
    states["total"] = -states["total"]
    states["coin"] = COINS * COINS - 1 - states["coin"]
    actions["player"] = actions["player"][:, exchanged]


# -- the game ----------------------------------------------------------------------------------------------------------


def seen_by_players(choices: int, sides: bool) -> tuple[Field, ...]:
    """What a player sees."""
    named = tuple(f"choice {k}" for k in range(choices))
    seen = [
        Field("time_left", (), 0, 1, about="share of the rounds that is still to be played"),
        Field(
            "last_own",
            (choices,),
            0,
            1,
            about="its choice in the last round, one-hot; all 0 before the first",
            parts=named,
        ),
        Field("last_teammate", (choices,), 0, 1, about="likewise its teammate's", parts=named),
        Field("last_opponents", (2, choices), 0, 1, about="likewise the opponents', by their numbers", parts=named),
        Field("is_second", (), 0, 1, about="it is the second of its team"),
    ]
    if sides:
        seen.append(Field("is_blue", (), 0, 1, about="its team is blue"))
    return tuple(seen)


@with_options(
    Option("game", "saddle", "name of the table", words=TABLES, only={"payoff": None}),
    Option("rounds", 10, "how often it is played in a match; 1 makes a one-shot game", low=1, high=MOST_ROUNDS),
    Option(
        "payoff",
        None,
        "a table of your own instead, `[k, k, k, k]` by the choices of red_0, red_1, blue_0 and blue_1",
        check=lambda payoff, above: checked(payoff),
        example=np.full((2,) * PLAYERS, 0.5),
    ),
)
def game(options: Any) -> Game:
    """The rules of `palaestra/TeamMatrix-v0`."""
    rounds = options.rounds
    table = payoff_of(options.game) if options.payoff is None else options.payoff
    choices, alike = len(table), is_antisymmetric(table)
    return Game(
        name="TeamMatrix",
        roles=(
            Role(
                "player",
                AGENTS,
                seen_by_players(choices, not alike),
                (Choice("choice", choices, about="what the table calls it"),),
            ),
        ),
        state=(("played", "i8"), ("last", "i8", (PLAYERS,)), ("total", "f8"), ("coin", "i8")),
        reset=reset,
        step=step,
        observe=observe if alike else observe_sides,
        script=script,
        scripts=("maximin", "counter"),
        default_opponent="maximin",
        horizon=MOST_ROUNDS,
        render="palaestra.games.teams.render_matrix:draw_matrix",
        render_fps=2.0,
        end_reasons=("over",),
        world=matrix(table, rounds),
        zero_sum=True,
        determinism="cross-platform",
        enumeration=Enumeration(
            positions=1 + (rounds - 1) * choices**PLAYERS,
            write_state=partial(write_state, choices),
            state_index=partial(state_index, choices),
        ),
        symmetric_teams=alike,
        mirror=mirror if alike else None,
    )
