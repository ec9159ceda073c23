"""The demo: a scripted hunter with a trained inner loop, and recordings of its matches; or games of other families.

A scripted hunter commands bank, climb and speed twice a second. The network trained by
`palaestra_baselines.ppo_tracking` moves stick and throttle of both F-16s. The hunter fights a target that turns and one
that weaves. The demo prints a table of kills and writes, for each target, one match as a page for a browser, a flight
recording for Tacview, an animation and a page of plots::

    palaestra demo
    python -m palaestra_baselines.demo --matches 64 --out somewhere
    palaestra demo --game skirmish  # see `palaestra_baselines.skirmish_demo`
    palaestra demo --game search  # any family or id: see `palaestra_baselines.family_demo`
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import palaestra
from palaestra import replay
from palaestra.cli.progress_bar import Progress
from palaestra.cli.typed_arguments import read_arguments
from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.files import write_atomically
from palaestra.evaluation.ratings import wilson_interval
from palaestra.game import Game
from palaestra.games.ucav.acmi import write_acmi
from palaestra.games.ucav.flightplot import film, plot_flight
from palaestra.games.ucav.geometry import GRAVITY_MPS2
from palaestra.games.ucav.macros import FLIGHT_PATH_SPAN_RAD, ROLL_SPAN_RAD, SPEED_HIGH_MPS, SPEED_LOW_MPS
from palaestra.games.ucav.sight import NEAR_UNIT_M, RANGE_UNIT_M, SPEED_UNIT_MPS
from palaestra.replay import to_html
from palaestra.replay.export import gif_speed, write_gif
from palaestra_baselines import family_demo, skirmish_demo

ENV_ID = "palaestra/UcavPursuit-v2"
ABOUT = "Plays matches between good players, prints a table of them and writes the best ones to watch."
TARGETS = ("level_turn", "weave")
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
        red: Skirmish: script or file of a policy that plays red in all battles; the bundled players if empty.
        inner_loop: Dogfight: stick controller: ``ppo`` (the bundled network), ``pid``, or the .safetensors file of a
            trained network.
        cone_half_angle_deg: Dogfight: half-angle of the gun's cone; 3 deg is the widest of the contest's schedule.
        workers: Dogfight: processes that fly; 0 is this one, which is faster up to about a hundred matches.
        quiet: Print the result only.
    """

    game: str = "dogfight"
    out: Path = Path("palaestra-demo")
    matches: int | None = None
    seed: int = 0
    red: str = ""
    inner_loop: str = "ppo"
    cone_half_angle_deg: float = 3.0
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


class Hunter:
    """Banks to turn onto the target and climbs to its height: pure pursuit at gun range, lead or lag before.

    With the target at azimuth a and elevation e from the nose in the level frame, and the line of sight turning at
    (a', e'), the course is to turn at ``a' + TURN_GAIN a`` and the nose to rise by ``CLIMB_GAIN e + CLIMB_LEAD_S e'``.
    A course that turns at rate w at airspeed V needs the bank atan(V w / g), g being reduced or increased by the
    vertical acceleration.

    Attributes:
        memory_size: 0, it remembers nothing.
    """

    memory_size = 0
    TURN_GAIN, CLIMB_GAIN, CLIMB_LEAD_S = 1.6, 1.5, 0.5
    STEEPEST_BANK_RAD, STEEPEST_PATH_RAD = np.radians(84.0), np.radians(40.0)
    FASTEST_CLIMB_RADPS = 0.15
    BEHIND_RAD = np.radians(70.0)  # aspect angle within which the hunter is behind the target
    GUN_M, LEAD_S, LAG_S = 900.0, 1.0, 0.5  # from twice the gun's range on it aims ahead of the target, or behind it
    KEPT_RANGE_M, CLOSURE_GAIN = 400.0, 0.08
    TURNING_MPS, TRANSIT_MPS = 250.0, 300.0
    LOW_M, LOW_PATH_RAD = 700.0, 0.1

    def __init__(self, game: Game) -> None:
        """Finds the columns of the observation."""
        self.columns: dict[str, slice] = {}
        start = 0
        for f in game.roles[0].observation:
            self.columns[f.name] = slice(start, start + f.size)
            start += f.size

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Macros ``[n, 1, 3]``; see `palaestra.core.run.opponents.Opponent`."""
        seen = {name: observations[:, 0, columns].astype(np.float64) for name, columns in self.columns.items()}
        speed = seen["airspeed"][:, 0] * SPEED_UNIT_MPS
        path = np.arcsin(np.clip(seen["climb_rate"][:, 0] * SPEED_UNIT_MPS / np.maximum(speed, 50.0), -1.0, 1.0))
        pitch = np.arctan2(*seen["pitch"].T)
        distance, behind = seen["range"][:, 0] * RANGE_UNIT_M, seen["aspect_angle"][:, 0] < self.BEHIND_RAD
        far = np.clip(distance / self.GUN_M - 1.0, 0.0, 1.0) * np.where(behind, self.LEAD_S, -self.LAG_S)
        target_velocity = (seen["relative_velocity"] + seen["velocity"]) * SPEED_UNIT_MPS
        x, y, z = level(seen, seen["relative_position"] * RANGE_UNIT_M + far[:, None] * target_velocity)
        azimuth, climb = np.arctan2(y, x), np.arctan2(-z, np.hypot(x, y)) - pitch
        _, climb_rate, turn_rate = level(seen, seen["sight_rate"])
        rate = turn_rate + self.TURN_GAIN * azimuth
        rise = np.clip(self.CLIMB_GAIN * climb + climb_rate, -self.FASTEST_CLIMB_RADPS, self.FASTEST_CLIMB_RADPS)
        lift = np.maximum(GRAVITY_MPS2 * np.cos(path) + speed * rise, 0.3 * GRAVITY_MPS2)
        bank = np.clip(np.arctan2(speed * rate * np.cos(path), lift), -self.STEEPEST_BANK_RAD, self.STEEPEST_BANK_RAD)
        wanted = path + self.CLIMB_GAIN * climb + self.CLIMB_LEAD_S * climb_rate
        height = seen["height_over_floor"][:, 0] * NEAR_UNIT_M
        low = height < self.LOW_M + 4.0 * speed * np.maximum(-path, 0.0)
        wanted = np.where(low, np.maximum(wanted, self.LOW_PATH_RAD), wanted)
        return macro(bank, np.clip(wanted, -self.STEEPEST_PATH_RAD, self.STEEPEST_PATH_RAD), self._speed(seen, behind))

    def _speed(self, seen: dict[str, np.ndarray], behind: np.ndarray) -> np.ndarray:
        """Behind the target its own speed and what closes the distance, else the one that turns best."""
        distance = seen["range"][:, 0] * RANGE_UNIT_M
        closure = np.clip(self.CLOSURE_GAIN * (distance - self.KEPT_RANGE_M), -60.0, 100.0)
        other = np.where(distance < 2500.0, self.TURNING_MPS, self.TRANSIT_MPS)
        return np.where(behind, seen["other_airspeed"][:, 0] * SPEED_UNIT_MPS + closure, other)


def level(seen: dict[str, np.ndarray], vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors from body axes to the level frame of the nose's heading: ahead, right, down."""
    (sin_roll, cos_roll), (sin_pitch, cos_pitch) = seen["roll"].T, seen["pitch"].T
    x, y, z = vectors.T
    down = sin_roll * y + cos_roll * z
    return cos_pitch * x + sin_pitch * down, cos_roll * y - sin_roll * z, cos_pitch * down - sin_pitch * x


