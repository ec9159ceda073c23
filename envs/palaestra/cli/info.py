"""Shows the page of an environment: what it is, spaces, rewards, ends and keywords."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from palaestra import pages, registry
from palaestra.cli.common import add_id, add_json, add_keywords, keywords_of, print_json
from palaestra.console import find_id
from palaestra.core.contract import factories
from palaestra.core.contract.fields import table_rows
from palaestra.core.contract.options import options_of
from palaestra.core.faces.screen import render_modes
from palaestra.game import Game, Option, Parameter

ABOUT = "the page of one environment"
EXAMPLE = "palaestra info CartPole"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    add_id(parser)
    add_keywords(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`."""
    id, keywords = find_id(args.id), keywords_of(args)
    if args.json:
        shown, parameters = registry.make_game(id, **keywords)
        rules, _ = registry.make_game(id, **{**keywords, "observation": "flat"})
        print_json(_facts(id, rules, shown, parameters))
    else:
        _show(pages.page(id, **keywords))
    return 0


def _facts(id: str, game: Game, shown: Game, parameters: dict[str, float]) -> dict[str, Any]:
    """All that `palaestra info --json` prints: of the game as it is ``shown``, and of its other representations."""
    row = registry.row(id)
    return {
        "id": id,
        "family": row.family,
        "about": row.about,
        "page": registry.page_of(id)[0].name,
        "keywords": dict(row.kwargs),
        "options": [_option(option) for option in options_of(factories.load(row.factory))],
        "teams": {team: [game.agents[slot] for slot in slots] for team, slots in game.teams.items()},
        "roles": [
            {
                "name": role.name,
                "agents": list(role.agents),
                "observation": table_rows(role.observation),
                "action": table_rows(role.action),
            }
            for role in shown.roles
        ],
        "team_observation": table_rows(shown.team_observation),
        "lane_observation": table_rows(shown.lane_observation),
        "default_observation": game.default_observation,
        "representations": {name: _representation(game, name) for name in game.representations},
        "parameters": [_parameter(p) for p in game.parameters],
        "horizon": int(parameters.get("horizon", game.horizon)),
        "periods": game.periods,
        "info": table_rows(game.info),
        "end_reasons": ["horizon", *game.end_reasons, *game.truncation_reasons],
        "truncation_reasons": ["horizon", *game.truncation_reasons],
        "masks": game.legal is not None,
        "candidates": {choice.name: choice.candidates for choice in pages.listed_choices(game)},
        "reward": game.reward,
        "reward_dtype": game.reward_dtype,
        "zero_sum": game.zero_sum,
        "determinism": game.determinism,
        "opponents": [*game.scripts, *(["random"] if len(game.teams) > 1 else []), *game.mixtures],
        "held_out": list(game.held_out),
        "default_opponent": game.default_opponent,
        "codecs": list(game.codecs),
        "default_codec": game.default_codec,
        "pictures": game.render is not None,
        "render_modes": render_modes(game),
    }


def _representation(game: Game, name: str) -> dict[str, Any]:
    shown = game.represented(name)
    return {
        "about": game.representations[name].about,
        "roles": {role.name: table_rows(role.observation) for role in shown.roles},
        "team_observation": table_rows(shown.team_observation),
        "lane_observation": table_rows(shown.lane_observation),
    }


def _option(option: Option) -> dict[str, Any]:
    facts = {"name": option.name, "default": option.default, "low": option.low, "high": option.high}
    return {
        **facts,
        "words": list(option.words),
        "unit": option.unit,
        "only": sorted(option.only),
        "about": option.about,
    }


def _parameter(p: Parameter) -> dict[str, Any]:
    facts = {"name": p.name, "default": p.default, "low": p.low, "high": p.high, "unit": p.unit, "about": p.about}
    return {**facts, "at_start": p.at_start, "words": list(p.words), "values": list(p.values)}


def _show(page: str) -> None:
    """Prints Markdown, set by rich where there is a terminal."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.markdown import Markdown
        except ImportError:
            pass
        else:
            Console().print(Markdown(page))
            return
    print(page)
