"""Adjudication of simultaneous moves: what becomes of all orders of a movement phase.

The rules are those of 2000 or 2023 as the Diplomacy Adjudicator Test Cases (DATC) read them; terms are those of their
author, L. B. Kruijswijk, in "The Math of Adjudication". A unit has up to four questions: does it *move*, is its
*support* given, is it *dislodged*, has it a *path* (by land, or by fleets that convoy it). Each is unknown at first.
Strengths have a least and a greatest value, which follow from what is known; a question is answered when both give the
same answer. This goes on until nothing changes. What is unknown then hangs on itself:

1. A convoyed army whose attack decides whether its own convoy holds: if exactly one answer agrees with itself, that
   one; else the army stays where it is and has no effect (Szykman's rule).
2. Units that move in a ring: all move.
3. Else one of the moves is supposed to succeed; it fails if that contradicts itself.

Units are numbered in the order of their provinces; ``a`` is the work record (`SCRATCH`).
"""

from __future__ import annotations

from palaestra.games.concert.concert_orders import (
    CONVOY,
    HOLD,
    MOVE,
    NOTHING,
    SEA,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    VIA,
    is_fleet,
    location_of,
    may_walk,
    order_parts,
    power_of,
)

UNKNOWN, YES, NO = 0, 1, 2
OK, BOUNCED, CUT, DISLODGED, DISRUPTED, VOID, NO_CONVOY = range(7)
RESULTS = ("ok", "bounced", "cut", "dislodged", "disrupted", "void", "no_convoy")
"""What became of an order."""
ANY_FLEET, STANDING, SURE = 0, 1, 2
"""Which fleets carry a convoy: all with the order, those not surely dislodged, those surely not dislodged."""
NO_POWER = -1
QUESTIONS = 4


def scratch_fields(provinces: int) -> tuple[tuple, ...]:
    """Fields of the work record, for a map of so many provinces."""
    per_unit = ("at", "whose", "place", "kind", "origin", "goal", "by_sea", "matched", "next_attacker", "next_backer")
    more = ("first_backer", "wave", "moves", "supports", "is_dislodged", "has_path", "hangs")
    return (
        ("count", "i8"),
        ("guesses", "i8"),
        ("number", "i8", (provinces,)),
        ("first_attacker", "i8", (provinces,)),
        *((name, "i8", (provinces,)) for name in (*per_unit, *more)),
        ("kept", "i8", (QUESTIONS, provinces)),
    )


def adjudicate(s, board, a):
    """Answers all questions for the orders in ``s.order``."""
    gather(s, board.map, a)
    match_orders(board, a)
    settle(board.map, a)
    a.guesses = 0
    while has_unknown(a):
        if not (decide_paradoxes(board.map, a) or turn_a_ring(a)):
            guess(board.map, a)
        a.guesses += 1
        settle(board.map, a)


# -------------------------------------------------------------------------------------------------------------- orders


def gather(s, world, a):
    """Numbers the units and reads their orders."""
    a.count = 0
    for p in range(world.provinces):
        a.number[p], a.first_attacker[p] = NOTHING, NOTHING
        unit = s.unit[p]
        if unit != 0:
            i = a.count
            kind, first, second = order_parts(world, s.order[p])
            a.number[p], a.at[i], a.whose[i], a.kind[i] = i, p, power_of(unit), kind
            a.place[i] = location_of(world, unit, p)
            a.origin[i], a.goal[i] = first, second
            if kind in (MOVE, VIA):
                a.goal[i] = world.province_of[first]
            elif kind == SUPPORT_HOLD:
                a.goal[i] = first
            a.by_sea[i], a.matched[i], a.next_attacker[i] = 0, 0, NOTHING
            a.next_backer[i], a.first_backer[i] = NOTHING, NOTHING
            a.moves[i], a.supports[i], a.is_dislodged[i], a.has_path[i] = UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN
            a.count += 1


def is_mover(a, i):
    """Whether a unit is ordered to move."""
    return a.kind[i] == MOVE or a.kind[i] == VIA


