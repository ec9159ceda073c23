"""Checks, how they run, and how their results are reported."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import io
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from palaestra.console import tell
from palaestra.core.compile.reachable import unchanged_rules
from palaestra.testing.drawn import Draw
from palaestra.testing.subject import Level, Subject

Status = Literal["passed", "FAILED", "skipped"]

FAST: tuple[Level, ...] = ("fast", "full")
"""Levels of a check of the rules: ids that share a kernel need it once."""
PRESET: tuple[Level, ...] = ("preset", *FAST)
"""Levels of a check of what each id has of its own: names, sizes, spaces, page."""


FIRST = -1
"""Order of the check of what must hold before anything is compiled: where it fails, no other check is run."""
LAST = 10_000
"""Order of a check that names none: it runs after those of the kit."""


class CheckError(AssertionError):
    """An environment breaks a promise; the message names lane, agent, field and values."""


class Skipped(Exception):
    """A check does not apply; the message is the reason."""


@dataclass(frozen=True)
class Check:
    """One promise and the function that checks it.

    Attributes:
        name: Name of the function, what ``only=`` and ``skip=`` take.
        group: Its module, for tables.
        about: Its docstring: what it proves, in its first line, and the reasons for exceptions.
        run: Raises `CheckError` (or any exception) where the promise is broken, `Skipped` where there is none to keep.
        levels: At which levels it runs.
        expected_warnings: Patterns of warnings that do not fail the check, each with its reason.
        order: Checks run in ascending order; the checks of the kit have numbers below `LAST`.
        prepare: Called before anything is compiled: it begins what takes time and needs no waiting for.
    """

    name: str
    group: str
    about: str
    run: Callable[[Subject], None]
    levels: tuple[Level, ...] = FAST
    expected_warnings: tuple[tuple[str, str], ...] = ()
    order: int = LAST
    prepare: Callable[[], object] | None = None

    @property
    def headline(self) -> str:
        """What it proves, in one line."""
        return self.about.split("\n")[0]


EXPECTED_OF_ALL = ((r"environment \S+ is out of date", "Gymnasium says so of every version that has a newer one"),)
"""Warnings that fail no check, as `Check.expected_warnings`."""

CHECKS: dict[str, Check] = {}
"""All checks by name, in the order in which they run."""


def conformance(
    *,
    order: int = LAST,
    levels: tuple[Level, ...] = FAST,
    expected_warnings: Sequence[tuple[str, str]] = (),
    prepare: Callable[[], object] | None = None,
) -> Callable[[Callable[[Subject], None]], Callable[[Subject], None]]:
    """Enters a function into `CHECKS` under its own name.

    Args:
        order: See `Check`.
        levels: See `Check`.
        expected_warnings: See `Check`.
        prepare: See `Check`.
    """

    def enter(function: Callable[[Subject], None]) -> Callable[[Subject], None]:
        name = getattr(function, "__name__", "")
        about = inspect.cleandoc(function.__doc__ or "")
        if not about or name in CHECKS:
            raise ValueError(f"check {name!r} needs a docstring and a name of its own")
        group = function.__module__.rpartition(".")[2]
        entry = Check(name, group, about, function, levels, tuple(expected_warnings), order, prepare)
        entered = [*CHECKS.values(), entry]
        CHECKS.clear()
        CHECKS.update((c.name, c) for c in sorted(entered, key=lambda c: c.order))
        return function

    return enter


@dataclass(frozen=True)
class Result:
    """Result of one check.

    Attributes:
        name: Name of the check.
        status: ``"passed"``, ``"FAILED"`` or ``"skipped"``.
        seconds: Wall time.
        message: What is broken, why it was skipped, or how much was looked at.
    """

    name: str
    status: Status
    seconds: float
    message: str = ""


@dataclass
class Report:
    """Results of all checks of one environment; prints as a table.

    Attributes:
        id: The environment.
        level: ``"preset"``, ``"fast"`` or ``"full"``.
        results: In the order in which they ran.
        compile_seconds: Time of the first step, compilation included; not part of any check.
        cpu_seconds: Processor time of all checks.
    """

    id: str
    level: str
    results: list[Result] = field(default_factory=list)
    compile_seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def failures(self) -> list[Result]:
        """The checks that failed."""
        return [r for r in self.results if r.status == "FAILED"]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def seconds(self) -> float:
        """Time of all checks."""
        return sum(r.seconds for r in self.results)

    def __bool__(self) -> bool:
        return self.passed

    def __getitem__(self, name: str) -> Result:
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"check {name!r} was not run on {self.id}")

    def __str__(self) -> str:
        counts = [f"{n} {s}" for s in ("passed", "FAILED", "skipped") if (n := self._count(s))]
        head = f"{self.id}, level {self.level}: {', '.join(counts) or 'nothing run'} in {self.seconds:.1f} s"
        if self.compile_seconds >= 0.5:
            head += f" (and {self.compile_seconds:.1f} s to compile)"
        width = max((len(r.name) for r in self.results), default=0)
        rows = []
        for r in self.results:
            first, *more = r.message.splitlines() or [""]
            rows.append(f"  {r.name:<{width}}  {r.status:<7}  {r.seconds:6.2f} s  {first}".rstrip())
            rows += [f"  {'':<{width}}  {'':<7}  {'':<8}  {line}".rstrip() for line in more]
        return "\n".join([head, *rows])

    def _count(self, status: str) -> int:
        return sum(r.status == status for r in self.results)

    def raise_if_failed(self) -> None:
        """Raises one `CheckError` with all that failed."""
        if self.failures:
            broken = "\n".join(f"* {r.name}: {r.message}" for r in self.failures)
            raise CheckError(f"{self.id} breaks {len(self.failures)} of its promises:\n{broken}")


def run(subject: Subject, only: Iterable[str] | None = None, skip: Iterable[str] = ()) -> Report:
    """Runs the checks on a subject. See `palaestra.testing.check`."""
    chosen, left_out = _names(only), _names(skip) or []
    report = Report(subject.id, subject.level)
    entries = [entry for entry in CHECKS.values() if _is_wanted(entry, subject, chosen, left_out)]
    with unchanged_rules():
        started = time.process_time()
        for entry in entries:
            if entry.order <= FIRST:
                report.results.append(_run_told(subject, entry))
        if report.failures:
            report.cpu_seconds = time.process_time() - started
            return report
        for entry in entries:
            if entry.prepare is not None:
                entry.prepare()
        before_s, started = time.process_time() - started, time.perf_counter()
        tell(f"{subject.id}: compiling and one decision")
        subject.warm_up()
        report.compile_seconds = time.perf_counter() - started
        started = time.process_time()
        for entry in entries:
            if entry.order > FIRST:
                report.results.append(_run_told(subject, entry))
        report.cpu_seconds = before_s + time.process_time() - started
    return report


def _is_wanted(entry: Check, subject: Subject, chosen: list[str] | None, left_out: list[str]) -> bool:
    """Whether a check is to be run: one that was asked for by name, else what belongs to the level."""
    if entry.name in left_out:
        return False
    return subject.level in entry.levels if chosen is None else entry.name in chosen


def _run_told(subject: Subject, entry: Check) -> Result:
    tell(f"{subject.id}: {entry.name}")
    return run_one(subject, entry)


def run_one(subject: Subject, entry: Check) -> Result:
    """Runs one check and turns what happens into a result."""
    started = time.perf_counter()
    status: Status
    subject.draw = Draw(subject.seed, subject.id, entry.name)
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            entry.run(subject)
            status, message = "passed", subject.take_note()
        except Skipped as reason:
            status, message = "skipped", str(reason)
        except CheckError as error:
            status, message = "FAILED", str(error)
        except Exception as error:
            status, message = "FAILED", _error_message(error)
        finally:
            subject.take_note()
            subject.close()
    unexpected = _unexpected(caught, entry)
    if unexpected and status != "FAILED":
        status, message = "FAILED", "\n".join(["unexpected warnings:", *unexpected])
    if status == "FAILED" and subject.draw.numbers:
        message = f"{message}\n{_how_to_repeat(subject, entry)}"
    return Result(entry.name, status, time.perf_counter() - started, message)


def _how_to_repeat(subject: Subject, entry: Check) -> str:
    """What a check had drawn when it failed, and the command that draws it again."""
    options = "".join(f" --set {name}={value}" for name, value in subject.keywords.items())
    level = "" if subject.level == "fast" else f" --level {subject.level}"
    command = f"palaestra check {subject.id} --only {entry.name}{level} --seed {subject.seed}{options}"
    return f"drawn: {subject.draw}\nagain: {command}"


def _unexpected(caught: Iterable[warnings.WarningMessage], entry: Check) -> list[str]:
    texts = {}
    for warning in caught:
        text = re.sub(r"\x1b\[\d+m", "", str(warning.message))  # Gymnasium colours its warnings
        if not any(re.search(pattern, text) for pattern, _ in (*entry.expected_warnings, *EXPECTED_OF_ALL)):
            texts.setdefault(text, f"{warning.category.__name__}: {text} ({warning.filename}:{warning.lineno})")
    return list(texts.values())


def _error_message(error: Exception) -> str:
    """An exception that is no `CheckError`: its text and where it came from."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text} ({place.filename}:{place.lineno} in {place.name})"


def _names(given: Iterable[str] | None) -> list[str] | None:
    """The names of checks, each of which must exist."""
    if given is None:
        return None
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        if name not in CHECKS:
            near = difflib.get_close_matches(name, CHECKS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(CHECKS)}"
            raise ValueError(f"there is no check {name!r}: {hint}")
    return names


def require(condition: Any, message: str) -> None:
    """Raises `CheckError` unless the condition holds."""
    if not condition:
        raise CheckError(message)
