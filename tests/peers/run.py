"""Plugs palaestra, unmodified and by id, into the libraries that its users use.

    make test-peers                                  # all libraries whose results are missing or stale
    python tests/peers/run.py --only rllib torchrl   # some
    python tests/peers/run.py --again --only sb3     # although nothing has changed
    python tests/peers/run.py --list                 # what there is, and the last results
    python tests/peers/run.py --write                # the table and the limits into docs/libraries.md

`libraries.toml` beside this file lists the libraries, `libraries/` has one script for each. A library is installed
into ``build/peers/venvs``, with this checkout, once; libraries that accept all of constraints.txt share a venv. Its
script tries the library's own checker on all ids, and plays 200 steps of each kind of environment that the library
knows, with one gradient update where it learns. Results are kept in ``build/peers/results``, with the commit; a library
is run again when its script, its requirements or the sources of palaestra change, and one that was interrupted goes on
after its last trial. One that fails does not stop the others. ``--write`` leaves the rows of libraries without a result
as they are. Needs a network (GitHub too) and about 14 GB.

The exit status is 1 if something breaks. A library's own limit, which is quoted, is not an error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
HERE = Path(__file__).parent
BUILD = REPOSITORY / "build" / "peers"
RESULTS = BUILD / "results"
SHARED_SCRIPT = HERE / "libraries" / "trials.py"
SOURCES = ("envs/palaestra", "assets/palaestra_assets")
"""Folders whose Python decides whether results are stale."""
SHOWN = "|"
"""Beginning of the lines of a script that are shown; all others go to its log."""
INSTALL_LIMIT_S = 1500.0
FOR_TESTS = ("pytest", "hypothesis")
"""Installed everywhere, for our tests that are marked `peers`."""
COLUMNS = {
    "ids": "all ids",
    "box": "continuous",
    "opponent": "scripted opponent",
    "choices": "MultiDiscrete, Dict, masks",
    "parallel": "PettingZoo",
    "vector": "vector",
    "adapter": "our adapter",
}
"""Kinds of trials and their headings."""
PAGE = REPOSITORY / "docs" / "libraries.md"
"""Where the table `libraries` and the list of `limits` stand."""
UNFINISHED = "breaks"


@dataclass(frozen=True)
class Library:
    """An entry of libraries.toml; see the head of that file."""

    name: str
    title: str
    script: str
    requirements: tuple[str, ...]
    venv: str = ""
    alone: tuple[str, ...] = ()
    constraints: bool = True
    source: dict[str, str] = field(default_factory=dict)
    tests: tuple[str, ...] = ()
    minutes: float = 5.0


@dataclass(frozen=True)
class Result:
    """What is kept of a library.

    Attributes:
        name: Of the library.
        digest: Of what the result depends on.
        seconds: It took, the installation left out.
        commit: What was tried, as ``git describe`` says it: with ``-dirty`` if files had been changed.
        versions: By distribution, the library's first.
        trials: ``{"kind", "what", "outcome", "detail", "seconds"}`` each.
        error: Why there are not all results, or nothing.
    """

    name: str
    digest: str
    seconds: float = 0.0
    commit: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    trials: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""

    @property
    def fails(self) -> bool:
        """Whether something breaks."""
        return bool(self.error) or any(t["outcome"] == UNFINISHED for t in self.trials)


Execute = Callable[[Library, str], Result]
"""``execute(library, digest)`` installs and runs a library; may raise `PeerError`."""


class PeerError(Exception):
    """A library cannot be installed or run."""


def load_libraries(path: Path = HERE / "libraries.toml") -> dict[str, Library]:
    """The libraries of a TOML file.

    Raises:
        ValueError: An unknown key, or libraries with one venv that differ in their constraints.
    """
    found: dict[str, Library] = {}
    for name, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
        lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
        try:
            library = Library(name=name, **{**entry, **lists})
        except TypeError as error:
            raise ValueError(f"{path.name}: [{name}]: {error}") from None
        found[name] = library if library.venv else replace(library, venv=name)
    for library in found.values():
        for other in found.values():
            if other.venv == library.venv and other.constraints != library.constraints:
                raise ValueError(f"{path.name}: [{library.name}] and [{other.name}] differ in constraints")
    return found


def venv_requirements(library: Library, libraries: dict[str, Library]) -> list[str]:
    """What the library's venv holds: the requirements of all libraries that share it."""
    return list(
        dict.fromkeys(r for other in libraries.values() if other.venv == library.venv for r in other.requirements)
    )


