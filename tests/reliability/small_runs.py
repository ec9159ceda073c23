"""Small trainings for the commands that kill them or fill their disks, and what they leave behind."""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TIMES = ("cpu_s", "wall_s")
"""Columns of a curve that differ from run to run."""
OF_TEAMS = {
    "env_id": "palaestra/TeamGridSoccer-3x3-v0",
    "options": ("order=alternating",),
    "total_steps": 1200,
    "lanes": 16,
    "warmup_steps": 200,
    "updates": 1,
    "batch_size": 32,
    "replay_size": 800,
    "hidden": (16, 16),
    "evaluations": 6,
    "opponent": "",
}
OF_UNITS = {
    "env_id": "palaestra/Skirmish-3m-v0",
    "total_steps": 480,
    "lanes": 8,
    "warmup_steps": 100,
    "updates": 1,
    "batch_size": 16,
    "replay_size": 240,
    "hidden": (8, 16),
    "embedding": 4,
    "mixer_hidden": 8,
    "evaluations": 4,
    "matches": 4,
}
OF_ROLLOUTS = {
    "total_steps": 480,
    "lanes": 8,
    "rollout": 8,
    "chunk": 4,
    "epochs": 2,
    "minibatches": 2,
    "hidden": (8, 16),
    "critic_hidden": (8,),
    "evaluations": 4,
    "matches": 4,
}
ON_GRAPHS = {
    "lanes": 16,
    "batch_size": 32,
    "width": 8,
    "heads": 2,
    "warmup_steps": 64,
    "replay_size": 240,
    "total_steps": 400,
    "evaluations": 4,
    "matches": 4,
    "opponent": "random",
}
FLIGHTS = {
    "total_steps": 1024,
    "lanes": 8,
    "workers": 0,
    "rollout_steps": 32,
    "batch_size": 128,
    "evaluations": 4,
    "flights": 2,
}
OF_LEAGUES = {
    "env_id": "palaestra/SkirmishDuel-v0",
    "options": ("map=arena",),
    "anchor_options": (),
    "training_options": ("horizon=20",),
    "anchors": ("nearest", "random"),
    "seen": (),
    "action_scales": (1.0,),
    "pairs": 2,
    "total_steps": 900,
    "evaluations": 4,
    "matches": 4,
    "draw": "pfsp",
}
OF_PLANS = {
    "options": ("last_year=3",),
    "games": 8,
    "plans": 3,
    "rounds": 20,
    "hidden": (16, 16),
    "batch_size": 32,
    "total_steps": 9600,
    "evaluations": 6,
    "matches": 8,
}
OF_NUMBERS = {
    "env_id": "palaestra/SparseSpread-2-v0",
    "total_steps": 960,
    "lanes": 8,
    "warmup_steps": 200,
    "decisions_per_update": 16,
    "batch_size": 32,
    "replay_size": 400,
    "hidden": (16, 16),
    "critic_hidden": (16, 16),
    "bonus": 0.1,
    "evaluations": 6,
    "matches": 8,
}
OF_FAMILIES = {
    "matches_per_task": 4,
    "world_steps": 20,
    "world_batch": 16,
    "total_steps": 60,
    "batch_size": 8,
    "width": 16,
    "evaluations": 6,
    "episodes": 2,
    "matches": 4,
}
RUNS: dict[str, dict[str, Any]] = {
    "unmas": {**OF_UNITS, "env_id": "palaestra/SkirmishUnshaped-Maps-v0", "options": ('maps=["3m","5m_vs_6m"]',)},
    "unmas paper": {**OF_UNITS, "network": "paper", "recurrent": True},
    "arac": {**ON_GRAPHS, "options": ("observation=nodes", "graph=petersen", "pursuers=3")},
    "arac alternating": {
        **ON_GRAPHS,
        "options": ("observation=nodes", "graph=cycle:8", "order=alternating", "starts=winnable", "solve=True"),
    },
    "qmix": OF_UNITS,
    "qmix recurrent": {**OF_UNITS, "recurrent": True, "network": "entity"},
    "vdn": OF_TEAMS,
    "vdn random": {**OF_TEAMS, "random_starts": True, "opponent": "random", "matches": 8},
    "mappo": {**OF_ROLLOUTS, "env_id": "palaestra/TeamTag-2v2-v0", "opponent": "random"},
    "mappo recurrent": {**OF_ROLLOUTS, "env_id": "palaestra/Skirmish-3m-v0", "recurrent": True},
    "masac": OF_NUMBERS,
    "cpeg": {**OF_NUMBERS, "encoder_hidden": (16,)},
    "cpeg state": {**OF_NUMBERS, "policy": "gaussian", "consensus": "state", "encoder_hidden": (16,)},
    "fm3q": OF_TEAMS,
    "iql": OF_TEAMS,
    "minimax_q": {"total_steps": 40_000, "evaluations": 6, "lanes": 64},
    "pid": {"flights": 2, "horizon": 60},
    "ppo_tracking": FLIGHTS,
    "ucav_hierarchy": OF_LEAGUES,
    "dipllm": OF_PLANS,
    "dipllm joint": {**OF_PLANS, "student": "joint"},
    "meta_dt": OF_FAMILIES,
    "meta_dt expert": {**OF_FAMILIES, "task": "hidden", "prompt": "expert"},
}
"""Settings by name; its first word is the method."""
LEARNERS = ("unmas", "arac", "qmix", "vdn", "mappo")


