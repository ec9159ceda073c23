"""The environments of Skirmish: each function makes the rules of some ids that `palaestra.skirmish` registers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.game import Game
from palaestra.core.keywords import check_count, check_word
from palaestra.skirmish import orders
from palaestra.skirmish.build import CAPACITIES, SMAC, SPARSE, Twist, make_game
from palaestra.skirmish.maps import BattleMap, Side, load
from palaestra.skirmish.records import MOST_CHANGES

REWARDS = (SMAC, SPARSE)
RACES = {
    "a": (("marine", 0.45), ("marauder", 0.45), ("medivac", 0.1)),
    "b": (("stalker", 0.45), ("zealot", 0.45), ("colossus", 0.1)),
    "c": (("zergling", 0.45), ("hydralisk", 0.45), ("baneling", 0.1)),
}
"""Kinds and weights of SMACv2's three races (its configurations ``sc2_gen_*.yaml``)."""
MIXED = tuple(kind for race in RACES.values() for kind in race)
VIEWS = {"round": -2.0, "cone": math.sqrt(2.0 + math.sqrt(3.0)) / 2.0}
"""Cosine of half the angle of sight: 15 degrees of SMACv2's cone, a twelfth of the circle."""
DRILLS = {
    "beacon": "beacon",
    "shards": "shards",
    "hunt": "hunt",
    "waves": "roach-waves",
    "splash_waves": "splash-waves",
}
"""Scenarios of the drills."""
ABILITIES = {"never": 0, "always": 1, "drift": 2}
CHANGE_GAP = (8, 20)
"""Decisions from one change of sides to the next, least and most."""
USE = (orders.BOOST, *(orders.JUMP + k for k in range(4)))
TURN = tuple(orders.LOOK + k for k in range(orders.DIRECTIONS))


def battle(map: str | Path = "3m", reward: str = "smac", compat: str = "clean") -> Game:
    """The battle of a map: red's units learn, blue's follow a script.

    Args:
        map: Name of a bundled map, or a path: see `palaestra.skirmish.maps.load`.
        reward: ``"smac"``: damage to opponents, kills and victory, scaled so that all of it is 20 in a match;
            ``"sparse"``: 1 for a victory and -1 for a defeat, at the end.
        compat: ``"clean"``, or ``"smac"`` for SMAC's observations, state, masks and rewards: see
            `palaestra.skirmish.smac_view`.

    Raises:
        ValueError: No such map, reward or compat, or a map whose units do not fit into memory or on the ground.
        FileError: The file of the map cannot be used.
    """
    check_word("reward", reward, REWARDS)
    check_word("compat", compat, ("clean", "smac"))
    return make_game([load(map)], Twist(reward, is_smac=compat == "smac"))


def generated(race: str = "a", own: int = 5, others: int = 5, view: str = "round", reward: str = "smac") -> Game:
    """A battle whose kinds and places are drawn for each match, after SMACv2 (Ellis et al. 2023).

    Each kind sees and shoots as far as its own numbers say. With ``view="cone"`` a unit sees and aims only within 15
    degrees of the direction that it looks to, one of 12, which an order each turns it to.

    Args:
        race: ``"a"`` marines, marauders, medivacs; ``"b"`` stalkers, zealots, colossi; ``"c"`` zerglings, hydralisks,
            banelings, each 45, 45 and 10 %; ``"mixed"`` all of them.
        own: Units of red, 1 to 27.
        others: Units of blue, 1 to 32.
        view: ``"round"`` or ``"cone"``.
        reward: As for `battle`; the scale is that of the expected kinds.

    Raises:
        ValueError: No such race, view or reward, or a number out of range.
    """
    check_word("race", race, (*RACES, "mixed"))
    check_word("view", view, tuple(VIEWS))
    check_word("reward", reward, REWARDS)
    check_count("own", own, 1, CAPACITIES[1][0])
    check_count("others", others, 1, CAPACITIES[1][1])
    ground = load("open")
    kinds = MIXED if race == "mixed" else RACES[race]
    sides = [_repeated(side, count) for side, count in ((ground.red, own), (ground.blue, others))]
    turns = TURN if view == "cone" else ()
    twist = Twist(reward, red_orders=turns, race=kinds, own_sight=True, view=VIEWS[view])
    return make_game([dataclasses.replace(ground, red=sides[0], blue=sides[1])], twist)


