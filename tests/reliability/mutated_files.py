"""Spoils files of other people by the thousand, and opens and uses each: a file can be wrong, never dangerous.

    PYTHONPATH=tests python tests/reliability/mutated_files.py                      # 5,000 files of all kinds
    PYTHONPATH=tests python tests/reliability/mutated_files.py --files 500 --kinds replay pool --seed 3
    PYTHONPATH=tests python tests/reliability/mutated_files.py --keep DIRECTORY     # leaves the files that failed there

Honest files of each kind are damaged, cut, mixed, replaced by foreign ones and by pickles, and given dishonest values
under a checksum that fits (`reliability.mutations`, `reliability.kinds`). Child processes open and use them one after
the other; where one dies, the file that it was at counts as crashed and another child goes on behind it. A table says
how many files were refused by `palaestra.core.files.FileError`, how many were played, and how many

* crashed: the process died, or hung for longer than `HANGS_S`;
* ran code: what a pickle leaves behind was there afterwards;
* foreign error: another exception came out.

The exit status is 1 unless the last three are all 0.
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

HANGS_S = 120.0
MEMORY_BYTES = 24 * 2**30
"""Address space of a child: a file that asks for more is an error, not the end of the machine."""
REFUSED, PLAYED, CRASHED, RAN_CODE, FOREIGN = "refused", "played", "crashed", "ran code", "foreign error"
OUTCOMES = (REFUSED, PLAYED, CRASHED, RAN_CODE, FOREIGN)
FAILURES = (CRASHED, RAN_CODE, FOREIGN)
MARKER = "a_payload_was_here"
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
    if first == 0:
        for path in sorted((folder / "files").glob("honest-*")):
            outcome, why = in_a_fork(kind, path) if kind.isolated else use(kind, path)
            if outcome != PLAYED:
                sys.exit(f"{path.name} is {outcome}: {why}")
    for number in range(first, len(files)):
        print(json.dumps({"begin": number}), flush=True)
        if kind.isolated:
            outcome, why = in_a_fork(kind, files[number])
        else:
            outcome, why = use(kind, files[number])
        if marker.exists():
            outcome, why = RAN_CODE, why
            marker.unlink()
        print(json.dumps({"end": number, "outcome": outcome, "why": why}), flush=True)


def use(kind: Any, path: Path) -> tuple[str, str]:
    """Uses one file. Returns the outcome and the error."""
    from palaestra.core.files import FileError

    honest = int(path.name.split("-")[1])
    try:
        kind.use(path, honest)
    except FileError as error:
        return (REFUSED, str(error)) if "\n" not in str(error) else (FOREIGN, f"more than one line: {error!r}")
    except BaseException as error:
        return FOREIGN, f"{type(error).__name__}: {error}"[:300]
    return PLAYED, ""


def in_a_fork(kind: Any, path: Path) -> tuple[str, str]:
    """Uses one file in a fork of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(writer, json.dumps(use(kind, path)).encode()[:4096])
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
    first = 0
    while first < count:
        done = first
        with subprocess.Popen(
            [sys.executable, __file__, "--child", name, str(folder), str(first)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if first == 0 else subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PALAESTRA_SCRATCH": str(folder)},
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
                why = f"no answer for {HANGS_S:g} s"
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
        TimeoutError: None came for `HANGS_S`.
    """
    assert child.stdout is not None
    while True:
        if not select.select([child.stdout], [], [], HANGS_S)[0]:
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
    parser.add_argument("--files", type=int, default=5000, help="how many in all (default 5000)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default 0)")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="copy the files that failed there")
    args = parser.parse_args(words)
    began = time.perf_counter()
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="palaestra-mutated-") as scratch:
        os.environ["XDG_STATE_HOME"] = os.environ["LOCALAPPDATA"] = scratch  # a key for checkpoints of its own
        for name, count in shares(args.kinds, args.files).items():
            folder = Path(scratch) / name
            spoilt = spoil(KINDS[name], folder, count, args.seed)
            counts[name] = Counter()
            for number, outcome, why in run_kind(name, folder, count):
                counts[name][outcome] += 1
                if outcome in FAILURES:
                    if sum(counts[name][failure] for failure in FAILURES) <= SHOWN:
                        print(f"{name}: {spoilt[number].name}: {outcome}: {why}", flush=True)
                    if args.keep is not None:
                        (args.keep / name).mkdir(parents=True, exist_ok=True)
                        shutil.copy(spoilt[number], args.keep / name)
    print_table(counts)
    print(f"{sum(sum(row.values()) for row in counts.values())} files, {time.perf_counter() - began:.0f} s")
    return int(any(row[failure] for row in counts.values() for failure in FAILURES))


def print_table(counts: dict[str, Counter[str]]) -> None:
    """One row a kind."""
    print(f"{'kind':12s}{'files':>7s}" + "".join(f"{outcome:>15s}" for outcome in OUTCOMES))
    for name, row in {**counts, "all": sum(counts.values(), Counter())}.items():
        print(f"{name:12s}{sum(row.values()):7d}" + "".join(f"{row[outcome]:15d}" for outcome in OUTCOMES))


if __name__ == "__main__":
    sys.exit(main())
