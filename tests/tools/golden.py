"""Golden files: a hash of every environment and a readable playthrough of every factory: changed rules show as a diff.

::

    python tests/tools/golden.py --update         # after an intended change of rules (raise the id's version)
    python tests/tools/golden.py --check

A hash covers states, observations, masks, rewards, flags and info of 4 lanes over some hundred decisions, by random
players and by the game's scripts. It is one for all machines where a game is ``cross-platform``; where it is
``per-platform`` it is kept by engine, platform and compiler (`platform_key`), and a platform without a recorded hash
is no failure. Playthroughs are compared token by token, the numbers of per-platform games within `TOLERANCE`.

Recorded is the digest of the rules of each id too (`palaestra.core.compile.identity.rules_digest`): it is one for all
machines, versions of Python and NumPy. Where it changes, replays and snapshots of before are refused.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import platform
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.compile.identity import rules_digest
from palaestra.game import Game
from palaestra.testing import playthrough
from palaestra.testing.harness import CheckError, Skipped
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import snapshot_view

FOLDER = Path("tests", "golden")
LANES, STEPS, SCRIPT_STEPS, SEED = 4, 200, 100, 5
TOLERANCE = 1e-3
"""Relative (and below 1 absolute) difference of numbers in playthroughs of per-platform games."""
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]\d+)?(?![\w.])")
COMMAND = "python tests/tools/golden.py --update"


# -- hashes ------------------------------------------------------------------------------------------------------------


def fingerprint(id: str) -> str:
    """Hash of what happens in the first decisions of an id."""
    digest = hashlib.sha256()
    sim = registry.make_batch(id, LANES)
    _play(sim, digest, STEPS)
    for player in sim.game.mixtures:
        for team in sim.game.teams:
            sim.set_opponent(team, player)
        _play(sim, digest, SCRIPT_STEPS)
    sim.close()
    return digest.hexdigest()[:32]


def _play(sim: Any, digest: Any, steps: int) -> None:
    player = Player(sim)
    sim.reset(seed=SEED)
    own = [name for name, *_ in sim.game.state]
    for number in range(steps + 1):
        if number:
            player.play(sim)
            sim.step()
            digest.update(sim.buffers.action_words.tobytes())
        for what, array in snapshot_view(sim).items():
            if what == "masks" and sim.legal is None:  # hashed as zeros: a game without masks keeps its hash
                digest.update(bytes(LANES * max(1, int(sim.action_table.words["n"].sum()))))
            else:
                _add(digest, array)
        for name in own:
            _add(digest, sim.states[name])


def _add(digest: Any, array: np.ndarray) -> None:
    """Adds the values without the padding of records."""
    if array.dtype.names is None:
        digest.update(np.ascontiguousarray(array).tobytes())
    for name in array.dtype.names or ():
        _add(digest, array[name])


def platform_key(game: Game) -> str:
    """What the bits of a per-platform game depend on: engine, platform and compiler."""
    engine = game.engine_version() if game.engine_version is not None else game.name
    libc = "-".join(part for part in platform.libc_ver() if part) or platform.release()
    return f"{engine}, {platform.system()} {platform.machine()} {libc}, numba {version('numba')}"


def read_hashes(folder: Path) -> dict[str, Any]:
    """What is recorded.

    ``{"cross-platform": {id: hash}, "per-platform": {id: {platform: hash}}, "rules": {id: digest}}``.
    """
    path = folder / "hashes.json"
    recorded = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {"cross-platform": {}, "per-platform": {}, "rules": {}, **recorded}


def compare_hash(id: str, folder: Path = FOLDER) -> None:
    """Compares the fingerprint of an id with the recorded one.

    Raises:
        CheckError: It is another; the message gives the command that records it.
        Skipped: A per-platform id on a platform without a recorded hash.
    """
    game, _ = registry.make_game(id)
    hashes = read_hashes(folder)
    if game.determinism == "cross-platform":
        recorded, where = hashes["cross-platform"].get(id), "on all machines"
    else:
        known, where = hashes["per-platform"].get(id, {}), f"on {platform_key(game)}"
        recorded = known.get(platform_key(game))
        if known and recorded is None:
            raise Skipped(f"no hash of {id} was recorded {where}: {COMMAND}")
    if recorded is None:
        raise CheckError(f"{id} has no golden hash: {COMMAND} {id}")
    found = fingerprint(id)
    if found != recorded:
        raise CheckError(
            f"{id} plays otherwise than recorded {where} (hash {found}, not {recorded}). If that is meant, raise its "
            f"version and run: {COMMAND} {id}"
        )


def compare_rules(id: str, folder: Path = FOLDER) -> None:
    """Compares the digest of an id's rules with the recorded one.

    Raises:
        CheckError: It is another; the message gives the command that records it.
        Skipped: It is another, of a per-platform id on a platform without a recorded hash: its data may be the
            platform's.
    """
    game, hashes = registry.make_game(id)[0], read_hashes(folder)
    recorded, found = hashes["rules"].get(id), rules_digest(game)
    if recorded is None:
        raise CheckError(f"{id} has no recorded digest of its rules: {COMMAND} {id}")
    known = hashes["per-platform"].get(id, {})
    if found != recorded and known and platform_key(game) not in known:
        raise Skipped(f"no rules of {id} were recorded on {platform_key(game)}: {COMMAND}")
    if found != recorded:
        raise CheckError(
            f"{id} has other rules than recorded (digest {found}, not {recorded}): its replays and snapshots of before "
            f"are refused. If its code was edited, run: {COMMAND} {id}"
        )


# -- playthroughs ------------------------------------------------------------------------------------------------------


def shown_id(id: str) -> str:
    """The id whose playthrough represents all ids of its factory: the first of its page."""
    return registry.page_of(id)[1][0].id


def playthrough_path(id: str, folder: Path = FOLDER) -> Path:
    """File of an id's playthrough."""
    return folder / "playthroughs" / f"{id.split('/')[-1]}.txt"


