"""Matches as another process plays them: of other hashes of strings, another folder, time and environment.

`ask` sends a task to a Python of its own, which stays for later ones; `trace` is what is compared. It plays the rules
as plain Python: what differs is the process alone, and nothing has to be compiled.
"""

from __future__ import annotations

import atexit
import base64
import hashlib
import importlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.contract import factories
from palaestra.core.faces.agent_io import AgentIO
from palaestra.testing.players import Player

OTHERS = {"USER": "somebody", "LOGNAME": "somebody", "TZ": "Pacific/Apia", "COLUMNS": "61"}
"""Variables of the environment that are others there."""
LANES = 2
TRACE, NOT_FOUND, FAILED = "trace", "not found", "failed"
"""Kinds of answers."""


@dataclass(frozen=True)
class Task:
    """What both processes play.

    Attributes:
        row: How the id is made.
        keywords: Of a batch.
        seed: Of the matches.
        script: Player of all teams in the last lane, ``""`` for none.
        decisions: How many.
        folder: Where keywords name files from; None where they name none.
        path: Where modules are found.
    """

    row: registry.Row
    keywords: dict[str, Any]
    seed: int
    script: str
    decisions: int
    folder: str | None = None
    path: list[str] = field(default_factory=list)


def trace(sim: Any, task: Task) -> list[tuple[str, str]]:
    """Digests of a game and of its first decisions, each with what it is of; ``sim`` has `LANES` lanes.

    Records, observations, masks and rewards; what codecs encode, tell and decode; and texts.
    """
    game = sim.game
    tables = (game.agents, game.scripts, game.default_opponent, game.end_reasons, game.info, game.parameters)
    made = [("names and tables", _digest(repr(tables))), ("the world", _digest(game.world))]
    if task.script:
        for team in game.teams:
            sim.set_opponent(team, task.script, [LANES - 1])
    player = Player(sim)
    interfaces = [AgentIO(sim, (slot,), codec=name) for name in game.codecs for slot in range(len(game.agents))]
    for number in range(1 + task.decisions):
        if number == 0:
            sim.reset(seed=task.seed)
        else:
            player.play(sim)
            sim.step()
        place = f"after {number} decisions"
        buffers = sim.buffers
        made += [(f"records {place}", _digest(sim.states)), (f"observations {place}", _digest(buffers.observations))]
        made += [(f"masks {place}", _digest(buffers.masks)), (f"rewards {place}", _digest(sim.rewards))]
        for io in interfaces:
            codec: Any = io.codec
            io.action_space.seed(number)
            said = io.action_space.sample()
            for lane in range(LANES):
                view = io.agent_view(lane)
                told = codec.info(view) if io.tells else {}
                try:
                    decoded = codec.decode(view, said)
                except ValueError:
                    decoded = "nothing"
                what = f"what codec {type(codec).__name__} encodes, tells and decodes {place}"
                made.append((what, _digest((codec.encode(view), told, decoded))))
        if game.render_text is not None:
            made.append((f"the text {place}", _digest(sim.render_text(LANES - 1))))
    return made


def _digest(value: Any) -> str:
    sha = hashlib.sha256()
    _feed(sha, value)
    return sha.hexdigest()[:16]


def _feed(sha: Any, value: Any) -> None:
    """Hashes nested arrays, numbers and texts; what has neither counts by its class."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        sha.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        for name, part in value.items():
            sha.update(repr(name).encode())
            _feed(sha, part)
    elif isinstance(value, list | tuple | np.ndarray):
        for part in value:
            _feed(sha, part)
    elif value is None or isinstance(value, str | bytes | int | float | np.generic):
        sha.update(repr(value).encode("utf-8", "backslashreplace"))
    else:
        sha.update(type(value).__qualname__.encode())


# -- the other process -------------------------------------------------------------------------------------------------

_others: dict[tuple[int, str], subprocess.Popen[bytes]] = {}
"""By the process that has started them, and their seed of hashes."""


def start(number: int = 1) -> subprocess.Popen[bytes]:
    """Starts the process, if it does not run yet; it needs no waiting for.

    Args:
        number: Which: each has another seed of hashes.

    Raises:
        OSError: There can be none.
    """
    own = os.environ.get("PYTHONHASHSEED", "random")
    seed = str(1000 + number + (own == str(1000 + number)))
    found = _others.get((os.getpid(), seed))
    if found is not None and found.poll() is None:
        return found
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    environment = {**os.environ, **OTHERS, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    made = subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {serve.__module__} import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tempfile.gettempdir(),
        env=environment,
        start_new_session=True,  # an interrupt is for this process: the other one ends with its input
    )
    _others[os.getpid(), seed] = made
    return made


@atexit.register
def stop() -> None:
    """Ends the processes that this one has started."""
    for (starter, _), process in _others.items():
        if starter == os.getpid():
            process.kill()
            process.communicate()
    _others.clear()


def ask(task: Task, number: int = 1) -> list[tuple[str, str]]:
    """The trace of a task in the other process.

    Raises:
        OSError: There is none, or it has ended.
        LookupError: It does not find the game, as that of a notebook.
        RuntimeError: It cannot play this; says why.
        pickle.PicklingError, AttributeError, TypeError: The task cannot be sent.
    """
    sent = base64.b64encode(pickle.dumps(task))
    process = start(number)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(sent + b"\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise BrokenPipeError("the other process has ended")
    kind, given = pickle.loads(base64.b64decode(answer))
    if kind == TRACE:
        return given
    raise (LookupError if kind == NOT_FOUND else RuntimeError)(given)


def serve() -> None:
    """Answers tasks from the standard input until it ends."""
    answer: tuple[str, Any]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what rules print is no answer
    for line in sys.stdin.buffer:
        try:
            task = pickle.loads(base64.b64decode(line))
            sys.path += [entry for entry in task.path if entry not in sys.path]
            importlib.invalidate_caches()
            factories.load(task.row.factory)
        except (ImportError, AttributeError) as error:
            answer = NOT_FOUND, f"{type(error).__name__}: {error}"
        else:
            try:
                answer = TRACE, _play(task)
            except Exception as error:
                answer = FAILED, f"{type(error).__name__}: {error}"
        answers.write(base64.b64encode(pickle.dumps(answer)) + b"\n")
        answers.flush()


def _play(task: Task) -> list[tuple[str, str]]:
    os.chdir(task.folder or tempfile.gettempdir())
    registry.ROWS[task.row.id] = task.row
    with closing(registry.make_batch(task.row.id, LANES, **{**task.keywords, "compiled": False})) as sim:
        return trace(sim, task)


def names_files(keywords: Mapping[str, Any]) -> bool:
    """Whether a keyword may name a file from the current folder."""
    for value in keywords.values():
        with suppress(OSError, ValueError):
            if isinstance(value, str | Path) and Path(value).exists():
                return True
    return False
