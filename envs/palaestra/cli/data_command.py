"""Makes, lists, verifies and shows data sets of complete episodes, for learning offline.

  palaestra data make ID --policy PLAYER --episodes N --out FOLDER/NAME-v0
  palaestra data list FOLDER
  palaestra data verify FOLDER/NAME-v0
  palaestra data show FOLDER/NAME-v0

A data set is a folder that minari.load_dataset reads. It is the same to the byte whoever makes it, and the command that
was killed goes on where it was. A player is named as for palaestra eval.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.cli.common import add_id, add_json, add_keywords, keywords_of, natural, positive_count, print_json
from palaestra.cli.progress_bar import Progress
from palaestra.console import find_id, print_table
from palaestra.data import DataError, Manifest, iterate_data, make_data, read_manifest
from palaestra.data.data_manifest import MANIFEST
from palaestra.players.named_players import named_player

ABOUT = "data sets of episodes, for learning offline (Minari)"
EXAMPLE = "palaestra data make TeamTrap --policy peak --episodes 500 --seed 1 --out data/trap-peak-v0"
SPANS = re.compile(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*")
MOST_TASKS = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    verbs = parser.add_subparsers(dest="verb", metavar="make|list|verify|show", required=True)
    make = verbs.add_parser("make", help="record matches of a player", description="Records matches of a player.")
    add_id(make)
    make.add_argument("--policy", metavar="PLAYER", required=True, help="player of the recorded team")
    make.add_argument("--team", help="the recorded team, which acts as one (default: the only team)")
    make.add_argument("--opponent", metavar="PLAYER", help="player of the other team (default: the game's own)")
    make.add_argument("--episodes", type=positive_count, required=True, help="matches; of each task, with --tasks 0-9")
    make.add_argument("--seed", type=natural, default=0, help="number of the run (default 0; evaluations have 2**31)")
    make.add_argument("--out", type=Path, metavar="PATH", required=True, help="folder to make, named NAME-v0")
    make.add_argument(
        "--tasks", help="each of these for --episodes matches: numbers (0-44 or 0,2,5), or a word of the game (train)"
    )
    make.add_argument("--info", action="append", default=[], help="field of info to keep, as often as needed")
    make.add_argument("--num-envs", type=positive_count, default=64, help="matches at the same time (default 64)")
    add_keywords(make)
    listing = verbs.add_parser("list", help="data sets of a folder", description="Lists the data sets of a folder.")
    listing.add_argument("path", metavar="FOLDER", type=Path, help="folder that holds data sets")
    about = "Reads all of a data set and compares it with its manifest and with the rules."
    verify = verbs.add_parser("verify", help="read and compare a data set", description=about)
    show = verbs.add_parser(
        "show", help="what a data set says of itself", description="Shows the manifest of a data set."
    )
    for each in (verify, show):
        each.add_argument("path", metavar="PATH", type=Path, help="folder of the data set")
    for each in (make, listing, verify, show):
        add_json(each)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`."""
    return {"make": _make, "list": _list, "verify": _verify, "show": _show}[args.verb](args)


def tasks_of(text: str | None) -> list[int] | str | None:
    """The numbers of ``"0-44"`` or ``"0,2,5-9"``; a word itself.

    Raises:
        ValueError: A span that goes down, or too many tasks.
    """
    if text is None or SPANS.fullmatch(text) is None:
        return text
    tasks: list[int] = []
    for span in text.split(","):
        first, _, last = span.partition("-")
        low, high = int(first), int(last or first)
        if high < low or high - low >= MOST_TASKS:
            raise ValueError(f"--tasks takes spans that go up, of at most {MOST_TASKS} tasks, got {span!r}")
        tasks += range(low, high + 1)
    return tasks


def _make(args: argparse.Namespace) -> int:
    with Progress("episodes") as report_progress:
        manifest = make_data(
            find_id(args.id),
            named_player(args.policy),
            args.out,
            episodes=args.episodes,
            seed=args.seed,
            each_task=tasks_of(args.tasks),
            team=args.team,
            opponent=named_player(args.opponent),
            infos=args.info,
            num_envs=args.num_envs,
            progress=report_progress,
            **keywords_of(args),
        )
    return _print(args, manifest)


def _list(args: argparse.Namespace) -> int:
    found: list[dict[str, Any]] = []
    for folder in sorted(file.parent for file in args.path.glob(f"*/{MANIFEST}")):
        try:
            manifest = read_manifest(folder)
            found.append({"name": folder.name, **{k: v for k, v in _summary(manifest).items() if k != "name"}})
        except DataError as error:
            found.append({"name": folder.name, "error": str(error)})
    if args.json:
        print_json(found)
        return 0
    if not args.path.is_dir():
        raise NotADirectoryError(20, "no folder", str(args.path))
    columns = ("id", "policy", "episodes", "steps", "tasks")
    print_table([[f["name"], *(str(f.get(c, "")) for c in columns)] for f in found], ["name", *columns])
    for each in (f["error"] for f in found if "error" in f):
        print(each)
    return 0


def _verify(args: argparse.Namespace) -> int:
    manifest, returns = read_manifest(args.path), []
    with Progress("episodes") as report_progress:
        for number, episode in enumerate(iterate_data(args.path), 1):
            returns.append(float(episode.rewards.sum()))
            report_progress(number, manifest.episodes)
    return _print(args, manifest, {"verified": True, "mean_return": float(np.mean(returns))})


def _show(args: argparse.Namespace) -> int:
    return _print(args, read_manifest(args.path))


def _summary(manifest: Manifest) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "id": manifest.id,
        "keywords": dict(manifest.keywords),
        "team": manifest.team,
        "policy": manifest.players[manifest.team],
        "players": dict(manifest.players),
        "episodes": manifest.episodes,
        "steps": sum(manifest.steps),
        "tasks": len(set(manifest.tasks) - {-1}),
        "recipe": dict(manifest.recipe),
        "arrays": {name: list(entry) for name, entry in manifest.arrays.items()},
        "rules": manifest.rules,
        "engine": manifest.engine,
        "palaestra": manifest.palaestra,
        "files": {name: {"bytes": size, "sha256": digest} for name, (size, digest) in manifest.files.items()},
    }


def _print(args: argparse.Namespace, manifest: Manifest, more: dict[str, Any] | None = None) -> int:
    found = _summary(manifest) | (more or {})
    if args.json:
        print_json(found)
        return 0
    given = "".join(f", {name}={value!r}" for name, value in found["keywords"].items())
    print(f"{manifest.name}: {manifest.id}{given}")
    tasks = f" of {found['tasks']} tasks" if found["tasks"] else ""
    run = f", run {manifest.recipe['seed']}" if "seed" in manifest.recipe else ""
    print(f"  {manifest.episodes} episodes{tasks}, {found['steps']} decisions{run}")
    print("  players: " + ", ".join(f"{team} {player}" for team, player in found["players"].items()))
    print(f"  recorded: {manifest.team}; " + ", ".join(f"{n} {d}{s}" for n, (d, s) in found["arrays"].items()))
    print(f"  written by palaestra {manifest.palaestra}, rules {manifest.rules}, {manifest.engine or 'any platform'}")
    for name, file in found["files"].items():
        print(f"  {name}: {file['bytes']:,} bytes, SHA-256 {file['sha256']}")
    if more:
        print(f"  verified: all episodes are as they were recorded; mean return {found['mean_return']:.3f}")
    return 0
