"""Plays matches between two players from both sides, or a tournament of several with Elo ratings.

A player is a script's name, "random", "mix", the file of a saved policy, or module:function, a callable on batched
observations.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from palaestra.cli.common import add_id, add_json, add_keywords, keywords_of, print_json
from palaestra.cli.progress_bar import Progress
from palaestra.console import find_id
from palaestra.evaluation import EVALUATION_RUN, evaluate, tournament

ABOUT = "matches between players, with intervals and Elo"
EXAMPLE = "palaestra eval UcavDogfight --a expert --b lead_pursuit --matches 20"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    add_id(parser)
    parser.add_argument("--a", metavar="PLAYER", help="first player, whose wins are counted")
    parser.add_argument("--b", metavar="PLAYER", help="second player (none in a game with one team)")
    parser.add_argument(
        "--players", metavar="PLAYER", nargs="+", help="instead of --a, --b: all players meet each other"
    )
    parser.add_argument(
        "--anchor", metavar="PLAYER=ELO", action="append", default=[], help="with --players: a rating that is given"
    )
    parser.add_argument("--matches", type=int, default=64, help="matches of each pair (default 64)")
    parser.add_argument("--seed", type=int, default=EVALUATION_RUN, help="number of the run (default 2**31)")
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--swap", action="store_true", default=None, help="insist on playing each seed from both sides")
    sides.add_argument("--no-swap", dest="swap", action="store_false", help="the first player keeps the first team")
    parser.add_argument("--num-envs", type=int, default=64, help="matches at the same time (default 64)")
    parser.add_argument("--workers", type=int, default=0, help="processes that share them (default: none)")
    add_keywords(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: Players are missing or too many.
    """
    if (args.players is None) == (args.a is None) or (args.players and args.b):
        raise ValueError("name the players: --a and --b, or --players")
    if args.anchor and not args.players:
        raise ValueError("--anchor goes with --players")
    options: dict[str, Any] = {
        "matches": args.matches,
        "seed": args.seed,
        "swap": args.swap,
        "num_envs": args.num_envs,
        **({"workers": args.workers} if args.workers else {}),
        **keywords_of(args),
    }
    id = find_id(args.id)
    with Progress("matches") as report_progress:
        if args.players:
            players = {name: _player(name) for name in args.players}
            result = tournament(id, players, anchors=_anchors(args.anchor), progress=report_progress, **options)
        else:
            names = (args.a, args.b)
            result = evaluate(id, _player(args.a), _player(args.b), names=names, progress=report_progress, **options)
    if args.json:
        print_json(result.as_dict())
    else:
        print(result)
    return 0


def _player(text: str | None) -> Any:
    module, colon, function = (text or "").partition(":")
    if colon and module.replace(".", "_").isidentifier() and function.isidentifier():
        return getattr(importlib.import_module(module), function)
    return text


def _anchors(texts: list[str]) -> dict[str, float]:
    anchors = {}
    for text in texts:
        name, _, elo = text.rpartition("=")
        try:
            anchors[name] = float(elo)
        except ValueError:
            raise ValueError(f"--anchor takes PLAYER=ELO, got {text!r}") from None
    return anchors
