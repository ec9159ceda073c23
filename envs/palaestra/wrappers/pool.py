"""Self-play against the past: an opponent that is one of many policies and scripts, drawn anew for each match."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

import numpy as np

from palaestra.core.compile.batch_loop import CALLER
from palaestra.core.compile.linker import scripts_play
from palaestra.core.contract.action_shapes import actions_by_role
from palaestra.core.contract.file_keywords import parse_json, plain_file
from palaestra.core.files import FileError, printable, printable_error, printable_name, read_text, write_atomically
from palaestra.core.rng import GOLDEN, SHIFT_11, TO_UNIT, mix64
from palaestra.core.run.opponents import (
    MIXTURES,
    SUFFIXES,
    ForTeam,
    Opponent,
    load_policy,
    opponent_of,
    player_name,
    resolve,
    split_strength,
)
from palaestra.game import Game

Draw = Literal["uniform", "latest", "pfsp"]
Policy = str | Path | Opponent | ForTeam | Callable[[Any], Any]

SALT = np.uint64(0x7365_6C66_706C_6179)
MATCH, MEMBER, OWN = range(3)
"""Cells of the memory: matches begun in the lane, member that plays this one, then the member's own memory."""
NO_MEMBER = -1.0
LARGEST_FILE = 10_000_000
"""Bytes of a pool's file that are read: some 50,000 members."""
SAVED = {"id", "team", "draw", "latest_share", "exponent", "room"}
"""What the file of a pool says besides its members and the keywords of the game."""
LARGEST_EXPONENT = 1e6
LARGEST_ROOM = 100_000
"""Numbers that members may remember in each lane."""


class ScriptName(str):
    """A text in the file of a pool that names a script and nothing else."""


@dataclass(frozen=True)
class ScriptMember:
    """A script among the members, which plays compiled.

    Attributes:
        name: As `SelfPlayPool.add` takes it, with its strength.
        number: Of the script; -2 for the random player.
        strength: In [0, 1].
    """

    name: str
    number: int
    strength: float
    memory_size = 0


@dataclass(frozen=True)
class PoolFile:
    """A saved pool that becomes a player when it is assigned to a team: `palaestra.core.run.opponents.ForTeam`.

    Attributes:
        path: What `SelfPlayPool.save` has written.
    """

    path: Path

    def for_team(self, game: Game, team: str) -> Opponent:
        """The pool.

        Raises:
            FileError: No file of a pool, or one for another game or team.
        """
        pool = SelfPlayPool.load(self.path)
        made_for, member_team = pool.game_and_team()
        if (made_for.name, member_team) != (game.name, team):
            raise FileError(
                f"{self.path}: its members play {member_team} of {made_for.name}, and cannot play {team} of {game.name}"
            )
        return pool


def _is_elsewhere(name: str, folder: Path) -> bool:
    """Whether a path leads out of a folder, on any system, by its own words or by a link."""
    parts = PureWindowsPath(name)  # knows both separators
    if parts.anchor or ".." in parts.parts:
        return True
    try:
        return not Path(os.path.realpath(folder / name)).is_relative_to(os.path.realpath(folder))
    except ValueError:  # no name of a file
        return True


def read_file(path: Path) -> PoolFile:
    """See `palaestra.core.run.opponents.READERS`."""
    return PoolFile(path)


