"""This palaestra next to another version of it, measured in one run.

::

    git worktree add ../before v0.1.0
    python benchmarks/compare.py --against ../before                              # everything
    python benchmarks/compare.py --against ../before --measurements actions scripts
    python benchmarks/compare.py --against ../before TeamPong --num-envs 64

Each version has a process of its own. They take turns in short rounds, so that other work on the machine slows both. Of
the rounds of a process the fast tenth counts: slower ones show other load, and the single best one is an outlier. How
the memory of a process lies changes its speed by some percent too, so there are several pairs of processes, and the
median of their ratios is the measurement. Both versions play the same matches: the same seeds, the same random actions,
equally long. Where the results still differ, a note marks the row.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from measurement import VERDICTS, bar_text, holds
from palaestra import registry
from palaestra.cli.benchmarks import is_kernel_game
from palaestra.cli.common import add_id, add_json, positive_count, print_json
from palaestra.cli.progress_bar import Progress
from palaestra.console import find_id, print_table
from processes import Child, ChildError, Installation, find_installation, start, this_installation

LANES, PAIRS, ROUNDS, COLD_ROUNDS = 4096, 3, 40, 3
WARM_UP_CALLS = 200
ROUND_S = 0.02
FAST = 0.1
"""Share of the rounds of a process that count."""
SLOWER = 0.03
"""By how much this version may be slower than the other one."""
FACES = ("CartPole", "TeamPong", "TeamTag", "ArenaDuel2v2")
COMPILED = ("CartPole", "TeamMatrix", "TeamPong", "TeamTag")

Part = tuple[str, str]
"""Name of a measurement, and an id."""


@dataclass(frozen=True)
class Comparison:
    """One thing that both versions do.

    Attributes:
        measurement: Name in `KINDS`.
        id: Environment.
        unit: Of ``before`` and ``after``.
        before: The other version; None where it could not be measured.
        after: This version.
        ratio: For speeds and times of a step how many times faster this version is; for compilation its share of the
            time before.
        bar: What the ratio is held to.
        at_least: Whether a larger ratio is better.
        note: Further remarks.
        failed: Whether an error kept it from being measured; ``note`` is the error.
    """

    measurement: str
    id: str
    unit: str
    before: float | None
    after: float | None
    ratio: float | None
    bar: float
    at_least: bool
    note: str = ""
    failed: bool = False

    @property
    def holds(self) -> bool | None:
        """Whether the bar is kept; None where nothing was measured."""
        return holds(self.ratio, self.bar, self.at_least)


@dataclass(frozen=True)
class Kind:
    """How a measurement is printed.

    Attributes:
        unit: Of the numbers.
        number: ``number(seconds a call, lanes)`` in that unit.
        ids: ``ids(all kernel ids)`` that have it.
        at_least: As in `Comparison`.
    """

    unit: str
    number: Callable[[float, int], float]
    ids: Callable[[list[str]], list[str]]
    at_least: bool = True

    @property
    def bar(self) -> float:
        """What the ratio is held to; see `SLOWER`."""
        return 1 - SLOWER if self.at_least else 1 + SLOWER


def _named(*names: str) -> Callable[[list[str]], list[str]]:
    return lambda ids: [id for id in ids if short(id) in names]


def _with_scripts(ids: list[str]) -> list[str]:
    return [id for id in ids if registry.make_game(id)[0].scripts]


KINDS = {
    "actions": Kind("decisions/s", lambda s, n: n / s, lambda ids: ids),
    "scripts": Kind("ns a lane-step", lambda s, n: 1e9 * s / n, _with_scripts),
    "single": Kind("us a step", lambda s, n: 1e6 * s, _named(*FACES)),
    "vector": Kind("ns a lane-step", lambda s, n: 1e9 * s / n, _named(*FACES)),
    "parallel": Kind("us a step", lambda s, n: 1e6 * s, _named(*FACES)),
    "compile": Kind("CPU s", lambda s, n: s, _named(*COMPILED), at_least=False),
}
"""What is measured: batches by random actions and by scripts, the faces of Gymnasium and PettingZoo, compilation."""


def short(id: str) -> str:
    """``GridSoccer`` of ``palaestra/GridSoccer-v0``."""
    return id.split("/")[-1].rpartition("-v")[0]


def kernel_ids() -> list[str]:
    """Ids of the suite whose rules are compiled whole."""
    own = [id for id in registry.ROWS if id.startswith("palaestra/")]
    return [id for id in own if is_kernel_game(registry.make_game(id)[0])]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints. Returns 1 if a bar was missed or something failed, 2 if it could not begin."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_id(parser, optional=True)
    parser.add_argument(
        "--against",
        metavar="PLACE",
        required=True,
        help="another palaestra: a checkout, an interpreter or a virtual environment",
    )
    parser.add_argument(
        "--measurements",
        nargs="+",
        choices=KINDS,
        metavar="NAME",
        default=list(KINDS),
        help="actions (a batch by random actions), scripts (a batch with scripts on all teams), single "
        "(gymnasium.make), vector (make_vec), parallel (PettingZoo), compile (CPU s); all by default",
    )
    parser.add_argument("--num-envs", type=positive_count, default=LANES, metavar="N", help=f"lanes (default {LANES})")
    parser.add_argument(
        "--rounds",
        type=positive_count,
        default=ROUNDS,
        metavar="N",
        help=f"rounds of each process (default {ROUNDS}); to compile at most {COLD_ROUNDS}",
    )
    add_json(parser)
    args = parser.parse_args(arguments)
    try:
        other = find_installation(args.against)
        parts = parts_of(args.measurements, None if args.id is None else find_id(args.id))
        rows = _measure(parts, other, args.num_envs, args.rounds)
    except (ValueError, ChildError) as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 2
    if args.json:
        print_json([{**asdict(row), "holds": row.holds} for row in rows])
    else:
        _print(rows, args.against)
    return 1 if any(row.holds is False or row.failed for row in rows) else 0


def parts_of(measurements: Sequence[str], id: str | None) -> list[Part]:
    """What is measured of one id, or of all.

    Raises:
        ValueError: The id is moved by an engine, or has none of the measurements.
    """
    if id is not None and not is_kernel_game(registry.make_game(id)[0]):
        raise ValueError(f"{id} is moved by an engine: compiled games are compared")
    ids = kernel_ids() if id is None else [id]
    parts = [(name, part) for name in measurements for part in KINDS[name].ids(ids)]
    if not parts:
        raise ValueError(f"{id} has none of the measurements {', '.join(measurements)}")
    return parts


def _measure(parts: list[Part], other: Installation, lanes: int, rounds: int) -> list[Comparison]:
    """The rows of all parts. The pairs of processes come one after the other, each for all that is played in turns."""
    found: dict[Part, list[Seconds]] = {part: [] for part in parts}
    missing: dict[Part, Comparison] = {}
    installations = (other, this_installation())
    work = [(part, k) for k in range(PAIRS) for part in parts if part[0] != "compile" or k == 0]
    with Progress("measurements") as report_progress, Pair(installations, lanes) as pair:
        for done, (part, number) in enumerate(work):
            measurement, id = part
            report_progress(done, len(work), f"{measurement} {short(id)}")
            if part in missing:
                continue
            try:
                if measurement == "compile":
                    found[part] = [_compile(installations, id, min(rounds, COLD_ROUNDS))]
                else:
                    pair.renew(number)
                    found[part].append(pair.take_turns(measurement, id, rounds))
            except Unknown as reason:
                missing[part] = row_of(part, [], lanes, str(reason))
            except ChildError as error:  # the other rows are worth having
                missing[part] = replace(row_of(part, [], lanes, str(error)), failed=True)
                pair.close()
    return [missing.get(part) or row_of(part, found[part], lanes) for part in parts]


class Unknown(Exception):
    """A version has no such id; the message names it."""


@dataclass(frozen=True)
class Seconds:
    """What two processes measured side by side.

    Attributes:
        rounds: Seconds a call before and after, ``[rounds, 2]``.
        same: Whether both returned the same results.
    """

    rounds: np.ndarray
    same: bool = True


class Pair:
    """Both versions, each in its process; a context manager."""

    def __init__(self, installations: tuple[Installation, Installation], lanes: int) -> None:
        """Starts both once, to see that they can be.

        Raises:
            ChildError: They cannot.
        """
        self.installations, self.lanes = installations, lanes
        self._children: list[Child] = []
        self._number = 0
        self._start()

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends both processes; the next measurement starts them anew."""
        while self._children:
            self._children.pop().close()

    def renew(self, number: int) -> None:
        """Takes fresh processes if those that run have another number."""
        if number != self._number:
            self.close()
            self._number = number

    def _start(self) -> None:
        try:
            for installation in self.installations[len(self._children) :]:
                self._children.append(Child(installation))
        except ChildError:
            self.close()
            raise

    def take_turns(self, measurement: str, id: str, rounds: int) -> Seconds:
        """Both are prepared, then play round by round; the first one changes with each round.

        Raises:
            Unknown: A version has no such id.
            ChildError: A process failed.
        """
        self._start()
        request = {
            "kind": measurement,
            "id": id,
            "lanes": self.lanes,
            "warm_up_calls": WARM_UP_CALLS,
            "round_s": ROUND_S,
        }
        ready = [child.ask("prepare", **request) for child in self._children]
        for child, answer in zip(self._children, ready, strict=True):
            if answer.get("unknown"):
                raise Unknown(f"{child.name} has no {id}")
        seconds = np.empty((rounds, 2))
        for number, both in enumerate(seconds):
            for k in (0, 1) if number % 2 == 0 else (1, 0):
                both[k] = self._children[k].ask("round")["cpu_s"]
        for child in self._children:
            child.ask("drop")
        return Seconds(seconds, ready[0]["results"] == ready[1]["results"])


