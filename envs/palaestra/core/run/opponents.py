"""Opponents: players of the teams that the user does not play.

Names of scripts, ``"random"``, ``"mix"``, ``"held_out"``, callables, models and files of policies all become one thing:
a script number that the compiled loop knows, or an `Opponent` that is asked once per decision for all lanes it plays.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from palaestra.core.compile.batch_loop import CALLER, HELD_OUT, MIX, RANDOM
from palaestra.core.contract import factories
from palaestra.core.contract.rules import Game
from palaestra.core.files import FileError, open_regular, printable
from palaestra.core.interrupts import Hold

LONGEST_HEADER = 1_000_000
"""Bytes of a policy's header (names, shapes and metadata) that are read; those of our methods have a few thousand."""
MOST_POLICY_BYTES = 64 * 2**20
"""Largest file of a policy that is opened: 16 million weights. Networks of our methods have some hundred thousand."""


@runtime_checkable
class Opponent(Protocol):
    """Plays one team, or some of its agents, in a batch of matches.

    Attributes:
        memory_size: Numbers (float64) that the player remembers per lane; the simulation owns, clears and saves them.
        kept_size: How many of them, the first ones, outlive a match: cleared when a lane is seeded, not when a match
            starts. Players without this attribute keep none.
        policy_outputs: What it computed for its last actions, for viewers: arrays by a name such as ``"probability"``
            or ``"value"``, ``[n, A_team]`` or, a number for each alternative where an agent makes one choice,
            ``[n, A_team, M]``; NaN for none. An array of objects holds texts, such as what a language model wrote.
            Players without this attribute tell nothing.
        script_players: After `act`, scripts that play instead of it: their numbers int64 ``[n]`` (-1 where its actions
            count, -2 for the random player) and strengths float64 ``[n]``; None where it plays all n lanes itself. Its
            actions may be None where scripts play all of them. Players without this attribute play themselves.
        reward_at: Where in a lane's memory the simulation writes the team's reward after each decision of the player.
            Players without this attribute learn no rewards while they play.
    """

    @property
    def memory_size(self) -> int:
        """See above; a plain attribute will do."""
        ...

    def act(
        self,
        observations: Any,
        legal: Any,
        acting: np.ndarray,
        first: np.ndarray,
        seeds: np.ndarray,
        memory: np.ndarray,
    ) -> Any:
        """Actions of the team.

        Args:
            observations: ``[n, A_team, size]`` float32, or records ``[n, A_team]`` where an agent's fields differ in
                dtype. A dict by role where the team has several roles, and where the game has team or lane fields:
                these are dicts of arrays ``[n, ...]`` by field under ``"team"`` (what this team alone sees) and
                ``"lane"`` (what all agents see, arrays of the world included).
            legal: Masks ``[n, A_team, M]`` int8, or None. Records ``[n, A_team]`` by choice where a choice has a list
                of candidates (``count`` and ``ids``, -1 beyond the list), and a dict by role as above.
            acting: bool ``[n, A_team]``: asked for an action now, of the agents that it plays.
            first: bool ``[n]``: the match starts with this decision.
            seeds: uint64 ``[n]``: seeds of the lanes.
            memory: float64 ``[n, memory_size]``, zero at the start of a match; write into it.

        Returns:
            For all agents of the team (what stands there for those that it does not play is not read): int64
            ``[n, A_team]``, ``[n, A_team, K]``, or float ``[n, A_team, K]`` like the team's actions, or all
            numbers side by side (see `palaestra.core.contract.action_shapes`); a dict of these by field for composite
            actions, and by role where the team has several roles.
        """
        ...


@runtime_checkable
class ForTeam(Protocol):
    """Something that becomes the player of a team when it is assigned to one: see `palaestra.players.as_opponent`."""

    def for_team(self, game: Game, team: str) -> Opponent:
        """The player of one team.

        Raises:
            ValueError: It cannot play this team.
        """
        ...


OpponentSpec = str | Path | Opponent | ForTeam | Callable[[Any], Any] | None

