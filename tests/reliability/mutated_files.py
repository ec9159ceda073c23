"""Spoils files of other people by the thousand, and opens and uses each: a file can be wrong, never dangerous.

    PYTHONPATH=tests:benchmarks python tests/reliability/mutated_files.py  # 3,000 files of all kinds
    PYTHONPATH=tests:benchmarks python tests/reliability/mutated_files.py --files 500 --kinds replay pool --seed 3
    PYTHONPATH=tests:benchmarks python tests/reliability/mutated_files.py --keep DIRECTORY  # leaves what failed there

Honest files of each kind are damaged, cut, mixed, replaced by foreign ones and by pickles, given dishonest values under
a checksum that fits, and the names of private files of the user (`reliability.mutations`, `reliability.kinds`); a pipe
and a sparse file of 20 GB are among them. Child processes open and use them one after the other; where one dies, the
file that it was at counts as crashed and another child goes on behind it. A table says how many files were refused by
`palaestra.core.files.FileError`, how many were played, and how many

* crashed: the process died, or did not answer for `SILENT_S`;
* ran code: what a pickle leaves behind was there afterwards, or a process or a connection was begun;
* foreign error: another exception came out;
* wrote: a private file was changed, or a file elsewhere opened for writing;
* opened: a private file or one outside the installation was opened, or its content quoted;
* hung: more than `HANGS_S` of CPU time;
* large: more than `LARGE_BYTES` of memory beyond what the process had before;
* ill told: the refusal does not name the file, or is no short line that a terminal can show.

The exit status is 1 unless all of these are 0.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folders `games` and `reliability`

SILENT_S = 120.0
HANGS_S = 5.0
LARGE_BYTES = 500 * 10**6
LONGEST_LINE = 1500
MEMORY_BYTES = 24 * 2**30
"""Address space of a child: a file that asks for more is an error, not the end of the machine."""
REFUSED, PLAYED, CRASHED, RAN_CODE, FOREIGN = "refused", "played", "crashed", "ran code", "foreign error"
WROTE, OPENED, HUNG, LARGE, ILL_TOLD = "wrote", "opened", "hung", "large", "ill told"
FAILURES = (CRASHED, RAN_CODE, FOREIGN, WROTE, OPENED, HUNG, LARGE, ILL_TOLD)
OUTCOMES = (REFUSED, PLAYED, *FAILURES)
HOME = "home"
MARKER = "a_payload_was_here"
SECRET = "the_password_is_swordfish"
"""Stands in every private file of the user."""
ROOTS = tuple(os.path.realpath(root) for root in (Path(__file__).parents[2], sys.prefix, sys.base_prefix))
ELSEWHERE = ("/usr/", "/proc/", "/sys/", "/dev/", "/etc/")
"""What libraries open by themselves, for reading."""
SHOWN = 5
"""Failures of a kind that are shown."""


def spoil(kind: Any, folder: Path, count: int, seed: int) -> list[Path]:
    """Writes honest files and ``count`` spoilt ones, whose names say how.

    Args:
        kind: A `reliability.kinds.Kind`.
        folder: Gets ``honest`` and ``files``.
        count: Number of spoilt files.
        seed: Of the draws.
    """
    from reliability.mutations import Supply

    honest = folder / "honest"
    honest.mkdir(parents=True)
    paths = kind.make(honest)
    shutil.copytree(honest, folder / "files", ignore=shutil.ignore_patterns("cache"))  # what they refer to by name
    contents = [path.read_bytes() for path in paths]
    for number, content in enumerate(contents):
        (folder / "files" / f"honest-{number}-{paths[number].name}").write_bytes(content)
    supply = Supply(contents, folder / MARKER)
    rng = np.random.default_rng([seed, *kind.name.encode()])
    spoilt = []
    for number in range(count):
        source = int(rng.integers(len(paths)))
        mutate = kind.mutations[int(rng.integers(len(kind.mutations)))]
        content = contents[source]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(100):
                content = mutate(contents[source], rng, supply)
                if content != contents[source]:
                    break
        spoilt.append(folder / "files" / f"{number:05d}-{source}-{mutate.__name__}{kind.suffix}")
        spoilt[-1].write_bytes(content)
    return spoilt


def make_strange(pipe: Path, sparse: Path) -> None:
    """Puts a pipe that nobody writes to, and a file of 20 GB that takes no room, in the place of two files."""
    os.truncate(sparse, 20 * 10**9)
    if hasattr(os, "mkfifo"):
        pipe.unlink()
        os.mkfifo(pipe)


def make_home(folder: Path) -> dict[str, bytes]:
    """Private files of the user. Returns their contents."""
    from reliability.mutations import PRIVATE

    folder.mkdir()
    for name in PRIVATE:
        (folder / name).write_text(json.dumps({SECRET: 1}) if name.endswith(".json") else f"{SECRET} x y\n")
    return contents_of(folder)


def contents_of(folder: Path) -> dict[str, bytes]:
    """Contents by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Watch:
    """Notes what the process does to files and processes; Python tells of what its own code does.

    Attributes:
        found: Outcome and what was done, the first one since the last use.
    """

    def __init__(self, home: Path, allowed: Path) -> None:
        self.found: tuple[str, str] | None = None
        own = (os.path.realpath(allowed), os.path.realpath(home.parent / "palaestra"))  # the latter: a key of the user
        self._home, self._allowed = os.path.realpath(home) + os.sep, (*ROOTS, *own)
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple) -> None:
        if self.found is not None:
            return
        if event in ("subprocess.Popen", "os.system", "os.exec", "socket.connect"):
            self.found = (RAN_CODE, f"{event} {arguments!r}"[:300])
        if event != "open" or not isinstance(arguments[0], str | bytes):
            return
        name, _, flags = arguments
        path = os.path.realpath(os.fsdecode(name))
        if not os.path.isabs(os.fsdecode(name)) and not os.path.lexists(path):
            return  # a name inside a folder that is being removed
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
        is_own = path.startswith(self._allowed) and not path.startswith(self._home)
        if not is_own and (path != os.devnull if writes else not path.startswith(ELSEWHERE)):
            self.found = (WROTE if writes else OPENED, path)


