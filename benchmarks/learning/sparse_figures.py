"""Sparse rewards for teams: CPEG, its parts, and MASAC and MAPPO beside it; ``python benchmarks/learn.py sparse``.

``sparse_peaks``    one agent, two best choices: who holds both
``sparse_pairs``    the same for two agents that draw apart: how often they miss each other
``sparse_trap``     two agents, a wide hill and a narrow peak: who finds the peak
``sparse_spread2``  SparseSpread-2: curves, shares of matches that are solved, how often codes of teammates agree
``sparse_spread``   SparseSpread with three agents
``sparse_speed``    decisions a second of the loops of CPEG and MASAC

The first three take one decision; what is told of them are draws of the last policy, greedy ones of MAPPO.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from learning import drawing, figures, two_peaks
from learning.figures import Entry, FigureArgs, Method, bootstrap_interval
from palaestra import registry
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs

DRAWS = 512
"""Drawn decisions of a policy in a game of one decision; matches in which codes are compared."""
HILL = 0.6
"""Worth of the hill of the trap: who is paid more is at the peak."""
SPEED_STEPS, SPEED_PAIRS = 20_000, 3


@dataclass(frozen=True)
class Setting:
    """Where a team learns.

    Attributes:
        title: In figures.
        env_id: Environment.
        team: The team.
        options: Keywords of the game.
        arguments: What all methods are given there.
    """

    title: str
    env_id: str
    team: str = "agent"
    options: tuple[str, ...] = ()
    arguments: Any = None


ONCE: dict[str, Any] = {
    **{"lanes": 8, "decisions_per_update": 8, "batch_size": 64, "warmup_steps": 64, "replay_size": 8_000},
    **{"hidden": (32, 32), "critic_hidden": (32, 32), "value_steps": 1, "evaluations": 1, "matches": 8},
    **{"learning_rate": (1e-3, 1e-3), "tau": 0.02},
}
"""Arguments in games of one decision."""
ONCE_STEPS = 8_000
PEAKS: dict[str, dict[str, Any]] = {
    "consistency": {**ONCE, "warmup_steps": 1_000, "eta": 0.1},
    "masac": {**ONCE, "warmup_steps": 1_000},
}
"""Arguments at two peaks. Of four seeds each, with eta 0.1 four held both peaks, with 0.3 three, with 1 none; with 64
random decisions and eta 0.1 one did."""
SPREAD_STEPS, MAPPO_STEPS = 600_000, 1_000_000
SETTINGS = {
    "peaks": Setting("two peaks, one agent", "benchmarks/TwoPeaks-v0"),
    "pairs": Setting("two peaks, two agents", "benchmarks/TwoPeaks-v0", options=("agents=2",)),
    "trap": Setting("TeamTrap", "palaestra/TeamTrap-v0"),
    "spread2": Setting("SparseSpread-2", "palaestra/SparseSpread-2-v0"),
    "spread": Setting("SparseSpread", "palaestra/SparseSpread-v0"),
}
ALONE = {"consensus": False, "guidance": False}
METHODS: dict[str, Method] = {
    "cpeg": Method("CPEG", "cpeg"),
    "no_consensus": Method("CPEG without consensus", "cpeg", {"consensus": False}),
    "no_guidance": Method("CPEG without guidance", "cpeg", {"guidance": False}),
    "consistency": Method("consistency policy alone", "cpeg", ALONE),
    "masac": Method("MASAC", "masac"),
    "masac_bonus": Method("MASAC with bonus", "masac", {"bonus": 0.05}),
    "mappo": Method("MAPPO", "mappo", {"opponent": ""}),
}
ONCE_MAPPO: dict[str, Any] = {"lanes": 64, "rollout": 4, "minibatches": 2, "hidden": (32, 32), "evaluations": 1}
GROUPS: dict[str, tuple[Entry, ...]] = {
    "peaks": tuple(Entry("peaks", name, ONCE_STEPS, seeds=16, arguments=made) for name, made in PEAKS.items()),
    "pairs": tuple(Entry("pairs", name, ONCE_STEPS, seeds=16, arguments=made) for name, made in PEAKS.items()),
    "trap": (
        *(Entry("trap", name, ONCE_STEPS, seeds=32, arguments=ONCE) for name in ("consistency", "masac")),
        Entry("trap", "mappo", 32_000, seeds=16, arguments={**ONCE_MAPPO, "matches": 8}),
    ),
    "spread2": (
        *(Entry("spread2", name, SPREAD_STEPS) for name in ("cpeg", "masac", "masac_bonus")),
        Entry("spread2", "mappo", MAPPO_STEPS),
        *(Entry("spread2", name, SPREAD_STEPS, seeds=3) for name in ("no_consensus", "no_guidance", "consistency")),
    ),
    "spread": (
        *(Entry("spread", name, SPREAD_STEPS, seeds=3) for name in ("cpeg", "masac", "masac_bonus")),
        Entry("spread", "mappo", MAPPO_STEPS, seeds=3),
    ),
}
ONCE_GROUPS, SPREAD_GROUPS = ("peaks", "pairs", "trap"), ("spread2", "spread")


def run_of(entry: Entry, seed: int, directory: Path, **more: Any) -> RunArgs:
    """Arguments of one run of an entry.

    Args:
        entry: The entry.
        seed: Of the run.
        directory: Its folder.
        **more: Arguments that decide nothing, ``quiet`` for one.
    """
    method, setting = METHODS[entry.method], SETTINGS[entry.place]
    place = {name: getattr(setting, name) for name in ("env_id", "options", "team")}
    given = {**place, **method.arguments, **entry.arguments, **more}
    return method.make_args(**given, total_steps=entry.steps, seed=seed, directory=directory)


# -- games of one decision ---------------------------------------------------------------------------------------------


def once_figure(group: str, args: FigureArgs) -> None:
    """What policies of a game of one decision draw at the end."""
    entries = GROUPS[group]
    seeds = replace(args, seeds=max(entry.seeds or 0 for entry in entries))
    runs = figures.train_entries(f"sparse_{group}", entries, METHODS, run_of, seeds)
    rows = [
        {"setting": group, "method": entry.method, "seed": run.seed, **told(group, drawn(entry, run))}
        for entry in entries
        for run in runs[entry.key]
    ]
    figures.write_rows(args.figures / f"sparse_{group}_results.csv", rows)
    print("\n".join(once_lines(group, rows)))


def drawn(entry: Entry, run: RunArgs) -> np.ndarray:
    """Choices float64 ``[DRAWS, A]`` of the last policy of a run."""
    setting = SETTINGS[entry.place]
    game, _ = registry.make_game(setting.env_id, **keywords(setting.options))
    more = {} if entry.method == "mappo" else {"explore": True}
    player = figures.method_module(METHODS[entry.method].module).load_policy(
        run.folder / WEIGHTS, game, setting.team, **more
    )
    agents = len(game.teams[setting.team])
    seen = np.tile(np.arange(agents, dtype=np.float32)[:, None], (DRAWS, 1, 1))
    memory, seeds = np.zeros((DRAWS, player.memory_size)), np.arange(DRAWS, dtype=np.uint64)
    return player.act(seen, None, None, None, seeds, memory).reshape(DRAWS, agents)


def told(group: str, choices: np.ndarray) -> dict[str, float]:
    """Results of choices ``[n, A]``: mean reward, and the shares at each peak, or at the peak of the trap."""
    if group == "trap":
        trap = importlib.import_module("palaestra.games.teams.trap")
        paid = np.array([trap.worth(first, second, 0.2) for first, second in choices])
        return {"reward": float(paid.mean()), "peak": float((paid > HILL).mean())}
    paid = [
        np.exp(-0.5 * ((choices - at) ** 2).sum(1) / two_peaks.WIDTH**2) for at in (-two_peaks.PEAK, two_peaks.PEAK)
    ]
    low, high = ((choices * sign > 0.0).all(1).mean() for sign in (-1.0, 1.0))
    return {
        "reward": float(np.maximum(*paid).mean()),
        "low": float(low),
        "high": float(high),
        "miscoordinated": float(1.0 - low - high),
    }


def holds(row: Mapping[str, Any]) -> bool:
    """Whether a policy has both peaks, at least a quarter each, and 0.9 of the best reward; or that of the trap."""
    if "peak" in row:
        return row["peak"] > 0.5
    return min(row["low"], row["high"]) >= 0.25 and row["reward"] >= 0.9


def once_lines(group: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """How many seeds hold, with a Wilson interval, and what is asked of it."""
    found = dict[str, tuple[float, float]]()
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        good, reward = sum(map(holds, own)), np.mean([row["reward"] for row in own])
        found[name] = low, high = wilson(good, len(own))
        asked: list[tuple[str, bool]] = []
        if group == "peaks":
            asked = [("half of the seeds", 2 * good >= len(own)) if name == "consistency" else ("none", good == 0)]
        elif group == "trap" and name == "consistency":
            asked = [("a quarter of the seeds", 4 * good >= len(own))]
        miscoordinated = [row["miscoordinated"] for row in own if "miscoordinated" in row]
        text = f", miscoordinated {100 * np.mean(miscoordinated):.0f} %" if miscoordinated else ""
        interval = f"({100 * low:.0f} to {100 * high:.0f} %)"
        yield (
            f"{SETTINGS[group].title}, {METHODS[name].title}: {good} of {len(own)} {interval}, "
            f"reward {reward:.2f}{text}{figures.verdicts(asked)}"
        )
    if group == "trap":
        apart = all(found["consistency"][0] > high for name, (_, high) in found.items() if name != "consistency")
        yield figures.verdicts([("intervals apart", apart)]).strip()


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of a share (Wilson, Journal of the American Statistical Association 22, 1927)."""
    share = successes / trials
    middle, spread = share + z * z / (2 * trials), (share * (1 - share) / trials + z * z / (4 * trials**2)) ** 0.5
    scale = 1.0 + z * z / trials
    return (middle - z * spread) / scale, (middle + z * spread) / scale