READERS = {
    ".zip": "palaestra.players.sb3_archives:read_file",
    ".onnx": "palaestra.players.onnx_models:read_file",
    ".json": "palaestra.wrappers.pool:read_file",
}
"""Functions that make a `ForTeam` of a policy's file, by its suffix; ``.safetensors`` goes by the method inside,
``.json`` is what `palaestra.wrappers.SelfPlayPool.save` has written."""
CHAT = "openai:"
PREFIXES = {CHAT: "palaestra.players.chat_player:read_name", "adversary:": "palaestra.wrappers.adversary:read_name"}
"""Functions that make a `ForTeam` of a text, by how it begins; who is named by `CHAT` reads and writes text."""
SUFFIXES = (".safetensors", *READERS)
MIXTURES = {"mix": MIX, "held_out": HELD_OUT}
"""Players that draw a script for each match."""
DEFAULT = "default"
"""Names the default opponent of any game."""
MODULE_SUFFIXES = (".pt", ".pth", ".ts")
MODULE_HINT = (
    '; a torch module becomes a file by torch.onnx.export(module.eval(), (torch.zeros(2, size),), "policy.onnx", '
    'dynamic_shapes=[{0: "rows"}], external_data=False), after pip install onnxscript, and plays in its own process as '
    "palaestra.players.as_opponent(module)"
)
"""For users who give a file of torch, which is a pickle or a program: neither is opened."""


class FunctionOpponent:
    """A callable on batched observations as an `Opponent`."""

    memory_size = 0

    def __init__(self, function: Callable[[Any], Any]) -> None:
        """Wraps ``function(observations) -> actions``."""
        self.function = function

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> Any:
        """Calls the function."""
        return self.function(observations)


def split_strength(game: Game, spec: OpponentSpec) -> tuple[OpponentSpec, float]:
    """Takes the strength off a script's name: ``"tracker:0.7"`` is ``("tracker", 0.7)``, ``"tracker"`` is at 1.

    ``"default"`` is the game's default opponent, where no script has that name.

    At strength p each agent of the team follows the script in a share p of its decisions and plays uniformly at random
    in the others: 0 is the random player. Where the game's hooks read ``s.strength``, its scripts grade themselves.

    Raises:
        ValueError: The strength is no number in [0, 1].
    """
    name, colon, digits = spec.rpartition(":") if isinstance(spec, str) else ("", "", "")
    if not colon or name not in (*game.scripts, *MIXTURES, DEFAULT):
        return _named(game, spec), 1.0
    try:
        strength = float(digits)
    except ValueError:
        strength = -1.0
    if not 0.0 <= strength <= 1.0:
        raise ValueError(f"opponent {spec!r}: the strength of a script is a number in [0, 1], got {digits!r}")
    return _named(game, name), strength


def _named(game: Game, spec: OpponentSpec) -> OpponentSpec:
    is_default = isinstance(spec, str) and spec == DEFAULT and spec not in game.scripts
    return game.default_opponent if is_default else spec


def resolve(game: Game, team: str, spec: OpponentSpec) -> int | Opponent:
    """Resolves an ``opponent=`` argument to the number of a script or to an `Opponent`.

    Args:
        game: The rules.
        team: The team to be played.
        spec: None (the caller of `step`), a script's name, ``"random"``, ``"mix"`` (a script drawn for each match),
            ``"held_out"`` (likewise, of those held out), the path of a policy's file (`SUFFIXES`), a text that begins
            as one of `PREFIXES`, a callable on batched observations, an `Opponent`, or a model in the form of
            `palaestra.players.as_opponent`.

    Raises:
        ValueError: No such script or file; names the choices.
        TypeError: Not something that can play.
    """
    if spec is None:
        return CALLER
    if isinstance(spec, str | Path):
        if spec in game.scripts:
            return game.scripts.index(str(spec))
        if spec == "random":
            return RANDOM
        if spec in MIXTURES:
            return _mixture(game, str(spec))
        for prefix, function in PREFIXES.items():
            if str(spec).startswith(prefix):
                return factories.load(function)(str(spec)).for_team(game, team)
        if Path(spec).suffix and Path(spec).exists():
            return load_policy(Path(spec), game, team)
        if Path(spec).suffix.lower() in SUFFIXES:
            raise FileError(f"{spec}: there is no such file, and no policy to load from it")
        names = [*game.scripts, "random", *game.mixtures]
        near = difflib.get_close_matches(str(spec), names, 1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"opponent {str(spec)!r} is neither a script of {game.name} ({', '.join(names)}), "
            f'the file of a policy ({", ".join(SUFFIXES)}), nor "adversary:SHARE:FILE" or "openai:URL#MODEL"{hint}'
        )
    return spec.for_team(game, team) if isinstance(spec, ForTeam) else opponent_of(spec)