def _repeated(side: Side, count: int) -> Side:
    """A side of ``count`` units like its first."""
    more = {name: np.repeat(getattr(side, name)[:1], count, axis=0) for name in ("positions", "arrivals", "waves")}
    return dataclasses.replace(side, units=side.units[:1] * count, **more)


def scenario(map: str | Path = "waves", reward: str = "smac") -> Game:
    """A battle to which units come late: reinforcements of both sides, or allies one by one.

    They have names of their own and arrive at a decision that is drawn for each, or as soon as their side has nobody on
    the field.

    Args:
        map: ``"waves"``, ``"late"``, or any other map: `palaestra.skirmish.maps` says how groups arrive.
        reward: As for `battle`.

    Raises:
        ValueError: No such map or reward, or a map whose units do not fit.
        FileError: The file of the map cannot be used.
    """
    check_word("reward", reward, REWARDS)
    return make_game([load(map)], Twist(reward))


def abilities(map: str | Path = "3s5z_vs_3s6z", when: str = "drift", reward: str = "smac") -> Game:
    """A battle in which red's units have abilities, which come and go: their actions change during a match.

    Marines and marauders walk and shoot faster for a while and pay hit points for it, zealots run, stalkers jump 8
    cells to the north, south, east or west.

    Args:
        map: As for `battle`.
        when: ``"drift"``: each unit has its ability from a decision in [0, 20] on, for 15 to 45 decisions; ``"always"``
            or ``"never"``.
        reward: As for `battle`.

    Raises:
        ValueError: No such map, time or reward, or a map whose units do not fit.
        FileError: The file of the map cannot be used.
    """
    check_word("reward", reward, REWARDS)
    check_word("when", when, tuple(ABILITIES))
    return make_game([load(map)], Twist(reward, red_orders=USE, abilities=ABILITIES[when]))


def drawn_maps(maps: Sequence[str | Path] = ("3m", "5m"), reward: str = "smac") -> Game:
    """Battles on several maps, of which each match draws one: as many agents as the largest has, the absent are dead.

    Args:
        maps: As for `battle`, at least one; all by one ruleset.
        reward: As for `battle`, on each map by its own scale.

    Raises:
        ValueError: No maps, no such map or reward, maps of several rulesets, or units that do not fit.
        FileError: The file of a map cannot be used.
    """
    check_word("reward", reward, REWARDS)
    if isinstance(maps, str | Path) or len(maps) == 0:
        raise ValueError(f'maps must be a list of maps, like ["3m", "5m"], got {maps!r}')
    return make_game([load(name) for name in maps], Twist(reward))


def turncoats(map: str | Path = "5m_vs_6m", changes: int = 3, reward: str = "smac") -> Game:
    """A battle in which units change sides: each leaves its slot and continues in one of the other side.

    Every 8 to 20 decisions one of the fighters of both sides is drawn that leaves another one behind.

    Args:
        map: As for `battle`.
        changes: Units that change sides in a match, 0 to 4.
        reward: As for `battle`.

    Raises:
        ValueError: No such map or reward, a number out of range, or a map whose units do not fit.
        FileError: The file of the map cannot be used.
    """
    check_word("reward", reward, REWARDS)
    check_count("changes", changes, 0, MOST_CHANGES)
    return make_game([load(map)], Twist(reward, changes=changes, change_gap=CHANGE_GAP, spare=(changes, changes)))