def digest_of(library: Library, libraries: dict[str, Library]) -> str:
    """Digest of all that the library's result depends on."""
    files = [HERE / "libraries" / library.script, SHARED_SCRIPT, *(REPOSITORY / test for test in library.tests)]
    for folder in SOURCES:
        files += sorted((REPOSITORY / folder).rglob("*.py"))
    if library.constraints:
        files.append(REPOSITORY / "constraints.txt")
    digest = hashlib.sha256(json.dumps([venv_requirements(library, libraries), library.alone, library.source]).encode())
    for file in files:
        digest.update(file.read_bytes() if file.exists() else b"missing")
    return digest.hexdigest()[:16]


# -- results -----------------------------------------------------------------------------------------------------------


def load_result(name: str, folder: Path) -> Result | None:
    """The kept result of a library, or None."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    try:
        return Result(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        return None


def save_result(result: Result, folder: Path) -> None:
    """Keeps a result."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.name}.json"
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def unfinished(name: str, digest: str, folder: Path) -> Path:
    """File of the trials that a script has finished so far."""
    return folder / f"{name}.{digest}.trials"


def is_done(result: Result | None, digest: str) -> bool:
    """Whether a library needs no new run: what breaks is tried again."""
    return result is not None and result.digest == digest and not result.fails


def run_all(
    libraries: dict[str, Library], chosen: Sequence[str], execute: Execute, folder: Path, again: bool = False
) -> list[Result]:
    """Runs the chosen libraries that are not done, one after the other, and keeps each result.

    Returns:
        The results of all chosen libraries, old and new.
    """
    results = []
    for number, name in enumerate(chosen, 1):
        library = libraries[name]
        digest = digest_of(library, libraries)
        kept = load_result(name, folder)
        if again:
            unfinished(name, digest, folder).unlink(missing_ok=True)
        if kept is not None and is_done(kept, digest) and not again:
            print(f"[{number}/{len(chosen)}] {library.title}: done before, {summary(kept)}", flush=True)
            results.append(kept)
            continue
        print(f"[{number}/{len(chosen)}] {library.title}", flush=True)
        start_s = time.perf_counter()
        try:
            result = execute(library, digest)
        except PeerError as error:
            result = Result(name, digest, round(time.perf_counter() - start_s, 1), error=str(error))
        save_result(result, folder)
        print(f"    {summary(result)} ({time.perf_counter() - start_s:.0f} s)", flush=True)
        results.append(result)
    return results


def summary(result: Result) -> str:
    """One line about a result."""
    outcomes = [t["outcome"] for t in result.trials]
    counted = [f"{outcomes.count(kind)} {kind}" for kind in ("works", "limit", "breaks") if kind in outcomes]
    return ", ".join([*counted, *([result.error] if result.error else [])]) or "nothing tried"


# -- table -------------------------------------------------------------------------------------------------------------


def table(
    libraries: dict[str, Library], results: Sequence[Result], before: tuple[str, str] = ("", "")
) -> tuple[str, str]:
    """Markdown: a row a library, a column a kind of environment; and the list of quoted limits.

    Args:
        libraries: In the order of the table.
        results: Of those that have one.
        before: Table and list as they stand, for the rows of the others.
    """
    notes: list[str] = []
    lines = [
        "| library | commit | " + " | ".join(COLUMNS.values()) + " |",
        "|---" * (len(COLUMNS) + 2) + "|",
    ]
    found = {result.name: result for result in results}
    for name, library in libraries.items():
        if name in found:
            lines.append(_row(library, found[name], notes))
        else:
            lines += _row_before(library, *before, notes)
    return "\n".join(lines), "\n".join(f"{number}. {note}" for number, note in enumerate(notes, 1))


