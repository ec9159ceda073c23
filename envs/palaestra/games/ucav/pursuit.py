"""UcavPursuit: hunt a target that does not shoot back.

## Description

The rules of `palaestra/UcavDogfight-v2` (`palaestra.games.ucav.dogfight`) with an unarmed target and a quiet arena, for
one learner: red hunts, blue is a script. A UCAV is an unmanned combat aerial vehicle. With ``control="blue"`` the
learner evades instead.

Scripts made for the target are ``"straight"``, ``"level_turn"``, ``"weave"``, ``"jink"`` (hard breaks),
``"random_macros"`` and ``"vertical"`` (up and down). The pursuers of the dogfight, from ``"pure_pursuit"`` to
``"expert"``, play blue too: they turn towards red and cannot hurt it. ``"mix"`` draws from all scripts; for targets
alone, draw them yourself by lane with `set_opponent`.

Against the dogfight these defaults differ: blue's gun is off, red starts behind blue, a match lasts 40 s, the shaping
by energy weighs 1, and leaving the arena costs nothing, so that a target that holds its course is a fair one. With them
PPO learns to hunt in about a minute: the reward says before the first hit who has whom before the nose, and a learner
sees many starts. `palaestra/UcavPursuit-Contest-v2` has a cone of 1 degree and 200 s, pays nothing before the gun hits,
and starts behind or neutral with equal chances.

## Action Space

As in the dogfight: `commands="stick"` at 10 Hz, `commands="macro"` at 2 Hz or `commands="aim"` at 5 Hz, with which all
zeros already shoot down most targets.

<!-- table: action -->

## Observation Space

As in the dogfight.

<!-- table: observation -->

## Rewards

As in the dogfight, shaping included. A target that cannot shoot makes the rest of the reward of the hunter the share of
the target's health that it took, and 1 more for the kill.

## Starting State

As in the dogfight: ``start="offensive"`` by default.

## Episode End

As in the dogfight: a kill, a crash, an overload, a collision, and 40 s (`duration_s`).

## Arguments

See the dogfight's page for what an inner loop costs a hunter that decides macros.

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v2: shaping is on, the cone is wide, red starts behind, a match lasts 40 s; other rules as of the dogfight's v2.
* v1, v0: before the first release: the rules of ``-Contest``, see the dogfight.
"""

from __future__ import annotations

from typing import Any

from palaestra.game import Game, with_options
from palaestra.games.ucav.dogfight import DOGFIGHT_OPTIONS, build, duration_option
from palaestra.games.ucav.starts import OFFENSIVE

DEFAULTS = {
    "blue_gun": 0.0,
    "blue_missiles": 0.0,
    "arena_drain": 0.0,
    "energy_weight": 1.0,
    "start": OFFENSIVE,
    "neutral_weight": 1.0,
    "blue_behind_weight": 0.0,
}
"""Defaults that differ from the dogfight's."""
DURATION_S = 40.0
"""Length of a match, s, by default: a learner sees many starts."""


@with_options(*DOGFIGHT_OPTIONS, duration_option(DURATION_S))
def game(options: Any) -> Game:
    """The rules of `palaestra/UcavPursuit-v2`; errors as of `palaestra.games.ucav.dogfight.build`."""
    return build(options, "UcavPursuit", DEFAULTS, "weave", symmetric_teams=False)