def match_orders(board, a):
    """Says who moves by sea, and links attackers with their goals and supports with the supported units."""
    for i in range(a.count):
        if is_mover(a, i):
            a.by_sea[i] = goes_by_sea(board, a, i)
            a.has_path[i], a.supports[i] = UNKNOWN if a.by_sea[i] else YES, NO
            goal = a.goal[i]
            a.next_attacker[i] = a.first_attacker[goal]
            a.first_attacker[goal] = i
        else:
            a.moves[i], a.has_path[i] = NO, NO
    for i in range(a.count):
        kind = a.kind[i]
        if kind in (SUPPORT_HOLD, SUPPORT_MOVE, CONVOY):
            match_order(a, i)
        else:
            a.supports[i] = NO


def match_order(a, i):
    """Finds whether a support or a convoy fits what the other unit is ordered to do."""
    kind, j = a.kind[i], a.number[a.origin[i]]
    if j != NOTHING:
        if kind == SUPPORT_HOLD:
            a.matched[i] = not is_mover(a, j)
        else:
            a.matched[i] = is_mover(a, j) and a.goal[j] == a.goal[i] and (kind == SUPPORT_MOVE or a.by_sea[j])
    if a.matched[i] and kind != CONVOY:
        a.next_backer[i] = a.first_backer[j]
        a.first_backer[j] = i
    else:
        a.supports[i] = NO


def goes_by_sea(board, a, i):
    """Whether an army moves by convoy.

    Where it could also walk: if a fleet of its own power is ordered to convoy it and a route of matching convoys
    exists; and if it is ordered to go by convoy: by the rules of 2000 only if such a route exists.
    """
    world, start, goal = board.map, a.at[i], a.goal[i]
    if world.ground[start] == SEA or not (a.kind[i] == VIA or world.army_edge[start, goal]):
        return 0
    is_meant = a.kind[i] == VIA
    if is_meant and (board.rules == 1 or not world.army_edge[start, goal]):
        return 1
    for f in range(a.count):
        is_meant = is_meant or (carries(a, f, i) and a.whose[f] == a.whose[i])
    return 1 if is_meant and has_route(world, a, i, ANY_FLEET) else 0


# -------------------------------------------------------------------------------------------------------------- routes


def carries(a, f, i):
    """Whether a fleet is ordered to convoy the army i on its way."""
    return a.kind[f] == CONVOY and a.origin[f] == a.at[i] and a.goal[f] == a.goal[i]


def has_route(world, a, i, which):
    """Whether fleets of some kind lead from an army to its goal."""
    for f in range(a.count):
        usable = carries(a, f, i)
        if which == STANDING:
            usable = usable and a.is_dislodged[f] != YES
        elif which == SURE:
            usable = usable and a.is_dislodged[f] == NO
        a.wave[f] = NOTHING
        if usable:
            a.wave[f] = 1 if world.fleet_reach[a.at[f], a.at[i]] else 0
    grows = True
    while grows:
        grows = False
        for f in range(a.count):
            if a.wave[f] == 1:
                if world.fleet_reach[a.at[f], a.goal[i]]:
                    return True
                a.wave[f] = 2
                grows = True
                for g in range(a.count):
                    if a.wave[g] == 0 and world.fleet_edge[a.at[f], a.at[g]]:
                        a.wave[g] = 1
    return False


def path_answer(world, a, i):
    """Whether an army that goes by sea has a path."""
    if has_route(world, a, i, SURE):
        return YES
    return UNKNOWN if has_route(world, a, i, STANDING) else NO


# ----------------------------------------------------------------------------------------------------------- strengths


def backing(a, i, greatest, without):
    """Supports of a unit that are surely given, or not surely cut; not those of the power ``without``."""
    given, j = 0, a.first_backer[i]
    while j != NOTHING:
        if a.whose[j] != without and (a.supports[j] == YES or (greatest and a.supports[j] == UNKNOWN)):
            given += 1
        j = a.next_backer[j]
    return given


def opponent(a, i):
    """The unit that moves head to head against a unit, or `NOTHING`."""
    j = a.number[a.goal[i]]
    if j == NOTHING or not is_mover(a, j) or a.goal[j] != a.at[i] or a.by_sea[i] or a.by_sea[j]:
        return NOTHING
    return j


