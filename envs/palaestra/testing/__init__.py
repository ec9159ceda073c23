"""The conformance kit: checks that an environment, ours or yours, keeps the promises of this suite.

::

    from palaestra.testing import check

    report = check("palaestra/CartPole-v0")  # two seconds
    report = check("palaestra/TeamMatrix-v0", skip=["gymnasium_check_env"], game="climb")
    print(report)
    report.raise_if_failed()

Gymnasium's and PettingZoo's own tests run first, then the kit's. `CHECKS` has every check with what it proves;
each is shown to catch a planted fault (tests/testing/faults.py). `playthrough` writes a match
as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from palaestra import registry
from palaestra.core.compile.linker import link
from palaestra.testing import checks  # noqa: F401 (it enters the checks into CHECKS)
from palaestra.testing.harness import CHECKS, Check, CheckError, Report, Result, Skipped, conformance, run
from palaestra.testing.playthroughs import playthrough
from palaestra.testing.subject import Level, Subject

__all__ = [
    "CHECKS",
    "Check",
    "CheckError",
    "Level",
    "Report",
    "Result",
    "Skipped",
    "Subject",
    "check",
    "check_all",
    "conformance",
    "levels",
    "playthrough",
]


def check(
    id: str | Subject,
    level: Level = "fast",
    *,
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    seed: int = 0,
    **kwargs: Any,
) -> Report:
    """Checks an environment.

    Args:
        id: Registered id, or a `Subject` that makes its faces in another way (then level and keywords are its own).
        level: ``"preset"`` (half a second, for an id whose kernel another id has passed with), ``"fast"`` (seconds) or
            ``"full"`` (minutes; more steps, worker processes).
        only: Names of the checks to run, all if None.
        skip: Names of checks to leave out.
        seed: Seed of the numbers that the checks draw (lanes, threads, seeds, horizons, ...). A failure names it.
        **kwargs: Keywords of the id, as every face takes them.

    Returns:
        The report; it prints as a table. `Report.raise_if_failed` turns failures into one error.

    Raises:
        KeyError: No such id; suggests the near one.
        ValueError: No such check or level.
        ImportError: An optional package is missing; names the command that installs it.
    """
    if isinstance(id, str):
        registry.row(id)
        id = Subject(id, level, **kwargs)
        id.seed = seed
    return run(id, only, skip)


def levels(ids: Iterable[str] | None = None) -> dict[str, Level]:
    """The level that is enough for each id where all of them are checked.

    Args:
        ids: Registered ids, all if None.

    Returns:
        ``"fast"`` for the first id of a kernel, ``"preset"`` for the others: their rules run as the same machine code.
    """
    first: dict[Any, str] = {}
    found: dict[str, Level] = {}
    for id in list(registry.ROWS) if ids is None else ids:
        found[id] = "fast" if first.setdefault(link(registry.make_game(id)[0]), id) == id else "preset"
    return found


def check_all(
    level: Level = "fast",
    *,
    ids: Iterable[str] | None = None,
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    seed: int = 0,
) -> list[Report]:
    """Checks every registered environment.

    Args:
        level: As for `check`.
        ids: These ids instead of all.
        only: As for `check`.
        skip: As for `check`.
        seed: As for `check`.

    Returns:
        One report an id. Where an optional package is missing it holds one skipped result that names it.
    """
    reports = []
    for id in list(registry.ROWS) if ids is None else ids:
        try:
            reports.append(check(id, level, only=only, skip=skip, seed=seed))
        except ImportError as error:
            reports.append(Report(id, level, [Result("all", "skipped", 0.0, str(error))]))
    return reports