# -- sparse tasks ------------------------------------------------------------------------------------------------------


def spread_figure(group: str, args: FigureArgs) -> None:
    """Curves and last results of all methods on a task whose return is 1 where it is solved."""
    entries = GROUPS[group]
    runs = figures.train_entries(f"sparse_{group}", entries, METHODS, run_of, args)
    logs = figures.read_logs(runs)
    figures.write_rows(args.figures / f"sparse_{group}.csv", figures.curve_rows(logs, "setting", "method"))
    draw_spread(group, args.figures)
    rows = []
    for entry in entries:
        for run, log in zip(runs[entry.key], logs[entry.key], strict=True):
            row = {"setting": group, "method": entry.method, "seed": run.seed, "success": log[-1]["return"]}
            rows.append({**row, "area": area(log), "cpu_s": log[-1]["cpu_s"], **agreement(entry, run)})
    figures.write_rows(args.figures / f"sparse_{group}_results.csv", rows)
    print("\n".join(spread_lines(group, rows)))


def draw_spread(group: str, folder: Path) -> None:
    """Draws the curves of all methods of a group."""
    table = folder / f"sparse_{group}.csv"
    runs = drawing.group_runs(drawing.read_table(table), "method")
    curves = {METHODS[name].title: drawing.curve_over_seeds(made, "return") for name, made in runs.items()}
    drawing.draw(table, [drawing.Panel(SETTINGS[group].title, "share of matches that are solved", curves)])