def _row(library: Library, result: Result, notes: list[str]) -> str:
    """The row of a library with a result, whose limits are added to the notes."""
    cells = [_cell([t for t in result.trials if t["kind"] == kind], library.title, notes) for kind in COLUMNS]
    if result.error:
        notes.append(f"{library.title}: **breaks**: {_code(result.error)}")
        cells = [cell if cell != "-" else f"**breaks** [{len(notes)}]" for cell in cells]
    version = library.source.get("commit", "")[:7] or next(iter(result.versions.values()), "")
    name = f"{library.title} {version}".rstrip()
    return f"| {name} | {result.commit or '-'} | " + " | ".join(cells) + " |"


def _row_before(library: Library, rows: str, limits: str, notes: list[str]) -> list[str]:
    """The row of a library as it stands, if there is one, with its limits numbered anew."""
    said = dict(re.findall(r"^(\d+)\. (.*)$", limits, re.MULTILINE))

    def numbered(mark: re.Match[str]) -> str:
        notes.append(said[mark[1]])
        return f"[{len(notes)}]"

    lines = [line for line in rows.splitlines() if line.startswith(f"| {library.title} ")]
    return [re.sub(r"\[(\d+)\]", numbered, line) for line in lines]


def _cell(trials: list[dict[str, Any]], title: str, notes: list[str]) -> str:
    """``yes``, ``yes [2]`` where the library has a limit, ``no [2]`` where that is all, ``**breaks** [3]``, ``-``."""
    if not trials:
        return "-"
    marks = []
    for t in trials:
        if t["outcome"] != "works":
            verb = "the library's limit" if t["outcome"] == "limit" else "**breaks**"
            notes.append(f"{title}, {t['what']}: {verb}: {_code(t['detail'])}")
            marks.append(f"[{len(notes)}]")
    outcomes = {t["outcome"] for t in trials}
    word = "**breaks**" if "breaks" in outcomes else "yes" if "works" in outcomes else "no"
    return " ".join([word, *marks])


def _code(text: str) -> str:
    """The text as code within a cell or a list."""
    return "`" + text.replace("`", "'").replace("|", "/").replace("\n", " ") + "`"


def write_table(page: Path, name: str, text: str) -> bool:
    """Puts the text between the markers of that name. Returns whether the file changed.

    Raises:
        ValueError: The file has no such markers.
    """
    head, before, tail = _parts(page, name)
    page.write_text(f"{head}\n{text}\n{tail}", encoding="utf-8", newline="\n")
    return text != before


def read_table(page: Path, name: str) -> str:
    """The text between the markers of that name.

    Raises:
        ValueError: The file has no such markers.
    """
    return _parts(page, name)[1]


def _parts(page: Path, name: str) -> tuple[str, str, str]:
    """A page up to the first marker, between the two, and from the second."""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    head, found, rest = page.read_text(encoding="utf-8").partition(begin)
    if not found or end not in rest:
        raise ValueError(f"{page} has no lines {begin} and {end} to write the table between")
    text, _, tail = rest.partition(end)
    return head + begin, text.strip("\n"), end + tail


# -- installing and running --------------------------------------------------------------------------------------------


