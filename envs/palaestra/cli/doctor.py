"""Shows what is installed, what is missing and where compiled games are kept.

--warm compiles games and solvers, --clear removes what was compiled: before pip uninstall, which leaves it.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from palaestra import __version__, registry
from palaestra.cli.bit_check import bit_check
from palaestra.cli.common import OPTIONAL, add_json, print_json
from palaestra.cli.warm import ENTRY, OTHERS, prune, warm
from palaestra.console import find_id, print_table
from palaestra.core.compile import disk_cache
from palaestra.core.run import shared_block
from palaestra.core.run.shared_block import megabytes

ABOUT = "what is installed, what is missing, where compiled games are kept and whether they are whole"
EXAMPLE = "palaestra doctor --warm"

REQUIRED = ("numpy", "gymnasium", "pettingzoo", "numba", "llvmlite")
YARDSTICK = "palaestra/CartPole-v0"
"""Game whose cache folder holds those of all games."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    parser.add_argument("ids", metavar="ID", nargs="*", help="compile these alone (default: all registered ones)")
    parser.add_argument(
        "--warm",
        action="store_true",
        help="compile every registered game now, so that no later start waits, and remove old entries of the cache",
    )
    parser.add_argument("--clear", action="store_true", help="remove all compiled games, and do nothing else")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes that compile (default 1)")
    parser.add_argument(
        "--game", action="append", default=[], metavar="MODULE:FUNCTION", help="compile this game without an id too"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: Fewer than one job, or jobs, ids or games without ``--warm``, or ``--warm`` with ``--clear``.
    """
    if args.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {args.jobs}")
    if (args.jobs > 1 or args.game or args.ids) and not args.warm:
        raise ValueError("ID, --jobs and --game go with --warm")
    if args.clear:
        if args.warm:
            raise ValueError("--clear removes what --warm compiles: give one of them")
        return _clear(args.json)
    optional = OPTIONAL | registry.offers("needs")
    reported: dict[str, Any] = {
        "palaestra": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": _cores(),
        "packages": {name: _version(name) for name in (*REQUIRED, *optional)},
        "environments": len(registry.ROWS),
        "cache": _cache(),
        "shared_memory": shared_block.free_bytes(),
        "video_driver": os.environ.get("SDL_VIDEODRIVER", ""),
        "display": bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.name == "nt"),
    }
    if args.warm:
        games = [*(map(find_id, args.ids) if args.ids else registry.ROWS), *args.game]
        reported["games"] = warm(games if args.ids else [*games, *OTHERS], args.jobs)
        reported["removed"] = prune(games, time.time())
    reported["bits"] = bit_check()  # last: its games are compiled beside others
    if args.json:
        print_json(reported)
    else:
        _print(reported, optional)
    broken = [name for name in REQUIRED if reported["packages"][name] is None]
    broken += [row["id"] for row in reported["bits"] if row["status"] != "equal"]
    broken += reported["cache"]["damaged"]
    broken += [game["id"] for game in reported.get("games", ()) if game["status"] == "failed"]
    return 1 if broken else 0


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cache() -> dict[str, Any]:
    """Where numba keeps compiled games, whether it can, and what is wrong with the files there."""
    from palaestra.core.compile.linker import jit_disabled

    if jit_disabled():
        return {**NO_CACHE, "note": "NUMBA_DISABLE_JIT is set: nothing is compiled"}
    folder = _folder_of_yardstick()
    if folder is None:
        from palaestra.core.compile.numba_cache import refused

        others = "".join(f"; {folder}: {problem}" for folder, problem in refused.items())
        return {**NO_CACHE, "note": f"none: set NUMBA_CACHE_DIR to a writable folder of your own{others}"}
    files = _files_of_all_games(Path(folder))
    found = {"folders": Counter(str(path.parent) for path in files), **disk_cache.survey(files)}
    owner = disk_cache.owner_and_rights(Path(folder))
    return {"folder": folder, "writable": _is_writable(Path(folder)), "note": "", "owner": owner, **found}


NO_CACHE: dict[str, Any] = {
    "folder": None, "writable": False, "note": "", "owner": "", "folders": {}, "files": 0, "megabytes": 0.0,
    "damaged": [], "foreign": [],
}  # fmt: skip
"""What is reported where nothing is kept."""


def _folder_of_yardstick() -> str | None:
    """Where the compiled rules of one game are kept; None where no folder can be had."""
    from palaestra.core.compile.linker import link

    driver: Any = link(registry.make_game(YARDSTICK)[0]).drivers["step_lanes"]
    return driver.stats.cache_path


def _clear(as_json: bool) -> int:
    """Removes all compiled games; 1 where some cannot be removed."""
    folder = _folder_of_yardstick()
    files = _files_of_all_games(Path(folder)) if folder else []
    left, megabytes = [], 0.0
    for path in files:
        try:
            size = path.stat().st_size
            path.unlink()
        except OSError as error:
            left.append(f"{path}: {error.strerror}")
        else:
            megabytes += size / 1e6
    removed = len(files) - len(left)
    if as_json:
        print_json({"removed": removed, "megabytes": megabytes, "left": left})
    else:
        folders = sorted({str(path.parent) for path in files})
        print(f"removed {removed} files of compiled games, {megabytes:,.1f} MB" + "".join(f"\n  {f}" for f in folders))
        for line in left:
            print(f"not removed: {line}")
    return 1 if left else 0


def _files_of_all_games(folder: Path) -> list[Path]:
    """Files of the cache: a folder beside each source file, or one for each folder of sources in a place of its own."""
    beside_sources = folder.name == "__pycache__"
    root = Path(__file__).parents[1] if beside_sources else folder.parent
    found = root.rglob(disk_cache.PATTERN) if beside_sources else root.glob(f"*/{disk_cache.PATTERN}")
    return sorted(path for path in found if ENTRY.search(path.name))


def _is_writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _print(reported: dict[str, Any], optional: Mapping[str, str]) -> None:
    print(f"palaestra {reported['palaestra']}, {reported['environments']} environments")
    print(f"Python {reported['python']} on {reported['platform']}, {reported['cores']} cores")
    print()
    rows = []
    for name, found in reported["packages"].items():
        missing = f'missing: pip install "{optional[name]}"' if name in optional else "MISSING"
        rows.append([name, found or "", "" if found else missing])
    print_table(rows, ["package", "version", ""])
    cache = reported["cache"]
    print()
    state = "writable" if cache["writable"] else "NOT writable: set NUMBA_CACHE_DIR to a writable folder"
    print(f"compiled games: {cache['note'] or state}")
    _print_files(cache)
    _print_workers(reported["shared_memory"])
    for row in reported["bits"]:
        print(f"bits of {row['id']}: {row['status']}" + (f" ({row['note']})" if row["note"] else ""))
    driver = reported["video_driver"]
    window = (
        f"SDL_VIDEODRIVER={driver}"
        if driver
        else "a display"
        if reported["display"]
        else 'no display: render_mode="human"'
    )
    print(f"windows: {window}" + ("" if driver or reported["display"] else " needs one, or SDL_VIDEODRIVER=dummy"))
    if "games" in reported:
        print()
        rows = [[g["id"], g["status"], f"{g['seconds']:.1f}", g["note"]] for g in reported["games"]]
        print_table(rows, ["game", "", "s", ""])
        removed = reported["removed"]
        if removed["files"]:
            names = ", ".join(removed["modules"])
            print(f"\nremoved {removed['files']} old files of the cache, {removed['megabytes']:.1f} MB: {names}")


def _print_files(cache: dict[str, Any]) -> None:
    if cache["folder"] is None:
        return
    print(f"  {cache['files']} files, {cache['megabytes']:,.1f} MB, {cache['owner']} (--clear removes them)")
    for folder, count in cache["folders"].items() or ((cache["folder"], 0),):
        print(f"  {folder}: {count}")
    if cache["damaged"]:
        print(f"  DAMAGED, removed and compiled anew by the next game that needs them: {', '.join(cache['damaged'])}")
    if cache["foreign"]:
        print(f"  not used, because others can have written them: {', '.join(cache['foreign'])}")


def _print_workers(free: int | None) -> None:
    room = "" if free is None else f", {megabytes(free)} of shared memory free (docker run --shm-size=2g gives more)"
    print(f'workers=: started anew, so scripts need `if __name__ == "__main__":`{room}')