def attack_strength(a, i, greatest):
    """Strength with which a unit enters its goal: none against a unit of its own power that stays."""
    if a.has_path[i] == NO or (not greatest and a.has_path[i] == UNKNOWN):
        return 0
    j = a.number[a.goal[i]]
    if j == NOTHING:
        return 1 + backing(a, i, greatest, NO_POWER)
    leaves = is_mover(a, j) and opponent(a, i) == NOTHING
    if leaves and (a.moves[j] == YES or (greatest and a.moves[j] == UNKNOWN)):
        return 1 + backing(a, i, greatest, NO_POWER)
    return 0 if a.whose[j] == a.whose[i] else 1 + backing(a, i, greatest, a.whose[j])


def hold_strength(a, province, greatest):
    """Strength with which a province is held."""
    j = a.number[province]
    if j == NOTHING:
        return 0
    if not is_mover(a, j):
        return 1 + backing(a, j, greatest, NO_POWER)
    return 0 if a.moves[j] == YES or (not greatest and a.moves[j] == UNKNOWN) else 1


def prevent_strength(a, i, greatest):
    """Strength with which a moving unit keeps others out of its goal: none if it lost head to head."""
    if a.has_path[i] == NO or (not greatest and a.has_path[i] == UNKNOWN):
        return 0
    j = opponent(a, i)
    if j != NOTHING and (a.moves[j] == YES or (not greatest and a.moves[j] == UNKNOWN)):
        return 0
    return 1 + backing(a, i, greatest, NO_POWER)


# ------------------------------------------------------------------------------------------------------------- answers


def move_answer(a, i):
    """Whether a unit enters its goal."""
    if a.has_path[i] == NO:
        return NO
    least, most = attack_strength(a, i, False), attack_strength(a, i, True)
    j, goal = opponent(a, i), a.goal[i]
    if j == NOTHING:
        stand_least, stand_most = hold_strength(a, goal, False), hold_strength(a, goal, True)
    else:
        stand_least, stand_most = 1 + backing(a, j, False, NO_POWER), 1 + backing(a, j, True, NO_POWER)
    k = a.first_attacker[goal]
    while k != NOTHING:
        if k != i:
            stand_least = max(stand_least, prevent_strength(a, k, False))
            stand_most = max(stand_most, prevent_strength(a, k, True))
        k = a.next_attacker[k]
    if least > stand_most:
        return YES
    return NO if most <= stand_least else UNKNOWN


def support_answer(a, i):
    """Whether a support is given: others cut it, from where it is directed only if they dislodge the unit."""
    if a.is_dislodged[i] == YES:
        return NO
    answer = YES if a.is_dislodged[i] == NO else UNKNOWN
    k = a.first_attacker[a.at[i]]
    while k != NOTHING:
        if a.whose[k] != a.whose[i] and not (a.kind[i] == SUPPORT_MOVE and a.at[k] == a.goal[i]):
            if a.has_path[k] == YES:
                return NO
            if a.has_path[k] == UNKNOWN:
                answer = UNKNOWN
        k = a.next_attacker[k]
    return answer


def dislodged_answer(a, i):
    """Whether somebody enters the province of a unit that stays."""
    if a.moves[i] == YES:
        return NO
    answer, k = NO, a.first_attacker[a.at[i]]
    while k != NOTHING:
        if a.moves[k] == YES:
            return UNKNOWN if a.moves[i] == UNKNOWN else YES
        if a.moves[k] == UNKNOWN:
            answer = UNKNOWN
        k = a.next_attacker[k]
    return answer


def settle(world, a):
    """Answers questions until nothing changes."""
    changes = True
    while changes:
        changes = False
        for i in range(a.count):
            if a.has_path[i] == UNKNOWN:
                a.has_path[i] = path_answer(world, a, i)
                changes = changes or a.has_path[i] != UNKNOWN
            if a.moves[i] == UNKNOWN:
                a.moves[i] = move_answer(a, i)
                changes = changes or a.moves[i] != UNKNOWN
            if a.supports[i] == UNKNOWN:
                a.supports[i] = support_answer(a, i)
                changes = changes or a.supports[i] != UNKNOWN
            if a.is_dislodged[i] == UNKNOWN:
                a.is_dislodged[i] = dislodged_answer(a, i)
                changes = changes or a.is_dislodged[i] != UNKNOWN