class Runner:
    """Installs libraries and runs their scripts.

    Attributes:
        libraries: All of them.
        sources: Folder with git repositories of what is no package, or None for GitHub.
    """

    def __init__(self, libraries: dict[str, Library], sources: Path | None) -> None:
        self.libraries, self.sources = libraries, sources

    def __call__(self, library: Library, digest: str) -> Result:
        """Installs and runs a library.

        Raises:
            PeerError: It cannot be installed, or its script ended before its first trial.
        """
        python = self._venv(library)
        source = self._source(library) if library.source else None
        RESULTS.mkdir(parents=True, exist_ok=True)
        out, log = unfinished(library.name, digest, RESULTS), BUILD / "logs" / f"{library.name}.log"
        log.parent.mkdir(exist_ok=True)
        start_s = time.perf_counter()
        variables = {"PALAESTRA_PEER_SOURCE": str(source)} if source is not None else {}
        script = [python, HERE / "libraries" / library.script, "--out", out]
        status = stream(script, log, 60.0 * library.minutes, variables)
        found = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"versions": {}, "trials": []}
        error = f"the script {status}: see {log.relative_to(REPOSITORY)}" if status else ""
        trials = found["trials"] + [self._test(python, library, test) for test in library.tests]
        seconds = round(time.perf_counter() - start_s, 1)
        return Result(library.name, digest, seconds, commit_of(REPOSITORY), found["versions"], trials, error)

    def _venv(self, library: Library) -> Path:
        """Python of the library's venv, which is made or completed first."""
        folder = BUILD / "venvs" / library.venv
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        wanted = [*venv_requirements(library, self.libraries), *FOR_TESTS]
        metadata = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
        constraints = ["--constraint", str(REPOSITORY / "constraints.txt")] if library.constraints else []
        pins = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8") if constraints else ""
        state = hashlib.sha256("\n".join([sys.version, *wanted, *library.alone, metadata, pins]).encode()).hexdigest()
        ready = folder / ".ready"
        if ready.exists() and ready.read_text(encoding="utf-8") == state:
            return python
        start_s = time.perf_counter()
        print(f"    installing {', '.join(wanted)} into {folder.relative_to(REPOSITORY)}", flush=True)
        if not python.exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        log = BUILD / "logs" / f"{library.venv}.pip.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", *constraints]
        found = [self._from_folder(requirement) for requirement in wanted]
        status = stream([*pip, *found, "--editable", f"{REPOSITORY}[flight]"], log, INSTALL_LIMIT_S, {})
        if not status and library.alone:
            alone = [self._from_folder(requirement) for requirement in library.alone]
            status = stream([*pip, "--no-deps", *alone], log.with_suffix(".alone.log"), INSTALL_LIMIT_S, {})
        if status:
            raise PeerError(f"pip install {status}: see {log.relative_to(REPOSITORY)}")
        ready.write_text(state, encoding="utf-8")
        print(f"    installed in {time.perf_counter() - start_s:.0f} s", flush=True)
        return python

    def _from_folder(self, requirement: str) -> str:
        """The requirement, with the folder of `sources` in place of GitHub."""
        if self.sources is None:
            return requirement
        return re.sub(r"^.*git\+https://github\.com/[^/]+/", f"git+file://{self.sources}/", requirement)

    def _source(self, library: Library) -> Path:
        """The checked-out source of what is no package."""
        repository, commit = library.source["repository"], library.source["commit"]
        folder = BUILD / "sources" / library.name
        origin = (
            f"https://github.com/{repository}"
            if self.sources is None
            else str(self.sources / repository.split("/")[-1])
        )
        try:
            if not folder.exists():
                print(f"    cloning {origin}", flush=True)
                _git("clone", "--quiet", "--no-checkout", origin, str(folder))
            _git("-C", str(folder), "checkout", "--quiet", "--force", commit)
        except subprocess.CalledProcessError as error:
            raise PeerError(f"git: {error.stderr.strip()}") from None
        return folder

    def _test(self, python: Path, library: Library, test: str) -> dict[str, Any]:
        """Runs the tests of a file that are marked `peers`; a trial like those of the scripts."""
        log = BUILD / "logs" / f"{library.name}.{Path(test).stem}.log"
        start_s = time.perf_counter()
        # Warnings of the libraries are not ours to fix: only failures count here.
        pytest = [python, "-m", "pytest", "-q", "-m", "peers", "-W", "default", "-p", "no:cacheprovider", test]
        status = stream(pytest, log, 60.0 * library.minutes, {})
        said = log.read_text(encoding="utf-8").strip().splitlines()[-1:]
        outcome = "breaks" if status else "works"
        seconds = round(time.perf_counter() - start_s, 1)
        print(f"    {outcome:6} {'adapter':9} {test} ({seconds} s): {' '.join(said)}", flush=True)
        return {"kind": "adapter", "what": test, "outcome": outcome, "detail": " ".join(said), "seconds": seconds}


