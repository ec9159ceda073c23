"""Lets every writer of files meet a full disk, at every stage of its write.

    PYTHONPATH=tests:benchmarks python tests/reliability/full_disk.py
    PYTHONPATH=tests:benchmarks python tests/reliability/full_disk.py --writers policy checkpoint unmas

Each writer first writes its file. Then it writes it again while the system refuses to let files grow beyond a limit
(``RLIMIT_FSIZE``: nothing, one byte, a half, all but one byte) and while fsync and replace fail as on a full disk. Each
time the old file must stay bitwise as it was, the error must name the file, and nothing may be left beside it. At last
it must write again. Of a training the last checkpoint must load, and a simulation must be made although nothing can be
kept in the cache of compiled code.

Small trainings of the five learners (`reliability.small_runs`) meet a disk that is full from each of their writes on:
when a file of weights, checkpoint or curve is opened, half written, flushed to the disk or renamed, and when the log
that the output goes to takes no line. Resumed while the disk is full they must lose nothing; resumed once it has room
they must end with the weights, curve and files of a run that never met a full disk.

Exit status 1 if anything is lost. For Linux and macOS.
"""

from __future__ import annotations

import argparse
import errno
import functools
import io
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from reliability import small_runs
from reliability.small_runs import LEARNERS, RUNS, method_of

import palaestra_assets

SHARES = {"0 bytes": 0.0, "1 byte": 0.0, "half": 0.5, "all but 1 byte": 1.0}
CALLS = ("fsync", "replace")
CARTPOLE, PONG, PURSUIT = "palaestra/CartPole-v0", "palaestra/TeamPong-v0", "palaestra/UcavPursuit-v2"


# ------------------------------------------------------------------------------------------------------------- writers


def policy(path: Path) -> None:
    """A saved policy."""
    from palaestra_baselines.common.policy_file import save_policy

    save_policy(
        path, {"layer_0.weight": np.ones((64, 64)), "layer_0.bias": np.ones(64)}, method="x", env_id="x", args={}
    )


def checkpoint(path: Path) -> None:
    """A checkpoint alone."""
    from palaestra_baselines.common.run_outputs import save_checkpoint

    save_checkpoint(path, {"replay": np.ones(5000), "steps": 5})


def log(path: Path) -> None:
    """The curve of a training."""
    from palaestra_baselines.common.run_folder import write_curve

    write_curve(path, [{"steps": k, "win_rate": k / 7} for k in range(101)])


def done(path: Path) -> None:
    """The note that a run of a figure is complete."""
    from palaestra_baselines.common.many_runs import mark_finished
    from palaestra_baselines.common.run_folder import RunArgs

    mark_finished(RunArgs(directory=path.parent.parent), steps=5)


def figure(path: Path) -> None:
    """The picture of a figure."""
    from learning.drawing import Panel, curve_over_seeds, make_picture, write_picture

    curve = curve_over_seeds([[{"steps": step, "won": 0.5} for step in range(2)]], "won")
    write_picture(path, make_picture([Panel("game", "won", {"PPO": curve})]), source="none")


def table(path: Path) -> None:
    """The table of a figure, and the record of a grid."""
    from palaestra_baselines.common.run_folder import write_csv

    write_csv(path, [["a", "b"], *([k, k / 3] for k in range(200))])


def copied(path: Path) -> None:
    """Weights that are installed among the assets."""
    from learning.figures import copy_file

    copy_file(palaestra_assets.path("weights") / "fm3q_team_pong.safetensors", path)


def pool(path: Path) -> None:
    """A pool of policies."""
    from palaestra.wrappers.pool import SelfPlayPool

    SelfPlayPool(PONG, members=[palaestra_assets.path("weights") / "fm3q_team_pong.safetensors"]).save(path)


@functools.cache
def a_replay() -> Any:
    """A short recording."""
    from palaestra.replay import record

    return record(PONG, {"red": "tracker", "blue": "tracker"}, seed=3, horizon=20)


def replay(path: Path) -> None:
    """A replay."""
    a_replay().save(path)


def csv_export(path: Path) -> None:
    """A replay as a table."""
    from palaestra.replay.export import to_csv

    to_csv(a_replay(), path)


def gif_export(path: Path) -> None:
    """A replay as an animation."""
    from palaestra.replay.export import to_gif

    to_gif(a_replay(), path)


def film(path: Path) -> None:
    """An animation of a flight."""
    from palaestra.replay.export import write_gif

    write_gif(np.random.default_rng(0).integers(0, 255, (3, 36, 64, 3), np.uint8), path, 100)


def acmi(path: Path) -> None:
    """A flight recording."""
    import palaestra
    from palaestra.games.ucav.acmi import write_acmi

    sim = palaestra.make_batch(PURSUIT, 1)
    sim.reset(seed=0)
    write_acmi(path, sim.game, np.concatenate([sim.states.copy() for _ in range(5)]))
    sim.close()


WRITERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "policy": ("policy.safetensors", policy),
    "checkpoint": ("checkpoint.safetensors", checkpoint),
    "log": ("log.csv", log),
    "note of a run": ("done.json", done),
    "figure": ("figure.png", figure),
    "table": ("table.csv", table),
    "copied weights": ("copy.safetensors", copied),
    "pool": ("pool.json", pool),
    "replay": ("replay.npz", replay),
    "replay as csv": ("replay.csv", csv_export),
    "replay as gif": ("replay.gif", gif_export),
    "film": ("film.gif", film),
    "flight recording": ("flight.acmi", acmi),
    "zipped recording": ("flight.zip.acmi", acmi),
}


# ---------------------------------------------------------------------------------------------------------- full disks


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def call_fails(name: str) -> Iterator[None]:
    """A call of the system fails as on a full disk."""
    works = getattr(os, name)

    def fails(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    setattr(os, name, fails)
    try:
        yield
    finally:
        setattr(os, name, works)


@dataclass
class Tally:
    """What one writer did."""

    full_disks: int = 0
    old_file_lost: int = 0
    no_error: int = 0
    file_not_named: int = 0
    left_over: int = 0
    different: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers, in the order of the table."""
        return tuple(number for number in vars(self).values() if isinstance(number, int))


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def try_writer(name: str, folder: Path) -> Tally:
    """Lets one writer meet all full disks."""
    file, write = WRITERS[name]
    home, tally = folder / name / "seed_0", Tally()
    home.mkdir(parents=True)
    path = home / file
    write(path)
    size = path.stat().st_size
    stages = [(stage, files_end_at(1 if stage == "1 byte" else max(round(share * size) - (share == 1.0), 0)))
              for stage, share in SHARES.items()]  # fmt: skip
    stages += [(f"{call} fails", call_fails(call)) for call in CALLS]
    for stage, disk in stages:
        meet(tally, stage, disk, write, path)
    before = contents(home)
    write(path)
    if set(contents(home)) != set(before):
        tally.notes.append("after the disk had room again there were other files")
    return tally


def meet(tally: Tally, stage: str, disk: Any, write: Callable[[Path], None], path: Path) -> None:
    """One full disk."""
    before, error = contents(path.parent), None
    tally.full_disks += 1
    with disk:
        try:
            write(path)
        except Exception as caught:
            error = caught
    after = contents(path.parent)
    if any(after.get(name) != content for name, content in before.items()):
        tally.old_file_lost += 1
        tally.notes.append(f"{stage}: the old file is gone or changed")
        for name, content in before.items():
            (path.parent / name).write_bytes(content)
    if set(after) - set(before):
        tally.left_over += 1
        tally.notes.append(f"{stage}: left {', '.join(sorted(set(after) - set(before)))}")
        for name in set(after) - set(before):
            (path.parent / name).unlink()
    if error is None:
        tally.no_error += 1
        tally.notes.append(f"{stage}: no error")
    elif path.stem not in str(error):
        tally.file_not_named += 1
        tally.notes.append(f"{stage}: {type(error).__name__}: {error}")


def try_training(folder: Path) -> Tally:
    """A training whose disk is full at any call of its third record: the second is resumed, or the third is whole."""
    from palaestra_baselines.common.run_folder import RunArgs, RunFolder

    tally = Tally()
    disks = [(f"files end at {size}", files_end_at(size)) for size in (0, 1, 30, 20_000)]
    for number, (stage, disk) in enumerate([*disks, *((f"{call} fails", call_fails(call)) for call in CALLS)]):
        args = RunArgs(directory=folder / str(number), total_steps=100, quiet=True)
        tally.full_disks += 1
        with RunFolder(args, "x") as run:
            for steps in (0, 25):
                run.record({"steps": steps}, {"replay": np.full(5000, steps)})
            with disk:
                try:
                    run.record({"steps": 50}, {"replay": np.full(5000, 50)})
                    tally.no_error += 1
                except OSError as error:
                    tally.file_not_named += "seed_0" not in str(error)
        with RunFolder(RunArgs(directory=args.directory, total_steps=100, quiet=True, resume=True), "x") as run:
            assert run.before is not None
            whole = (run.before["replay"] == run.steps).all() and [row["steps"] for row in run.rows][-1] == run.steps
            if not whole or run.steps < 25:
                tally.old_file_lost += 1
                tally.notes.append(f"{stage}: resumed at {run.steps}")
        left = [path.name for path in args.folder.iterdir() if path.name.endswith(".tmp")]
        tally.left_over += bool(left)
    return tally


class Disk:
    """A disk that is full from one of the writes of a training on.

    Attributes:
        count: Writes so far, each in its stages.
        is_full: Whether a write has failed.
        file: The file that the training writes, or that it wrote when a write failed for the first time.
        done: Names of the files that were written to their end.
    """

    def __init__(self, full_at: int | None) -> None:
        """``full_at`` is the number of the first write that fails; None for a disk that is never full."""
        self.full_at, self.count, self.is_full, self.file = full_at, 0, False, ""
        self.done: list[str] = []

    def __call__(self, what: str, where: Any) -> None:
        """One more moment of a write, see `watched_writes`."""
        if what == "after replace":
            self.done.append(Path(where).name)
        if what not in ("open", "write", "fsync", "replace"):
            return
        is_full = self.full_at is not None and self.count + 1 >= self.full_at
        if not self.is_full and what == "open":
            self.file = Path(where).name.split(".", 1)[1].rsplit(".", 2)[0]  # of .NAME.12ab.tmp
        elif not self.is_full and where == Log.name:
            self.file = Log.name
        self.count, self.is_full = self.count + 1, is_full
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Log(io.StringIO):
    """Output that goes to a file on the disk."""

    name = "training.log"

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self.disk = disk

    def flush(self) -> None:
        """Writes the lines."""
        self.disk("write", self.name)


def train_on(disk: Disk, name: str, folder: Path) -> OSError | None:
    """Trains, or resumes; the error of the full disk."""
    from palaestra.cli import progress_bar

    progress_bar.FIRST_LINE_S = math.inf  # else the number of lines depends on the time
    with small_runs.watched_writes(disk), redirect_stdout(Log(disk)), redirect_stderr(io.StringIO()):
        try:
            small_runs.train(name, folder, evaluations=2, total_steps=RUNS[name]["total_steps"] // 2)
        except OSError as error:
            return error
    return None


def try_learner(name: str, folder: Path) -> Tally:
    """Small trainings whose disk is full from each of their writes on."""
    from palaestra_baselines.common.run_outputs import user_key

    tally, roomy = Tally(), Disk(None)
    user_key()  # is made once, and is no write of a training
    train_on(roomy, name, folder / "whole")
    whole = small_runs.results(name, folder / "whole")
    steps = [row["steps"] for row in json.loads(whole["log.csv"])]
    for full_at in range(1, roomy.count + 1):
        home, disk = folder / str(full_at), Disk(full_at)
        tally.full_disks += 1
        error = train_on(disk, name, home)
        stage = f"{name}, write {full_at} of {roomy.count} ({disk.file})"
        recorded = disk.done.count("checkpoint.safetensors")
        kept = [small_runs.steps_kept(name, home)]
        left = [path.name for path in (home / "seed_0").iterdir() if path.name.endswith(".tmp")]
        train_on(Disk(1), name, home)
        kept.append(small_runs.steps_kept(name, home))
        if min(kept) < (steps[recorded - 1] if recorded else -1):
            tally.old_file_lost += 1
            tally.notes.append(f"{stage}: {recorded} checkpoints were written, and {kept} decisions are kept")
        if error is None:
            tally.no_error += 1
            tally.notes.append(f"{stage}: no error")
        elif disk.file not in str(error):
            tally.file_not_named += 1
            tally.notes.append(f"{stage}: {error}")
        if left:
            tally.left_over += 1
            tally.notes.append(f"{stage}: left {', '.join(left)}")
        train_on(Disk(None), name, home)
        found = small_runs.results(name, home)
        differing = [key for key in {**whole, **found} if whole.get(key) != found.get(key)]
        if differing:
            tally.different += 1
            tally.notes.append(f"{stage}: {', '.join(differing[:5])} differ from the whole run")
    return tally


def try_cache(folder: Path) -> Tally:
    """Simulations in processes that can keep no compiled code, or only some of it; then in one that can."""
    tally = Tally()
    line = f"import palaestra; s = palaestra.make_batch({CARTPOLE!r}, 2); s.reset(seed=0); s.step(); print('played')"
    for size in (0, 20_000, resource.RLIM_INFINITY):
        tally.full_disks += size != resource.RLIM_INFINITY
        limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
        done = subprocess.run(
            [sys.executable, "-c", limit + line],
            env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
            capture_output=True,
            text=True,
        )
        if done.stdout.strip() != "played":
            tally.old_file_lost += 1
            tally.notes.append(f"files end at {size}: {done.stderr.strip().splitlines()[-1:]}")
    return tally


def main() -> int:
    """Prints the table."""
    learners = {name: functools.partial(try_learner, name) for name in RUNS if method_of(name) in LEARNERS}
    others = {"training": try_training, "cache": try_cache, **learners}
    names = [*WRITERS, *others]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", nargs="+", choices=names, default=names)
    args = parser.parse_args()
    print(
        f"{'writer':18s}{'full disks':>11s}{'lost':>6s}{'no error':>10s}{'not named':>11s}{'left over':>11s}"
        f"{'different':>11s}"
    )
    bad = disks = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = str(Path(folder) / "state")  # a key for checkpoints of its own
        for name in args.writers:
            home = Path(folder) / "tried" / name.replace(" ", "_")
            home.mkdir(parents=True)
            tally = others[name](home) if name in others else try_writer(name, home)
            counts = zip(tally.counts, (11, 6, 10, 11, 11, 11), strict=True)
            print(f"{name:18s}" + "".join(f"{count:{width}d}" for count, width in counts), flush=True)
            for note in tally.notes:
                print(f"    {note}")
            bad += sum(tally.counts[1:])
            disks += tally.full_disks
    print(f"{disks} full disks, {bad} faults, {time.process_time():.0f} s of processor")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
