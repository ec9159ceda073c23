"""The demo: trained pilots of an F-16, and recordings of their matches; or games of other families.

The pilot that `palaestra_baselines.ucav_pursuit` trained moves stick and throttle. It hunts a target that turns and one
that weaves, both unarmed. The one that `palaestra_baselines.ucav_hierarchy` trained by self-play gives aim commands and
fights the script ``expert``. The demo prints a table of kills and writes, for each opponent, one match as a page for a
browser, a flight recording for Tacview, an animation and a page of plots::

    palaestra demo
    python -m palaestra_baselines.demo --matches 64 --out somewhere
    palaestra demo --game skirmish  # see `palaestra_baselines.skirmish_demo`
    palaestra demo --game search  # any family or id: see `palaestra_baselines.family_demo`
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import palaestra
import palaestra_assets
from palaestra import replay
from palaestra.cli.progress_bar import Progress
from palaestra.cli.typed_arguments import read_arguments
from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.files import write_atomically
from palaestra.core.run.opponents import player_name
from palaestra.evaluation.ratings import wilson_interval
from palaestra.game import Game
from palaestra.games.ucav.acmi import write_acmi
from palaestra.games.ucav.flightplot import film, plot_flight
from palaestra.replay import to_html
from palaestra.replay.export import gif_speed, write_gif
from palaestra_baselines import family_demo, skirmish_demo

ABOUT = "Plays matches between good players, prints a table of them and writes the best ones to watch."


@dataclass(frozen=True)
class Bout:
    """Whom red meets, and by which rules.

    Attributes:
        env_id: What is played.
        weights: Pilot that ships and flies red.
        rules: Keywords of the game.
    """

    env_id: str
    weights: str
    rules: Mapping[str, Any]


HUNT = Bout("palaestra/UcavPursuit-v2", "ucav_pursuit", {"start": "mix", "duration_s": 200.0})
DUEL = Bout("palaestra/UcavDogfight-Contest-v2", "ucav_hierarchy", {"commands": "aim", "blue_commands": "stick"})
BOUTS = {"level_turn": HUNT, "weave": HUNT, "expert": DUEL}
"""By the script that flies blue."""
LONGEST_FILM = 240
"""Pictures; of longer matches every second or third decision is shown."""

MATCHES = {"dogfight": 16, "skirmish": 256}
"""Matches of a target or a battle, where none are asked for."""
OTHER_MATCHES = 64
"""Matches of any other game."""


@dataclass
class Args:
    """Arguments of the demo.

    Attributes:
        game: What is shown: ``dogfight``, two F-16s; ``skirmish``, battles of small armies; ``teams``,
            ``pursuit``, ``robots``, ``search``, or another family, a game of it by its scripts; or the id of any game
            with scripts, such as ``TeamTag``.
        out: Folder for the recordings; made if it is not there.
        matches: Matches against each target (16 by default), of each battle (256) or of another game (64).
        seed: Number of the run; other numbers give other matches.
        red: Dogfight, skirmish: script or file of a policy that plays red; the bundled players if empty.
        cone_half_angle_deg: Dogfight: half-angle of the gun's cone; that of contests is 1 deg.
        workers: Dogfight: processes that fly; 0 is this one, which is faster up to about a hundred matches.
        quiet: Print the result only.
    """

    game: str = "dogfight"
    out: Path = Path("palaestra-demo")
    matches: int | None = None
    seed: int = 0
    red: str = ""
    cone_half_angle_deg: float = 1.0
    workers: int = 0
    quiet: bool = False

    @property
    def count(self) -> int:
        """Matches that are asked for, or those of the game."""
        return MATCHES.get(self.game, OTHER_MATCHES) if self.matches is None else self.matches


@dataclass(frozen=True)
class Hunt:
    """All matches against one target.

    Attributes:
        game: The rules.
        records: For each match its records, the start among them.
        kills: Whether the hunter shot the target down, for each match.
        losses: Matches that the target won.
    """

    game: Game
    records: list[np.ndarray]
    kills: np.ndarray
    losses: int


def pilot(args: Args, target: str) -> str:
    """Script or file that flies red against a target."""
    return args.red or str(palaestra_assets.path(f"weights/{BOUTS[target].weights}.safetensors"))


def rules(args: Args, target: str) -> dict[str, Any]:
    """Keywords of the game."""
    return {**BOUTS[target].rules, "cone_half_angle_deg": args.cone_half_angle_deg}


def hunt(args: Args, target: str) -> Hunt:
    """Plays all matches against one target, match k under the seed ``(seed << 32) + k``."""
    sim = palaestra.make_batch(
        BOUTS[target].env_id,
        args.count,
        autoreset_mode="off",
        workers=args.workers,
        opponents={"red": pilot(args, target), "blue": target},
        **rules(args, target),
    )
    with Progress("matches", args.count, title=f"against {target}", quiet=args.quiet) as progress:
        sim.reset(seed=args.seed << 32)
        history = [sim.states.copy()]
        while (running := sim.states["pending"] == RUNNING).any():
            sim.step()
            history.append(sim.states.copy())
            progress.update(int((~running).sum()))
        progress.update(args.count)
    records = [np.array([s[k] for s in history[: history[-1]["steps"][k] + 1]]) for k in range(args.count)]
    won, why = history[-1]["info"]["winner"], history[-1]["info"]["end_reason"]
    shot = np.array([sim.game.end_reason(int(number)) == "kill" for number in why])
    sim.close()
    return Hunt(sim.game, records, (won == 0) & shot, int((won == 1).sum()))


def best_match(hunt: Hunt) -> int:
    """Number of the kill of median length, or of the longest match if there was none."""
    shot = sorted((len(hunt.records[k]), k) for k in np.flatnonzero(hunt.kills).tolist())
    lengths = [len(records) for records in hunt.records]
    return shot[(len(shot) - 1) // 2][1] if shot else lengths.index(max(lengths))


def record(args: Args, target: str, hunt: Hunt) -> list[Path]:
    """Writes one match as a page for a browser, a flight recording, a page of plots and an animation."""
    number = best_match(hunt)
    records, stem = hunt.records[number], args.out / target
    html, acmi, page, picture = (stem.with_suffix(f".{kind}") for kind in ("html", "acmi", "png", "gif"))
    players = {"red": pilot(args, target), "blue": target}
    seed = (args.seed << 32) + number
    to_html(replay.record(BOUTS[target].env_id, players, seed=seed, **rules(args, target)), html)
    title = f"{player_name(players['red'])} against {target}"
    write_acmi(acmi, hunt.game, records, title)
    figure = plot_flight(hunt.game, records, title)
    write_atomically(page, lambda file: figure.savefig(file, format="png"))
    fps, every = hunt.game.render_fps, -(-len(records) // LONGEST_FILM)
    speed = gif_speed(len(records) - 1, fps)
    write_gif(film(hunt.game, records, every), picture, every * 1000 / fps / speed, speed)
    return [html, acmi, page, picture]


def result_lines(args: Args, hunts: dict[str, Hunt]) -> list[str]:
    """The result as a table of text."""
    head = f"{'pilot':16s}{'opponent':12s}{'matches':>8s}{'kills':>7s}{'share':>7s}"
    lines = [
        f"gun cone of {args.cone_half_angle_deg:g} deg half-angle; expert is armed",
        f"{head}  {'95 % interval':15s}{'lost':>5s}{'kill at':>13s}",
    ]
    for target, result in hunts.items():
        shot = result.kills
        low, high = wilson_interval(int(shot.sum()), len(shot))
        lengths = np.array([len(records) - 1 for records in result.records])
        seconds = np.median(lengths[shot]) / result.game.render_fps if shot.any() else float("nan")
        who = f"{player_name(pilot(args, target)):16s}{target:12s}{len(shot):8d}{shot.sum():7d}{shot.mean():7.2f}"
        lines.append(f"{who}  {low:.2f} to {high:.2f}   {result.losses:5d}{seconds:11.0f} s")
    return lines


def main(argv: Sequence[str] | None = None) -> None:
    """Plays the matches, prints the table and writes the recordings."""
    args = read_arguments(Args, argv, "palaestra demo", ABOUT)
    if args.count < 1:
        raise SystemExit("--matches must be at least 1")
    started_s = time.perf_counter()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.game == "skirmish":
        files = skirmish_demo.show(args.out, args.count, args.seed, args.red, args.quiet)
    elif args.game == "dogfight":
        files = show_dogfights(args)
    else:
        files = family_demo.show(args.out, args.game, args.count, args.seed, args.quiet)
    about = ".html opens in any browser" + (", .acmi in Tacview" if args.game == "dogfight" else "")
    print(f"Recordings ({about}), {time.perf_counter() - started_s:.0f} s:")
    for file in files:
        print(f"  {file}  {file.stat().st_size / 1e3:.0f} kB")


def show_dogfights(args: Args) -> list[Path]:
    """Plays all bouts, prints the table and writes the recordings of a match of each."""
    hunts = {target: hunt(args, target) for target in BOUTS}
    print("\n".join(result_lines(args, hunts)))
    with Progress("matches", len(BOUTS), title="recording", quiet=args.quiet) as progress:
        files = []
        for number, (target, result) in enumerate(hunts.items(), 1):
            files += record(args, target, result)
            progress.update(number)
    return files


if __name__ == "__main__":
    main()