class SelfPlayPool:
    """An `Opponent` that holds frozen policies and scripts; each match of each lane is played by one of them.

    ::

        pool = SelfPlayPool("palaestra/TeamPong-v0", members=[first_policy])
        envs = gymnasium.make_vec("palaestra/TeamPong-v0", num_envs=64, opponent=pool)
        ...
        pool.add(second_policy)  # or the file of a saved one
        pool.add("tracker:0.8")  # a script

    The member is drawn when a match starts, from the lane's seed and the number of its match, and is kept in the
    memory of the simulation: snapshots keep it, and a pool that grows does not change running matches. With
    ``draw="pfsp"`` (prioritised fictitious self-play; Vinyals et al., "Grandmaster level in StarCraft II using
    multi-agent reinforcement learning", Nature 575, 2019) member i is drawn with a weight of ``(1 - s_i) ** exponent``,
    s_i being the learner's share of points against it, ``(points + 1) / (matches + 2)``; report the results by `watch`
    or `report`.

    Attributes:
        memory_size: See `palaestra.core.run.opponents.Opponent`.
        kept_size: Likewise: the count of matches outlives them.
        script_players: Likewise: scripts that were drawn play compiled.
        matches: Matches reported of each member.
        points: The learner's points in them: a win is 1, a draw 1/2.
    """

    kept_size = 1
    name = "pool"

    def __init__(
        self,
        id: str,
        team: str | None = None,
        members: Iterable[Policy] = (),
        *,
        draw: Draw = "uniform",
        latest_share: float = 0.5,
        exponent: float = 2.0,
        room: int = 0,
        **keywords: Any,
    ) -> None:
        """Makes a pool.

        Args:
            id: Registered id of the game, for policies that come as files.
            team: Team that the pool plays; the game's last if None.
            members: The first policies.
            draw: ``"uniform"``, ``"latest"`` (the newest with a probability of ``latest_share``, else an older one) or
                ``"pfsp"``.
            latest_share: See ``draw``.
            exponent: See above; 0 is uniform, large numbers select the hardest members only.
            room: Numbers that members may remember, at least; the first members' own need is always met.
            **keywords: Structural keywords of the id.

        Raises:
            KeyError: No such id.
            ValueError: Unknown draw, a number that cannot be, no such team, or a policy that cannot be loaded.
        """
        if draw not in ("uniform", "latest", "pfsp"):
            raise ValueError(f'draw must be "uniform", "latest" or "pfsp", got {draw!r}')
        from palaestra import registry

        if not 0.0 <= latest_share <= 1.0 or not 0.0 <= exponent <= LARGEST_EXPONENT:
            raise ValueError(
                f"latest_share is in [0, 1] and exponent in [0, {LARGEST_EXPONENT:g}], "
                f"got {latest_share} and {str(exponent)[:40]}"
            )
        if isinstance(room, bool) or not isinstance(room, int | np.integer) or not 0 <= room <= LARGEST_ROOM:
            raise ValueError(f"room is a whole number in [0, {LARGEST_ROOM}], got {room!r}")
        game, _ = registry.make_game(id, **keywords)
        if team is not None and team not in game.teams:
            raise ValueError(f"{game.name} has no team {team!r}: choose from {', '.join(game.teams)}")
        self.id, self.team, self.keywords = id, team, keywords
        self.draw, self.latest_share, self.exponent = draw, latest_share, exponent
        self._members: list[tuple[Opponent | ScriptMember, str | None]] = []  # and the file that it came from
        self.script_players: tuple[np.ndarray, np.ndarray] | None = None
        self.matches, self.points = np.zeros(0), np.zeros(0)
        self._room: int | None = None
        for policy in members:
            self.add(policy)
        self._room = max([room, *(member.memory_size for member, _ in self._members)])

    def __len__(self) -> int:
        """Number of members."""
        return len(self._members)

    @property
    def memory_size(self) -> int:
        """Numbers that the simulation keeps for a lane: two of the pool, and room for the member that plays."""
        return OWN + (self._room or 0)

    def add(self, policy: Policy) -> int:
        """Adds a policy, which must not change any more. Returns its number.

        Args:
            policy: The file of a policy, a callable on batched observations, an `Opponent`, what
                `palaestra.players.as_opponent` made, or the name of a script (``"random"`` too), with a strength or
                without.

        Raises:
            ValueError: Neither a script nor a file, a name that itself draws scripts, or a policy that remembers more
                than there is room for, or that reads its rewards.
            TypeError: An object of another kind.
        """
        member, file = self._loaded(policy)
        if self._room is not None and member.memory_size > self._room:
            raise ValueError(
                f"the policy remembers {member.memory_size} numbers, the pool has room for {self._room}: "
                f"SelfPlayPool(..., room={member.memory_size})"
            )
        if hasattr(member, "reward_at"):
            raise ValueError("the policy reads its rewards, which a pool does not pass on: give it as an opponent")
        self._members.append((member, file))
        self.matches = np.append(self.matches, 0.0)
        self.points = np.append(self.points, 0.0)
        return len(self._members) - 1

    def weights(self) -> np.ndarray:
        """Probability ``[members]`` with which each is drawn for the next match."""
        n = len(self._members)
        weights = np.ones(n)
        if self.draw == "latest" and n > 1:
            weights[:-1] = (1.0 - self.latest_share) / (n - 1)
            weights[-1] = self.latest_share
        elif self.draw == "pfsp":
            weights = 1.0 - (self.points + 1.0) / (self.matches + 2.0)
            weights = (weights / weights.max(initial=0.0)) ** self.exponent  # one of them is 1, however large it is
        return weights / weights.sum()

    def act(
        self,
        observations: Any,
        legal: Any,
        acting: np.ndarray,
        first: np.ndarray,
        seeds: np.ndarray,
        memory: np.ndarray,
    ) -> Any:
        """See `palaestra.core.run.opponents.Opponent`."""
        memory[first, MATCH] += 1.0
        fresh = first | (memory[:, MEMBER] == NO_MEMBER)
        memory[fresh, MEMBER] = self._drawn(seeds[fresh], memory[fresh, MATCH])
        drawn = memory[:, MEMBER].astype(np.int64)
        scripts = [m if isinstance(m, ScriptMember) else None for m, _ in self._members]
        numbers = np.array([CALLER if s is None else s.number for s in scripts])[drawn]
        strengths = np.array([1.0 if s is None else s.strength for s in scripts])[drawn]
        has_scripts, chosen = any(scripts), None
        for number in np.unique(drawn):
            rows, member = np.flatnonzero(drawn == number), self._members[number][0]
            if isinstance(member, ScriptMember):
                continue
            own_seeds = seeds[rows]
            if getattr(member, "kept_size", 0):  # what it keeps over matches is another member's in the next one
                with np.errstate(over="ignore"):
                    own_seeds = mix64(own_seeds + GOLDEN * memory[rows, MATCH].astype(np.uint64))
            own = memory[rows, OWN : OWN + member.memory_size]
            given = member.act(
                rows_of(observations, rows), rows_of(legal, rows), acting[rows], first[rows], own_seeds, own
            )
            memory[rows, OWN : OWN + member.memory_size] = own
            if (named := getattr(member, "script_players", None)) is not None:
                has_scripts, (numbers[rows], strengths[rows]) = True, named
                if (named[0] != CALLER).all():
                    continue
            actions = self._in_one_form(given, len(rows))
            chosen = room_for(actions, len(memory)) if chosen is None else chosen
            put_rows(chosen, rows, actions)
        self.script_players = (numbers, strengths) if has_scripts else None
        return chosen

    def members_of(self, sim: Any) -> np.ndarray:
        """Number of the member that plays the running match of each lane, int64 ``[N]``; -1 where none does (yet)."""
        drawn = np.full(sim.num_envs, -1)
        for assignment in self._assignments(sim):
            begun = assignment.lanes & (assignment.memory[:, MATCH] > 0)
            drawn[begun] = assignment.memory[begun, MEMBER].astype(np.int64)
        return drawn

    def watch(self, sim: Any) -> None:
        """Counts the matches that ended in the last step of a simulation with this pool; call it after each step."""
        over = (sim.terminated | sim.truncated) & (self.members_of(sim) >= 0)
        if not over.any():
            return
        info = sim.final_info if sim.autoreset_mode == "same_step" else sim.info
        teams = list(sim.game.teams)
        for team, assignments in sim.opponent_assignments.items():
            own = teams.index(team)
            for assignment in (assignment for assignment in assignments if assignment.opponent is self):
                lanes = np.flatnonzero(over & assignment.lanes)
                winner = info["winner"][lanes]
                points = np.where(winner < 0, 0.5, np.where(winner == own, 0.0, 1.0))
                self.report(assignment.memory[lanes, MEMBER].astype(np.int64), points)
                assignment.memory[lanes, MEMBER] = NO_MEMBER

    def report(self, members: np.ndarray, points: np.ndarray) -> None:
        """Adds results of the learner (1 a win, 1/2 a draw, 0 a loss) against members, by their numbers.

        Raises:
            ValueError: A number of no member, or points outside [0, 1].
        """
        members, points = np.asarray(members), np.asarray(points, np.float64)
        if not ((members >= 0) & (members < len(self))).all():
            raise ValueError(f"members are numbers from 0 to {len(self) - 1}, got {members.tolist()}")
        if not ((points >= 0.0) & (points <= 1.0)).all():
            raise ValueError(f"points are in [0, 1], got {points.tolist()}")
        np.add.at(self.matches, members, 1.0)
        np.add.at(self.points, members, points)

    def save(self, path: str | Path) -> None:
        """Writes the files of the members, relative to this one, and the names of scripts, with their results.

        Raises:
            ValueError: A member is neither a file nor a script.
            OSError: It cannot be written; the old file is as it was.
        """
        from palaestra import registry

        path = Path(path)
        for number, (member, file) in enumerate(self._members):
            if file is None and not isinstance(member, ScriptMember):
                raise ValueError(
                    f"member {number} ({player_name(member)}) is no file: save the policy as one of "
                    f"{', '.join(SUFFIXES)} and add its path (or pickle the pool)"
                )
        saved = {
            "id": self.id,
            "team": self.team,
            "keywords": registry.held_keywords(self.id, self.keywords),
            "draw": self.draw,
            "latest_share": self.latest_share,
            "exponent": self.exponent,
            "room": self._room,
            "members": [
                {**_saved(member, file, path.parent), "matches": m, "points": p}
                for (member, file), m, p in zip(self._members, self.matches.tolist(), self.points.tolist(), strict=True)
            ],
        }
        content = json.dumps(saved, indent=2, default=plain_file).encode()
        write_atomically(path, lambda file: file.write(content))

    @classmethod
    def load(cls, path: str | Path, *, trust_paths: bool = False) -> SelfPlayPool:
        """Reads what `save` has written.

        Args:
            path: The file.
            trust_paths: Take members outside the folder of the file, and keywords that name files, folders, code or
                models, which the game then opens, imports and calls: only if you know who wrote the file.

        Raises:
            FileError: It cannot be read, is not the file of a pool, has numbers that cannot be, a member's file is gone
                or is no policy, or it names files elsewhere or may name code.
        """
        from palaestra import registry

        path = Path(path)
        text = read_text(path, LARGEST_FILE)
        try:
            saved = parse_json(text)
            members, keywords = saved.pop("members"), saved.pop("keywords")
            if unknown := sorted(set(saved) - SAVED):  # the rest would be keywords of the game
                raise ValueError(f"{', '.join(map(printable_name, unknown[:3]))} is no part of it")
            names = [member["file"] for member in members if "script" not in member]
            policies = [_named(member, path.parent) for member in members]
            matches, points = (np.array([m[name] for m in members], np.float64) for name in ("matches", "points"))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            reason = f"no {printable(error)}" if isinstance(error, KeyError) else printable_error(error)
            raise FileError(f"{path}: is not the file of a pool ({reason}): write one by SelfPlayPool.save") from error
        if not trust_paths:
            elsewhere = next((name for name in names if _is_elsewhere(name, path.parent)), None)
            reason = None if elsewhere is None else f"names the file {printable(elsewhere)} outside its folder"
            if any(
                name.lower().endswith(".json") for name in names
            ):  # each of them may name a thousand more, or this one
                reason = reason or "has pools for members"
            if (reason := reason or registry.refused_keyword(saved.get("id"), keywords)) is not None:
                raise FileError(
                    f"{path}: {reason}: if you trust its author to open files of yours and to run code, "
                    "SelfPlayPool.load(..., trust_paths=True)"
                )
        if matches.ndim != 1 or not ((points >= 0.0) & (points <= matches) & (matches < math.inf)).all():
            raise FileError(
                f"{path}: a member has results that cannot be (matches {matches.tolist()!s:.200}, points "
                f"{points.tolist()!s:.200}): "
                "correct them, or set both to 0"
            )
        try:
            pool = cls(**saved, **keywords, members=policies)
        except ImportError:
            raise  # names what is to be installed
        except Exception as error:  # the factory of a game, which may be a third party's, gets the keywords of the file
            raise FileError(f"{path}: {printable_error(error)}") from error
        pool.matches, pool.points = matches, points
        return pool

    def _loaded(self, policy: Policy) -> tuple[Opponent | ScriptMember, str | None]:
        if isinstance(policy, str):
            script = self._script(policy)
            if script is not None:
                return script, None
        if isinstance(policy, str | Path):
            path = Path(policy)
            if isinstance(policy, ScriptName) or not path.suffix or not path.exists():
                game, _ = self.game_and_team()
                raise ValueError(
                    f"{str(policy)!r} is neither a script of {game.name} ({', '.join((*game.scripts, 'random'))}) "
                    "nor the file of a saved policy"
                )
            return load_policy(path, *self.game_and_team()), os.path.abspath(path)
        if not isinstance(policy, ForTeam):
            return opponent_of(policy), None
        return policy.for_team(*self.game_and_team()), None

    def _script(self, text: str) -> ScriptMember | None:
        """The member that a text names; None if it names no script.

        Raises:
            ValueError: It draws scripts itself, or scripts cannot play the game.
        """
        game, team = self.game_and_team()
        name, strength = split_strength(game, text)
        if name in MIXTURES and name not in game.scripts:
            raise ValueError(f"{text!r} draws scripts itself: add the scripts that the pool draws ({game.scripts})")
        if not isinstance(name, str) or name not in (*game.scripts, "random"):
            return None
        if not scripts_play(game):
            raise ValueError(f"{game.name} has one team and no scripts: no script can be a member")
        number = resolve(game, team, name)
        assert isinstance(number, int)
        return ScriptMember(name if strength == 1.0 else f"{name}:{strength!r}", number, strength)

    def game_and_team(self) -> tuple[Game, str]:
        """The rules, and the name of the team that the pool plays."""
        from palaestra import registry

        game, _ = registry.make_game(self.id, **self.keywords)
        return game, self.team or list(game.teams)[-1]

    def _in_one_form(self, actions: Any, n: int) -> Any:
        """The actions of a member for n lanes: members may give them in different shapes."""
        parts = actions_by_role(*self.game_and_team(), actions, n)
        return parts if len(parts) > 1 else next(iter(parts.values()))

    def _drawn(self, seeds: np.ndarray, matches: np.ndarray) -> np.ndarray:
        if not self._members:
            raise RuntimeError("the pool is empty: add a policy before it plays")
        with np.errstate(over="ignore"):
            bits = mix64(mix64(seeds ^ SALT) + GOLDEN * matches.astype(np.uint64))
        shares = (bits >> SHIFT_11).astype(np.float64) * TO_UNIT
        edges = np.cumsum(self.weights())
        return np.minimum(np.searchsorted(edges, shares * edges[-1], side="right"), len(edges) - 1)

    def _assignments(self, sim: Any) -> list[Any]:
        return [
            assignment
            for assignments in sim.opponent_assignments.values()
            for assignment in assignments
            if assignment.opponent is self
        ]


