"""UcavPursuit: hunt a target that does not shoot back.

## Description

The rules of `palaestra/UcavDogfight-v1` (`palaestra.games.ucav.dogfight`) with an unarmed target and a quiet arena, for
one learner: red hunts, blue is a script. A UCAV is an unmanned combat aerial vehicle. With ``control="blue"`` the
learner evades instead.

Scripts made for the target are ``"straight"``, ``"level_turn"`` and ``"weave"``. The four pursuers of the dogfight
(``"pure_pursuit"``, ``"lead_pursuit"``, ``"lag_pursuit"``, ``"expert"``) play blue too: they turn towards red and
cannot hurt it. ``"mix"`` draws from all seven; for the first three alone, draw them yourself by lane with
`set_opponent`.

Against the dogfight these defaults differ: blue's gun is off, red starts behind blue or neutral with equal chances,
and leaving the arena costs nothing, so that a target that holds its course is a fair one.

## Action Space

As in the dogfight: `commands="stick"` at 10 Hz or `commands="macro"` at 2 Hz.

<!-- table: action -->

## Observation Space

As in the dogfight.

<!-- table: observation -->

## Rewards

As in the dogfight. A target that cannot shoot makes the reward of the hunter the share of the target's health that it
took, and 1 more for the kill.

## Starting State

As in the dogfight, with other weights.

## Episode End

As in the dogfight: a kill, a crash, an overload, and 200 s.

## Arguments

``inner_loop="ppo"`` crashes with macros of a hunter (see the dogfight's page).

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v1: the airframe is corrected, the planet stands still, and the flight is compiled.
* v0: the aircraft of JSBSim as installed, on the turning Earth, flown by JSBSim.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from palaestra.game import Game, with_options
from palaestra.games.ucav.dogfight import DOGFIGHT_OPTIONS, PARAMETERS, build

DEFAULTS = {"blue_gun": 0.0, "arena_drain": 0.0, "neutral_weight": 1.0, "blue_behind_weight": 0.0}
"""Defaults that differ from the dogfight's."""


@with_options(*DOGFIGHT_OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/UcavPursuit-v1`; errors as of `palaestra.games.ucav.dogfight.build`."""
    parameters = tuple(replace(p, default=DEFAULTS.get(p.name, p.default)) for p in PARAMETERS)
    return build(options, "UcavPursuit", parameters, "weave", symmetric_teams=False)