def most_memory(restart: bool = False) -> int:
    """Bytes of memory, the most since the last restart; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        if restart:
            Path("/proc/self/clear_refs").write_text("5")
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    return 0


# ----------------------------------------------------------------------------------------------------- in the children


def use_all(name: str, folder: Path, first: int) -> None:
    """Uses the files of a kind from number ``first`` on and prints a line of JSON for each.

    The first child uses the honest ones before: if one of them is not played, the kind itself is broken.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from reliability.kinds import KINDS

    kind, marker = KINDS[name], folder / MARKER
    warnings.simplefilter("ignore")
    files = sorted((folder / "files").glob("[0-9]*-*"))
    for path in sorted((folder / "files").glob("honest-*")):  # what is compiled and imported once is not theirs
        outcome, why = in_a_fork(kind, path) if kind.isolated else use(kind, path)
        if outcome != PLAYED:
            sys.exit(f"{path.name} is {outcome}: {why}")
    watch = Watch(folder.parent / HOME, folder)
    for number in range(first, len(files)):
        print(json.dumps({"begin": number}), flush=True)
        if kind.isolated:
            outcome, why = in_a_fork(kind, files[number], watch)
        else:
            outcome, why = use(kind, files[number], watch)
        if marker.exists():
            outcome, why = RAN_CODE, why
            marker.unlink()
        print(json.dumps({"end": number, "outcome": outcome, "why": why}), flush=True)


def use(kind: Any, path: Path, watch: Watch | None = None) -> tuple[str, str]:
    """Uses one file. Returns the outcome and the error."""
    before, began = most_memory(restart=True), time.process_time()
    if watch is not None:
        watch.found = None
    outcome, why = _use(kind, path)
    took, grown = time.process_time() - began, most_memory() - before
    if watch is not None and watch.found is not None:
        return watch.found
    if SECRET in why:
        return OPENED, why
    if took > HANGS_S + kind.makes_anew_s:
        return HUNG, f"{took:.1f} s: {why}"
    if grown > LARGE_BYTES:
        return LARGE, f"{grown / 1e6:.0f} MB: {why}"
    return outcome, why


def _use(kind: Any, path: Path) -> tuple[str, str]:
    from palaestra.core.files import FileError

    honest = int(path.name.split("-")[1])
    try:
        kind.use(path, honest)
    except FileError as error:
        text = str(error)
        is_well_told = path.name in text and text.isprintable() and len(text) <= LONGEST_LINE
        return (REFUSED if is_well_told else ILL_TOLD), text[:LONGEST_LINE]
    except BaseException as error:
        return FOREIGN, f"{type(error).__name__}: {error}"[:300]
    return PLAYED, ""