def _saved(member: Opponent | ScriptMember, file: str | None, folder: Path) -> dict[str, str]:
    """What the file of a pool says of a member."""
    if isinstance(member, ScriptMember):
        return {"script": member.name}
    return {"file": Path(os.path.relpath(str(file), folder)).as_posix()}


def _named(member: Mapping[str, Any], folder: Path) -> Path | ScriptName:
    """What the file of a pool names as a member.

    Raises:
        TypeError: A script that is no text.
    """
    if "script" not in member:
        return folder / member["file"]
    if not isinstance(member["script"], str):
        raise TypeError("a script is named by a text")
    return ScriptName(member["script"])


def rows_of(tree: Any, rows: np.ndarray) -> Any:
    """Some lanes of arrays ``[n, ...]``, or of a tree of them."""
    if isinstance(tree, Mapping):
        return {name: rows_of(part, rows) for name, part in tree.items()}
    return None if tree is None else tree[rows]


def room_for(actions: Any, lanes: int) -> Any:
    """Zeros for the actions of so many lanes, of the widest dtype of their kind."""
    if isinstance(actions, Mapping):
        return {name: room_for(part, lanes) for name, part in actions.items()}
    array = np.asarray(actions)
    wide: Any = {"i": np.int64, "u": np.int64, "f": np.float64}.get(array.dtype.kind, array.dtype)
    return np.zeros((lanes, *array.shape[1:]), wide)  # as the simulation holds them, whichever member was first


def put_rows(target: Any, rows: np.ndarray, actions: Any) -> None:
    """Writes actions of some lanes into what `room_for` made."""
    if isinstance(target, Mapping):
        for name, part in target.items():
            put_rows(part, rows, actions[name])
    else:
        target[rows] = actions
