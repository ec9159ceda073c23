"""Independent training runs: one after another, in processes of this machine, or on a Ray cluster.

A run continues from its checkpoint where there is one, and is marked as complete by ``done.json`` in its folder. A run
whose process died is continued at once; what was interrupted as a whole is continued by the same call.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from palaestra import registry
from palaestra.cli.progress_bar import Progress
from palaestra.cli.typed_arguments import read_arguments
from palaestra.console import print_table
from palaestra.core.files import write_atomically
from palaestra.scale.cluster import WAIT_S, RayTasks, connected
from palaestra.scale.pieces import accept, made_with, row_data
from palaestra.scale.tasks import Lost, Tasks, work_off
from palaestra_baselines.common.agents import rule_keywords
from palaestra_baselines.common.run_folder import (
    LOG,
    RunArgs,
    complete,
    differences,
    picture_note,
    read_rows,
    results_in,
)
from palaestra_baselines.common.run_outputs import CHECKPOINT, PREVIOUS, as_text

DONE = "done.json"
"""Says that a run is complete, and of which settings it is."""
FACTS = ("steps", "updates", "wall_s", "cpu_s")
"""What `DONE` notes of the report of a training, where the report has it."""
TrainingRun = tuple[str, Any, Any]
"""Name of a module that has ``train``, the arguments, and what evaluations measure; None for the method's own."""


def finished(run: RunArgs) -> bool:
    """Whether the run is complete.

    Raises:
        FileExistsError: A run with other settings is complete there.
    """
    note = run.folder / DONE
    try:
        before = json.loads(note.read_text(encoding="utf-8"))["settings"]
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError, RecursionError):  # not written to its end: the checkpoint knows
        return False
    if before != run.settings:
        raise FileExistsError(
            f"{run.folder} holds a run with other settings ({differences(before, run.settings) or 'its length'}): "
            "give another folder, or delete this one"
        )
    return True


def mark_finished(run: RunArgs, **facts: Any) -> None:
    """Writes down that the run is complete."""
    content = json.dumps({"settings": run.settings, **facts}).encode()
    write_atomically(run.folder / DONE, lambda file: file.write(content))


def begun(run: RunArgs) -> bool:
    """Whether the run has a checkpoint."""
    return any((run.folder / name).exists() for name in (CHECKPOINT, PREVIOUS))


def continued(run: Any) -> Any:
    """The arguments of a run that goes on from its checkpoint where there is one, and else starts anew."""
    return dataclasses.replace(run, resume=begun(run), overwrite=not begun(run))


def train_run(module: str, args: Any, evaluation: Any) -> None:
    """Trains a run to its end, from its checkpoint where there is one, and marks it as complete."""
    given = [continued(args)] if evaluation is None else [continued(args), evaluation]
    report = importlib.import_module(module).train(*given)
    mark_finished(args, **{name: getattr(report, name) for name in FACTS if hasattr(report, name)})


def train_runs(title: str, runs: Sequence[TrainingRun], at_once: int, *, ray: str = "", quiet: bool = False) -> None:
    """Trains the runs that are not complete.

    Args:
        title: What the user sees.
        runs: The runs; their folders differ.
        at_once: Most runs at the same time, each in a process of its own; 0 trains them here one after another, or on
            Ray as many as it has processors.
        ray: Address of a Ray cluster, whose machines share the file system of the folders; ``"local"`` starts one on
            this machine, empty takes none.
        quiet: Show nothing.

    Raises:
        FileExistsError: A run with other settings is complete in a folder.
        FileNotFoundError: A machine of the cluster does not see the files of a folder.
        ImportError: Ray is not installed, or a machine lacks a module.
        WorkerRefused: A machine has another version of palaestra, of NumPy, or other rules.
        RuntimeError: More than `palaestra.scale.tasks.MOST_LOSSES` processes died over one run.
        Exception: What a training raised. The others are ended; they can be continued.
    """
    missing = [run for run in runs if not finished(run[1])]
    if at_once < 1 and not ray:
        for run in missing:
            train_run(*run)
        return
    if not missing:
        return
    total = sum(args.total_steps for _, args, _ in missing)
    with (
        _tasks(at_once, ray) as (tasks, most),
        _pieces(missing) as pieces,
        Progress("steps", total, steps_so_far(missing), title=title, quiet=quiet, stream="stdout") as progress,
    ):

        def report(done: int, _: int, losses: int) -> None:
            progress.update(steps_so_far(missing), runs=done, **({"lost": losses} if losses else {}))

        for _ in work_off(tasks, pieces, min(most, len(pieces)), report):
            pass


