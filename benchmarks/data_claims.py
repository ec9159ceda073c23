"""Times and proves data sets: ``python benchmarks/data_claims.py``.

::

    python benchmarks/data_claims.py              # half a minute of CPU time
    python benchmarks/data_claims.py --quick      # fewer episodes: whether it runs

Episodes of 20 decisions of SparseSpread-2 are recorded in processes of their own: how long an episode takes and how
large it is, whether memory grows with their number, whether Minari reads what our reader reads, and whether the files
have the same bytes whoever makes them. The exit code is 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from measurement import VERDICTS, Measurement
from palaestra.console import print_table
from palaestra.data import read_data, read_manifest

ID, STEPS = "palaestra/SparseSpread-2-v0", 20
FILES = ("data/main_data.hdf5", "data/metadata.json", "palaestra.json")
CHILD = f"""
import json, resource, sys, time
from palaestra.data import make_data
path, episodes, lanes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
make_data("{ID}", "random", path + "-warm-v0", episodes=8, horizon={STEPS})
start = time.process_time()
make_data("{ID}", "random", path, episodes=episodes, num_envs=lanes, seed=1, horizon={STEPS})
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([time.process_time() - start, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)]))
"""


def start(path: Path, episodes: int, lanes: int, hash_seed: int) -> subprocess.Popen[str]:
    """A process that records a data set and prints its seconds and its largest memory in bytes."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", CHILD, str(path), str(episodes), str(lanes)]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)


def recorded(path: Path, episodes: int, lanes: int = 64, hash_seed: int = 0) -> tuple[float, float]:
    """Records a data set; seconds of processor time, and the largest memory of its process in bytes.

    Raises:
        RuntimeError: The process failed.
    """
    process = start(path, episodes, lanes, hash_seed)
    told, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{path.name}: the process that records ended with {process.returncode}")
    seconds, memory = json.loads(told)
    return seconds, memory


def killed(path: Path, episodes: int, kills: int) -> int:
    """Records a data set whose process is killed in each of ``kills`` parts of the time that it takes.

    Returns:
        Kills that hit a process at work.
    """
    parts, hits = path.with_name(f".{path.name}.parts"), 0
    for kill in range(kills):
        process = start(path, episodes, 64, kill)
        before = len(list(parts.glob("*.rows")))
        while process.poll() is None and not path.exists():
            found = len(list(parts.glob("*.rows"))), any(parts.glob("final.*"))
            if found[1] if kill == kills - 1 else found[0] > before:  # the last one while the files are joined
                process.send_signal(signal.SIGKILL)
                hits += 1
                break
            time.sleep(0.001)
        process.communicate()
    recorded(path, episodes)
    return hits


def digests(path: Path) -> list[str]:
    """SHA-256 of the files of a data set."""
    return [hashlib.sha256((path / name).read_bytes()).hexdigest() for name in FILES]


def minari_agrees(path: Path) -> bool:
    """Whether Minari's own reader gives the arrays of ours."""
    import minari

    os.environ["MINARI_DATASETS_PATH"] = str(path.parent)
    pairs = zip(minari.load_dataset(path.name).iterate_episodes(), read_data(path), strict=True)
    return all(
        np.array_equal(theirs.observations, ours.observations)
        and np.array_equal(theirs.actions, ours.actions)
        and np.array_equal(theirs.rewards, ours.rewards)
        and (theirs.terminations[-1], theirs.truncations[-1]) == (ours.terminated, ours.truncated)
        for theirs, ours in pairs
    )


def measurements(folder: Path, few: int, many: int) -> Iterator[Measurement]:
    """All figures, the small data sets first."""
    _, small = recorded(folder / "few" / "spread-v0", few)
    seconds, large = recorded(folder / "many" / "spread-v0", many)
    size = read_manifest(folder / "many" / "spread-v0").files[FILES[0]][0]
    about = f"an episode of {STEPS} decisions"
    yield Measurement("a", f"{about}: CPU time, ms", 1e3 * seconds / many, 3.0, False, f"{many} episodes")
    yield Measurement("b", f"{about}: bytes", size / many, 20_000, False, f"{size:,} bytes in all")
    grows = f"{few}: {small / 1e6:.0f} MB, {many}: {large / 1e6:.0f} MB"
    yield Measurement("c", f"memory with {many // few} times the episodes", large / small, 1.1, False, grows)
    start_s = time.process_time()
    read_data(folder / "many" / "spread-v0")
    took = 1e3 * (time.process_time() - start_s) / many
    yield Measurement("d", "reading and checking an episode: CPU time, ms", took, None, False)
    agrees = minari_agrees(folder / "few" / "spread-v0")
    yield Measurement("e", "minari.load_dataset gives equal arrays", float(agrees), 1.0, True, f"{few} episodes")
    recorded(folder / "one" / "spread-v0", few, lanes=1, hash_seed=7)
    hits = killed(folder / "killed" / "spread-v0", few, 3)
    first = digests(folder / "few" / "spread-v0")
    same = digests(folder / "one" / "spread-v0") == first
    yield Measurement("f", "same bytes: 1 and 64 lanes, two hash seeds", float(same), 1.0, True, first[0][:16])
    same = digests(folder / "killed" / "spread-v0") == first and hits == 3
    yield Measurement("g", "same bytes after 3 kills, the last in the join", float(same), 1.0, True, f"{hits} kills")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description="Times and proves data sets")
    parser.add_argument("--quick", action="store_true", help="fewer episodes")
    args = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="palaestra-data-"))
    try:
        found = list(measurements(folder, *((600, 1200) if args.quick else (500, 5000))))
    finally:
        shutil.rmtree(folder)
    rows = [
        [m.name, m.about, f"{m.value:,.3g}", "" if m.bar is None else f"{m.bar:g}", VERDICTS[m.holds], m.note]
        for m in found
        if m.value is not None
    ]
    print_table(rows, ["", "figure", "measured", "bar", "", "note"])
    return 0 if all(m.holds in (True, None) for m in found) else 1


if __name__ == "__main__":
    sys.exit(main())
