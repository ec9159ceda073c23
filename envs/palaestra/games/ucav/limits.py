"""What ends the flight of one aircraft in every game of this family: ground, load, aerodynamic tables, bad numbers."""

from __future__ import annotations

from palaestra.games.ucav.body import PERIOD_S

SUSTAINED_LOAD_G, SUSTAINED_LOAD_S, INSTANT_LOAD_G = 9.0, 0.5, 12.0
"""Load factor, g, that may not be exceeded for longer than this, s, and the one that may not be exceeded at all."""

CRASH, OVERLOAD, OFF_TABLES, NOT_FINITE = 0, 1, 2, 3
NO_FAILURE = -1
"""Results of `find_failure`."""
FAILURES = ("crash", "overload", "off_tables", "not_finite")
"""Their names, in their order. A game adds the number of its first one to have the number of an end reason."""


def extend_overload_s(overload_s, body):
    """Time that the sustained load has been exceeded without a pause, s, one period later."""
    return overload_s + PERIOD_S if abs(body.load_factor_g) > SUSTAINED_LOAD_G else 0.0


def find_failure(body, overload_s, floor_m):
    """What ended the flight of an aircraft, or `NO_FAILURE`.

    Args:
        body: Aircraft record.
        overload_s: As `extend_overload_s` returned it for this period.
        floor_m: Height below which it has crashed.
    """
    if not body.finite:
        return NOT_FINITE
    if body.altitude_m < floor_m:
        return CRASH
    if abs(body.load_factor_g) > INSTANT_LOAD_G or overload_s > SUSTAINED_LOAD_S:
        return OVERLOAD
    if not body.in_tables:
        return OFF_TABLES
    return NO_FAILURE
