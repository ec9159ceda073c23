"""The folder of a training run: its arguments, lock, curve and checkpoints, and the progress that is shown.

    settings.toml                    the settings, as --config reads them
    log.csv                          the curve, a row per evaluation
    checkpoint.safetensors           everything that decides how the run continues, the curve included
    checkpoint.previous.safetensors  the checkpoint before
    run.lock                         locked while a process trains here

At the end of a run whose method keeps nothing to continue from, the last checkpoint holds curve and arguments alone.

Saved policies stand beside them: ``last.safetensors``, and ``best.safetensors``, a copy of the last one at the best
evaluation so far. A folder that holds results is entered to resume the run or to overwrite it, never by accident.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Literal, Self

from palaestra.cli.progress_bar import Progress
from palaestra.cli.typed_arguments import read_arguments
from palaestra.console import find_id
from palaestra.core.files import FileError, write_atomically
from palaestra_baselines.common.run_outputs import (
    CHECKPOINT,
    CURVE,
    PREVIOUS,
    as_text,
    draw_curves,
    load_latest,
    open_tracker,
    save_checkpoint,
    user_key,
    write_settings,
)

LOG = "log.csv"
WEIGHTS = "last.safetensors"
"""File of the last policy."""
BEST = "best.safetensors"
"""File of the policy of the best evaluation."""
SCORES = ("score", "win_rate", "kills", "catches", "greedy", "return")
"""Columns of a curve that compare evaluations, more is better: the first one that a curve has is taken."""
LOSSES = ("exploitability",)
"""Likewise of a curve without these, less is better."""
LOCK = "run.lock"
RUN = "run"
"""Entry of a checkpoint that belongs to the folder: steps, method, settings and curve of the run."""
RESULTS = ("*.safetensors", LOG, "done.json", "checkpoint.*")
"""What a training leaves in its folder."""
MAY_CHANGE = ("total_steps", "evaluations")
"""Settings that may differ when a run is resumed: it then goes on as far as they say."""


@dataclass
class RunArgs:
    """Arguments of every training.

    Attributes:
        seed: Seed of the run: weights, actions and matches.
        total_steps: Decisions to learn from; may be larger when the run is resumed before its end.
        evaluations: Number of evaluations during the training; may change when the run is resumed.
        directory: Folder of logs, checkpoints and weights, which has one folder per seed; {env_id} in it stands for the
            id of the environment.
        config: TOML file of settings, as each run writes into its folder (settings.toml), or the name of one that comes
            with the package; options given beside it win.
        track: Send the curve to tensorboard (events in the folder of the seed) or to wandb, too.
        resume: Continue from the last checkpoint of this seed; the other settings must be those of before.
        overwrite: Delete the results of an earlier run of this seed.
        trust_checkpoint: Resume from a checkpoint that another user or machine wrote. It can run code: do so only if
            you know who wrote it.
        quiet: Print nothing.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = ("seed", "workers")
    SHARES: ClassVar[tuple[str, ...]] = ()
    ANY_SIGN: ClassVar[tuple[str, ...]] = ()
    NO_SETTINGS: ClassVar[tuple[str, ...]] = (
        *("directory", "config", "track", "resume", "overwrite", "trust_checkpoint", "quiet", "workers"),
    )
    """Arguments that say where and how a run is done; they do not decide its result."""
    SEEDS_BY: ClassVar[str] = "palaestra_baselines.common.many_runs:train_seeds"
    """What ``palaestra train METHOD --seeds`` calls, see there."""

    seed: int = 0
    total_steps: int = 1_000_000
    evaluations: int = 20
    directory: Path = Path("runs")
    config: str = ""
    track: Literal["none", "tensorboard", "wandb"] = "none"
    resume: bool = False
    overwrite: bool = False
    trust_checkpoint: bool = False
    quiet: bool = False

    @property
    def folder_of_seeds(self) -> Path:
        """``directory`` for this environment, whose id goes without ``palaestra/``."""
        id = re.sub(r"[^\w.-]+", "_", getattr(self, "env_id", "").removeprefix("palaestra/"))
        return Path(str(self.directory).replace("{env_id}", id))

    @property
    def folder(self) -> Path:
        """Folder of this seed."""
        return self.folder_of_seeds / f"seed_{self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """All arguments that decide the result, as JSON can hold them."""
        return json.loads(json.dumps({k: v for k, v in asdict(self).items() if k not in self.NO_SETTINGS}))

    def check(self) -> None:
        """Looks at the numbers, see `check_numbers`.

        Raises:
            ValueError: A number that no training can have; names the option.
        """
        check_numbers(asdict(self), self.MAY_BE_ZERO, self.SHARES, self.ANY_SIGN)
        if self.seed >= 1 << 31:
            raise ValueError(f"--seed is a whole number below 2**31, got {self.seed}")
        if self.resume and self.overwrite:
            raise ValueError("--resume continues a run and --overwrite deletes it: give one of them")


class RunFolder:
    """A run in its folder, to be used as a context manager; no second process can enter the same folder.

    Attributes:
        args: Arguments of the run.
        before: State of the checkpoint from which the run continues; None for a new run, empty where the run has ended
            and kept nothing to continue from.
        steps: Decisions at that checkpoint.
        rows: All rows of the curve, those before the checkpoint included.
        is_finished: Whether the run was complete when it was resumed: nothing is to be done.
        progress: What is shown.
    """

    rows: list[dict[str, float]]

    def __init__(self, args: RunArgs, method: str, evaluates_at_start: bool = True) -> None:
        """Does nothing yet.

        Args:
            args: Arguments of the run.
            method: Name of the method, for the display.
            evaluates_at_start: Whether an evaluation is due before the first decision.
        """
        self.args, self.method, self.evaluates_at_start = args, method, evaluates_at_start
        self.before: dict[str, Any] | None = None
        self.steps = 0
        self.is_finished = False
        self._lock: IO[str] | None = None
        self._checkpoint = args.folder / CHECKPOINT
        self._to_delete: list[Path] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Locks the folder, and loads the checkpoint if the run continues.

        Raises:
            ValueError: A number that no training can have, or the run was begun with other settings.
            FileError: The checkpoints are damaged, or another user wrote them.
            FileExistsError: Results are there, and nothing was said of them.
            FileNotFoundError: There is nothing to resume.
            RuntimeError: Another process trains there.
        """
        args = self.args
        args.check()
        args.folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock(args.folder / LOCK)
        try:
            for left in args.folder.glob(".*.tmp"):  # of a process that was killed while it wrote
                left.unlink()
            rows = self._rows_before()
            self._look_for_key()
            self.rows = rows
            log = args.folder / LOG
            if self.before is not None and not (log.exists() and log.read_bytes() == curve_bytes(rows)):
                write_curve(log, rows)  # a process ended after its checkpoint and before its row
            self._evaluated = -1 if self.before is None and self.evaluates_at_start else self._share(self.steps)
            self.progress = Progress(
                "steps",
                args.total_steps,
                self.steps,
                title=f"{self.method}, seed {args.seed}",
                quiet=args.quiet or self.is_finished,
                stream="stdout",
            )
            tracker = open_tracker("none" if self.is_finished else args.track, self.method, args.folder, args.settings)
            self._track = self._open.enter_context(tracker)
            for row in rows:
                self._track(row)
            self.progress.__enter__()
        except BaseException:
            self._open.close()
            self._lock.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the display and unlocks the folder."""
        assert self._lock is not None
        with self._lock, self._open:
            self.progress.__exit__(kind, error, trace)

    def _rows_before(self) -> list[dict[str, float]]:
        args, there = self.args, results_in(self.args.folder)
        if not args.resume:
            if there and not args.overwrite:
                raise FileExistsError(
                    f"{args.folder} holds the results of a training ({', '.join(path.name for path in there)}): "
                    "--resume continues it, --overwrite deletes them, another --directory or --seed keeps both"
                )
            self._to_delete = there
            return []
        found = load_latest(args.folder, trusted=args.trust_checkpoint, warn=warn)
        if found is None:
            others = f", but {', '.join(path.name for path in there)} (--overwrite deletes them)" if there else ""
            raise FileNotFoundError(
                f"there is nothing to resume: {args.folder} has no {CHECKPOINT}{others}: train without --resume"
            )
        self._checkpoint, self.before = found
        with self.restoring():
            run = self.before.pop(RUN)
            self.steps, rows = int(run["steps"]), [dict(row) for row in run["rows"]]
            self._check_settings(run["method"], run["settings"])
        self.is_finished = self.steps >= args.total_steps
        if not self.before:
            (args.folder / PREVIOUS).unlink(missing_ok=True)  # of a process that was killed before it did so
            if not self.is_finished:
                raise FileError(
                    f"{self._checkpoint}: the run has ended after {self.steps} decisions and keeps weights and curve "
                    f"alone: --overwrite trains it anew with --total-steps {args.total_steps}, another --directory "
                    "keeps both"
                )
        if self.is_finished and not args.quiet:
            hint = " (a larger --total-steps continues it)" if self.before else ""
            print(
                f"{args.folder}: the run is finished, {self.steps} of {args.total_steps} decisions: nothing is "
                f"done{hint}"
            )
        return rows

    def _look_for_key(self) -> None:
        try:
            user_key()
        except OSError as error:
            warn(f"warning: checkpoints cannot be sealed ({error}): resuming this run needs --trust-checkpoint")

    def _check_settings(self, method: str, before: Mapping[str, Any]) -> None:
        now = self.args.settings
        if method != self.method:
            raise ValueError(f"it is a run of {method}, not of {self.method}: choose another --directory")
        told = differences(before, now)
        if told:
            raise ValueError(
                f"the run was begun with other settings ({told}): resume it with those of before, or choose another "
                f"--directory (only {' and '.join(MAY_CHANGE)} may change)"
            )

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """What goes wrong in this block is a fault of the checkpoint.

        Raises:
            FileError: Something of it does not fit; names the checkpoint.
        """
        try:
            yield
        except FileError:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            reason = f"has no {error}" if isinstance(error, KeyError) else error
            raise FileError(f"{self._checkpoint}: {reason}") from error

    def _share(self, steps: int) -> int:
        return min(steps, self.args.total_steps) * self.args.evaluations // self.args.total_steps

    def is_due(self, steps: int) -> bool:
        """Whether an evaluation is due: after each of ``evaluations`` equal shares of the training, once."""
        if self._share(steps) <= self._evaluated:
            return False
        self.begin()
        self._evaluated = self._share(steps)
        return True

    def begin(self) -> None:
        """Deletes the results that are to be overwritten; called when the new run has something to write."""
        for path in self._to_delete:
            path.unlink(missing_ok=True)
        self._to_delete = []
        write_settings(self.args.folder, self.method, self.args.settings)

    def record(self, row: Mapping[str, float], state: Mapping[str, Any] | None, *, is_one_file: bool = True) -> None:
        """Writes the checkpoint of an evaluation, which holds the curve, and the curve; keeps the best policy.

        The best policy is written first: a process that is killed before the checkpoint does the same evaluation again.

        Args:
            row: Columns of the curve, ``steps`` first.
            state: See `palaestra_baselines.common.run_outputs.save_checkpoint`; None at the end of a run that keeps
                nothing to continue from: then the checkpoint before is deleted, too.
            is_one_file: Whether ``last.safetensors`` is all of the policy; else there is no best one.

        Raises:
            OSError: They cannot be written: the last checkpoint is as it was.
        """
        self.begin()
        rows = [*self.rows, {name: number(value) for name, value in row.items()}]
        facts = {"steps": row["steps"], "method": self.method, "settings": self.args.settings, "rows": rows}
        last, best = self.args.folder / WEIGHTS, self.args.folder / BEST
        if is_one_file and last.exists() and is_best(rows if best.exists() else rows[-1:]):
            write_atomically(best, lambda file: file.write(last.read_bytes()))
        newest, before = self.args.folder / CHECKPOINT, self.args.folder / PREVIOUS
        keeps_both = state is not None and self._checkpoint == newest
        save_checkpoint(newest, {**(state or {}), RUN: facts}, previous=before if keeps_both else None)
        if state is None:
            before.unlink(missing_ok=True)
        self._checkpoint = newest
        self.rows.append(rows[-1])
        write_curve(self.args.folder / LOG, self.rows)
        self._track(rows[-1])


def is_best(rows: Sequence[Mapping[str, float]]) -> bool:
    """Whether the last evaluation has a score, and none before it a better one."""
    name = next((name for name in (*SCORES, *LOSSES) if name in rows[-1]), "")
    sign = -1.0 if name in LOSSES else 1.0
    score = sign * rows[-1].get(name, math.nan)
    return not math.isnan(score) and not any(sign * row.get(name, math.nan) > score for row in rows)


def write_curve(path: Path, rows: Sequence[Mapping[str, float]]) -> None:
    """Writes a CSV file with one row per evaluation as a whole, in one piece.

    Args:
        path: The file.
        rows: Its rows; the columns are those of the first one.

    Raises:
        OSError: It cannot be written; the old file is as it was.
    """
    content = curve_bytes(rows)
    write_atomically(path, lambda file: file.write(content))


def curve_bytes(rows: Sequence[Mapping[str, float]]) -> bytes:
    """The content of the file that `write_curve` writes."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(rows[0] if rows else ())
    for one in rows:
        writer.writerow([as_text(value) for value in one.values()])
    return text.getvalue().encode()