# --------------------------------------------------------------------------------------------- what hangs on itself


def has_unknown(a):
    """Whether a question is open."""
    for i in range(a.count):
        if a.moves[i] == UNKNOWN or a.supports[i] == UNKNOWN or a.is_dislodged[i] == UNKNOWN:
            return True
    return False


def keep(a):
    """Keeps all answers."""
    for i in range(a.count):
        a.kept[0, i], a.kept[1, i] = a.moves[i], a.supports[i]
        a.kept[2, i], a.kept[3, i] = a.is_dislodged[i], a.has_path[i]


def take_back(a):
    """Goes back to the kept answers."""
    for i in range(a.count):
        a.moves[i], a.supports[i] = a.kept[0, i], a.kept[1, i]
        a.is_dislodged[i], a.has_path[i] = a.kept[2, i], a.kept[3, i]


def decide_paradoxes(world, a):
    """Decides the paths of armies whose attack decides about their own convoy. Returns whether there are any."""
    keep(a)
    found = False
    for i in range(a.count):
        a.hangs[i] = UNKNOWN
        if a.has_path[i] == UNKNOWN:
            agrees_yes, agrees_no = supposed_path(world, a, i, YES), supposed_path(world, a, i, NO)
            if agrees_yes != UNKNOWN or agrees_no != UNKNOWN:
                found = True
                a.hangs[i] = YES if agrees_yes == YES and agrees_no == YES else NO
    for i in range(a.count):
        if a.hangs[i] != UNKNOWN:
            a.has_path[i] = a.hangs[i]
    return found


def supposed_path(world, a, i, answer):
    """The path of an army that follows from supposing one; leaves the kept answers."""
    a.has_path[i] = answer
    settle(world, a)
    follows = path_answer(world, a, i)
    take_back(a)
    return follows


def turn_a_ring(a):
    """Lets the units of one ring of moves succeed. Returns whether there is one."""
    for i in range(a.count):
        j, length = i, 0
        while j != NOTHING and a.moves[j] == UNKNOWN and length <= a.count:
            j = a.number[a.goal[j]]
            length += 1
            if j == i:
                for _ in range(length):
                    a.moves[j] = YES
                    j = a.number[a.goal[j]]
                return True
    return False


def guess(world, a):
    """Supposes that the first open move succeeds, and lets it fail if that contradicts itself."""
    for i in range(a.count):
        if a.moves[i] == UNKNOWN:
            keep(a)
            a.moves[i] = YES
            settle(world, a)
            if move_answer(a, i) == NO:
                take_back(a)
                a.moves[i] = NO
            return
    for i in range(a.count):
        if a.supports[i] == UNKNOWN:
            a.supports[i] = NO
            return
        if a.is_dislodged[i] == UNKNOWN:
            a.is_dislodged[i] = NO
            return


# ------------------------------------------------------------------------------------------------------------- results


def result_of(world, a, i):
    """What became of a unit's order."""
    if a.is_dislodged[i] == YES:
        return DISLODGED
    if is_mover(a, i):
        if a.moves[i] == YES:
            return OK
        if a.by_sea[i] and a.has_path[i] == NO:
            return DISRUPTED if has_route(world, a, i, ANY_FLEET) else NO_CONVOY
        return BOUNCED
    if a.kind[i] == HOLD:
        return OK
    if not a.matched[i]:
        return VOID
    return CUT if a.kind[i] != CONVOY and a.supports[i] == NO else OK


def is_contested(a, province):
    """Whether a unit that stayed out of a province kept others out of it."""
    k = a.first_attacker[province]
    while k != NOTHING:
        if a.moves[k] == NO and prevent_strength(a, k, False) > 0:
            return True
        k = a.next_attacker[k]
    return False


__all__ = [
    "MOVE",
    "RESULTS",
    "SUPPORT_HOLD",
    "adjudicate",
    "is_contested",
    "is_fleet",
    "may_walk",
    "result_of",
    "scratch_fields",
]