def compare_playthrough(id: str, folder: Path = FOLDER) -> None:
    """Compares the playthrough of an id with the recorded one.

    Raises:
        CheckError: It differs; names the first line that does.
    """
    path = playthrough_path(id, folder)
    if not path.exists():
        raise CheckError(f"{id} has no playthrough: {COMMAND} {id}")
    game, _ = registry.make_game(id)
    recorded, found = path.read_text(encoding="utf-8"), playthrough(id)
    if message := first_other_line(recorded, found, game.determinism == "per-platform"):
        raise CheckError(f"{path.name}, {message}\nIf that is meant, raise the version of {id} and run: {COMMAND} {id}")


def first_other_line(recorded: str, found: str, numerically: bool) -> str:
    """The first line that differs, as text, or ``""``. Numbers may differ by `TOLERANCE` if asked for."""
    one, other = recorded.splitlines(), found.splitlines()
    for number, (was, now) in enumerate(zip(one, other, strict=False), 1):
        if not (_like(was, now) if numerically else was == now):
            return f"line {number}: recorded {was.strip()!r}, now {now.strip()!r}"
    return "" if len(one) == len(other) else f"it had {len(one)} lines and now has {len(other)}"


def _like(was: str, now: str) -> bool:
    if NUMBER.sub("#", was) != NUMBER.sub("#", now):
        return False
    pairs = zip(NUMBER.findall(was), NUMBER.findall(now), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in pairs)


# -- command -----------------------------------------------------------------------------------------------------------


def makeable(ids: Iterable[str] = ()) -> list[str]:
    """These ids (ours if none are given) as far as their packages are installed."""
    found = []
    for id in ids or [i for i in registry.ROWS if i.startswith("palaestra/")]:
        try:
            registry.make_batch(id, 1).close()
        except ImportError:
            continue
        found.append(id)
    return found


def update(ids: Iterable[str] = (), folder: Path = FOLDER) -> list[str]:
    """Records hashes, and playthroughs of one id for each factory. Returns what has changed.

    A hash that changes here takes those of other platforms with it: they are of other rules.
    """
    hashes, changed = read_hashes(folder), []
    for kind in hashes:
        for id in [i for i in hashes[kind] if i not in registry.ROWS]:
            del hashes[kind][id]
            changed.append(f"{id} is no more")
    for id in makeable(ids):
        game, _ = registry.make_game(id)
        found, rules = fingerprint(id), rules_digest(game)
        if hashes["rules"].get(id) != rules:
            hashes["rules"][id] = rules
            changed.append(f"digest of the rules of {id}")
        exact = game.determinism == "cross-platform"
        hashes["per-platform" if exact else "cross-platform"].pop(id, None)
        if exact:
            known, name = hashes["cross-platform"], id
        else:
            known, name = hashes["per-platform"].setdefault(id, {}), platform_key(game)
        if known.get(name) != found:
            if not exact and name in known:
                known.clear()
            known[name] = found
            changed.append(f"hash of {id}")
        if shown_id(id) != id:
            continue
        path, text = playthrough_path(id, folder), playthrough(id)
        same = path.exists() and not first_other_line(path.read_text(encoding="utf-8"), text, not exact)
        if not same:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            changed.append(str(path))
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(hashes, indent=2, sort_keys=True) + "\n"
    (folder / "hashes.json").write_text(text, encoding="utf-8", newline="\n")
    for path in orphans(folder):
        path.unlink()
        changed.append(f"{path} removed")
    return changed


def orphans(folder: Path = FOLDER) -> list[Path]:
    """Playthroughs of ids that no longer exist, or that another id of the factory represents."""
    known = {playthrough_path(shown_id(id), folder) for id in registry.ROWS}
    return [p for p in sorted((folder / "playthroughs").glob("*.txt")) if p not in known]


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python tests/tools/golden.py", description="Golden files.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--update", action="store_true", help="record what the environments do now")
    action.add_argument("--check", action="store_true", help="fail where they do something else than recorded")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"default: {FOLDER}")
    parser.add_argument("ids", nargs="*", metavar="ID", help="these ids (default: all)")
    given = parser.parse_args(arguments)
    if given.update:
        for line in update(given.ids, given.folder) or ["nothing has changed"]:
            print(line)
        return 0
    failures = 0
    for id in makeable(given.ids):
        for compare in (compare_rules, compare_hash, *([compare_playthrough] if shown_id(id) == id else [])):
            try:
                compare(id, given.folder)
            except Skipped as reason:
                print(f"skipped: {reason}")
            except CheckError as error:
                print(error)
                failures += 1
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