def macro(roll_rad: np.ndarray, flight_path_rad: np.ndarray, speed_mps: np.ndarray) -> np.ndarray:
    """The action ``[n, 1, 3]`` of roll, flight path and airspeed."""
    speed = 2.0 * (speed_mps - SPEED_LOW_MPS) / (SPEED_HIGH_MPS - SPEED_LOW_MPS) - 1.0
    scaled = np.stack([roll_rad / ROLL_SPAN_RAD, flight_path_rad / FLIGHT_PATH_SPAN_RAD, speed], axis=-1)
    return np.clip(scaled, -1.0, 1.0)[:, None]


def rules(args: Args) -> dict[str, Any]:
    """Keywords of the game."""
    return {
        "commands": "macro",
        "inner_loop": args.inner_loop,
        "cone_half_angle_deg": args.cone_half_angle_deg,
    }


def hunt(args: Args, target: str) -> Hunt:
    """Plays all matches against one target, match k under the seed ``(seed << 32) + k``."""
    sim = palaestra.make_batch(
        ENV_ID,
        args.count,
        autoreset_mode="off",
        workers=args.workers,
        opponents={"blue": target},
        **rules(args),
    )
    sim.set_opponent("red", Hunter(sim.game))
    with Progress("matches", args.count, title=f"hunting {target}", quiet=args.quiet) as progress:
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
    players = {"red": Hunter(hunt.game), "blue": target}
    to_html(replay.record(ENV_ID, players, seed=(args.seed << 32) + number, **rules(args)), html)
    title = f"{args.inner_loop} inner loop, hunting {target}"
    write_acmi(acmi, hunt.game, records, title)
    figure = plot_flight(hunt.game, records, title)
    write_atomically(page, lambda file: figure.savefig(file, format="png"))
    fps, every = hunt.game.render_fps, -(-len(records) // LONGEST_FILM)
    speed = gif_speed(len(records) - 1, fps)
    write_gif(film(hunt.game, records, every), picture, every * 1000 / fps / speed, speed)
    return [html, acmi, page, picture]


def result_lines(args: Args, hunts: dict[str, Hunt]) -> list[str]:
    """The result as a table of text."""
    cone = f"gun cone of {args.cone_half_angle_deg:g} deg half-angle"
    lines = [
        f"A rule commands, the {args.inner_loop} inner loop flies; {cone}",
        f"{'target':12s}{'matches':>8s}{'kills':>7s}{'share':>7s}  {'95 % interval':15s}{'lost':>5s}{'kill at':>13s}",
    ]
    for target, result in hunts.items():
        shot = result.kills
        low, high = wilson_interval(int(shot.sum()), len(shot))
        lengths = np.array([len(records) - 1 for records in result.records])
        seconds = np.median(lengths[shot]) / result.game.render_fps if shot.any() else float("nan")
        lines.append(
            f"{target:12s}{len(shot):8d}{shot.sum():7d}{shot.mean():7.2f}  {low:.2f} to {high:.2f}   "
            f"{result.losses:5d}{seconds:11.0f} s"
        )
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
    """Hunts all targets, prints the table and writes the recordings of a match against each."""
    hunts = {target: hunt(args, target) for target in TARGETS}
    print("\n".join(result_lines(args, hunts)))
    with Progress("matches", len(TARGETS), title="recording", quiet=args.quiet) as progress:
        files = []
        for number, (target, result) in enumerate(hunts.items(), 1):
            files += record(args, target, result)
            progress.update(number)
    return files


if __name__ == "__main__":
    main()