def stream(command: Sequence[Any], log: Path, limit_s: float, variables: dict[str, str]) -> str:
    """Runs a command in the repository, shows its marked lines and logs the others.

    Returns:
        Nothing, or how it failed: ``"failed with status 1"``, ``"ran past 300 s"``.
    """
    one_thread = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONUNBUFFERED": "1"}
    paths = {"PYTHONPATH": str(REPOSITORY / "tests")}  # the games in tests/games
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONHOME", "VIRTUAL_ENV")}
    late = threading.Event()
    with subprocess.Popen(
        [str(part) for part in command],
        cwd=REPOSITORY,
        env={**clean, **one_thread, **paths, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:

        def stop() -> None:
            late.set()
            _end(process)

        timer = threading.Timer(limit_s, stop)
        timer.start()
        assert process.stdout is not None
        try:
            with log.open("w", encoding="utf-8") as file:
                for line in process.stdout:
                    file.write(line)
                    if line.startswith(SHOWN):
                        print("   " + line[1:].rstrip(), flush=True)
            process.wait()
        finally:
            timer.cancel()
            _end(process)  # what it started and left behind, too
    if late.is_set():
        return f"ran past {limit_s:g} s"
    return f"failed with status {process.returncode}" if process.returncode else ""


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a process and all that it started."""
    if os.name == "nt":
        process.kill()
        return
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def commit_of(folder: Path) -> str:
    """The commit that is checked out, or nothing where there is no git."""
    try:
        return _git("-C", str(folder), "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*")
    except (OSError, subprocess.CalledProcessError):
        return ""


# -- command line ------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="libraries to run (default: all)")
    parser.add_argument("--again", action="store_true", help="run what is done, too")
    parser.add_argument("--list", action="store_true", help="show the libraries and their last results")
    parser.add_argument("--write", action="store_true", help="write the table and limits into docs/libraries.md")
    parser.add_argument(
        "--sources", type=Path, metavar="FOLDER", help="git repositories by name, instead of github.com"
    )
    given = parser.parse_args(arguments)
    libraries = load_libraries()
    for name in given.only or ():
        if name not in libraries:
            parser.error(f"there is no library {name!r}: {', '.join(libraries)}")
    if given.list:
        for library in libraries.values():
            kept = load_result(library.name, RESULTS)
            stale = "" if kept is None or kept.digest == digest_of(library, libraries) else " (stale)"
            print(f"{library.name:12} {library.title:24} {'not run' if kept is None else summary(kept) + stale}")
        return 0
    sources = given.sources.resolve() if given.sources is not None else None
    results = run_all(libraries, given.only or list(libraries), Runner(libraries, sources), RESULTS, given.again)
    broken = [libraries[result.name].title for result in results if result.fails]
    print(
        f"{len(results) - len(broken)} of {len(results)} libraries without a break"
        + "".join(f"\n  breaks: {b}" for b in broken)
    )
    if given.write:
        kept = [result for name in libraries if (result := load_result(name, RESULTS)) is not None]
        names = "libraries", "limits"
        before = read_table(PAGE, names[0]), read_table(PAGE, names[1])
        for name, text in zip(names, table(libraries, kept, before), strict=True):
            changed = write_table(PAGE, name, text)
            print(f"{'wrote' if changed else 'up to date'}: {name} in {PAGE.relative_to(REPOSITORY)}")
    return int(bool(broken))


if __name__ == "__main__":
    raise SystemExit(main())
