"""The folder of a training run: its arguments, lock, curve and checkpoint, and the progress that is shown.

    log.csv                 the curve, a row per evaluation
    checkpoint.safetensors  everything that decides how the run continues
    run.lock                locked while a process trains here

Saved policies stand beside them under names that the method chooses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from palaestra_baselines.common.checkpoints import load_checkpoint, save_checkpoint
from palaestra_baselines.common.curves import CurveLog
from palaestra_baselines.common.progress import Progress

CHECKPOINT = "checkpoint.safetensors"
LOG = "log.csv"
LOCK = "run.lock"
NO_SETTINGS = ("directory", "resume", "quiet", "workers")
"""Arguments that say where and how a run is done; they do not decide its result."""


@dataclass
class RunArgs:
    """Arguments of every training.

    Attributes:
        seed: Seed of the run: weights, actions and matches.
        total_steps: Decisions to learn from.
        evaluations: Number of evaluations during the training.
        directory: Folder of logs, checkpoints and weights, which has one folder per seed.
        resume: Continue from the last checkpoint of this seed.
        quiet: Print nothing.
    """

    seed: int = 0
    total_steps: int = 1_000_000
    evaluations: int = 20
    directory: Path = Path("runs")
    resume: bool = False
    quiet: bool = False

    @property
    def folder(self) -> Path:
        """Folder of this seed."""
        return self.directory / f"seed_{self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """All arguments that decide the result, as JSON can hold them."""
        return json.loads(json.dumps({k: v for k, v in asdict(self).items() if k not in NO_SETTINGS}))


class RunFolder:
    """A run in its folder, to be used as a context manager; no second process can enter the same folder.

    Attributes:
        args: Arguments of the run.
        before: State of the checkpoint from which the run continues; None for a new run.
        steps: Decisions at that checkpoint.
        rows: All rows of the curve, those before the checkpoint included.
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
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        """Locks the folder, and loads the checkpoint if the run continues.

        Raises:
            RuntimeError: Another process trains there.
        """
        args = self.args
        args.folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock(args.folder / LOCK)
        checkpoint = args.folder / CHECKPOINT
        if args.resume and checkpoint.exists():
            self.before = load_checkpoint(checkpoint)
            self.steps = self.before.pop("steps")
        else:
            checkpoint.unlink(missing_ok=True)
        self._log = CurveLog(args.folder / LOG, None if self.before is None else self.steps)
        self.rows = self._log.rows
        self._evaluated = -1 if self.before is None and self.evaluates_at_start else self._share(self.steps)
        self.progress = Progress(f"{self.method}, seed {args.seed}", args.total_steps, self.steps, args.quiet)
        self.progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the display and unlocks the folder."""
        self.progress.__exit__(kind, error, trace)
        assert self._lock is not None
        self._lock.close()

    def _share(self, steps: int) -> int:
        return min(steps, self.args.total_steps) * self.args.evaluations // self.args.total_steps

    def is_due(self, steps: int) -> bool:
        """Whether an evaluation is due: after each of ``evaluations`` equal shares of the training, once."""
        if self._share(steps) <= self._evaluated:
            return False
        self._evaluated = self._share(steps)
        return True

    def record(self, row: Mapping[str, float], state: Mapping[str, Any]) -> None:
        """Writes an evaluation and the checkpoint that belongs to it.

        Args:
            row: Columns of the curve, ``steps`` first.
            state: See `palaestra_baselines.common.checkpoints.save_checkpoint`.
        """
        self._log.write(row)
        save_checkpoint(self.args.folder / CHECKPOINT, {"steps": row["steps"], **state})


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
