"""Forges files of other people whose keywords name code, files, folders and models: none may be reached.

    PYTHONPATH=tests:benchmarks python tests/reliability/forged_keywords.py               # all, a line for each keyword
    PYTHONPATH=tests:benchmarks python tests/reliability/forged_keywords.py --list FILE   # and every file in FILE
    PYTHONPATH=tests:benchmarks python tests/reliability/forged_keywords.py --kinds pool  # one kind

Replays, pools (leagues), policy files and run folders get, under a checksum that fits, each keyword of each factory of
ours, names that are none, and entries of their own, with values that name a module, a model, files and folders of the
user, and with numbers that are too large. Each file is used as its reader would: verified, shown by the command, given
as an opponent, loaded as a policy, resumed. A module of that name and the files are there: to import it, to open one or
to start a process is a failure, and so are more than 5 s of processor time, more than 500 MB, an exception that is no
`FileError`, and a refusal that does not name the file. (A snapshot is a pickle, which nothing of ours reads; what a
replay says of snapshots is numbers, see `mutated_files`.)

The exit status is 1 unless every file was refused, or played without any of this.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import faulthandler
import functools
import hashlib
import inspect
import io
import itertools
import json
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folders `games` and `reliability`

from reliability.forge import forge
from reliability.mutated_files import FAILURES, FOREIGN, HOME, PLAYED, REFUSED, SILENT_S, Watch, use

CANARY = "palaestra_canary"
"""Name of a module, of files and of a folder of the user."""
SUFFIXES = ("", ".txt", ".json", ".edges", ".npz", ".safetensors", ".jsonl")
TEXTS: tuple[Any, ...] = (
    *(f"{CANARY}:fly", f"{CANARY}.fly", CANARY, f"{CANARY}/model", "os:system", "antigravity:fly"),
    *(f"{CANARY}{suffix}" for suffix in SUFFIXES[1:]),
    *(f"HOME/{CANARY}.json", f"~/{CANARY}.txt", f"file://HOME/{CANARY}.txt", f"https://{CANARY}/x.json"),
    *(f"..\\{CANARY}.json", f"\\\\{CANARY}\\share\\x.json", f"C:{CANARY}", "..", f"folder/{CANARY}.txt"),
)
WITHIN: tuple[Any, ...] = (
    *([f"{CANARY}:fly"], [["3m", [f"{CANARY}.json"]]], {"a": f"{CANARY}:fly"}, {f"{CANARY}.txt": 1}),
    *({"name": CANARY, "config": [{"class": f"{CANARY}:fly"}]}, [[1, 2], [f"HOME/{CANARY}.edges"]]),
    {"file": f"../{CANARY}.json", "sha256": "", "text": ""},
    {"file": f"{CANARY}.json", "sha256": hashlib.sha256(b"{}").hexdigest(), "text": "{}"},
)
"""Texts within lists and mappings."""
SIZES: tuple[Any, ...] = (10**9, 2**63, -1, 1e308, float("nan"), True, "x" * 10**6, [[0] * 500] * 500, [], {})
"""Values that could be too large, and such as are of another kind."""
VALUES = (*TEXTS, *WITHIN, *SIZES)
FOREIGN_NAMES = (
    *("opponent", "opponents", "compiled", "render_mode", "disable_env_checker", "vectorization_mode", "codec", "id"),
    *("additional_wrappers", "num_envs", "workers", "threads", "autoreset_mode", "control", "mask", "observation"),
    *("game_id", "world_file", "model", "entry_point", "parameters", "__class__", "a b", "../x", "", f"{CANARY}.json"),
)
"""Names that are no keywords of a factory."""
BESIDE: dict[str, dict[str, Any]] = {
    "palaestra.games.search.search_qa:game": {"world": "example"},
    "palaestra.games.ucav.pursuit:game": {"commands": "macro"},
    "palaestra.games.ucav.dogfight:game": {"commands": "macro"},
    "palaestra.games.mathtext.math_text:game": {"form": "text"},
}
"""Keywords of ours that others depend on."""
PONG = "palaestra/TeamPong-v0"


@dataclass(frozen=True)
class Forgery:
    """One file.

    Attributes:
        kind: For the table.
        place: What is forged, for the table.
        value: The forged value.
        suffix: Of the file.
        write: Writes it.
        use: Uses it; raises what the user would see.
    """

    kind: str
    place: str
    value: Any
    suffix: str
    write: Callable[[Path], Any]
    use: Callable[[Path], Any]
    makes_anew_s: float = 0.0

    @property
    def name(self) -> str:
        """As `reliability.mutated_files.use` asks of a kind."""
        return self.kind


def factories_of_ours() -> dict[str, tuple[str, Any, dict[str, Any]]]:
    """The first id of each factory, the factory, and the keywords that its others depend on."""
    from palaestra import registry
    from palaestra.core.contract import factories

    found: dict[str, tuple[str, Any, dict[str, Any]]] = {}
    for row in list(registry.ROWS.values()):
        factory: Any = factories.load(row.factory)
        name = f"{factory.__module__}:{factory.__name__}"
        if row.id.startswith("palaestra/"):
            found.setdefault(name, (row.id, factory, BESIDE.get(name, {})))
    return found


def keywords_of_ours(every: int) -> Iterator[tuple[str, str, str, Any, dict[str, Any]]]:
    """Factory, id, keyword, value and all keywords: each keyword of each factory beside what it needs.

    Args:
        every: Keywords that are not declared to name files get every so manieth value, the others all.
    """
    from palaestra.core.contract.options import declared_words

    for place, (id, factory, beside) in factories_of_ours().items():
        for number, name in enumerate(inspect.signature(factory).parameters):
            others = {other: value for other, value in beside.items() if other != name}
            values = VALUES if name in declared_words(factory) else VALUES[number % every :: every]
            yield from ((place, id, name, value, {**others, name: value}) for value in values)


# -- replays -----------------------------------------------------------------------------------------------------------


def replays(honest: Path) -> Iterator[Forgery]:
    """Replays whose header has other keywords."""
    for place, id, name, value, keywords in keywords_of_ours(3):
        header = {"id": id, "keywords": keywords}
        yield _replay(honest, f"{place} {name}", value, header, _verified)
    for name, value in itertools.product(FOREIGN_NAMES, (TEXTS[0], TEXTS[8], WITHIN[0], WITHIN[2], {}, 10**9)):
        header = {"id": "palaestra/SearchQA-2Hop-v1", "keywords": {"world": "example", name: value}}
        yield _replay(honest, f"a keyword of no factory {name!r}", value, header, _verified)
    entries = ("id", "players", "outside", "engine", "rules", "autoreset_mode", "palaestra", "teams")
    for name, value in itertools.product(entries, (*TEXTS, *WITHIN)):
        yield _replay(honest, f"the header's {name}", value, {name: value}, _verified)
    for way, value in itertools.product(("--verify", "--html", "--json", "--csv", "--gif"), (*TEXTS, *WITHIN)):
        header = {"id": "palaestra/SearchQA-2Hop-v1", "keywords": {"world": "example", "retriever": value}}
        yield _replay(honest, f"palaestra replay {way}", value, header, _by_command(way))


def _replay(honest: Path, place: str, value: Any, header: dict[str, Any], use: Callable[[Path], Any]) -> Forgery:
    return Forgery("replay", place, value, ".npz", lambda path: forge(honest, path, _with_home(header)), use)


def _verified(path: Path) -> None:
    from palaestra.replay import load, verify

    verify(load(path))


def _by_command(way: str) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        target = path.with_suffix({"--html": ".html", "--csv": ".csv", "--gif": ".gif"}.get(way, ".none"))
        _command("replay", str(path), way, *([str(target)] if target.suffix != ".none" else []))

    return use


def _command(*words: str) -> None:
    """Runs the command line; what it refuses is an error as the library's.

    Raises:
        FileError: What it printed.
    """
    from palaestra.cli import main
    from palaestra.core.files import FileError

    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        status = main(words)
    if status:
        raise FileError(" ".join(told.getvalue().split()))


# -- pools -------------------------------------------------------------------------------------------------------------


def pools(honest: Path) -> Iterator[Forgery]:
    """Pools (leagues) with other keywords, entries and members."""
    ways = (_pool_loaded, _pool_plays)
    for (place, id, name, value, keywords), way in zip(keywords_of_ours(10), itertools.cycle(ways), strict=False):
        yield _pool(f"{place} {name}", value, {"id": id, "team": None, "keywords": keywords}, way)
    for place, id, name, value, keywords in keywords_of_ours(1):
        if value in TEXTS[:2]:  # as if it were an argument of the pool
            entries = {"id": id, "team": None, "keywords": {}, **keywords}
            yield _pool(f"{place} {name} as an entry", value, entries, _pool_loaded)
    for value in (*TEXTS, *WITHIN):
        league = {"id": "palaestra/SearchQA-2Hop-v1", "keywords": {"world": "example", "retriever": value}}
        yield _pool("palaestra eval --b league.json", value, league, _pool_evaluated)
    for name, value in itertools.product(("id", "team", "draw", "room", "members"), (*TEXTS, *WITHIN)):
        entry = [{"file": value, "matches": 0, "points": 0}] if name == "members" else value
        yield _pool(f"the pool's {name}", value, {name: entry}, _pool_loaded)
    for name, value in itertools.product(FOREIGN_NAMES, (TEXTS[0], TEXTS[8], WITHIN[0])):
        yield _pool(f"a keyword of no factory {name!r}", value, {"keywords": {name: value}}, _pool_loaded)
        yield _pool(f"an entry of no pool {name!r}", value, {name: value}, _pool_loaded)


def _pool(place: str, value: Any, entries: dict[str, Any], use: Callable[[Path], Any]) -> Forgery:
    saved = {"id": PONG, "team": "blue", "members": [], "keywords": {}, **entries}
    return Forgery("pool", place, value, ".json", lambda path: path.write_text(json.dumps(_with_home(saved))), use)


def _pool_loaded(path: Path) -> None:
    from palaestra.wrappers import SelfPlayPool

    SelfPlayPool.load(path)


def _pool_plays(path: Path) -> None:
    import gymnasium

    gymnasium.make(PONG, opponent=str(path))


def _pool_evaluated(path: Path) -> None:
    _command("eval", PONG, "--a", "random", "--b", str(path), "--matches", "2")


# -- policies and runs -------------------------------------------------------------------------------------------------


POLICIES = {
    "fm3q_team_pong": (PONG, "red", {}),
    "pursuit_grid10": ("palaestra/GraphPursuit-Grid10-v0", "pursuer", {"observation": "nodes"}),
    "skirmish_2s3z": ("palaestra/Skirmish-2s3z-v0", "red", {}),
    "seqwm_quad_gate2": ("palaestra/QuadGate2-v0", "robot", {}),
}
"""Bundled policies of four methods, with the id, the team and the keywords that they play."""


def policies(honest: Path) -> Iterator[Forgery]:
    """Files of policies whose metadata name other methods, games, networks and arguments."""
    for weights, (number, entry) in ((w, e) for w in POLICIES for e in enumerate(_entries(w))):
        is_note = entry[0] in ("args", "figures", "steps", "updates")  # of the training; a reader takes no notice
        for value in VALUES[number % 6 :: 12] if is_note else VALUES:
            yield _policy(weights, f"{weights} {' '.join(entry[:1] if is_note else entry)}", entry, value)


def _entries(weights: str) -> list[tuple[str, ...]]:
    """Names of the metadata of a bundled policy, and of what those that are objects hold."""
    _, metadata = _bundled(weights)
    found = [(name,) for name in (*metadata, CANARY)]
    return found + [(name, inner) for name, value in metadata.items() if isinstance(value, dict) for inner in value]


@functools.cache
def _bundled(weights: str) -> tuple[Any, dict[str, Any]]:
    import palaestra_assets
    from palaestra_baselines.common.policy_file import read_policy

    return read_policy(palaestra_assets.path(f"weights/{weights}.safetensors"))


def _policy(weights: str, place: str, entry: tuple[str, ...], value: Any) -> Forgery:
    def write(path: Path) -> None:
        from palaestra_baselines.common.policy_file import PLAIN, write_arrays

        arrays, metadata = _bundled(weights)
        changed = json.loads(json.dumps(metadata))
        inner = changed
        for name in entry[:-1]:
            inner = inner[name]
        inner.update({name: _with_home(value) for name in entry[-1:]})
        texts = {k: v if k in PLAIN and isinstance(v, str) else json.dumps(v) for k, v in changed.items()}
        write_arrays(path, arrays, texts)

    def plays(path: Path) -> None:
        from palaestra.core.run.opponents import load_policy
        from palaestra.registry import make_game

        id, team, keywords = POLICIES[weights]
        load_policy(path, make_game(id, **keywords)[0].shown_as(keywords.get("observation"))[0], team)

    return Forgery("policy", place, value, ".safetensors", write, plays)


def runs(honest: Path) -> Iterator[Forgery]:
    """Folders of trainings whose checkpoints, which nobody has sealed, name code and files."""
    for name, value in itertools.product(("method", "settings", "model", "replay", "options"), (*TEXTS, *WITHIN)):
        yield _run(f"checkpoint {name!r}", value, {"run": {name: value}, name: value})


def _run(place: str, value: Any, state: dict[str, Any]) -> Forgery:
    def write(path: Path) -> None:
        from palaestra_baselines.common.run_outputs import SEAL, STATE, arrays_to_bytes

        path.write_bytes(arrays_to_bytes({}, {STATE: json.dumps(_with_home(state)), SEAL: "0" * 64}))

    return Forgery("run folder", place, value, "", write, _resumed)


def _resumed(path: Path) -> None:
    """Resumes a run in whose folder the file is the checkpoint."""
    from palaestra.core.files import FileError
    from palaestra_baselines.common.run_folder import RunArgs, RunFolder
    from palaestra_baselines.common.run_outputs import CHECKPOINT

    args = RunArgs(directory=Path(f"{path}-run"), resume=True, quiet=True)
    args.folder.mkdir(parents=True)
    path.rename(args.folder / CHECKPOINT)
    try:
        with RunFolder(args, "fm3q"):
            pass
    except FileError as error:
        told = str(error)
        raise FileError(f"{path}: {told}" if CHECKPOINT in told else told) from error  # the file that was given


def controls(honest: Path) -> Iterator[Forgery]:
    """Files as honest people write them: they have to be played, or the forged ones show nothing."""
    yield _replay(honest, "honest", None, {}, _verified)
    yield _replay(honest, "honest", None, {}, _by_command("--verify"))
    for way in (_pool_loaded, _pool_plays):
        yield _pool("honest", None, {"draw": "latest"}, way)
    for weights in POLICIES:
        yield _policy(weights, "honest", (), None)


# ----------------------------------------------------------------------------------------------------------------------

KINDS: dict[str, Callable[[Path], Iterator[Forgery]]] = {
    "control": controls,
    "replay": replays,
    "pool": pools,
    "policy": policies,
    "run folder": runs,
}


def _with_home(value: Any) -> Any:
    """JSON with the folder of the user's files in the place of HOME."""
    return json.loads(json.dumps(value).replace("HOME", str(Path.cwd())))


