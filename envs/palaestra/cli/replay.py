"""Shows a replay, verifies it by re-simulation, and exports pictures, tables and what families write."""

from __future__ import annotations

import argparse
import importlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from palaestra import registry
from palaestra.cli.common import add_json, natural, positive_count, positive_number, print_json
from palaestra.core.contract import factories
from palaestra.core.contract.pictures import LEAST, MOST, Size, check_size
from palaestra.replay import Replay, frames, load, to_csv, to_gif, to_html, verify
from palaestra.replay.export import check_lane
from palaestra.replay.playback import check_fits

ABOUT = "show, verify or export a replay"
EXAMPLE = "palaestra replay match.npz --verify --html match.html"

LONGEST = 200
"""Characters of a keyword's value that are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    parser.add_argument(
        "files", metavar="FILE", type=Path, nargs="+", help="a replay; --html shows several side by side"
    )
    parser.add_argument(
        "--verify", action="store_true", help="play it again, compare every state and all that is listed"
    )
    parser.add_argument("--gif", metavar="FILE", type=Path, help="draw it as an animated GIF (*.gif)")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page that plays it in a browser (*.html)")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write the match record after every decision")
    for name, (about, _) in registry.offers("exports").items():
        parser.add_argument(f"--{name}", metavar="FILE", type=Path, help=f"write {about}")
    parser.add_argument("--lane", type=natural, default=0, help="which match to export (default 0)")
    parser.add_argument("--every", type=positive_count, default=1, help="decisions from picture to picture (default 1)")
    parser.add_argument(
        "--speed",
        type=positive_number,
        help="simulated seconds a second in the GIF (default 1; more in slow games and long matches)",
    )
    parser.add_argument(
        "--render-size",
        metavar="WxH",
        type=picture_size,
        help="columns and rows of the pictures in the GIF, such as 640x480 (default: the game's own)",
    )
    parser.add_argument(
        "--import",
        dest="modules",
        metavar="MODULE",
        action="append",
        default=[],
        help="import a module first, which registers the environment; as often as needed",
    )
    parser.add_argument(
        "--trust-paths",
        action="store_true",
        help="let its keywords open files of yours and run code, if you trust its author",
    )
    add_json(parser)


def picture_size(text: str) -> Size | None:
    """An option's columns and rows, such as ``640x480``."""
    width, _, height = text.partition("x")
    try:
        return check_size((natural(width), natural(height)))
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size: write WIDTHxHEIGHT, each from {LEAST} to {MOST}, such as 640x480"
        ) from None


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`."""
    for module in args.modules:
        importlib.import_module(module)
    replays = [load(file, trust_paths=args.trust_paths) for file in args.files]
    exports = {name: getattr(args, name) for name in ("gif", "csv", *registry.offers("exports"))}
    if len(replays) > 1 and any(exports.values()):
        given = ", ".join(f"--{name}" for name, path in exports.items() if path)
        raise ValueError(f"{given}: of one replay alone, {len(replays)} are given; --html shows several side by side")
    reports, lines = list[dict[str, Any]](), list[str]()
    for file, replay in zip(args.files, replays, strict=True):
        report, more = _look_at(file, replay, args)
        reports.append(report)
        lines += more
    if args.html:
        size = to_html(replays, args.html, lane=args.lane)
        reports[0]["html_bytes"] = size
        lines.append(f"{args.html}: {size / 1000:,.0f} kB, open it in a browser")
    if args.json:
        print_json(reports[0] if len(reports) == 1 else reports)
    else:
        print("\n".join(lines))
    return 0 if all(report.get("verification", {"ok": True})["ok"] for report in reports) else 1


def _look_at(file: Path, replay: Replay, args: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Verifies and exports a replay as told; numbers and lines of what was found."""
    reported: dict[str, Any] = {"file": str(file), **_summary(replay)}
    lines = _lines(file, replay)
    if args.verify:
        result = verify(replay)
        reported["verification"] = {
            "ok": result.ok,
            "steps": result.steps,
            "digest": result.digest,
            "lane": result.lane if result.lane >= 0 else None,
            "diverged_after": result.first_step if result.lane >= 0 else None,
            "diverged_by": result.last_step if result.lane >= 0 else None,
            "wrong": list(result.wrong),
        }
        lines.append(str(result))
    if args.gif:
        how = {"lane": args.lane, "every": args.every, "speed": args.speed, "render_size": args.render_size}
        reported["pictures"] = to_gif(replay, args.gif, **how)
        lines.append(f"{args.gif}: {reported['pictures']} pictures drawn, equal ones in a row stored as one")
    if args.csv:
        reported["rows"] = to_csv(replay, args.csv, lane=args.lane)
        lines.append(f"{args.csv}: {reported['rows']} rows")
    for name, (about, function) in registry.offers("exports").items():
        if path := getattr(args, name):
            game = check_fits(replay)
            check_lane(replay, args.lane)
            records = (sim.states[args.lane] for sim in frames(replay))
            factories.load(function)(path, game, records, f"{replay.id}, seed {replay.seeds[args.lane]}")
            lines.append(f"{path}: {about}")
    return reported, lines


def _summary(replay: Replay) -> dict[str, Any]:
    return {
        "id": replay.id,
        "keywords": json.loads(json.dumps(dict(replay.keywords), default=str)),
        "palaestra": replay.palaestra,
        "engine": replay.engine,
        "num_envs": replay.num_envs,
        "autoreset_mode": replay.autoreset_mode,
        "seeds": replay.seeds.tolist(),
        "players": dict(replay.players),
        "names_from_the_file": {team: list(names) for team, names in replay.outside.items()},
        "steps": replay.steps,
        "matches": replay.matches,
        "digest": replay.digest,
    }


def _lines(file: Path, replay: Replay) -> list[str]:
    texts = {name: repr(value) for name, value in replay.keywords.items()}
    keywords = "".join(f", {name}={w if len(w) <= LONGEST else w[:LONGEST] + '...'}" for name, w in texts.items())
    seeds = ", ".join(map(str, replay.seeds[:4].tolist())) + (", ..." if len(replay.seeds) > 4 else "")
    went_on = " (earlier: the recording began without a seed)" if replay.streams_went_on else ""
    lines = [
        f"{file}: {replay.id}{keywords}",
        f"  {replay.num_envs} lane{'s' if replay.num_envs > 1 else ''}, {replay.steps} decisions, seed {seeds}{went_on}"
        + (f", recorded with {replay.engine}" if replay.engine else ""),
        f"  written by palaestra {replay.palaestra}, according to the file",
        "  players: " + ", ".join(f"{team} {player}" for team, player in replay.players.items()),
    ]
    named = [f"{team} {name}" for team, names in replay.outside.items() for name in names]
    if named:
        lines.append(f"    names that only the file gives: {', '.join(named)}; their actions are repeated")
    if len(replay.matches) > 8:
        for title, key in (("won", "winner"), ("ended", "end_reason")):
            counts = Counter(match[key] or "none" for match in replay.matches).most_common()
            lines.append(f"  {title}: " + ", ".join(f"{name} {count}" for name, count in counts))
    for match in replay.matches if len(replay.matches) <= 8 else ():
        outcome = f"{match['winner']} wins" if match["winner"] else "no winner"
        lines.append(f"  lane {match['lane']}, decision {match['step']}: {outcome}, {match['end_reason']}")
    return lines