def steps_so_far(runs: Sequence[TrainingRun]) -> int:
    """Steps of all runs up to their last evaluations."""
    return int(sum(rows[-1]["steps"] for _, args, _ in runs if (rows := rows_of(args))))


def rows_of(run: RunArgs) -> list[dict[str, float]]:
    """The curve of a run as far as it is written."""
    log = run.folder / LOG
    return read_rows(log) if log.exists() else []


# --------------------------------------------------------------------------------------------------- in other processes


@dataclass(frozen=True)
class TrainingPiece:
    """A run as it goes to another process.

    Attributes:
        name: For messages.
        content: The pickled `TrainingRun`; its folder is an absolute path.
        marker: A file beside the folder, which a process that shares the file system sees.
        env_id: Where it learns; empty where its arguments do not say so.
        keywords: Of the environment.
        row: What registers the id, see `palaestra.scale.pieces.row_data`.
        made_with: See `palaestra.scale.pieces.made_with`.
    """

    name: str
    content: bytes
    marker: Path
    env_id: str = ""
    keywords: dict[str, Any] = dataclasses.field(default_factory=dict)
    row: Any = None
    made_with: dict[str, str] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        """For messages."""
        return self.name


@contextmanager
def _pieces(runs: Sequence[TrainingRun]) -> Iterator[list[TrainingPiece]]:
    """The runs as pieces; their markers are there inside."""
    with ExitStack() as stack:
        markers: dict[Path, Path] = {}
        pieces = []
        for module, args, evaluation in runs:
            directory = args.folder_of_seeds.absolute()
            if directory not in markers:
                directory.mkdir(parents=True, exist_ok=True)
                file = tempfile.NamedTemporaryFile(prefix=".seen_by_all_", dir=directory)  # noqa: SIM115
                markers[directory] = Path(stack.enter_context(file).name)
            content = pickle.dumps((module, dataclasses.replace(args, directory=directory), evaluation))
            piece = TrainingPiece(f"the run in {args.folder}", content, markers[directory])
            id = getattr(args, "env_id", "")
            if id in registry.ROWS:
                given = rule_keywords(args.options)
                facts = {"keywords": given, "row": row_data(registry.row(id)), "made_with": made_with(id, given)}
                piece = dataclasses.replace(piece, env_id=id, **facts)
            pieces.append(piece)
        yield pieces


@contextmanager
def _tasks(at_once: int, ray: str) -> Iterator[tuple[Tasks, int]]:
    """Where runs are trained, and how many of them at the same time."""
    place = os.getcwd(), [*sys.path]
    if ray:
        with connected(ray, at_once or os.cpu_count() or 1) as connection:
            most = at_once or max(1, int(connection.cluster_resources().get("CPU", 1)))
            yield RayTasks(connection, train_piece, place), most
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # for the processes: they share the cores
    yield ProcessTasks(train_piece, place), at_once


def train_piece(place: tuple[str, list[str]], piece: TrainingPiece) -> None:
    """Trains a run in this process, which is another one than that of the caller.

    Args:
        place: Current folder of the caller, taken over where it is there, and where the caller finds modules.
        piece: The run.

    Raises:
        FileNotFoundError: This machine does not see the files of the run's folder.
        WorkerRefused: This process has other versions or other rules.
        Exception: What the training raises.
    """
    folder, path = place
    with suppress(OSError):
        os.chdir(folder)
    sys.path += [entry for entry in path if entry not in sys.path]
    if not piece.marker.exists():
        raise FileNotFoundError(
            f"{piece.marker.parent}: a machine of the cluster does not see what the calling process writes there: give "
            "a folder on a file system that all machines share (--directory of a method, --runs of a figure)"
        )
    if piece.env_id:
        accept(piece.env_id, piece.row, piece.made_with, piece.keywords)
    train_run(*pickle.loads(piece.content))