def in_a_fork(kind: Any, path: Path, watch: Watch | None = None) -> tuple[str, str]:
    """Uses one file in a fork of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(writer, json.dumps(use(kind, path, watch)).encode()[:4096])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    status = os.waitpid(child, 0)[1]
    if status or not told:
        return CRASHED, f"exit status {status}"
    outcome, why = json.loads(told)
    return outcome, why


# ------------------------------------------------------------------------------------------------------- in the parent


def run_kind(name: str, folder: Path, count: int) -> Iterator[tuple[int, str, str]]:
    """Number, outcome and error of each spoilt file of a kind; children are started until all are done."""
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    first = 0
    while first < count:
        done = first
        with subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--child", name, str(folder), str(first)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if first == 0 else subprocess.DEVNULL,
            text=True,
            cwd=folder.parent / HOME,
            env={**os.environ, "PALAESTRA_SCRATCH": str(folder), "PYTHONPATH": os.pathsep.join(paths)},
        ) as child:
            begun, why = -1, ""
            try:
                for line in lines_of(child):
                    said = json.loads(line)
                    begun = said.get("begin", begun)
                    if "end" in said:
                        done = said["end"] + 1
                        yield said["end"], said["outcome"], said["why"]
            except TimeoutError:
                why = f"no answer for {SILENT_S:g} s"
                child.kill()
            status = child.wait()
            if begun < 0:
                raise RuntimeError(f"the child of {name} has not begun: {child.stderr.read() if child.stderr else ''}")
        if done < count:
            yield begun, CRASHED, why or f"exit status {status}"
            done = begun + 1
        first = done


def lines_of(child: subprocess.Popen) -> Iterator[str]:
    """Lines of a child's output.

    Raises:
        TimeoutError: None came for `SILENT_S`.
    """
    assert child.stdout is not None
    while True:
        if not select.select([child.stdout], [], [], SILENT_S)[0]:
            raise TimeoutError
        line = child.stdout.readline()
        if not line:
            return
        yield line


def shares(kinds: Sequence[str], files: int) -> dict[str, int]:
    """How many files of each kind: most replays, as these are passed on, and few caches, which are compiled anew."""
    weights = {"replay": 10.0, "cache": 0.15}
    total = sum(weights.get(kind, 3.0) for kind in kinds)
    counts = {kind: max(1, int(files * weights.get(kind, 3.0) / total)) for kind in kinds}
    counts[kinds[0]] += max(0, files - sum(counts.values()))
    return counts


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all kinds, prints the table, returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--child"]:
        use_all(words[1], Path(words[2]), int(words[3]))
        return 0
    from reliability.kinds import KINDS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=3000, help="how many in all (default 3000)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default 0)")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="copy the files that failed there")
    args = parser.parse_args(words)
    began = time.perf_counter()
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="palaestra-mutated-") as scratch:
        os.environ["XDG_STATE_HOME"] = os.environ["LOCALAPPDATA"] = scratch  # a key for checkpoints of its own
        for name, count in shares(args.kinds, args.files).items():
            folder, home = Path(scratch) / name, Path(scratch) / HOME
            private = make_home(home)
            spoilt = spoil(KINDS[name], folder, count, args.seed)
            if len(spoilt) > 1 and not KINDS[name].isolated:
                make_strange(*spoilt[:2])
            counts[name] = Counter()
            for number, outcome, why in run_kind(name, folder, count):
                counts[name][outcome] += 1
                if outcome in FAILURES:
                    if sum(counts[name][failure] for failure in FAILURES) <= SHOWN:
                        print(f"{name}: {spoilt[number].name}: {outcome}: {why}", flush=True)
                    if args.keep is not None:
                        (args.keep / name).mkdir(parents=True, exist_ok=True)
                        shutil.copy(spoilt[number], args.keep / name)
            if contents_of(home) != private:
                counts[name][WROTE] += 1
                print(f"{name}: private files are others now: {sorted(contents_of(home))}", flush=True)
            shutil.rmtree(home)
    print_table(counts)
    print(f"{sum(sum(row.values()) for row in counts.values())} files, {time.perf_counter() - began:.0f} s")
    return int(any(row[failure] for row in counts.values() for failure in FAILURES))


def print_table(counts: dict[str, Counter[str]]) -> None:
    """One row a kind."""
    print(f"{'kind':12s}{'files':>7s}" + "".join(f"{outcome:>{len(outcome) + 2}s}" for outcome in OUTCOMES))
    for name, row in {**counts, "all": sum(counts.values(), Counter())}.items():
        print(
            f"{name:12s}{sum(row.values()):7d}" + "".join(f"{row[outcome]:{len(outcome) + 2}d}" for outcome in OUTCOMES)
        )


if __name__ == "__main__":
    sys.exit(main())
