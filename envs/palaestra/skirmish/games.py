"""The environments of Skirmish: each function makes the rules of one; `palaestra.skirmish` registers their ids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from palaestra.core.game import Game
from palaestra.core.keywords import check_count, check_word
from palaestra.skirmish import maps, orders
from palaestra.skirmish.build import DUEL, SMAC, SPARSE, Twist, make_game
from palaestra.skirmish.maps import BattleMap, Order, Side
from palaestra.skirmish.ruleset import load as load_ruleset

REWARDS = (SMAC, SPARSE)
_USE = (orders.BOOST, *(orders.JUMP + k for k in range(4)))


def battle(map: str | Path = "3m", reward: str = "smac", compat: str = "clean") -> Game:
    """The battle of a map.

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
    return make_game([maps.load(map)], Twist(reward, is_smac=compat == "smac"))