def write_csv(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Writes a table; its folder is made.

    Raises:
        OSError: It cannot be written; the old file is as it was.
    """
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: file.write(text.getvalue().encode()))


def read_rows(path: Path) -> list[dict[str, float]]:
    """Rows of a CSV file of numbers, by column.

    Raises:
        FileError: A row is not complete, or no row of numbers; names its line.
    """
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, float]] = []
        try:
            rows.extend({name: float(value) for name, value in row.items()} for row in csv.DictReader(file))
        except (TypeError, ValueError, AttributeError, csv.Error) as error:
            raise FileError(
                f"{path}: line {len(rows) + 2} is no row of numbers under its columns: resume the training, which "
                "writes the file anew"
            ) from error
    return rows


def number(value: Any) -> float:
    """A number as Python's own: arrays of a single number and NumPy's numbers are no JSON."""
    return value if isinstance(value, int | float) else value.item()


def warn(text: str) -> None:
    """Prints a warning, also where the progress is not shown."""
    print(text, file=sys.stderr, flush=True)


def results_in(folder: Path) -> list[Path]:
    """What a training has left in a folder."""
    return sorted({path for pattern in RESULTS for path in folder.glob(pattern) if not path.name.startswith(".")})


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The settings that differ, as ``name: was x, is y``; empty if none does that may not change."""
    names = [name for name in {**before, **now} if name not in MAY_CHANGE]
    missing = object()
    return ", ".join(
        f"{name}: was {before.get(name, 'nothing')}, is {now.get(name, 'nothing')}"
        for name in names
        if before.get(name, missing) != now.get(name, missing)
    )


def lock(path: Path) -> IO[str]:
    """Locks a file for this process until it is closed or the process ends.

    Raises:
        RuntimeError: It is locked already.
    """
    file = path.open("a+", encoding="utf-8")
    try:
        lock_file(file)
    except OSError:
        file.close()
        raise RuntimeError(
            f"another process trains in {path.parent} ({path.name} is locked): wait until it has ended, or choose "
            "another --directory or --seed"
        ) from None
    return file


def lock_file(file: IO[str]) -> None:
    """Locks an open file, or raises OSError at once."""
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def check_numbers(
    values: Mapping[str, Any], may_be_zero: Iterable[str], shares: Iterable[str], any_sign: Iterable[str] = ()
) -> None:
    """Looks at the numbers of a training.

    Args:
        values: Values of all arguments by name: numbers, tuples of numbers, and others, which are left alone.
        may_be_zero: Names of those that may be 0, or have no number; all others are greater.
        shares: Names of those that lie in [0, 1].
        any_sign: Names of those that may be negative.

    Raises:
        ValueError: One is not finite, negative, 0 or above 1, or a tuple is empty; names the option and its value.
    """
    for name, value in values.items():
        numbers = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in numbers):
            continue
        option = f"--{name.replace('_', '-')}"
        if name == "options" or (not numbers and name in may_be_zero):
            continue
        if not numbers:
            raise ValueError(f"{option} takes at least one number, got none")
        given = " ".join(f"{x}" for x in numbers)
        if name in shares:
            wanted, fits = "between 0 and 1", all(0.0 <= x <= 1.0 for x in numbers)
        elif name in any_sign:
            wanted, fits = "finite", all(math.isfinite(x) for x in numbers)
        elif name in may_be_zero:
            wanted, fits = "not negative", all(0.0 <= x < math.inf for x in numbers)
        else:
            wanted, fits = "greater than 0", all(0.0 < x < math.inf for x in numbers)
        if not fits:
            raise ValueError(f"{option} must be {wanted}, got {given}")


