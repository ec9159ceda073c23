"""Golden files: a hash of every environment and a readable playthrough of every factory: changed rules show as a diff.

::

    python -m palaestra.testing.golden --update         # after an intended change of rules (raise the id's version)
    python -m palaestra.testing.golden --check

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
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.compile.identity import rules_digest
from palaestra.core.faces.agent_io import AgentIO, speaks_text
from palaestra.core.spec.fields import values_of
from palaestra.game import Choice, Game, ObservationField
from palaestra.testing.harness import CheckError, Skipped
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import snapshot_view

FOLDER = Path("tests", "golden")
LANES, STEPS, SCRIPT_STEPS, SEED = 4, 200, 100, 5
UNIFORM_SEED = 4
"""Seed of a playthrough: one of the style "uniform", with new values in each decision (`players.STYLES`)."""
DECISIONS, LOOK_EVERY = 25, (5, 10, 15, 25)
"""Length of a playthrough, and how often it shows what is seen: as often as `MOST_LINES` allows."""
MOST_LINES = 200
SHOWN = 12
"""Numbers of an array that a playthrough writes out."""
TOLERANCE = 1e-3
"""Relative (and below 1 absolute) difference of numbers in playthroughs of per-platform games."""
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]\d+)?(?![\w.])")
COMMAND = "python -m palaestra.testing.golden --update"


# -- hashes ------------------------------------------------------------------------------------------------------------


def fingerprint(id: str) -> str:
    """Hash of what happens in the first decisions of an id."""
    digest = hashlib.sha256()
    sim = registry.make_batch(id, LANES)
    _play(sim, digest, STEPS)
    if sim.game.scripts:
        for team in sim.game.teams:
            sim.set_opponent(team, "mix")
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
            platform's, such as the documentation of Python's standard library.
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


def playthrough(id: str) -> str:
    """The first decisions of one match as text."""
    game, _ = registry.make_game(id)
    sim = registry.make_batch(id, 1, autoreset_mode="off")
    player = Player(sim)
    talkers = _talkers(sim)
    sim.reset(seed=UNIFORM_SEED)
    how = "all say samples of their action spaces" if talkers else "all play uniformly at random among what is legal"
    lines = [f"{id}, seed {UNIFORM_SEED}, {how}", "", "start"]
    lines += (look := _look(sim, talkers))
    looks = (MOST_LINES - len(lines) - 4 * DECISIONS) // len(look)  # a decision has a line for what may happen besides
    every = next((n for n in LOOK_EVERY if DECISIONS // n <= looks), DECISIONS)
    for number in range(1, DECISIONS + 1):
        player.play(sim)
        asked = [bool(sim.alive[0, a] and sim.acting[0, a]) for a in range(len(game.agents))]
        decided = _said(talkers, asked) if talkers else _actions(sim, asked)
        sim.step()
        over = bool(sim.terminated[0] or sim.truncated[0])
        lines += [f"decision {number}", f"  {'; '.join(decided) or 'no agent is asked'}", f"  rewards  {_rewards(sim)}"]
        left = [a for k, a in enumerate(game.agents) if sim.agent_terminated[0, k]]
        lines += [f"  left     {', '.join(left)}"] if left else []
        if over or number % every == 0:
            lines += _look(sim, talkers)
        if over:
            flag = "terminated" if sim.terminated[0] else "truncated"
            winner = int(sim.info["winner"][0])
            name = list(game.teams)[winner] if winner >= 0 else "none"
            lines += ["", f"{flag}: {game.end_reason(int(sim.info['end_reason'][0]))}, winner {name}"]
            break
    sim.close()
    return "\n".join(lines) + "\n"


def _talkers(sim: Any) -> dict[str, AgentIO]:
    """The agents of a game whose default codec speaks text."""
    if not speaks_text(sim.game):
        return {}
    talkers = {agent: AgentIO(sim, (slot,)) for slot, agent in enumerate(sim.game.agents)}
    for slot, agent_io in enumerate(talkers.values()):
        agent_io.action_space.seed(UNIFORM_SEED + slot)
    return talkers


def _said(talkers: Mapping[str, AgentIO], asked: list[bool]) -> list[str]:
    """Lets the agents say samples of their action spaces. What is not understood is said, and a legal action played."""
    lines = []
    for (agent, agent_io), is_asked in zip(talkers.items(), asked, strict=True):
        if is_asked:
            text = agent_io.action_space.sample()
            lines.append(f"{agent} says {text!r}")
            try:
                agent_io.write_one(text)
            except ValueError:
                lines[-1] += " (not understood)"
    return lines


def _actions(sim: Any, asked: list[bool]) -> list[str]:
    lines = []
    slot = 0
    for role in sim.game.roles:
        rows = sim.buffers.action_records[role.name][0]
        for k, agent in enumerate(role.agents):
            if asked[slot] and sim.states["current_player"][0, slot] == -1:
                parts = [f"{f.name} {_action(f, rows[f.name][k])}" for f in role.action]
                lines.append(f"{agent} does {', '.join(parts)}")
            slot += 1
    return lines


def _action(f: Any, value: Any) -> str:
    if isinstance(f, Choice) and not f.shape:
        meaning = f.meanings[int(value) : int(value) + 1]
        return f"{int(value)} ({meaning[0]})" if meaning else str(int(value))
    return f"{_value(value)}{_unit(f.unit)}"


def _rewards(sim: Any) -> str:
    return ", ".join(f"{team} {_value(sim.team_rewards(team)[0])}" for team in sim.game.teams)


def _look(sim: Any, talkers: Mapping[str, AgentIO]) -> list[str]:
    """Observations of the first agent of each role, of the teams and of the lane, and the info; or in words."""
    game, memory = sim.game, sim.buffers.observations
    if talkers:
        seen = {agent: str(talkers[agent].observe_lane()) for agent in (role.agents[0] for role in game.roles)}
        return [line for agent, text in seen.items() for line in (f"  {agent} reads", *_indented(text))]
    lines = []
    for role in game.roles:
        lines += [f"  {role.agents[0]} sees", *_table(role.observation, memory[role.name][0, 0])]
        masks = [c for c in role.action if isinstance(c, Choice)] if game.legal is not None else []
        for c in masks:
            lines.append(f"    {'may ' + c.name:<28} {_value(_allowed(c, sim.buffers.masks[role.name][c.name][0, 0]))}")
    for number, team in enumerate(game.teams if game.team_observation else ()):
        lines += [f"  team {team} sees", *_table(game.team_observation, memory["team"][0, number])]
    if game.lane_observation:
        lines += ["  all agents see", *_table(game.lane_observation, memory["lane"][0])]
    if game.info:
        lines += ["  info", *(f"    {f.name:<28} {_value(sim.info[f.name][0])}{_unit(f.unit)}" for f in game.info)]
    return lines


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines() or [""]]


def _allowed(choice: Choice, mask: Any) -> np.ndarray:
    """The alternatives that a mask, or a list of candidates, allows."""
    return np.flatnonzero(mask) if choice.candidates is None else mask["ids"][: mask["count"]]


def _table(fields: Sequence[ObservationField], row: Any) -> list[str]:
    shown = [f for f in fields if f.world is None]
    return [f"    {f.name:<28} {_value(values_of(np.asarray(row), f))}{_unit(f.unit)}" for f in shown]


def _unit(unit: str) -> str:
    return "" if unit in ("", "1") else f" x {unit}" if unit[0].isdigit() else f" {unit}"


def _value(value: Any) -> str:
    array = np.asarray(value)
    if array.ndim == 0:
        number = array.item()
        return str(int(number)) if isinstance(number, bool | int) else f"{number + 0.0:.6g}"
    flat = array.reshape(-1)
    text = ", ".join(_value(v) for v in flat[:SHOWN])
    rest = "" if flat.size <= SHOWN else f", ... ({flat.size} numbers, sum {_value(np.float64(flat.sum()))})"
    return f"[{text}{rest}]"


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
    parser = argparse.ArgumentParser(prog="python -m palaestra.testing.golden", description="Golden files.")
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
