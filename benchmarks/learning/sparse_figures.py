"""Sparse rewards for teams: CPEG, its parts, and MASAC and MAPPO beside it; ``python benchmarks/learn.py sparse``.

``sparse_peaks``    one agent, two best choices: who holds both
``sparse_pairs``    the same for two agents that draw apart: how often they miss each other
``sparse_trap``     two agents, a wide hill and a narrow peak: who finds the peak
``sparse_tuning``   arguments that were tried on SparseSpread-2, as many for each method; a table alone
``sparse_spread2``  SparseSpread-2: curves, shares of matches that are solved, how often codes of teammates agree
``sparse_tasks``    SparseSpread with three agents, SparseReference, SparseSpeakerListener
``sparse_dense``    the dense twin of SparseSpread-2
``sparse_bodies``   three running robots: marks that are passed in a match
``sparse_speed``    decisions a second of the loops of CPEG and MASAC

The first three take one decision; what is told of them are draws of the last policy, greedy ones of MAPPO.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from learning import figures, two_peaks
from learning.figures import FigureArgs, Method, bootstrap_interval
from learning.study import Entry, Figure, Made, Place, Rows, Study, panel_per_place
from palaestra import registry
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs

DRAWS = 512
"""Drawn decisions of a policy in a game of one decision; matches in which codes are compared."""
HILL = 0.6
"""Worth of the hill of the trap: who is paid more is at the peak."""
SOLVED, MARKS = "share of matches that are solved", "marks passed in a match"
SPEED_STEPS, SPEED_PAIRS = 20_000, 3


ONCE: dict[str, Any] = {
    **{"lanes": 8, "decisions_per_update": 8, "batch_size": 64, "warmup_steps": 64, "replay_size": 8_000},
    **{"hidden": (32, 32), "critic_hidden": (32, 32), "value_steps": 1, "evaluations": 1, "matches": 8},
    **{"learning_rate": (1e-3, 1e-3), "tau": 0.02, "target_entropy": -1.0},
}
"""Arguments in games of one decision."""
ONCE_STEPS = 8_000
AT_TRAP: dict[str, Any] = {"learning_rate": (3e-3, 3e-3)}
"""Arguments at the trap. Of eight seeds each, one found the peak with 1e-3, two with 3e-3 and with 1e-2, none after
1,000 random decisions; with other eta, widths, replays and batches it was two at most."""
PEAKS: dict[str, dict[str, Any]] = {
    "consistency": {**ONCE, "warmup_steps": 1_000, "eta": 0.1},
    "masac": {**ONCE, "warmup_steps": 1_000},
}
"""Arguments at two peaks. Of four seeds each, with eta 0.1 four held both peaks, with 0.3 three, with 1 none; with 64
random decisions and eta 0.1 one did."""
SPREAD_STEPS, MAPPO_STEPS = 600_000, 1_000_000
RETURN: dict[str, Any] = {"team": "agent", "column": "return", "label": SOLVED}
PASSED: dict[str, Any] = {"team": "body", "column": "return", "label": MARKS}
DENSE: dict[str, Any] = {"options": ("reward=dense",), **RETURN, "label": "return"}
PLACES = {
    "peaks": Place("two peaks, one agent", "benchmarks/TwoPeaks-v0", **RETURN),
    "pairs": Place("two peaks, two agents", "benchmarks/TwoPeaks-v0", ("agents=2",), **RETURN),
    "trap": Place("TeamTrap", "palaestra/TeamTrap-v0", **RETURN),
    "spread2": Place("SparseSpread-2", "palaestra/SparseSpread-2-v0", **RETURN),
    "spread": Place("SparseSpread", "palaestra/SparseSpread-v0", **RETURN),
    "reference": Place("SparseReference", "palaestra/SparseReference-v0", **RETURN),
    "speaker": Place("SparseSpeakerListener", "palaestra/SparseSpeakerListener-v0", **RETURN),
    "dense": Place("SparseSpread-2, reward=dense", "palaestra/SparseSpread-2-v0", **DENSE),
    "cheetah": Place("SparseMaHalfCheetah", "palaestra/SparseMaHalfCheetah-v0", **PASSED),
    "ant": Place("SparseMaAnt", "palaestra/SparseMaAnt-v0", **PASSED),
    "hopper": Place("SparseMaHopper", "palaestra/SparseMaHopper-v0", **PASSED),
}
ALONE = {"consensus": False, "guidance": False}
TUNING_SEED = 100
"""No seed of a figure. The arguments with the greatest area are those that are compared."""
SLOWER: dict[str, Any] = {"learning_rate": (1e-3, 2e-4), "target_entropy": -1.0}
FASTER: dict[str, Any] = {"learning_rate": (3e-3, 3e-4), "target_entropy": -1.0}
MAPPO_SLOWER: dict[str, Any] = {"learning_rate": (1e-3, 1e-4)}
MAPPO_FASTER: dict[str, Any] = {"learning_rate": (3e-3, 3e-4)}
MAPPO_EPOCHS: dict[str, Any] = {**MAPPO_SLOWER, "epochs": 10, "entropy": (0.02, 0.001)}
"""The best trial of MAPPO with its own learning rate."""
METHODS: dict[str, Method] = {
    "cpeg": Method("CPEG", "cpeg"),
    "no_consensus": Method("CPEG without consensus", "cpeg", {"consensus": False}),
    "no_guidance": Method("CPEG without guidance", "cpeg", {"guidance": False}),
    "consistency": Method("consistency policy alone", "cpeg", ALONE),
    "masac": Method("MASAC", "masac"),
    "masac_bonus": Method("MASAC with bonus", "masac", {"bonus": 0.05, **FASTER}),
    "mappo": Method("MAPPO", "mappo", {"opponent": "", **MAPPO_FASTER}),
    "mappo_epochs": Method("MAPPO, ten epochs", "mappo", {"opponent": "", **MAPPO_EPOCHS}),
}
TUNING: dict[str, tuple[dict[str, Any], ...]] = {
    "cpeg": (
        SLOWER,
        *({**SLOWER, "eta": eta} for eta in (0.3, 3.0)),
        *({**SLOWER, "agreement": weight} for weight in (1.0, 20.0)),
        FASTER,
    ),
    "masac": (
        SLOWER,
        *({**SLOWER, "target_entropy": entropy} for entropy in (-0.5, -1.5, -2.5)),
        {**SLOWER, "value_steps": 5},
        {**FASTER, "target_entropy": -2.5},
    ),
    "masac_bonus": (
        SLOWER,
        *({**SLOWER, "bonus": bonus} for bonus in (0.02, 0.1, 0.2)),
        {**SLOWER, "target_entropy": -2.5},
        FASTER,
    ),
    "mappo": (
        MAPPO_SLOWER,
        {**MAPPO_SLOWER, "entropy": (0.03, 0.001)},
        {**MAPPO_SLOWER, "rollout": 25, "gamma": 0.97},
        MAPPO_FASTER,
        MAPPO_EPOCHS,
        {**MAPPO_FASTER, "entropy": (0.03, 0.001)},
    ),
}
"""Arguments that were tried, for each method the same number of times."""
ONCE_MAPPO: dict[str, Any] = {"lanes": 64, "rollout": 4, "minibatches": 2, "hidden": (32, 32), "evaluations": 1}
COMPARED = ("cpeg", "masac_bonus", "mappo_epochs")
"""Methods on the other tasks."""
TASK_STEPS, DENSE_STEPS, BODY_STEPS = 300_000, 300_000, 100_000
"""MAPPO has twice as many on the other tasks, in less processor time."""
BODY: dict[str, Any] = {"gamma": 0.99, "evaluations": 4, "matches": 32}
OFF_POLICY_BODY: dict[str, Any] = {**BODY, "value_steps": 5}
GROUPS: dict[str, tuple[Entry, ...]] = {
    "peaks": tuple(Entry("peaks", name, ONCE_STEPS, seeds=16, arguments=made) for name, made in PEAKS.items()),
    "pairs": tuple(Entry("pairs", name, ONCE_STEPS, seeds=16, arguments=made) for name, made in PEAKS.items()),
    "trap": (
        Entry("trap", "consistency", ONCE_STEPS, seeds=32, arguments={**ONCE, **AT_TRAP, "eta": 1.0}),
        Entry("trap", "masac", ONCE_STEPS, seeds=32, arguments={**ONCE, **AT_TRAP}),
        Entry("trap", "mappo", 32_000, seeds=16, arguments={**ONCE_MAPPO, **AT_TRAP, "matches": 8}),
    ),
    "spread2": (
        *(Entry("spread2", name, SPREAD_STEPS) for name in ("cpeg", "masac", "masac_bonus")),
        *(Entry("spread2", name, MAPPO_STEPS) for name in ("mappo", "mappo_epochs")),
        *(Entry("spread2", name, SPREAD_STEPS, seeds=3) for name in ("no_consensus", "no_guidance", "consistency")),
    ),
    "tasks": tuple(
        Entry(place, name, 2 * TASK_STEPS if name == "mappo_epochs" else TASK_STEPS, seeds=3)
        for place in ("spread", "reference", "speaker")
        for name in COMPARED
    ),
    "dense": tuple(Entry("dense", name, DENSE_STEPS, seeds=3) for name in COMPARED),
    "bodies": tuple(
        Entry(
            place, name, BODY_STEPS, seeds=3, arguments=BODY if name == "mappo_epochs" else {**BODY, "value_steps": 5}
        )
        for place in ("cheetah", "ant", "hopper")
        for name in COMPARED
    ),
}
ONCE_GROUPS = ("peaks", "pairs", "trap")


# -- games of one decision ---------------------------------------------------------------------------------------------


def once_results(study: Study, made: Made) -> Rows:
    """Draws of the last policies in a game of one decision."""
    return [
        {"setting": entry.place, "method": entry.method, "seed": run.seed, **told(entry.place, drawn(entry, run))}
        for entry, run, _ in made.each(study.entries)
    ]


def drawn(entry: Entry, run: RunArgs) -> np.ndarray:
    """Choices float64 ``[DRAWS, A]`` of the last policy of a run."""
    place = PLACES[entry.place]
    game, _ = registry.make_game(place.env_id, **place.keywords)
    more = {} if entry.method == "mappo" else {"explore": True}
    player = figures.method_module(METHODS[entry.method].module).load_policy(
        run.folder / WEIGHTS, game, place.team, **more
    )
    agents = len(game.teams[place.team])
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


def once_lines(study: Study, rows: Rows, made: Made) -> Iterator[str]:
    """How many seeds hold, with a Wilson interval, and what is asked of it."""
    group = study.entries[0].place
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
            f"{PLACES[group].title}, {METHODS[name].title}: {good} of {len(own)} {interval}, "
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


def curve_results(study: Study, made: Made) -> Rows:
    """Last return, area and agreement of codes of each run."""
    rows = []
    for entry, run, log in made.each(study.entries):
        shortest = min(other.steps for other in study.entries if other.place == entry.place)
        row = {"setting": entry.place, "method": entry.method, "seed": run.seed, "last": log[-1]["return"]}
        rows.append({**row, "area": area(log, shortest), "cpu_s": log[-1]["cpu_s"], **agreement(entry, run)})
    return rows


def area(log: Sequence[Mapping[str, float]], total: float) -> float:
    """Mean of the return over the first ``total`` decisions of a curve, by trapezoids between evaluations."""
    steps, values = (np.array([row[name] for row in log], np.float64) for name in ("steps", "return"))
    places = np.append(steps[steps < total], min(total, steps[-1]))
    heights = np.interp(places, steps, values)
    return float((np.diff(places) * (heights[1:] + heights[:-1]) / 2.0).sum() / places[-1])


def agreement(entry: Entry, run: RunArgs) -> dict[str, float]:
    """Share of pairs of teammates with equal codes in one position, and if positions are shuffled; nothing without.

    Positions are those of matches of the learnt policy. Agents of several roles are not compared.
    """
    if METHODS[entry.method].module != "cpeg" or METHODS[entry.method].arguments.get("consensus", True) is not True:
        return {}
    place = PLACES[entry.place]
    sim = registry.make_batch(place.env_id, DRAWS, **place.keywords)
    player = figures.method_module("cpeg").load_policy(run.folder / WEIGHTS, sim.game, place.team)
    if len(player.roster.sizes) > 1:
        sim.close()
        return {}
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


def curve_lines(study: Study, rows: Rows, made: Made) -> Iterator[str]:
    """Interquartile means over seeds with intervals, and what is asked of them on SparseSpread-2."""
    found = dict[tuple[str, str], tuple[float, float, float]]()
    for place, name in dict.fromkeys((row["setting"], row["method"]) for row in rows):
        own = [row for row in rows if (row["setting"], row["method"]) == (place, name)]
        last, cpu_s = np.array([row["last"] for row in own]), max(row["cpu_s"] for row in own)
        found[place, name] = mean, low, high = bootstrap_interval(last)
        text = f"{PLACES[place].title}, {METHODS[name].title}: {mean:.3f} ({low:.3f} to {high:.3f})"
        text += f", worst {last.min():.3f}, area {np.mean([row['area'] for row in own]):.3f}"
        asked = [("at most 3 min", cpu_s <= 180.0)]
        if "agree" in own[0]:
            agree, other = (np.mean([row[key] for row in own]) for key in ("agree", "agree_shuffled"))
            text += f", codes agree {100 * agree:.0f} % (shuffled {100 * other:.0f} %)"
            asked += [("at least 75 %", bool(agree >= 0.75))] if name == "cpeg" else []
        yield f"{text}, {cpu_s:.0f} s{figures.verdicts(asked if place == 'spread2' else [])}"
    if ("spread2", "cpeg") in found:
        low = found["spread2", "cpeg"][1]
        others = [name for name in ("masac", "masac_bonus", "mappo", "mappo_epochs") if ("spread2", name) in found]
        asked = [(f"above {METHODS[name].title}", low > found["spread2", name][2]) for name in others]
        yield f"CPEG{figures.verdicts(asked)}"


def tuning_results(study: Study, made: Made) -> Rows:
    """Last success and area of all trials on SparseSpread-2."""
    rows = []
    for entry, _, log in made.each(study.entries):
        tried = " ".join(f"{key}={value}" for key, value in entry.arguments.items())
        row = {"method": entry.method, "tried": tried, "success": log[-1]["return"], "area": area(log, SPREAD_STEPS)}
        rows.append(row)
    return rows


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
        run = TUNED.run_of(Entry("spread2", name, SPEED_STEPS, arguments=made), 0, Path(folder))
        return SPEED_STEPS / figures.method_module(METHODS[name].module).train(run, lambda _: {}).cpu_s


LEARNS: dict[str, Any] = {"methods": METHODS, "places": PLACES}
ONCE_STUDY: dict[str, Any] = {**LEARNS, "table": None, "results": once_results, "lines": once_lines}
CURVES: dict[str, Any] = {**LEARNS, "panels": panel_per_place, "results": curve_results, "lines": curve_lines}
STUDIES = {
    group: Study(f"sparse_{group}", entries, fixed_seeds=True, **ONCE_STUDY)
    if group in ONCE_GROUPS
    else Study(f"sparse_{group}", entries, **CURVES)
    for group, entries in GROUPS.items()
}
TUNED = Study(
    "sparse_tuning",
    tuple(
        Entry(
            "spread2", name, MAPPO_STEPS if name == "mappo" else SPREAD_STEPS, arguments=trial, name=f"{name}/{number}"
        )
        for name, trials in TUNING.items()
        for number, trial in enumerate(trials)
    ),
    **LEARNS,
    table=None,
    results=tuning_results,
    folder=lambda study, entry: Path(study.name, entry.arm),
    seeds=(TUNING_SEED,),
    ending="",
)
FIGURES = (*STUDIES.values(), TUNED, Figure("sparse_speed", sparse_speed))