def duel(map: str | Path = "3m", reward: str = "smac") -> Game:
    """A battle in which both sides learn, zero-sum: blue sees and moves mirrored, so that one policy plays both.

    Neither side has an order to attack on its way: both are in the learner's place.

    Args:
        map: As for `battle`. Where both sides have the same units at mirrored points of mirrored open ground, the teams
            are symmetric.
        reward: ``"smac"``: difference of damage, kills and victory; ``"sparse"``: 1 for a victory, -1 for a defeat.

    Raises:
        ValueError: No such map or reward, or a map whose units do not fit.
        FileError: The file of the map cannot be used.
    """
    check_word("reward", reward, REWARDS)
    ground = load(map)
    more: dict[str, Any] = dict(symmetric_teams=True, mirror=Mirror(ground)) if is_mirrored(ground) else {}
    return make_game([ground], Twist(reward, both_learn=True), zero_sum=True, default_opponent="focus_fire", **more)


def is_mirrored(ground: BattleMap) -> bool:
    """Whether both sides of a map have the same units, points and ground, mirrored in x, and no wall between."""
    rows = np.flatnonzero(ground.walkable.any(axis=1))
    return (
        ground.red.units == ground.blue.units
        and bool(ground.walkable[rows[0] : rows[-1] + 1].all())
        and np.array_equal(ground.red.positions, (ground.size[0], 0) + ground.blue.positions * (-1, 1))
        and not (ground.red.arrivals.any() or ground.red.waves.any())
        and not (ground.blue.arrivals.any() or ground.blue.waves.any())
    )


@dataclasses.dataclass(frozen=True)
class Mirror:
    """Reflects matches of a duel in x and exchanges the sides, see `palaestra.core.game.Game.mirror`."""

    ground: BattleMap

    def __call__(self, states: Any, actions: Any) -> None:
        """Changes records ``[N]`` in place."""
        count, width = len(self.ground.red.units), self.ground.size[0]
        partner = np.arange(states["kind"].shape[1])
        partner[: 2 * count] = np.roll(partner[: 2 * count], count)
        for name in states.dtype.names:
            if name in ("alive", "acting") or (name not in KEPT and states[name].shape[1:2] == partner.shape):
                states[name] = states[name][:, partner]
        for name in ("position", "goal"):
            states[name][:, : 2 * count, 0] = width - states[name][:, : 2 * count, 0]
        states["goal_of_blue"][:, 0] = width - states["goal_of_blue"][:, 0]
        for name in ("luck", "to_come"):
            states[name] = states[name][:, ::-1]
        for name in ("target", "shot_at"):
            known = states[name] >= 0
            states[name] = np.where(known, partner[np.where(known, states[name], 0)], states[name])
        sideways = (states["order"] == orders.EAST) | (states["order"] == orders.WEST)
        states["order"] = np.where(sideways, orders.EAST + orders.WEST - states["order"], states["order"])
        states["facing"] = (orders.DIRECTIONS // 2 - states["facing"]) % orders.DIRECTIONS
        actions["unit"] = actions["unit"][:, partner]


KEPT = ("team", "current_player", "assigned_player", "strength")
"""Fields of the suite that belong to the slots, not to who is in them."""


def drill(name: str = "beacon") -> Game:
    """An exercise after one of pysc2's mini-games (Vinyals et al. 2017), on the rules of Skirmish.

    Args:
        name: ``"beacon"``: a marine goes to a beacon, 1 each time, which then is somewhere else. ``"shards"``: two
            marines collect shards, 1 each, 20 at a time. ``"hunt"``: three marines find 25 zerglings, 1 for each, -1
            for a marine. ``"waves"``: nine marines and five more for each wave of four roaches, 10 and -1.
            ``"splash_waves"``: nine and four more for each wave of zerglings and banelings, 5 and -1.

    Raises:
        ValueError: No such drill.
    """
    check_word("name", name, tuple(DRILLS))
    return make_game([load(DRILLS[name])], Twist())