def method_of(name: str) -> str:
    """The method of a run."""
    return name.partition(" ")[0]


def train(name: str, folder: Path, **changes: Any) -> None:
    """Trains, or resumes, until the end."""
    method, settings = method_of(name), {**RUNS[name], "directory": folder, **changes}
    module: Any = importlib.import_module(f"palaestra_baselines.{method}")
    if method == "pid":
        chosen = tuple(itertools.islice(module.sets(), 6))
        module.sets = lambda: iter(chosen)
        module.train(module.Args(grid=True, table=folder / "table.csv", **settings))
        return
    from palaestra_baselines.common.many_runs import continued

    if method == "ppo_tracking":
        module.evaluation_flights = functools.partial(module.evaluation_flights, horizon=100)
    module.train(continued(module.Args(**settings)))


def results(name: str, folder: Path) -> dict[str, Any]:
    """What a finished run has left, by name, without times."""
    method = method_of(name)
    if method == "pid":
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*.csv"))}
    from palaestra_baselines.common.policy_file import read_policy
    from palaestra_baselines.common.run_folder import read_rows

    home, found = folder / "seed_0", {}
    rows = read_rows(home / "log.csv")
    policies = [path for path in sorted(home.glob("*.safetensors")) if not path.name.startswith("checkpoint")]
    if method == "ppo_tracking":
        _, notes = read_policy(home / "best.safetensors")
        row = next(row for row in rows if row["steps"] == notes["steps"])
        same = all(abs(row[name] - value) <= 1e-5 * abs(value) for name, value in notes["errors"].items())
        return {"steps": [row["steps"] for row in rows], "best is an evaluation": same}
    for path in policies:
        arrays, notes = read_policy(path)
        found |= {f"{path.name}: {name}": array.tobytes() for name, array in arrays.items()}
        found |= {f"{path.name}: {name}": notes[name] for name in ("steps", "updates", "figures") if name in notes}
    found["log.csv"] = json.dumps([{k: v for k, v in row.items() if k not in TIMES} for row in rows])
    found["files"] = sorted(path.name for path in home.iterdir())
    return found


def steps_kept(name: str, folder: Path) -> int:
    """Decisions at the newest whole checkpoint of a run; -1 where there is none."""
    from palaestra_baselines.common.run_outputs import load_latest

    found = load_latest(folder / "seed_0", trusted=False, warn=lambda text: None) if method_of(name) != "pid" else None
    return -1 if found is None else int(found[1]["run"]["steps"])


# -------------------------------------------------------------------------------------------------------------- writes


@contextmanager
def watched_writes(moment: Callable[[str, Any], None]) -> Iterator[None]:
    """Tells all moments of the writes of files; what ``moment`` raises is what the call raises.

    Args:
        moment: Called with ``"open"`` (of a new file), ``"write"`` (when a half is written), ``"fsync"``, ``"replace"``
            or ``"unlink"`` before the call, with ``"after fsync"`` and so on after it, and with the call's last
            argument: a descriptor for fsync, else a path.
    """
    opened = pathlib.Path.open
    calls = {name: getattr(os, name) for name in ("fsync", "replace", "unlink")}

    def open_watched(path: Path, mode: str = "r", *given: Any, **named: Any) -> Any:
        if mode != "xb":
            return opened(path, mode, *given, **named)
        moment("open", path)
        return HalfWritten(opened(path, mode, *given, **named), functools.partial(moment, "write", path))

    def watched(name: str) -> Callable[..., Any]:
        @functools.wraps(calls[name])
        def call_watched(*given: Any, **named: Any) -> Any:
            moment(name, given[-1])
            result = calls[name](*given, **named)
            moment(f"after {name}", given[-1])
            return result

        return call_watched

    pathlib.Path.open = open_watched  # type: ignore[method-assign, assignment]
    for name in calls:
        setattr(os, name, watched(name))
    try:
        yield
    finally:
        pathlib.Path.open = opened  # type: ignore[method-assign]
        for name, call in calls.items():
            setattr(os, name, call)


class HalfWritten:
    """A file with a moment after half of what is written to it."""

    def __init__(self, file: Any, moment: Callable[[], None]) -> None:
        self.file, self.moment = file, moment

    def write(self, content: Any) -> int:
        half = len(content) // 2
        self.file.write(content[:half])
        self.file.flush()
        self.moment()
        self.file.write(content[half:])
        return len(content)

    def __enter__(self) -> HalfWritten:
        return self

    def __exit__(self, *error: Any) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)
