"""What the scripts of this folder share: trials, how each ended, and the file in which that is kept.

A script declares functions with `trial` and ends with ``main("distribution", ...)``. Each function plugs one kind of
environment into the library and returns nothing, or a note. It fails by raising.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

KINDS = ("box", "opponent", "choices", "parallel", "vector", "adapter")
"""Continuous actions; a team against a scripted opponent; MultiDiscrete, Dict and masks; PettingZoo; many matches at
once; a module of `palaestra.adapters`."""
WORKS, LIMIT, BREAKS = "works", "limit", "breaks"
PREFIX = "|"
"""Beginning of the lines that the runner shows."""
PACKAGES = ("palaestra", "palaestra_baselines", "palaestra_assets")
LONGEST_QUOTE = 160
STEPS = 200


@dataclass(frozen=True)
class Trial:
    """One way to plug palaestra into the library.

    Attributes:
        kind: One of `KINDS`.
        what: What is tried, a few words.
        run: Does it.
        limit: Part of the message in which the library says that it has no such thing, or None.
    """

    kind: str
    what: str
    run: Callable[[], str | None]
    limit: str | None


class ProgramError(Exception):
    """A program that failed: its last line, and the file in which Python says it happened."""

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message)
        self.file = file


TRIALS: list[Trial] = []


def trial(kind: str, what: str, *, limit: str | None = None) -> Callable[[Callable[[], str | None]], None]:
    """Declares a trial. With ``limit`` the library is expected to refuse with a message that contains it."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")

    def declare(run: Callable[[], str | None]) -> None:
        TRIALS.append(Trial(kind, what, run, limit))

    return declare


def run_program(arguments: Sequence[str | Path], folder: Path, limit_s: float = 200.0) -> str:
    """Runs a program in a folder and returns all that it printed.

    Raises:
        ProgramError: It failed, or ran past the limit.
    """
    try:
        done = subprocess.run(
            [str(a) for a in arguments], cwd=folder, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProgramError(f"ran past {limit_s:.0f} s", "") from None
    said = done.stdout + done.stderr
    if done.returncode:
        print(said[-6000:])
        files = re.findall(r'File "([^"]+)", line', said)
        lines = [line for line in said.splitlines() if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line.strip())]
        last = lines or said.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ProgramError(last[-1].strip(), files[-1] if files else "")
    return said


def attempt(one: Trial) -> tuple[str, str]:
    """Runs a trial. Returns how it ended and the note, the quoted limit or the error."""
    try:
        note = one.run()
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())
        text = f"{type(error).__name__}: {said}" if not isinstance(error, ProgramError) else said
        if one.limit is not None and one.limit in text and not _raised_by_palaestra(error):
            return LIMIT, _shortened(text, one.limit)
        traceback.print_exc(file=sys.stdout)
        return BREAKS, text[: 2 * LONGEST_QUOTE]
    if one.limit is not None:
        return WORKS, f"no longer refused ({one.limit!r}): delete the limit"
    return WORKS, note or ""


def _raised_by_palaestra(error: BaseException) -> bool:
    """Whether the innermost line of the traceback is ours: a limit must be the library's own."""
    if isinstance(error, ProgramError):
        file = error.file
    else:
        frames = traceback.extract_tb(error.__traceback__)
        file = frames[-1].filename if frames else ""
    folders = {Path(spec.origin).parent for name in PACKAGES if (spec := find_spec(name)) and spec.origin}
    return not folders.isdisjoint(Path(file).resolve().parents)


def _shortened(text: str, part: str) -> str:
    """The text, or where it is long the surroundings of the part."""
    if len(text) <= LONGEST_QUOTE:
        return text
    start = text.rfind(" ", 0, max(0, text.index(part) - 20)) + 1
    end = start + LONGEST_QUOTE
    return f"{'... ' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def main(*distributions: str) -> None:
    """Runs all declared trials, prints a line for each and writes the results as JSON after each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, help="JSON file for the results")
    parser.add_argument("--match", default="", help="only trials whose words contain this text")
    given = parser.parse_args()
    versions = {name: importlib.metadata.version(name) for name in (*distributions, "gymnasium")}
    rows: list[dict[str, object]] = []
    for one in TRIALS:
        if given.match not in one.what:
            continue
        start_s = time.perf_counter()
        outcome, detail = attempt(one)
        seconds = round(time.perf_counter() - start_s, 1)
        rows.append({"kind": one.kind, "what": one.what, "outcome": outcome, "detail": detail, "seconds": seconds})
        print(
            f"{PREFIX} {outcome:6} {one.kind:9} {one.what} ({seconds} s){': ' + detail if detail else ''}", flush=True
        )
        if given.out is not None:
            given.out.write_text(json.dumps({"versions": versions, "trials": rows}, indent=1), encoding="utf-8")
