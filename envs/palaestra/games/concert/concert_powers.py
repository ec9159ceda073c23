"""Concert: seven powers move armies and fleets at once, by orders that all keep secret until they are carried out.

## Description

A game of supports and convoys for seven powers, Diplomacy-rules compatible, without talks. All powers order at once.
A unit holds, moves to the next province, supports another unit's stay or move with its own strength, or convoys an army
(a fleet at sea). The greater strength enters; equal ones bounce. An attack on a supporting unit cuts its support. A
dislodged unit retreats or disbands. In autumn the centres in which units stand change their owners; then powers build
units in their free home centres or remove some, so that nobody has more units than centres.

What becomes of all orders is decided as the Diplomacy Adjudicator Test Cases (DATC) want it: all their cases of the
rules of 2000 (158) and 2023 (164) are tests. ``rules="2023"`` differs where an army is ordered to go by convoy to the
next province and no fleet convoys it (it stays; by the rules of 2000 it walks), and in who is removed in civil
disorder. Where convoyed armies decide about their own convoys, they stay without effect (Szykman's rule).

The map is the standard one: 75 provinces, of which three have two coasts, 34 centres, 22 units at the start. The same
rules for two powers: [ConcertDuel](ConcertDuel.md).

Scripts: ``"hold"`` holds, disbands and waives; ``"province_value"`` lets each unit draw a place by its worth;
``"greedy_support"`` plans attacks with as many supports as they need, defences and convoys; ``"search"`` adjudicates
its own plans against plans that the others may have.

## Action Space

<!-- table: action -->

A power gives one order a unit, in the order of the provinces; in adjustments one for each unit that it may build or has
to remove. Numbers of orders are static, and say all but whose order it is; 0 is hold, disband or waive. Then come moves
and retreats (a location), moves by convoy (a province), supports of units that stay (a province), supports of moves
(from a province to a province), convoys (likewise), builds of armies (a province) and fleets (a location), and removals
(a province). Locations are the provinces in alphabetical order, then the split coasts. `order_number` and `order_parts`
of ``palaestra.games.concert.concert_orders`` translate.

The mask is a list for each unit: what it could be ordered to do in this position, whatever the others do: moves by
convoy where fleets (of any power) could carry it, convoys on a way without a detour, supports of what others could do.
A list has room for 256 orders. It is filled with hold, moves, moves by convoy, supports of units that stay, supports of
moves without a convoy, convoys, and supports of moves that need a convoy, in this order. What does not fit at the end
is left out and counted (`left_out` in `info`): first supports of moves that need a convoy, in crowded positions convoys
too. An order that is not in the list is the no-op, and counted. What does not fit together is void.

``decisions="unit"``: one order a decision, the place in the list of the next unit, with a dense mask. Own earlier
orders are visible, the others' hidden until the phase is carried out.

``form="text"``: orders as ``A PAR - BUR``, one a line or with semicolons between, and if the turn has them between
``<orders>`` and ``</orders>``: see ``palaestra.games.concert.order_grammar``. Units that are not named hold. A wrong
order is the no-op, and counted (``repair="hold"``), or refused with its line, what is wrong and what is near
(``repair="refuse"``).

## Observation Space

<!-- table: observation -->

A location has 38 numbers, all 0 or 1: army, fleet, no unit; the unit's power (seven, none); whether the centre may be
built in; whether the unit may have to go; the kind (3) and power (8) of a dislodged unit; inland, coast, sea; the owner
of the centre (seven, nobody, no centre); whether a battle left the province empty, so that nobody may retreat there;
whether it is a home centre. A fleet stands on its coast, all else at the province.

``observation="vector"`` shows the position alone, as numbers that networks can take as they are, powers counted from
the own one on. A location of `places` has: army, fleet, dislodged unit, whether a battle left it empty, whether it is
a home centre of the own power, whether it is a centre; then the power of the unit, one number a power; then the owner
of the centre, likewise. With ``decisions="unit"`` three more: whether the next unit stands there, whether own orders
of this phase move or build there, whether they support a move to there or the unit there.

## Rewards

At the end the powers share 1: who has won by `solo` gets all; else by the squares of their centres
(``score="squares"``), in equal shares of those who are left (``"draw_size"``), or by their centres (``"centres"``).

## Starting State

Always the same: three units a power (Russia has four); first moves in spring. Scripts draw their own numbers.

## Episode End

* `solo`: a power owns 18 centres, or it is the last one that owns any.
* `stalemate`: no centre had a new owner for `quiet_years` autumns.
* `last_year`: its autumn is over.

The winner is who owns more centres than any other (with ``score="draw_size"`` only after `solo`). A power without
centre leaves in autumn, and its units with it. Phases in which nobody has a choice are skipped; the horizon is never
reached before `last_year` unless it is set lower.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

from typing import Any

from palaestra.game import Game, with_options
from palaestra.games.concert.concert_rules import OPTIONS, STANDARD, last_year_option, make_game
from palaestra.games.concert.concert_text import ConcertCodec


@with_options(last_year_option(15), *OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/Concert-v0`."""
    return make_game("Concert", STANDARD, options, ConcertCodec)
