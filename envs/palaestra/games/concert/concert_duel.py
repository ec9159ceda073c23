"""ConcertDuel: two powers move armies and fleets at once, with supports and convoys, by orders that both keep secret.

## Description

Todo:
## Action Space

<!-- table: action -->

## Observation Space

<!-- table: observation -->

## Rewards

## Starting State

## Episode End

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

from typing import Any

from palaestra.game import Game, Option, with_options
from palaestra.games.concert.concert_rules import OPTIONS, last_year_option, make_game
from palaestra.games.concert.concert_text import ConcertCodec

MAPS = ("duel", "duel20", "france_austria")


@with_options(Option("map", "duel", "where it is played", words=MAPS), last_year_option(12), *OPTIONS)
def game(options: Any) -> Game:
    """The rules of `palaestra/ConcertDuel-v0`."""
    return make_game("ConcertDuel", options, ConcertCodec)