def make_canaries(home: Path, marker: Path) -> dict[str, bytes]:
    """A module that leaves a mark, files and a folder in the working directory. Returns what is there."""
    home.mkdir()
    leave = f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n"
    (home / f"{CANARY}.py").write_text(f"{leave}def fly(*_, **__):\n    raise OSError('flown')\n", encoding="utf-8")
    for suffix in SUFFIXES[1:]:
        (home / f"{CANARY}{suffix}").write_text("a b\n", encoding="utf-8")
    (home / "folder").mkdir()
    (home / "folder" / f"{CANARY}.txt").write_text("a b\n", encoding="utf-8")
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def load_engines() -> None:
    """Makes a game of each factory: what an engine imports and starts the first time is not the files'."""
    from palaestra import registry
    from palaestra.core.compile.identity import rules_digest
    from palaestra.replay.provenance import engine_key

    for id, _, _ in factories_of_ours().values():
        game, _ = registry.make_game(id)
        rules_digest(game)
        engine_key(game)


def run_all(kinds: Sequence[str], folder: Path, share: float = 1.0) -> Iterator[tuple[Forgery, str, str]]:
    """Writes and uses the forgeries of some kinds. Yields each with its outcome and what was said.

    Args:
        kinds: Names of `KINDS`.
        folder: Gets the files, and the working directory of the user.
        share: Of the forgeries that are tried, evenly spread.
    """
    from palaestra.replay import record

    home, marker, files = folder / HOME, folder / "a_canary_flew", folder / "files"
    files.mkdir()
    private = make_canaries(home, marker)
    record(PONG, max_cycles=1).save(folder / "honest.npz")
    sys.path.insert(0, str(home))
    watch, before = Watch(home, files), Path.cwd()
    os.chdir(home)
    number, due = 0, 0.0
    try:
        for kind in kinds:
            for forgery in KINDS[kind](folder / "honest.npz"):
                due += share if kind != "control" else 1.0
                if due < 1.0:
                    continue
                due -= 1.0
                path = files / f"{number:05d}-0-forged{forgery.suffix}"
                number += 1
                forgery.write(path)
                timed = dataclasses.replace(forgery, use=lambda path, _, use=forgery.use: use(path))
                faulthandler.dump_traceback_later(SILENT_S, exit=True)
                outcome, why = use(timed, path, watch)
                faulthandler.cancel_dump_traceback_later()
                if marker.exists():
                    outcome = "ran code"
                    marker.unlink()
                is_broken = kind == "control" and outcome != PLAYED
                yield forgery, FOREIGN if is_broken else outcome, why
                path.unlink(missing_ok=True)
        left = {
            str(path): path.read_bytes()
            for path in home.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert left == private, "files of the user were changed"
    finally:
        os.chdir(before)
        sys.path.remove(str(home))


def main(argv: Sequence[str] | None = None) -> int:
    """Forges all, prints the table, returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--list", type=Path, metavar="FILE", help="write every forgery and its refusal there")
    parser.add_argument("--share", type=float, default=1.0, help="of the forgeries, evenly spread (default 1)")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    total, lines = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="palaestra-forged-") as scratch:
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):  # keys and caches of its own
            os.environ[name] = scratch
        load_engines()
        tried = run_all(args.kinds, Path(scratch), args.share)
        for (kind, place), group in itertools.groupby(tried, lambda found: (found[0].kind, found[0].place)):
            row = Counter[str]()
            for forgery, outcome, why in group:
                row[outcome] += 1
                lines.append(f"{kind}\t{place}\t{forgery.value!r:.80}\t{outcome}\t{why}")
                if outcome in FAILURES:
                    print(lines[-1], flush=True)
            print(f"{kind:12s}{place:70s}" + ", ".join(f"{n} {outcome}" for outcome, n in row.items()), flush=True)
            total += row
    if args.list is not None:
        args.list.write_text("\n".join(lines) + "\n", encoding="utf-8")
    bad = sum(total[outcome] for outcome in FAILURES)
    print(
        f"{sum(total.values())} forged files: {total[REFUSED]} refused, {total[PLAYED]} without effect, {bad} failures"
    )
    print(f"{time.perf_counter() - began:.0f} s")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