def area(log: Sequence[Mapping[str, float]], total: float = SPREAD_STEPS) -> float:
    """Mean of the return over the first ``total`` decisions of a curve, by trapezoids between evaluations."""
    steps, values = (np.array([row[name] for row in log], np.float64) for name in ("steps", "return"))
    places = np.append(steps[steps < total], min(total, steps[-1]))
    heights = np.interp(places, steps, values)
    return float((np.diff(places) * (heights[1:] + heights[:-1]) / 2.0).sum() / places[-1])


def agreement(entry: Entry, run: RunArgs) -> dict[str, float]:
    """Share of pairs of teammates with equal codes in one position, and if positions are shuffled; nothing without.

    Positions are those of matches of the learnt policy.
    """
    if METHODS[entry.method].module != "cpeg" or METHODS[entry.method].arguments.get("consensus", True) is not True:
        return {}
    setting = SETTINGS[entry.place]
    module = figures.method_module("cpeg")
    sim = registry.make_batch(setting.env_id, DRAWS, **keywords(setting.options))
    player = module.load_policy(run.folder / WEIGHTS, sim.game, setting.team)
    sim.reset(seed=1 << 40)
    codes, memory, seeds = list[np.ndarray](), np.zeros((DRAWS, 1)), np.arange(DRAWS, dtype=np.uint64)
    for _ in range(10):
        role = next(iter(player.roster.sizes))
        seen = np.array(player.roster.read_observations(sim)[role])
        with torch.no_grad():
            read = player.actor.read(player.actor.inputs({role: torch.from_numpy(seen)}))
        codes.append(read.codes.numpy())
        sim.actions[:] = player.act(seen, None, None, None, seeds, memory)
        sim.step()
    sim.close()
    made = np.concatenate(codes)
    shuffled = np.random.default_rng(0).permutation(made[:, 1])
    return {
        "agree": float((made[:, :1] == made[:, 1:]).mean()),
        "agree_shuffled": float((made[:, 0] == shuffled).mean()),
        "codes": float(len(np.unique(made))),
    }


