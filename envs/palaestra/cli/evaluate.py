"""Plays matches between two players from both sides, or a tournament of several with Elo ratings.

A player is a script's name, "random", "mix", "held_out", the file of a policy (.safetensors, .zip of Stable-Baselines3,
.onnx), module:function, a callable on batched observations or what as_opponent made, "adversary:SHARE:FILE", which
plays as the default opponent and in a share of its decisions as the policy of the file, or "openai:URL#MODEL", a
language model behind a chat endpoint: see palaestra.players.chat_player. What it replied is kept in runs/chat, and the
same command goes on from there. The sides are swapped where the game declares its teams symmetric; intervals count the
two matches of a seed as one trial.

--set mates=PLAYER gives player A the first agent of its team alone, and all others to that player.

--ray plays on a Ray cluster, with the same table. Its machines must be able to import the modules of module:function
and module:id. What is interrupted leaves its finished matches in runs/scale: the same command goes on from there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.cli.common import (
    add_id,
    add_json,
    add_keywords,
    finite_number,
    keywords_of,
    natural,
    positive_count,
    print_json,
)
from palaestra.cli.progress_bar import Progress
from palaestra.console import find_id
from palaestra.drawing.canvas import import_pillow
from palaestra.evaluation import EVALUATION_RUN, MatchTable, evaluate, tournament
from palaestra.evaluation.match_pages import write_pages
from palaestra.players.named_players import named_player
from palaestra.replay import record

ABOUT = "matches between players, with intervals and Elo"
RECORDED = 4
"""Matches that ``--record`` writes, at most."""
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
    parser.add_argument("--matches", type=positive_count, default=64, help="matches of each pair (default 64)")
    parser.add_argument("--seed", type=natural, default=EVALUATION_RUN, help="number of the run (default 2**31)")
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--swap", action="store_true", default=None, help="insist on playing each seed from both sides")
    sides.add_argument("--no-swap", dest="swap", action="store_false", help="the first player keeps the first team")
    parser.add_argument("--num-envs", type=positive_count, default=64, help="matches at the same time (default 64)")
    parser.add_argument("--workers", type=natural, default=0, help="processes that share them (default: none)")
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="play on a Ray cluster: auto, ip:6379, or local for one on this machine"
    )
    parser.add_argument(
        "--actors",
        type=positive_count,
        metavar="N",
        help="with --ray: most processes that play (default: one a processor)",
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        type=Path,
        help=f"with --a: write a replay (.npz) of the first {RECORDED} seeds, player A as the first team",
    )
    parser.add_argument(
        "--html", metavar="FOLDER", type=Path, help="with --a: write a page of every match, and an index of them"
    )
    parser.add_argument(
        "--pages", type=positive_count, metavar="N", help="with --html: pages of the first N matches (default: of all)"
    )
    add_keywords(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: Players are missing or too many.
        ImportError: Pages are wanted, and Pillow is not installed.
    """
    if (args.players is None) == (args.a is None) or (args.players and args.b):
        raise ValueError("name the players: --a and --b, or --players")
    if args.anchor and not args.players:
        raise ValueError("--anchor goes with --players")
    for name in ("record", "html"):
        if getattr(args, name) and args.players:
            raise ValueError(f"--{name} goes with --a and --b")
    if args.pages and not args.html:
        raise ValueError("--pages goes with --html")
    if args.actors and args.ray is None:
        raise ValueError("--actors goes with --ray")
    if args.workers and args.ray is not None:
        raise ValueError("--workers are processes of this machine: with --ray give --actors")
    id = find_id(args.id)
    if args.html:
        import_pillow()  # before anything is played
    with Progress("matches") as report_progress:
        result = _play(args, id, report_progress)
    if args.record:
        _record(args.record, id, (named_player(args.a), named_player(args.b)), result, keywords_of(args))
    if args.json:
        print_json(result.as_dict())
    else:
        print(result)
    _print_replies()
    if args.html:
        _write_pages(args, result)
    return 0


def _print_replies() -> None:
    """Says how many replies language models gave, if any did."""
    if (chats := sys.modules.get("palaestra.players.chat_answers")) is not None:
        for line in chats.reports():
            print(line, file=sys.stderr)


def _play(args: argparse.Namespace, id: str, report_progress: Progress) -> Any:
    """The table or the tournament, by this machine or by a cluster."""
    options: dict[str, Any] = {
        "matches": args.matches,
        "seed": args.seed,
        "swap": args.swap,
        "num_envs": args.num_envs,
        **keywords_of(args),
    }
    play, play_all, player = evaluate, tournament, named_player
    if args.ray is not None:
        from palaestra import scale

        play, play_all, player = scale.evaluate, scale.tournament, str  # who plays resolves the texts
        options |= {"address": args.ray, "actors": args.actors}
    elif args.workers:
        options["workers"] = args.workers
    if args.players:
        players = {name: player(name) for name in args.players}
        return play_all(id, players, anchors=_anchors(args.anchor), progress=report_progress, **options)
    pair = (player(args.a), args.b and player(args.b))
    return play(id, *pair, names=(args.a, args.b), progress=report_progress, **options)


def _write_pages(args: argparse.Namespace, table: Any) -> None:
    """Writes the pages of a table, which has been printed: what goes wrong here loses no result."""
    pair = (named_player(args.a), named_player(args.b))
    with Progress("pages") as report_progress:
        index = write_pages(args.html, table, pair, keywords_of(args), report_progress, args.pages)
    if not args.json:
        print(f"  {index}: open it in a browser")


def _record(file: Path, id: str, players: tuple[Any, Any], table: MatchTable, keywords: dict[str, Any]) -> None:
    """Plays the first matches of a table again, from the first side, and writes their replay."""
    seeds = np.unique(table.results["seed"])[:RECORDED]
    given = {team: player for team, player in zip(table.game.teams, players, strict=False) if player is not None}
    record(id, given, seed=int(seeds[0]), num_envs=len(seeds), **keywords).save(file)


def _anchors(texts: list[str]) -> dict[str, float]:
    anchors = {}
    for text in texts:
        name, _, elo = text.rpartition("=")
        try:
            anchors[name] = finite_number(elo)
        except argparse.ArgumentTypeError:
            raise ValueError(f"--anchor takes PLAYER=ELO, a finite number, got {text!r}") from None
    return anchors