def _mixture(game: Game, name: str) -> int:
    """The number of a player of `MIXTURES`.

    Raises:
        ValueError: The game has no such scripts; says what to use.
    """
    if name in game.mixtures:
        return MIXTURES[name]
    if not game.scripts:
        verb = "mix" if name == "mix" else "hold out"
        raise ValueError(f'{game.name} has no scripts to {verb}: use opponent="random"')
    raise ValueError(
        f"{game.name} holds no scripts out: evaluate against one that the policy has not learnt with "
        f"({', '.join(game.scripts)}), or give the game Game(held_out=...)"
    )


def opponent_of(spec: Any) -> Opponent:
    """An `Opponent` itself, or a callable on batched observations as one.

    Raises:
        TypeError: It cannot play; says what can.
    """
    if isinstance(spec, Opponent):
        return spec
    if callable(spec):
        return FunctionOpponent(spec)
    hint = ": give palaestra.players.as_opponent(model)" if hasattr(spec, "predict") else ""
    raise TypeError(f"opponent must be a name, a file, a callable or an Opponent, got {type(spec).__name__}{hint}")


def policy_metadata(path: Path) -> dict[str, Any]:
    """Metadata of a saved policy (safetensors: 8 bytes of header length, then JSON with ``__metadata__``).

    Raises:
        FileError: The file is not a saved policy, or larger than `MOST_POLICY_BYTES`.
        OSError: There is no such file, or it cannot be read.
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > MOST_POLICY_BYTES:
            raise FileError(f"{path}: larger than {MOST_POLICY_BYTES} bytes: no policy is as large")
        size = int.from_bytes(file.read(8), "little")
        header = file.read(size) if 0 < size <= LONGEST_HEADER else b""
    if not header or len(header) < size:
        raise FileError(f"{path}: no saved policy (.safetensors): give a file that a method has saved")
    try:
        metadata = json.loads(header)["__metadata__"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(f"{path}: no saved policy of palaestra (no metadata): save it by save_policy") from error
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise FileError(f"{path}: no saved policy of palaestra (its metadata are no texts): save it by save_policy")
    if "method" not in metadata:
        raise FileError(f"{path}: does not say which method made it (metadata 'method'): save it by save_policy")
    return metadata


def load_policy(path: Path, game: Game, team: str) -> Opponent:
    """Loads the file of a policy by its suffix.

    ``.safetensors`` is loaded through the method that made it (entry-point group ``palaestra.baselines``), the others
    by `READERS`. Nothing is unpickled.

    Raises:
        FileError: Another suffix, an unknown method, or a file that is no policy; names it.
        ValueError: A policy that does not fit the team.
        ImportError: A library that reads such files is not installed; names it.
    """
    suffix = path.suffix.lower()
    if suffix in READERS:
        return factories.load(READERS[suffix])(path).for_team(game, team)
    if suffix != ".safetensors":
        hint = MODULE_HINT if suffix in MODULE_SUFFIXES else ""
        raise FileError(f"{path}: a file of this kind holds no policy: give one of {', '.join(SUFFIXES)}{hint}")
    method = policy_metadata(path)["method"]
    found = {e.name: e for e in entry_points(group="palaestra.baselines")}
    if method not in found:
        raise FileError(
            f"{path}: was made by the method {printable(method)}, which is not installed "
            f'(installed: {", ".join(sorted(found)) or "none"}): pip install "palaestra[baselines]"'
        )
    with Hold(f"the import of {method}"):
        module = found[method].load()
    if not hasattr(module, "load_policy"):
        raise FileError(f"{path}: was made by {method!r}, which saves no policies ({module.__name__}.load_policy)")
    return module.load_policy(path, game, team)


def player_name(player: OpponentSpec) -> str:
    """What to call a player in tables."""
    if player is None:
        return "caller"
    if isinstance(player, FunctionOpponent):
        player = player.function
    if isinstance(player, str | Path):
        return Path(player).stem if Path(player).suffix.lower() in SUFFIXES else str(player)
    return str(getattr(player, "name", None) or getattr(player, "__name__", type(player).__name__))
