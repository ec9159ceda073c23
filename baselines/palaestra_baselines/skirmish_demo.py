"""The demo of battles: ``palaestra demo --game skirmish``.

Red plays by bundled weights, or by a script where a battle has none, against the script ``builtin`` on three battles.
It prints a table of won matches and writes one match of each battle as a page for a browser and an animation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import palaestra_assets
from palaestra.cli.progress_bar import Progress
from palaestra.core.files import FileError
from palaestra.core.run.opponents import player_name
from palaestra.evaluation import MatchTable, evaluate
from palaestra.replay import record, to_gif, to_html

OPPONENT = "builtin"
LANES = 64


@dataclass(frozen=True)
class Battle:
    """A battle of the demo.

    Attributes:
        env_id: Its id.
        red: Name of bundled weights (``weights/NAME.safetensors``), or a script.
    """

    env_id: str
    red: str


BATTLES: dict[str, Battle] = {
    "2s3z": Battle("palaestra/Skirmish-2s3z-v0", "skirmish_2s3z.safetensors"),
    "5m_vs_6m": Battle("palaestra/Skirmish-5m_vs_6m-v0", "skirmish_5m_vs_6m.safetensors"),
    "waves": Battle("palaestra/SkirmishUnshaped-Waves-v0", "skirmish_waves.safetensors"),
}
"""Battle by its name, in the order of the table."""


def player_of(red: str) -> str:
    """Bundled weights as a file; anything else is a script's name, or a file already.

    Raises:
        FileError: There are no such weights; says which there are, and what to do.
    """
    if not red.endswith(".safetensors") or Path(red).is_file():
        return red
    try:
        return str(palaestra_assets.path(f"weights/{red}"))
    except FileNotFoundError as error:
        raise FileError(
            f"{error}: install palaestra again, or say who plays red: palaestra demo --game skirmish --red nearest"
        ) from error


def show(out: Path, matches: int, seed: int, red: str, quiet: bool) -> list[Path]:
    """Plays the battles, prints the table and writes a page and an animation of each.

    Args:
        out: Folder of ``BATTLE.html`` and ``BATTLE.gif``.
        matches: Matches of each battle.
        seed: Number of the run; match k has the seed ``(seed << 32) + k``.
        red: Script or file of a policy that plays red in all battles; the players of `BATTLES` if empty.
        quiet: Show no progress.

    Returns:
        The pages and the animations.

    Raises:
        FileError: There are no such weights, or no such file.
        ValueError: The policy cannot play a battle, or there is no such script.
    """
    players = {name: player_of(red or battle.red) for name, battle in BATTLES.items()}
    tables = {}
    with Progress("matches", matches * len(BATTLES), title="battles", quiet=quiet) as progress:
        for number, (name, battle) in enumerate(BATTLES.items()):
            tables[name] = evaluate(
                battle.env_id,
                players[name],
                OPPONENT,
                matches=matches,
                seed=seed,
                swap=False,
                num_envs=min(matches, LANES),
                progress=lambda done, _, before=number * matches: progress.update(before + done),
            )
    print("\n".join(result_lines(players, tables)))
    files = []
    with Progress("matches", len(BATTLES), title="recording", quiet=quiet) as progress:
        for number, (name, battle) in enumerate(BATTLES.items(), 1):
            match = record(
                battle.env_id, {"red": players[name], "blue": OPPONENT}, seed=seed_of_best_match(tables[name])
            )
            files += [out / f"{name}.html", out / f"{name}.gif"]
            to_html(match, files[-2])
            to_gif(match, files[-1])
            progress.update(number)
    return files


def seed_of_best_match(table: MatchTable) -> int:
    """Seed of the won match of median length, or of the longest match if none was won."""
    results = table.results
    won = np.sort(results[results["outcome"] == 1], order=["steps", "seed"])
    return int(won["seed"][(len(won) - 1) // 2] if len(won) else results["seed"][results["steps"].argmax()])


def result_lines(players: Mapping[str, str], tables: Mapping[str, MatchTable]) -> list[str]:
    """The result as a table of text."""
    lines = [
        f"Red against the script {OPPONENT}",
        f"{'battle':12s}{'red':28s}{'matches':>8s}{'won':>7s}{'share':>7s}  95 % interval",
    ]
    for name, table in tables.items():
        low, high = table.win_interval
        red = player_name(players[name])
        share = table.wins / table.matches
        lines.append(f"{name:12s}{red:28s}{table.matches:8d}{table.wins:7d}{share:7.2f}  {low:.2f} to {high:.2f}")
    return lines