def run_command(
    kind: type[Any], method: str, about: str, argv: Sequence[str] | None, train: Callable[[Any], Any]
) -> tuple[Any, Any]:
    """Reads the arguments and trains; after Ctrl-C it says how to go on.

    Args:
        kind: Dataclass of the arguments.
        method: Name of the method.
        about: Docstring of the method's module; its first line is shown by ``--help``.
        argv: Words of the command line; those of the process if None.
        train: Called with the arguments.

    Returns:
        The arguments, short names of environments in full, and what ``train`` returned.

    Raises:
        ValueError: A word or a number that the method does not take.
        KeyError: No such environment; suggests the near one.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    args = complete(read_arguments(kind, words, f"palaestra train {method}", about.strip().splitlines()[0]))
    try:
        report = train(args)
    except KeyboardInterrupt:
        print(resume_hint(method, words, args), file=sys.stderr, flush=True)
        raise
    rows = getattr(report, "log", None)
    if isinstance(args, RunArgs) and rows:
        note = picture_note(args.folder, {f"seed {args.seed}": rows}, method, args)
        best = args.folder / BEST
        if not args.quiet:
            print(f"{note}; {best} is the policy of the best evaluation" if best.exists() else note)
    return args, report


def complete(args: Any) -> Any:
    """Arguments of a command line with the id of the environment in full, and what fits that (`fit_to_game`).

    Args:
        args: Arguments; those with ``FIND_ID`` know other environments than ours.

    Raises:
        KeyError: No such environment; suggests the near one.
    """
    if hasattr(args, "env_id"):
        args.env_id = getattr(args, "FIND_ID", find_id)(args.env_id)
    if hasattr(args, "fit_to_game"):
        args.fit_to_game()
    return args


def picture_note(folder: Path, curves: Mapping[str, Sequence[Mapping[str, float]]], method: str, args: RunArgs) -> str:
    """Draws the curves of runs of a method, rows by the name of a run; says where, or what is missing for that."""
    try:
        draw_curves(folder / CURVE, curves, f"{method} {getattr(args, 'env_id', '')}".strip())
    except ImportError:
        return 'no picture of the curve: pip install "palaestra[baselines]"'
    return f"{folder / CURVE} shows the curve"


def resume_hint(method: str, words: Sequence[str], args: Any) -> str:
    """What to do after Ctrl-C."""
    command = ["palaestra", "train", method, *(word for word in words if word not in ("--overwrite", "--resume"))]
    if not hasattr(args, "resume"):
        return f"the same command continues: {shlex.join(command)}"
    if any((args.folder / name).exists() for name in (CHECKPOINT, PREVIOUS)):
        return f"to continue from the last evaluation: {shlex.join([*command, '--resume'])}"
    return f"no evaluation was reached, so nothing was saved: start again with {shlex.join([*command, '--overwrite'])}"


def evaluation_hint(args: Any, weights: Any, opponent: str | None, is_second: bool = False) -> str:
    """The last line of a training: the file, and the command that evaluates it.

    Args:
        args: Arguments with ``env_id`` and ``options``.
        weights: File of the policy.
        opponent: Who it plays against; None in a game of one team.
        is_second: Whether the policy is one of the second team alone.
    """
    first, second = (opponent, str(weights)) if is_second else (str(weights), opponent)
    words = ["palaestra", "eval", args.env_id, "--a", str(first), *(["--b", second] if second else [])]
    for option in args.options:
        words += ["--set", option]
    return f"{weights} is the policy; to evaluate it: {shlex.join(words)}"
