"""The records of a battle: what all matches of a game share, and what one match holds.

Slots are numbered red first, then blue; slots beyond the visible agents come last and are never used. A game may hold
several maps, of which each match draws one; they share units, terrain of one size and the slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from palaestra.games.skirmish.ruleset import ATTRIBUTES, MOST_UNITS

RED, BLUE = 0, 1
NO_ORDER, GO_TO, HUNT = range(3)
"""Kinds of blue's order at the start of a match."""
NEVER, ARRIVED = -1, 0
"""Values of ``s.arrives`` besides the decision of an arrival: the slot is empty; its unit is there, or was."""
MOST_CHANGES = 4
"""Units that may change sides in a match."""


class Captions(NamedTuple):
    """Names for pictures: `palaestra.game.Game.captions`.

    Attributes:
        maps: By the number of the map.
        units: By the number of the kind.
    """

    maps: tuple[str, ...]
    units: tuple[str, ...]


LAYOUT = np.dtype(
    [(name, "i8") for name in ("shield_of_red", "shield_of_blue", "types", "actions", "healers")]
    + [(name, "i8", (MOST_UNITS,)) for name in ("column_of_red", "column_of_blue")]
    + [(name, "f8") for name in ("width", "height")],
    align=True,
)
"""What SMAC's vectors of a map are made of, see `palaestra.games.skirmish.smac_view.layout_of`."""

MOST_ORDERS = 17
"""Orders that not all units have, see `palaestra.games.skirmish.orders.NAMES`."""
MOST_KINDS = 9
"""Kinds of which units are drawn."""

RULES = np.dtype(
    [
        (name, "f8")
        for name in (
            "sight", "shoot_range", "least_range", "half_view", "acquire_range", "move_cells", "minimum_damage",
            "shield_armour", "shield_per_loop", "shield_delay_loops",
            "damage", "kill", "loss", "prize", "win", "defeat", "widest", "width", "height",
        )
    ]
    + [
        (name, "i8")
        for name in (
            "least_deviation", "deviations", "loops", "reds", "blues", "order", "points", "never_ends", "zero_sum",
            "flips", "drawn", "compat", "abilities", "changes", "change_from", "change_to", "waves", "has_prizes",
        )
    ]
    + [
        ("first_target", "i8", (2,)),
        ("orders", "i8", (2, MOST_ORDERS)),
        ("goals", "f8", (2, 2)),
        ("kinds", "i8"),
        ("race", "f8", (MOST_KINDS, 2)),
        ("smac", LAYOUT),
    ],
    align=True,
)  # fmt: skip
"""The numbers of a ruleset and of a map that the rules need, one record a map.

``sight`` and ``shoot_range`` are 0 where each kind of unit has its own; its range to shoot is ``least_range`` at least.
``half_view`` is the cosine of half the angle of sight, -2 for all around. ``damage`` to ``defeat``: what red is paid
for; ``zero_sum`` pays blue the opposite, by its own damage and kills. ``width``, ``height``: of the map, cells.
``reds`` and ``blues`` count the visible slots. ``flips``: blue's east is the world's west. ``drawn``: 1 where kinds and
places are drawn by `palaestra.games.skirmish.sampling`. ``compat``: 1 for SMAC's rules,
`palaestra.games.skirmish.smac_view`. ``abilities``: 0 none, 1 always, 2 gained and lost. ``changes``: units that change
sides, each ``change_from`` to ``change_to`` decisions after the one before. ``waves``: number of the last wave.
``first_target``: by team, the first action that aims at a unit. ``orders``: by team, the orders of
`palaestra.games.skirmish.orders` that the actions from 6 on mean. ``goals``: points of blue's order, cells. ``race``:
the ``kinds`` that `palaestra.games.skirmish.sampling` draws, and the upper end of each one's share of [0, 1).
"""

OPENING = np.dtype(
    [("kind", "i8"), ("x", "f8"), ("y", "f8"), ("there", "i8"), ("first", "i8"), ("last", "i8"), ("wave", "i8")],
    align=True,
)
"""How a slot begins: kind of unit, place (NaN: drawn), whether there is a unit at all, decisions between which it
arrives (0: at the start), and the wave with which it comes (0: none)."""


