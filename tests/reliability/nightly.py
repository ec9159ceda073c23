"""Runs the commands of this folder one after the other, as large as a night of CI needs: `make reliability`.

    PYTHONPATH=tests:benchmarks python tests/reliability/nightly.py               # all of them
    PYTHONPATH=tests:benchmarks python tests/reliability/nightly.py --minutes 15  # begins none after 15 minutes

What has passed is kept in ``build/reliability.txt`` with the commit it was seen at, and not run again at the same one.
Each seed is that of the day, so that every night draws other faults; a failure names the command that draws them again.
The exit status is 1 if a command fails, and 2 if there was no time for all.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
PASSED = ROOT / "build" / "reliability.txt"
COMMANDS = (
    "interrupts.py --interrupts 40 --seed {day}",
    "interrupts.py --first-calls 50",
    "forged_models.py",
    "mutated_files.py --files 1000 --seed {day}",
    "forged_keywords.py --share 0.3",
    "set_parameters.py",
    "full_disk.py",
    "killed_trainings.py --kills 4 --seed {day}",
    "planted_faults.py --level fast",
)
"""What a night runs, the shortest first."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what has not passed at this commit; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no command after so many (default 60)")
    args = parser.parse_args(argv)
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    passed = PASSED.read_text(encoding="utf-8").splitlines() if PASSED.exists() else []
    path = os.pathsep.join(str(ROOT / name) for name in ("envs", "baselines", "assets", "tests", "benchmarks"))
    end, status = time.monotonic() + 60.0 * args.minutes, 0
    for form in COMMANDS:
        kept = f"{commit} {form}"
        if kept in passed and not commit.endswith("dirty"):
            continue
        if time.monotonic() > end:
            print(f"no time for {form}")
            return status or 2
        words = shlex.split(form.format(day=time.strftime("%Y%m%d")))
        command = [sys.executable, str(FOLDER / words[0]), *words[1:]]
        print(f"\n== PYTHONPATH=tests:benchmarks python tests/reliability/{' '.join(words)}", flush=True)
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False)
        if done.returncode:
            status = 1
            continue
        PASSED.parent.mkdir(exist_ok=True)
        passed.append(kept)
        PASSED.write_text("\n".join(passed) + "\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
