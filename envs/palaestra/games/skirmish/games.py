"""The environments of Skirmish: each function makes the rules of some ids that `palaestra.games.skirmish` registers.

The page of an environment has the sections of its function, and those below that the function lacks.

## Action Space

An agent is one unit. Each decision it gets one order:

<!-- table: action -->

0 to 5 are the same for all units; further orders of the team follow, and then one action for each target: opponent 0,
opponent 1, ..., or for a healer teammate 0, teammate 1, ... A move leads towards a point 2 cells away; a marine walks
1.1 cells in a decision. A unit that is ordered to attack walks until its weapon reaches the target.

The mask of a living unit allows `stop`; a move, if the point one cell ahead is open; a target that lives, that the
weapon can hit (or the healer heal) and that is at most 6 cells away from centre to centre (in SkirmishGen as far as the
weapon reaches). `nothing` is for the dead alone. `attack_move` is for blue where it does not learn: go where the map
orders the team and attack what comes near on the way.

Scripts: ``"builtin"`` attacks on its way, by the engine's priorities; ``"hold"`` stays
and attacks what is in reach; ``"nearest"`` and ``"weakest"`` go to the nearest opponent and attack the nearest or the
weakest one in reach; ``"focus_fire"`` attacks one target with all; ``"kite"`` shoots and walks away from slower
pursuers; ``"retreat_heal"`` takes the wounded back; ``"split"`` keeps apart where there is splash damage;
``"surround"`` encloses the opponents. Who has no `attack_move` plays ``"nearest"`` as ``"builtin"``.

## Observation Space

A unit sees what is less than 9 cells away (in SkirmishGen as far as its kind sees). Each other unit has its own row of
`units` for the whole match; the row is 0 while that unit is dead, not there yet, or out of sight. Where blue does not
learn, its table is small: scripts read the match itself.

<!-- table: observation -->

``env.state()`` has 14 numbers for each unit, for centralised critics: `palaestra.games.skirmish.observe.global_state`.

## Rewards

The members of red share one reward; blue is paid nothing. ``reward="smac"``: for each hit point and shield that blue
loses by attacks, 10 for each kill and 200 for the victory, times 20 / (all hit points and shields of blue + 10 for each
of its units + 200). A victory over units that do not recover pays 20 in all. ``reward="sparse"``: 1 for a victory, -1
for a defeat, 0 else.

## Episode End

A match ends when a team has no unit left that can shoot (``wiped_out``), and the other has won; both at once is a draw.
It is truncated at the map's limit (``horizon``); then nobody has won.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import palaestra_assets
from palaestra.core.files import TextFile, TextSource
from palaestra.game import Game, Option, with_options
from palaestra.games.skirmish import orders, smac_view
from palaestra.games.skirmish.battle_records import MOST_CHANGES
from palaestra.games.skirmish.build import CAPACITIES, SMAC, SPARSE, Variant, make_game, mirror_of
from palaestra.games.skirmish.maps import BattleMap, Side, is_bundled, load
from palaestra.games.skirmish.ruleset import is_bundled_ruleset

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
USE = (orders.BOOST, *(orders.JUMP + k for k in range(4)))
TURN = tuple(orders.LOOK + k for k in range(orders.DIRECTIONS))

MAP = Option(
    "map",
    "3m",
    "name of a bundled map, or the path of a file of yours: [your own battle](../guides/your_own_battle.md)",
    texts=is_bundled,
    example="2s3z",
)
REWARD = Option("reward", SMAC, "what is paid: see Rewards", words=(SMAC, SPARSE))
SMAC_NUMBERS = palaestra_assets.path("skirmish/rulesets/smac-4.10.json").read_text(encoding="utf-8")
RULESET = Option(
    "ruleset",
    None,
    "file with other numbers of units, in place of `smac-4.10`: [your own battle](../guides/your_own_battle.md)",
    texts=is_bundled_ruleset,
    example=TextFile("near.json", SMAC_NUMBERS.replace('"sight": 9', '"sight": 6')),
)


@with_options(
    MAP,
    REWARD,
    Option(
        "smac_rules",
        False,
        "what may be ordered, what is paid and who has won are SMAC's (`palaestra.games.skirmish.smac_view`)",
    ),
    RULESET,
)
def battle(options: Any) -> Game:
    """Skirmish: a team of units learns to win against scripted ones, on the 23 maps of SMAC, without a game client.

    Raises:
        ValueError: No such map or ruleset, or a map whose units do not fit into memory or on the ground.
        FileError: The file of the map or of the ruleset cannot be used.

    ## Description

    Red learns: one agent for each of its units. Blue has one order from its map, as a rule to attack on its way to
    where red begins; on 2c_vs_64zg it hunts red, on 2s_vs_1sc it stays. A decision is 8 loops of simulation, half a
    second of the game. During a match units die and leave; nothing else changes.

    Units, maps, limits and rewards are those of SMAC (Samvelyan et al. 2019) as far as they are public: the file of
    each map and of the ruleset says where its numbers come from, and which are approximations.

    What differs from SMAC, and why:

    * The game's engine is not here. Its rules of combat are written anew from public numbers, how units steer and push
      each other is ours, so figures from SMAC's papers do not carry over. A policy that is good here need not be good
      there.
    * An observation has a row for each unit with its attributes and its range in place of a one-hot kind, so that it
      means the same on all maps. ``observation="smac"`` shows SMAC's vectors and state, value for value.
    * Shields and hit points that blue recovers pay nothing. In SMAC they do. ``smac_rules=True`` has SMAC's masks and
      rewards, value for value.
    * A match that reaches its limit is truncated. In SMAC it terminates (so do matches of `palaestra.adapters.pymarl`).
    * A weapon fires in the loop in which it has cooled down, and the part of a loop that is over is lost. So its time
      between two shots is a whole number of loops: a zergling attacks 7.8 % more slowly than by its numbers, a
      hydralisk 6.1, a baneling 5.0, a zealot 4.2, an immortal 3.5, a marine 1.6, all others at most 1.3.
    * Units whose target stands where they cannot go, on a cliff or over a wall, walk to the ground nearest to it.
    * Red may be any script too, and blue a player of yours.

    ## What Each Map Measures

    Share of matches won against ``builtin`` by players that have learnt nothing (1,024 matches each, ``python
    benchmarks/learn.py skirmish_scripts``), of the unshaped and generated battles too. On bane_vs_bane and
    so_many_baneling chains of explosions decide: ``split`` wins all matches by keeping units apart, and random play,
    which spreads them too, wins many. They measure nothing else.

    <!-- begin: what battles measure -->
    <!-- end: what battles measure -->

    ## Starting State

    Units stand in formation around the points of their map, always the same, on most maps red in the west. Where both
    sides have the same units, blue's first one is the mirror image of red's first, and so on, so that a script fares
    on both sides alike (``smac_rules=True`` keeps SMAC's order). Where the map has two points for blue's goal, a point
    between them is drawn. The time between two shots of a weapon varies by -1 to +2 loops.
    """
    ground = load(options.map, options.ruleset)
    game = make_game([ground], Variant(options.reward, smac_rules=options.smac_rules))
    return replace(game, representations={"smac": smac_view.representation(ground, game)})


@with_options(
    Option(
        "race",
        "a",
        "a: marine, marauder, medivac; b: stalker, zealot, colossus; c: zergling, hydralisk, baneling; mixed: all nine",
        words=(*RACES, "mixed"),
    ),
    Option("own", 5, "units of red", low=1, high=CAPACITIES[1][0]),
    Option("others", 5, "units of blue (`opponents=` are their players)", low=1, high=CAPACITIES[1][1]),
    Option("view", "round", "where a unit sees and aims: all around, or ahead alone", words=tuple(VIEWS)),
    REWARD,
)
def generated(options: Any) -> Game:
    """SkirmishGen: units and places are drawn anew for each match, after SMACv2.

    ## Description

    Red learns: one agent for each of its units. Blue hunts red with its script. Kinds and places are other ones in each
    match, so that a sequence of orders learnt by heart does not win; this is what SMACv2 (Ellis et al. 2023) is for.
    During a match units die and leave; nothing else changes.

    Each kind has its own ranges of sight and of weapons; targets may be ordered within the weapon's range, at least
    within 2 cells. With ``view="cone"`` a unit sees and aims only within 15 degrees of the direction that it looks to,
    one of 12; the orders `look_0` to `look_330` turn it.

    What differs from SMACv2: the game's engine is not here, and steering is ours (see Skirmish). Observations are those
    of Skirmish. There is no extended partial observability, where teammates share what the first of them sees by
    chance.

    ## Rewards

    As in Skirmish. The scale of ``reward="smac"`` is that of the expected hit points and shields of blue, the same in
    all matches: weak opponents pay a little less than 20 in all, strong ones more.

    ## Starting State

    Each unit of red is drawn: 45, 45 and 10 % for the three kinds of a race, and blue gets the same kinds; what blue
    has more is drawn too. A team without a unit that can shoot and survive it is drawn again. In half of the matches
    red stands anywhere in the western half and blue as its mirror image; in the others red stands in the middle, and
    blue in one to four groups on the diagonals. Maps are 32 x 32 cells without walls.
    """
    ground = load("open")
    red, blue = _repeated(ground.red, options.own), _repeated(ground.blue, options.others)
    kinds, turns = RACES.get(options.race, MIXED), TURN if options.view == "cone" else ()
    variant = Variant(options.reward, red_orders=turns, race=kinds, view=VIEWS[options.view])
    return make_game([replace(ground, red=red, blue=blue)], variant)


def _repeated(side: Side, count: int) -> Side:
    """A side of ``count`` units like its first."""
    more = {name: np.repeat(getattr(side, name)[:1], count, axis=0) for name in ("positions", "arrivals", "waves")}
    return replace(side, units=side.units[:1] * count, **more)


@with_options(replace(MAP, default="waves"), REWARD)
def scenario(options: Any) -> Game:
    """SkirmishWaves: battles with reinforcements, each an agent with a name of its own.

    Raises:
        ValueError: No such map, or one whose units do not fit.
        FileError: The file of the map cannot be used.

    ## Description

    Red learns: one agent for each of its units. The number of agents falls when units die and rises when units arrive,
    which is what UNMAS (Chai et al. 2023) calls unshaped. In a `ParallelEnv` the agent of a reinforcement is in
    ``possible_agents`` from the beginning and in ``agents`` from its arrival on; in arrays its row is there all the
    time and ``alive`` is 0 before.

    * ``Waves``: five marines a side; then three marines and two marauders join red, three zealots and three marines
      blue, which hunts red.
    * ``Late``: four marines against six that attack on their way; four more join red, one by one.

    On a map of yours groups arrive as `palaestra.games.skirmish.maps` says.

    ## Starting State

    Units stand in formation around the points of their map. The arrival of each reinforcement is drawn uniformly: in
    decisions 10 to 30, 25 to 45 or 40 to 60 in ``Waves``, 5 to 40 in ``Late``. A team that has no unit on the field
    gets its next one at once.

    ## Episode End

    A match ends when a team has no unit left that can shoot, on the field or to come (``wiped_out``), and the other has
    won; both at once is a draw. It is truncated at the map's limit (``horizon``); then nobody has won.
    """
    return make_game([load(options.map)], Variant(options.reward))


@with_options(
    replace(MAP, default="3s5z_vs_3s6z"),
    Option("when", "drift", "when a unit has its ability: see Starting State", words=("never", "always", "drift")),
    REWARD,
)
def abilities(options: Any) -> Game:
    """SkirmishAbilities: what a unit can do changes during a match.

    Raises:
        ValueError: No such map, or one whose units do not fit.
        FileError: The file of the map cannot be used.

    ## Description

    Red learns: one agent for each of its units. Blue attacks on its way. Red's units have abilities, which come and go:
    the numbers of legal actions of an agent change during a match, as in the problems of UNMAS (Chai et al. 2023). The
    field `ability` shows what a unit has now, the mask when it may use it.

    * `boost`: marines and marauders walk and shoot half as fast again for 15 s and pay 10 or 20 hit points for it;
      zealots run.
    * `jump_north` to `jump_west`: stalkers are 8 cells farther at once, or less far where a wall is.

    ## Starting State

    Units stand in formation around the points of their map. With ``when="drift"`` each unit has its ability from a
    decision on that is drawn from 0 to 20, for 15 to 45 decisions.
    """
    return make_game([load(options.map)], Variant(options.reward, red_orders=USE, abilities=options.numbers.when))


def load_all(maps: Any, options: Mapping[str, Any]) -> list[BattleMap]:
    """Reads the maps of a list.

    Raises:
        ValueError: No list, an empty one, or no such map.
        FileError: The file of a map cannot be used.
    """
    if isinstance(maps, TextSource) or len(maps) == 0:
        raise ValueError(f'maps must be a list of maps, like ["3m", "5m"], got {maps!r}')
    return [load(name) for name in maps]


@with_options(
    Option(
        "maps",
        ("3m", "5m"),
        "names of bundled maps or paths of files of yours, at least one, all by one ruleset",
        texts=is_bundled,
        check=load_all,
        example=("3m", "8m"),
    ),
    REWARD,
)
def drawn_maps(options: Any) -> Game:
    """SkirmishMaps: each match is on another map, with another number of units.

    Raises:
        ValueError: Maps of several rulesets, or units that do not fit.

    ## Description

    Red learns: one agent for each of its units. Blue attacks on its way. A match is on one of several maps; there are
    as many agents as the largest map has, and those that a map lacks are dead from the beginning. By default these are
    three marines against three and five against five. During a match units die and leave.

    ## Rewards

    As in Skirmish, on each map by its own scale: a victory is worth 20 on all of them.

    ## Starting State

    The map is drawn uniformly. Units stand in formation around its points.

    ## Episode End

    A match ends when a team has no unit left that can shoot (``wiped_out``), and the other has won; both at once is a
    draw. It is truncated at the longest limit of all maps (``horizon``); then nobody has won.
    """
    return make_game(options.maps, Variant(options.reward))


@with_options(
    replace(MAP, default="5m_vs_6m"),
    Option("changes", 3, "units that change sides in a match", low=0, high=MOST_CHANGES),
    REWARD,
)
def turncoats(options: Any) -> Game:
    """SkirmishTurncoats: units change sides during a match.

    Raises:
        ValueError: No such map, or one whose units do not fit.
        FileError: The file of the map cannot be used.

    ## Description

    Red learns: one agent for each of its units. Blue attacks on its way. A unit that changes sides leaves its agent,
    which then is out of the match as if it had died, and continues as an agent of the other side with its hit points,
    shield and place. Each side has a reserve of as many agents as there are changes. Info `changed` counts who left
    red and blue.

    ## Rewards

    As in Skirmish. Who changes sides is no kill and no damage.

    ## Starting State

    Units stand in formation around the points of their map. Every 8 to 20 decisions one unit changes sides, drawn
    uniformly from the fighters of both sides that leave another fighter behind.
    """
    return make_game([load(options.map)], Variant(options.reward, changes=options.changes))


def is_uneven(map: str) -> bool:
    """Whether the sides of a map have other units."""
    ground = load(map)
    return sorted(ground.red.units) != sorted(ground.blue.units)


@with_options(
    replace(MAP, example="5m_vs_6m"),
    REWARD,
    RULESET,
    Option(
        "blue_order",
        "mirror",
        "order of blue's units where the sides differ: that of red's mirror images, or the map's as in Skirmish and "
        "SkirmishWaves, so that policies of red which learnt there play as they do there",
        words=("mirror", "map"),
        only={"map": is_uneven},
    ),
)
def duel(options: Any) -> Game:
    """SkirmishDuel: both sides learn, zero-sum.

    Raises:
        ValueError: No such map or ruleset, or a map whose units do not fit.
        FileError: The file of the map or of the ruleset cannot be used.

    ## Description

    Red and blue learn: one agent for each unit. Blue sees and moves as if it stood in the west, so that one policy
    plays both sides. Nobody has an attack-move: both sides are in the learner's place. During a match units die and
    leave; nothing else changes.

    On ``"3m"`` no team has to attack; ``"arena"`` is a closed room in which three marines see three others. Where both
    sides have the same units at points mirrored in x of mirrored open ground, the teams are symmetric; elsewhere one of
    them may be better off. Sides that are mirrored in y are refused: of the bundled maps ``"bane_vs_bane"``.

    ## Rewards

    Zero-sum, shared by the members of a team. ``reward="smac"``: red is paid as in Skirmish for what blue loses, for
    kills and for the victory, and pays the same for its own; blue gets the opposite. ``reward="sparse"``: 1 for a
    victory, -1 for a defeat, 0 else.

    ## Starting State

    Units stand in formation around the points of their map, blue as the mirror image of red where the map is mirrored.
    The time between two shots of a weapon varies by -1 to +2 loops.
    """
    ground = load(options.map, options.ruleset)
    if mirror_of(ground) == (1, -1):
        raise ground.unfit(
            "its sides are mirrored in y, and the rules of movement are fair to sides that are mirrored in x: exchange "
            "x and y of all points and of the terrain"
        )
    more: dict[str, Any] = dict(symmetric_teams=True, mirror=Mirror(ground)) if is_mirrored(ground) else {}
    variant = Variant(options.reward, both_learn=True, map_order=options.blue_order == "map")
    return make_game([ground], variant, zero_sum=True, default_opponent="focus_fire", **more)


def is_mirrored(ground: BattleMap) -> bool:
    """Whether both sides of a map have the same units, points and ground, mirrored in x, and no wall between."""
    rows = np.flatnonzero(ground.walkable.any(axis=1))
    return (
        mirror_of(ground) == (-1, 1)
        and bool(ground.walkable[rows[0] : rows[-1] + 1].all())
        and not np.isnan(ground.red.positions).any()
        and not (ground.red.arrivals.any() or ground.red.waves.any())
        and not (ground.blue.arrivals.any() or ground.blue.waves.any())
    )


@dataclass(frozen=True)
class Mirror:
    """Reflects matches of a duel in x and exchanges the sides, see `palaestra.game.Game.mirror`."""

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


@with_options(Option("name", "beacon", "the exercise: see Description", words=tuple(DRILLS)))
def drill(options: Any) -> Game:
    """Drill: exercises of movement, search and battle after pysc2's mini-games, on the rules of Skirmish.

    ## Description

    Red learns: one agent for each of its marines. Units, pay and times follow the mini-games of Vinyals et al. (2017);
    places and ground are ours. Beacons and shards are prizes: rows of `units` whose `units.attributes` are all 0, which
    no order can aim at; a unit collects them by touching them.

    | drill | red | blue | changes during a match |
    |---|---|---|---|
    | ``beacon`` | a marine | a beacon | the beacon is somewhere else once it is reached |
    | ``shards`` | two marines | 20 shards | 20 new ones when all are collected |
    | ``hunt`` | three marines | 25 zerglings, which stay until red comes near | units die |
    | ``waves`` | nine marines | four roaches, which hunt red | three more waves; five marines join with each |
    | ``splash_waves`` | nine marines | six zerglings and four banelings | two more waves; four marines join with each |

    ## Rewards

    | drill | paid |
    |---|---|
    | ``beacon``, ``shards`` | 1 for each beacon or shard |
    | ``hunt`` | 1 for each zergling, -1 for each marine lost |
    | ``waves`` | 10 for each roach, -1 for each marine lost |
    | ``splash_waves`` | 5 for each zergling or baneling, -1 for each marine lost |

    ## Starting State

    Beacons, shards and the zerglings of ``hunt`` are anywhere on the ground, drawn uniformly; all others stand in
    formation around points of the map. A wave comes when no unit of the one before is left.

    ## Episode End

    ``beacon`` and ``shards`` are truncated after 240 decisions, two minutes of the game (``horizon``); nobody wins. The
    others end when red or all waves of blue are dead (``wiped_out``), at the latest after 360 decisions.
    """
    return make_game([load(DRILLS[options.name])], Variant())