LOOK = np.dtype(
    [("hit_points", "f4"), ("shield", "f4"), ("energy", "f4"), ("attributes", "f4", (len(ATTRIBUTES),))], align=True
)
"""What all who see a unit see alike: numbers of `palaestra.games.skirmish.observe.SEEN`."""


class World(NamedTuple):
    """What all matches of a game share. A call of compiled code hands over every array by many numbers: few is fast.

    Attributes:
        units: `palaestra.games.skirmish.ruleset.table`, one row a kind of unit.
        rules: Records `RULES` ``[maps]``.
        openings: Records `OPENING` ``[maps, agents]``: red's slots, then blue's.
        terrain: Who may stand where, and how high it is, uint8 ``[maps, rows, columns]``: see
            `palaestra.games.skirmish.movement.HEIGHT`.
        ways: `palaestra.games.skirmish.movement.shortest_ways` of each map, uint8 ``[maps, cells, cells]``;
            ``[maps, 0, 0]`` where straight lines are never blocked.
    """

    units: np.ndarray
    rules: np.ndarray
    openings: np.ndarray
    terrain: np.ndarray
    ways: np.ndarray


def match_fields(slots: int) -> tuple[tuple, ...]:
    """The fields of a match besides those of the suite, for `palaestra.game.Game.state`.

    ======================  =====================================================================================
    ``map``                 number of the map that is played
    ``kind``                row of ``world.units`` of each slot
    ``hit_points`` ...      of each slot; ``cooldown``, ``boosted`` and ``pause`` in loops, ``pace`` in cells a loop
    ``position``, ``goal``  cells; ``goal`` of an order to move
    ``order``, ``target``   what each does (`palaestra.games.skirmish.orders`), slot it aims at or `NOBODY`
    ``last_action``         the action of the last decision; -1 before the first, 0 for the absent
    ``life_before``         hit points and shield at the end of the decision before
    ``shot_at``             slot that was attacked or healed last in this decision, or `NOBODY`
    ``calm``                loops without damage
    ``facing``              direction of sight, of 12
    ``arrives``             `NEVER`, `ARRIVED`, or the decision in which the unit comes
    ``comes_with``          wave with which it comes; 0 none
    ``able``                first decision with its ability, and first one without
    ``luck``                streams of red's and of blue's weapons: which side draws first changes nothing
    ``to_come``             units of each side that still come by time
    ``taken``               whether a prize is collected
    ``wave``                number of the last wave that came
    ``changes_left`` ...    units that still change sides, and the decision in which the next one does
    ``goal_of_blue``        point of its order, cells
    ======================  =====================================================================================
    """
    return (
        *((name, "f8", (slots,)) for name in ("hit_points", "shield", "energy", "cooldown", "pace")),
        *((name, "f8", (slots,)) for name in ("boosted", "pause", "life_before")),
        *((name, "f8", (slots, 2)) for name in ("position", "goal")),
        *(
            (name, "i8", (slots,))
            for name in (
                "kind", "order", "target", "last_action", "shot_at", "calm", "facing", "arrives", "comes_with", "taken",
            )
        ),
        ("able", "i8", (slots, 2)),
        ("goal_of_blue", "f8", (2,)),
        ("luck", "u8", (2,)),
        *((name, "i8") for name in ("map", "wave", "changes_left", "next_change")),
        ("to_come", "i8", (2,)),
    )  # fmt: skip


def scratch_fields(slots: int) -> tuple[tuple, ...]:
    """Work memory of a decision, for `palaestra.game.Game.scratch`."""
    return (
        *((name, "i8") for name in ("count", "suicides", "prizes", "chosen")),
        ("focus", "i8", (2,)),
        ("killed", "i8", (2,)),
        *((name, "i8", (slots,)) for name in ("living", "aimed", "exploded", "walks", "hunters", "crowd")),
        ("free_shooters", "i8", (2,)),
        ("middle", "f8", (2, 2)),
        ("spread", "f8", (2,)),
        *((name, "f8", (slots,)) for name in ("lost", "healed", "volley", "x", "y", "body")),
        *((name, "i8", (slots,)) for name in ("flies", "stands")),
        *((name, "f8", (slots, 2)) for name in ("wanted", "pushed")),
        ("pairs", "u1", (slots * (slots - 1) // 2 + 1, 2)),
        ("point", "f8", (2,)),
        ("looks", LOOK, (slots,)),
    )