def spread_lines(group: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Interquartile means over seeds with intervals, and what is asked of them."""
    found = dict[str, tuple[float, float, float]]()
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        last = np.array([row["success"] for row in own])
        found[name] = mean, low, high = bootstrap_interval(last)
        text = (
            f"{SETTINGS[group].title}, {METHODS[name].title}: {100 * mean:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
        )
        text += f", worst {100 * last.min():.0f} %, area {np.mean([row['area'] for row in own]):.3f}"
        cpu_s = max(row["cpu_s"] for row in own)
        asked = [("at most 3 min", cpu_s <= 180.0)]
        if "agree" in own[0]:
            agree, other = (np.mean([row[key] for row in own]) for key in ("agree", "agree_shuffled"))
            text += f", codes agree {100 * agree:.0f} % (shuffled {100 * other:.0f} %)"
            asked += [("at least 75 %", bool(agree >= 0.75))] if name == "cpeg" else []
        yield f"{text}, {cpu_s:.0f} s{figures.verdicts(asked if group == 'spread2' else [])}"
    if group == "spread2":
        asked = [
            (f"above {METHODS[o].title}", found["cpeg"][1] > found[o][2]) for o in ("masac", "masac_bonus", "mappo")
        ]
        yield f"CPEG{figures.verdicts(asked)}"


# -- speed -------------------------------------------------------------------------------------------------------------


def sparse_speed(args: FigureArgs) -> None:
    """Decisions a second of the loops of CPEG and MASAC, one after the other, several times."""
    rows = [
        {"method": name, "pair": k, "decisions_s": speed(name)}
        for k in range(SPEED_PAIRS)
        for name in ("cpeg", "masac")
    ]
    figures.write_rows(args.figures / "sparse_speed.csv", rows)
    of = {name: [row["decisions_s"] for row in rows if row["method"] == name] for name in ("cpeg", "masac")}
    ratio = float(np.median(np.array(of["cpeg"]) / np.array(of["masac"])))
    shown = ", ".join(f"{METHODS[name].title} {np.median(speeds):,.0f}" for name, speeds in of.items())
    print(f"decisions/s of processor time: {shown}: {ratio:.2f}x{figures.verdicts([('at least .5x', ratio >= 0.5)])}")


def speed(name: str) -> float:
    """Decisions of a short training by the processor time of its loop."""
    with TemporaryDirectory() as folder:
        made = {"warmup_steps": 1_000, "evaluations": 1, "quiet": True}
        run = run_of(Entry("spread2", name, SPEED_STEPS, arguments=made), 0, Path(folder))
        return SPEED_STEPS / figures.method_module(METHODS[name].module).train(run, lambda _: {}).cpu_s
