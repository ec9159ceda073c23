"""The strength of scripts: a table of win rates by strength, for every zero-sum game with scripts.

::

    python tests/tools/script_strength.py                                  # all ids, default scripts
    python tests/tools/script_strength.py palaestra/TeamPong-v0 --matches 2000
    python tests/tools/script_strength.py palaestra/TeamPong-v0 --script chaser

A script of strength p takes a share p of its decisions itself; the others are random (`core.opponents`). Three things
should hold: strength 1 beats strength 0, the score rises with the strength, and between equal strengths no side has an
advantage where the teams are alike. Where they are not (chasers against runners), each side is looked at by itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from palaestra import registry
from palaestra.console import print_table
from palaestra.evaluation import evaluate
from palaestra.evaluation.ratings import wilson_interval

GRADES = (0.0, 0.25, 0.5, 0.75, 1.0)
LEAST_WINS = 0.90
"""Share of matches that strength 1 wins against strength 0; a draw is not won."""
MOST_BIAS = 0.03
"""How far red's score between equal strengths may be from one half where the teams are alike."""
SLACK = 2.0
"""Standard errors by which the score may fall from one strength to the next without counting as a fall."""


@dataclass(frozen=True)
class ScriptStrength:
    """Win rates of one script.

    Attributes:
        id: What was played.
        script: Name of the script that played.
        side: ``"both"`` where the teams are alike, else the team whose strength was changed.
        wins: Share of matches that strength 1 won against strength 0.
        rises: Score (a draw is 1/2) of the strengths `GRADES` against strength 0.5.
        equal: Red's score between two of strength 0, 0.5, 1; empty where exchanging the teams changes the game.
        matches: Matches behind each number.
    """

    id: str
    script: str
    side: str
    wins: float
    rises: tuple[float, ...]
    equal: tuple[float, ...]
    matches: int

    @property
    def violations(self) -> list[str]:
        """What does not hold, as text."""
        found = []
        if self.wins < LEAST_WINS:
            found.append(f"1 beats 0 in {self.wins:.1%}")
        slack = SLACK * (0.5 / self.matches) ** 0.5
        if any(later < sooner - slack for sooner, later in zip(self.rises, self.rises[1:], strict=False)):
            found.append("does not rise")
        if any(abs(share - 0.5) > MOST_BIAS for share in self.equal):
            found.append("a side has an advantage")
        return found


def measure(id: str, script: str | None = None, matches: int = 1000) -> list[ScriptStrength]:
    """Plays the matches of one id.

    Args:
        id: Registered id of a zero-sum game with scripts.
        script: Its script; the default opponent if None.
        matches: Matches behind each number.

    Returns:
        One row where the teams are symmetric, else one a team.

    Raises:
        ValueError: The game is not zero-sum or has no such script.
    """
    game, _ = registry.make_game(id)
    script = script or game.default_opponent
    if not game.zero_sum or script not in game.scripts:
        raise ValueError(
            f"{id} is no zero-sum game with a script {script!r}: {', '.join(game.scripts) or 'it has none'}"
        )

    def play(red: float, blue: float, swap: bool):
        return evaluate(id, f"{script}:{red}", f"{script}:{blue}", matches=matches, swap=swap, num_envs=256)

    if game.symmetric_teams:
        wins = play(1, 0, True).wins / matches
        rises = tuple(play(grade, 0.5, True).score for grade in GRADES)
        equal = tuple(play(grade, grade, False).score for grade in (0.0, 0.5, 1.0))
        return [ScriptStrength(id, script, "both", wins, rises, equal, matches)]
    red, blue = game.teams
    return [
        ScriptStrength(
            id,
            script,
            red,
            play(1, 0, False).wins / matches,
            tuple(play(g, 0.5, False).score for g in GRADES),
            (),
            matches,
        ),
        ScriptStrength(
            id,
            script,
            blue,
            play(0, 1, False).losses / matches,
            tuple(1.0 - play(0.5, g, False).score for g in GRADES),
            (),
            matches,
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line. Returns 1 where something does not hold."""
    parser = argparse.ArgumentParser(
        prog="python tests/tools/script_strength.py", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("ids", nargs="*", metavar="ID", help="all zero-sum ids with scripts if none is given")
    parser.add_argument("--matches", type=int, default=1000, help="matches behind each number (default: 1000)")
    parser.add_argument("--script", help="script instead of the default opponent")
    given = parser.parse_args(arguments)
    rows, failed = [], False
    for id in given.ids or [id for id in registry.ROWS if _has_strengths(id)]:
        for found in measure(id, given.script, given.matches):
            failed |= bool(found.violations)
            rows.append(
                [
                    found.id,
                    found.script,
                    found.side,
                    f"{found.wins:.1%}",
                    " ".join(f"{share:.2f}" for share in found.rises),
                    " ".join(f"{share:.3f}" for share in found.equal) or "-",
                    "; ".join(found.violations) or "holds",
                ]
            )
    grades = " ".join(f"{grade:g}" for grade in GRADES)
    print_table(rows, ["id", "script", "side", "1 v 0 won", f"score at {grades} v 0.5", "red's, equal 0 0.5 1", ""])
    low, high = wilson_interval(0.5 * given.matches, given.matches)
    print(f"{given.matches} matches a number: 95 % interval of a half {low:.3f} to {high:.3f}")
    return int(failed)


def _has_strengths(id: str) -> bool:
    """Kernel games alone by default: an engine plays this many matches for hours."""
    game, _ = registry.make_game(id)
    return game.zero_sum and game.default_opponent in game.scripts and game.physics is None


if __name__ == "__main__":
    raise SystemExit(main())
