"""What the scripts of this folder share: trials, how each ended, and the file in which that is kept.

A script declares functions with `trial` and ends with ``main("distribution", ...)``. Each function plugs one kind of
environment into the library and returns nothing, or a note. It fails by raising.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

KINDS = ("ids", "box", "opponent", "choices", "parallel", "vector", "adapter")
"""All ids; continuous actions; a team against a scripted opponent; MultiDiscrete, Dict and masks; PettingZoo; many
matches at once; a module of `palaestra.adapters`."""
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
Check = Callable[[str], object]
"""Tries one id in the library; fails by raising."""


def trial(kind: str, what: str, *, limit: str | None = None) -> Callable[[Callable[[], str | None]], None]:
    """Declares a trial. With ``limit`` the library is expected to refuse with a message that contains it."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")

    def declare(run: Callable[[], str | None]) -> None:
        TRIALS.append(Trial(kind, what, run, limit))

    return declare


def trial_of_ids(
    what: str, ids: Sequence[str], *, limits: Mapping[str, Sequence[str]] | None = None
) -> Callable[[Check], None]:
    """Declares a check of an id as trials of many.

    Args:
        what: What is tried, a few words.
        ids: Those to try.
        limits: Those of `ids` that the library refuses, by a part of the message.
    """
    refused = {id: part for part, some in (limits or {}).items() for id in some}

    def declare(check: Check) -> None:
        taken = [id for id in ids if id not in refused]
        TRIALS.append(Trial("ids", f"{what}, {len(taken)} of {len(ids)} ids", partial(_all_pass, check, taken), None))
        for part, some in (limits or {}).items():
            named = f"{what}, {', '.join(id.partition('/')[2] for id in some)}"
            TRIALS.append(Trial("ids", named, partial(_all_refused, check, some, part), part))

    return declare


def _all_pass(check: Check, ids: Sequence[str]) -> None:
    """Checks all ids, also after one has failed."""
    failed: dict[str, Exception] = {}
    for id in ids:
        try:
            check(id)
        except Exception as error:
            print(f"{id}:", flush=True)
            traceback.print_exc(file=sys.stdout)
            failed[id] = error
        gc.collect()  # thousands of agents' spaces: what one id leaves behind must not add up
    if failed:
        first = next(iter(failed.values()))
        raise AssertionError(f"{len(failed)} of {len(ids)} ids, {', '.join(failed)}: {_message(first)}") from first


def _all_refused(check: Check, ids: Sequence[str], part: str) -> None:
    """Raises the library's refusal of the last id, if it refuses all of them likewise."""
    refusal, taken = None, []
    for id in ids:
        try:
            check(id)
            taken.append(id)
        except Exception as error:
            if part not in _message(error) or _raised_by_palaestra(error):
                raise
            refusal = error
    if refusal is None:
        return
    if taken:
        raise AssertionError(f"no longer refused: {', '.join(taken)}")
    raise refusal


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
        text = _message(error)
        if one.limit is not None and one.limit in text and not _raised_by_palaestra(error):
            return LIMIT, _shortened(text, one.limit) + _place(error)
        traceback.print_exc(file=sys.stdout)
        return BREAKS, text[: 2 * LONGEST_QUOTE]
    if one.limit is not None:
        return WORKS, f"no longer refused ({one.limit!r}): delete the limit"
    return WORKS, note or ""


def _message(error: BaseException) -> str:
    """An error in a line; of an ``assert`` without a message, the line itself."""
    said = " ".join(str(error).split())
    if isinstance(error, ProgramError):
        return said
    if not said and isinstance(error, AssertionError):
        said = traceback.extract_tb(error.__traceback__)[-1].line or ""
    return f"{type(error).__name__}: {said}"


def _place(error: BaseException) -> str:
    """Where in an installed library it was raised: `` (torchrl/envs/common.py, line 12)``, or nothing."""
    frames = [f"{frame.filename}, line {frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    inside = [frame.partition("site-packages/")[2] for frame in frames if "site-packages/" in frame]
    return f" ({inside[-1]})" if inside else ""


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
    parser.add_argument("--out", type=Path, help="JSON file for the results; what it holds already is not tried again")
    parser.add_argument("--match", default="", help="only trials whose words contain this text")
    given = parser.parse_args()
    versions = {name: importlib.metadata.version(name) for name in (*distributions, "gymnasium")}
    rows: list[dict[str, Any]] = []
    if given.out is not None and given.out.exists():
        rows = [row for row in json.loads(given.out.read_text(encoding="utf-8"))["trials"] if row["outcome"] != BREAKS]
    done = {(row["kind"], row["what"]) for row in rows}
    for one in TRIALS:
        if given.match not in one.what or (one.kind, one.what) in done:
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