class ProcessTasks:
    """Pieces in processes of this machine, a new one each."""

    def __init__(self, function: Callable[[Any, Any], None], shared: Any) -> None:
        """Starts nothing yet.

        Args:
            function: ``function(shared, piece)`` of a module.
            shared: First argument of all calls.
        """
        self._function, self._shared = function, shared
        self._context = multiprocessing.get_context("spawn")
        self._answers: dict[Any, Connection] = {}

    def start(self, piece: Any) -> Any:
        """See `palaestra.scale.tasks.Tasks`."""
        receiver, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_answer, args=(sender, self._function, self._shared, piece))
        process.start()
        sender.close()
        self._answers[process] = receiver
        return process

    def wait(self, running: list[Any]) -> list[Any]:
        """See `palaestra.scale.tasks.Tasks`."""
        ended = multiprocessing.connection.wait([process.sentinel for process in running], WAIT_S)
        return [process for process in running if process.sentinel in ended]

    def result(self, handle: Any) -> None:
        """See `palaestra.scale.tasks.Tasks`."""
        handle.join()
        with self._answers.pop(handle) as receiver:
            try:
                error, text = receiver.recv()
            except EOFError:
                raise Lost(f"a process ended with code {handle.exitcode}") from None
        if error is not None:
            raise error from RuntimeError(f"in another process:\n{text}")

    def cancel(self, running: list[Any]) -> None:
        """See `palaestra.scale.tasks.Tasks`."""
        for process in running:
            process.terminate()
        for process in running:
            process.join()
            self._answers.pop(process).close()


def _answer(sender: Connection, function: Callable[[Any, Any], None], shared: Any, piece: Any) -> None:
    """Calls the function, and sends what it raised, if anything, with the traceback.

    Ctrl-C is for the caller, who ends this process; where the caller has been killed, this process ends by itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_caller, daemon=True).start()
    try:
        function(shared, piece)
    except Exception as error:
        text = traceback.format_exc()
        try:
            sender.send((error, text))
        except Exception:  # it cannot be pickled
            sender.send((RuntimeError(f"{type(error).__name__}: {error}"), text))
    else:
        sender.send((None, ""))


def _end_with_caller() -> None:
    """Ends this process as soon as its caller has ended: else it would train on unseen, its folder locked."""
    caller = multiprocessing.parent_process()
    assert caller is not None
    caller.join()
    os._exit(1)


# -------------------------------------------------------------------------------------------------------------- command


def train_seeds(
    method: str, module: ModuleType, words: Sequence[str], seeds: Sequence[int], at_once: int, ray: str
) -> None:
    """``palaestra train METHOD --seeds ...``: trains a method by several seeds and prints their last evaluations.

    Args:
        method: Name of the method.
        module: Its module, which has ``Args``, a `RunArgs`, and ``train``.
        words: Words of the command line that are the method's.
        seeds: The seeds.
        at_once: See `train_runs`.
        ray: See `train_runs`.

    Raises:
        ValueError: A number that no training can have, or a word that makes no sense with several seeds.
        KeyError: No such environment; suggests the near one.
        FileExistsError: A folder holds the results of another training, or of one that cannot be continued.
        Exception: See `train_runs`.
    """
    about = (module.__doc__ or "").strip().partition("\n")[0]
    args = complete(read_arguments(module.Args, list(words), f"palaestra train {method}", about))
    if args.resume or args.overwrite:
        raise ValueError(
            "--seeds continues runs that were begun and skips those that are complete: leave out --resume and "
            "--overwrite (another --directory trains them anew)"
        )
    runs = [dataclasses.replace(args, seed=seed, quiet=args.quiet or at_once > 0 or bool(ray)) for seed in seeds]
    for run in runs:
        run.check()
        there = results_in(run.folder)
        if there and not finished(run) and not begun(run):
            raise FileExistsError(
                f"{run.folder} holds the results of a training ({', '.join(path.name for path in there)}) but no "
                "checkpoint to continue from: give another --directory, or delete them"
            )
    try:
        train_runs(method, [(module.__name__, run, None) for run in runs], at_once, ray=ray, quiet=args.quiet)
    except KeyboardInterrupt as error:
        error.add_note("the same command continues from the last checkpoints")
        raise
    curves = {f"seed {run.seed}": rows for run in runs if (rows := rows_of(run))}
    if not curves:
        return
    note = picture_note(args.folder_of_seeds, curves, method, args)
    if not args.quiet:
        last = [[name.removeprefix("seed "), *map(as_text, rows[-1].values())] for name, rows in curves.items()]
        print_table(last, ["seed", *next(iter(curves.values()))[-1]])
        print(f"{args.folder_of_seeds} has the folders of the seeds; {note}")