def _compile(installations: tuple[Installation, Installation], id: str, rounds: int) -> Seconds:
    """The first decision of a game in fresh processes without compiled code.

    Raises:
        Unknown: A version has no such id.
        ChildError: A process failed.
    """
    seconds = np.empty((rounds, 2))
    for both in seconds:
        for k, installation in enumerate(installations):
            with tempfile.TemporaryDirectory() as cache:
                found = start(installation, "compile_cold", cache=cache, id=id)
            if found.get("unknown"):
                raise Unknown(f"{installation.name} has no {id}")
            both[k] = found["cpu_s"]
    return Seconds(seconds)


def row_of(part: Part, found: list[Seconds], lanes: int, note: str = "") -> Comparison:
    """What all pairs of processes found together; nothing was found where the list is empty."""
    measurement, id = part
    kind = KINDS[measurement]
    before = after = ratio = None
    if found:
        fast = np.array([np.quantile(seconds.rounds, FAST, axis=0) for seconds in found])
        before, after = (kind.number(float(median), lanes) for median in np.median(fast, axis=0))
        shares = fast[:, 1] / fast[:, 0]
        ratio = float(np.median(1 / shares if kind.at_least else shares))
        note = note or ("" if all(seconds.same for seconds in found) else "results differ: not the same matches")
    return Comparison(measurement, id, kind.unit, before, after, ratio, kind.bar, kind.at_least, note)


def _print(rows: list[Comparison], place: str) -> None:
    number = lambda value: "-" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"  # noqa: E731
    table = [
        [
            row.measurement,
            short(row.id),
            number(row.before),
            number(row.after),
            row.unit,
            "-" if row.ratio is None else f"{row.ratio:.3g}",
            bar_text(row.bar, row.at_least),
            VERDICTS[row.holds],
            row.note,
        ]
        for row in rows
    ]
    print(f"before: {place}; after: this installation")
    print_table(table, ["measurement", "game", "before", "after", "unit", "ratio", "bar", "", ""])


if __name__ == "__main__":
    sys.exit(main())
