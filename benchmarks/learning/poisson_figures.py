"""The figures of policies on ordered atoms, made by ``python benchmarks/learn.py poisson`` and ``humanoid``.

``poisson_gradient``  noise of the policy gradient of the heads in equal states at equal entropy; a table alone
``poisson_tuning``    first deviations that were tried for each head, with a seed of their own; a table alone
``poisson_tasks``     Poisson, categorical and Gaussian policies on HalfCheetah, Hopper and Spread
``poisson_atoms``     numbers of atoms on HalfCheetah
``poisson_modes``     other heads and temperatures there
``poisson_speed``     processor time of an update, against Stable-Baselines3's Gaussian PPO; a table alone
``humanoid``          Poisson and Gaussian policies on Humanoid

All arms have the same networks, learning rate, decisions and evaluations. They are compared by the area under the curve
of ``training_return``: the mean return of the matches in which they learnt, actions sampled, over all decisions. The
tables hold the return of the most probable actions, too.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch

from learning.figures import FigureArgs, Method, bootstrap_interval, verdicts, write_rows
from learning.study import Entry, Figure, Made, Place, Rows, Study, curve_table, panel_per_place
from palaestra import registry
from palaestra.evaluation import EVALUATION_RUN, evaluate
from palaestra_baselines import poisson_ppo
from palaestra_baselines.common import ordered_heads
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.gymnasium_envs import play_gymnasium
from palaestra_baselines.common.ordered_heads import OrderedDistribution, OrderedHead
from palaestra_baselines.poisson_ppo import GAUSSIAN, Args

POISSON, CATEGORICAL, NORMAL = "Poisson", "categorical", "Gaussian (SB3)"
LINES = RANDOM_PLAY, MIDDLE = "random play", "middle of all ranges"


SPREAD: dict[str, Any] = {
    **{"options": ("actions=continuous",), "matches": 64},
    **{"lanes": 32, "rollout": 64, "minibatches": 32},
}
CURVE: dict[str, Any] = {"column": "training_return", "label": "return of training"}
STEPS, HUMANOID_STEPS = 300_000, 1_000_000
TUNED_ON = "HalfCheetah"
CLAIMED_ON = ("HalfCheetah", "Hopper")
DEVIATIONS = (0.4, 0.5, 0.6)
"""First deviations that were tried, in half ranges; 0.58 is the widest that 11 atoms allow."""
TUNING_SEED = 100
CHOSEN = {POISSON: 0.5, CATEGORICAL: 0.4, NORMAL: 0.5}
"""The first deviation that is compared; `poisson_tuning` says which one has the greatest area."""
HEADS = {POISSON: "poisson", CATEGORICAL: "categorical", NORMAL: GAUSSIAN}
PPO = poisson_ppo.METHOD
ARMS = {name: Method(name, PPO, {"head": HEADS[name], "start_std": CHOSEN[name]}) for name in HEADS}
"""Methods by the name of the arm."""
ATOMS = (7, 11, 15, 31)
POISSON_MODES: dict[str, dict[str, Any]] = {
    POISSON: {},
    "Poisson, tau fixed at 1": {"tau": "fixed"},
    "Poisson, mirrored": {"head": "poisson_mirrored"},
    "ordinal": {"head": "ordinal", "start_std": CHOSEN[CATEGORICAL]},
}
"""Arguments beside those of the Poisson arm."""
PLACES = {
    "HalfCheetah": Place("HalfCheetah", "HalfCheetah-v5", **CURVE),
    "Hopper": Place("Hopper", "Hopper-v5", **CURVE),
    "Spread": Place("Spread", "palaestra/Spread-v0", arguments=SPREAD, **CURVE),
    "Humanoid": Place("Humanoid", "Humanoid-v5", **CURVE),
}
PLACES |= {name: replace(PLACES[TUNED_ON], title=name) for name in (f"{TUNED_ON}, {head}" for head in HEADS)}
SEEDS, FEW_SEEDS, HUMANOID_SEEDS = 5, 3, 2
RANDOM_EPISODES = 20
MINUTES = 10.0


# -- runs --------------------------------------------------------------------------------------------------------------


def folder_of(study: Study, entry: Entry) -> Path:
    """Folder of the runs of an entry: those of equal arguments are the same, whatever the figure calls them."""
    given = {**study.methods[entry.method].arguments, **entry.arguments}
    name = "_".join(f"{given.get(name, '')}" for name in ("head", "start_std", "atoms", "tau")).strip("_")
    return Path("poisson", entry.place.partition(",")[0], name)


def area(log: Rows, column: str = "training_return") -> float:
    """Mean of a column over all decisions: each row counts for the decisions since the row before."""
    rows = [(before["steps"], row) for before, row in itertools.pairwise(log)]
    weights = [row["steps"] - before for before, row in rows]
    return float(np.average([row[column] for _, row in rows], weights=weights))


def result(entry: Entry, made: Made) -> dict[str, Any]:
    """A row of results: interquartile mean over seeds of the area with its 95 % interval; means of the rest."""
    logs = made.logs[entry.key]
    areas = np.array([area(log) for log in logs])
    mean, low, high = bootstrap_interval(areas)
    row = {"task": entry.place, "arm": entry.arm, "seeds": len(logs), "area": mean, "low": low, "high": high}
    row["mean_area"] = float(areas.mean())
    row["area_of_return"] = float(np.mean([area(log, "return") for log in logs]))
    for name in ("training_return", "return"):
        row[f"last_{name}"] = float(np.mean([log[-1][name] for log in logs]))
    return {**row, "cpu_s": max(log[-1]["cpu_s"] for log in logs)}


def results(study: Study, made: Made) -> list[dict[str, Any]]:
    """A row for each entry."""
    return [result(entry, made) for entry in study.entries]


def lines_of(task: str) -> list[dict[str, Any]]:
    """What random play and the middle of all ranges reach."""
    env_id = PLACES[task].env_id
    players = {RANDOM_PLAY: RandomUnit(env_id), MIDDLE: middle_of}
    if env_id in registry.ROWS:
        options = keywords(PLACES[task].arguments.get("options", ()))
        table = evaluate(env_id, "random", matches=256, num_envs=64, seed=EVALUATION_RUN, **options)
        return [{"task": task, "arm": RANDOM_PLAY, "last_return": table.mean_return}]
    return [
        {"task": task, "arm": name, "last_return": float(np.mean(play_gymnasium(env_id, player, RANDOM_EPISODES)))}
        for name, player in players.items()
    ]


def table_with_lines(study: Study, made: Made) -> Rows:
    """The curves, and what random play and the middle of all ranges reach."""
    lines = [line for task in dict.fromkeys(entry.place for entry in study.entries) for line in lines_of(task)]
    shown = [{"task": row["task"], "arm": row["arm"], "training_return": row["last_return"]} for row in lines]
    return [*curve_table(study, made), *shown]


class RandomUnit:
    """Draws numbers in [-1, 1] uniformly, as many as an environment takes."""

    def __init__(self, env_id: str) -> None:
        """Seeded."""
        self._count = 0
        if env_id not in registry.ROWS:
            space: Any = gymnasium.make(env_id).action_space
            self._count = space.low.size
        self._draws = np.random.default_rng(0)

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Numbers ``[n, D]``."""
        return self._draws.uniform(-1.0, 1.0, (len(observations), self._count))


def middle_of(observations: np.ndarray) -> np.ndarray:
    """0 for every number."""
    return np.zeros((len(observations), 1))


# -- figures -----------------------------------------------------------------------------------------------------------


def tuning_results(study: Study, made: Made) -> Rows:
    """Areas of all first deviations of all heads."""
    return [
        {"arm": e.method, "start_std": e.arguments["start_std"], "area": area(log), "last_return": log[-1]["return"]}
        for e, _, log in made.each(study.entries)
    ]


def tuning_lines(study: Study, rows: Rows, made: Made) -> Iterator[str]:
    """The rows, and the deviations of the greatest areas."""
    yield from map(str, rows)
    for name in HEADS:
        best = max((row for row in rows if row["arm"] == name), key=lambda row: row["area"])
        yield f"{name}: {best['start_std']} has the greatest area, {CHOSEN[name]} is used"


def task_results(study: Study, made: Made) -> Rows:
    """Results with verdicts, and lines."""
    places = dict.fromkeys(entry.place for entry in study.entries)
    return [*with_verdicts(results(study, made)), *(line for task in places for line in lines_of(task))]


def with_verdicts(rows: Rows) -> list[dict[str, Any]]:
    """Results with what is asked of Poisson policies."""
    of = {(row["task"], row["arm"]): row for row in rows}
    judged = []
    for row in rows:
        asked = [(f"at most {MINUTES:g} min", row["cpu_s"] <= 60.0 * MINUTES)]
        if row["arm"] == POISSON and row["task"] in CLAIMED_ON:
            normal, other = of[row["task"], NORMAL], of[row["task"], CATEGORICAL]
            asked.append(("not below Gaussian", row["area"] >= normal["area"] or row["high"] >= normal["low"]))
            asked.append(("above categorical", row["area"] > other["area"]))
            asked.append(("intervals apart from categorical", row["low"] > other["high"]))
        judged.append({**row, "verdict": verdicts(asked).strip()})
    return judged


def atoms_results(study: Study, made: Made) -> Rows:
    """Results of 7 to 31 atoms, and how much Poisson and categorical policies fall from 11 to 31."""
    rows = results(study, made)
    fallen = {name: fall(rows, name) for name in (POISSON, CATEGORICAL)}
    verdict = verdicts([("Poisson falls less", fallen[POISSON] < fallen[CATEGORICAL])]).strip()
    arm = "K = 11 less K = 31"
    ends = [
        {"task": f"{TUNED_ON}, {n}", "arm": arm, "mean_area": value, "verdict": verdict} for n, value in fallen.items()
    ]
    return [*rows, *ends]


def with_atoms(count: int) -> dict[str, Any]:
    """Arguments of other atoms than by default; the runs of those are the ones of `ARMS`."""
    return {} if count == Args.atoms else {"atoms": count}


def fall(rows: Rows, name: str) -> float:
    """How much less mean area 31 atoms have than 11."""
    at = {row["arm"]: row["mean_area"] for row in rows if row["task"] == f"{TUNED_ON}, {name}"}
    return at["K = 11"] - at["K = 31"]


def humanoid_results(study: Study, made: Made) -> Rows:
    """Results, and lines."""
    return [*results(study, made), *lines_of("Humanoid")]


# -- noise of the gradient ---------------------------------------------------------------------------------------------

BATCHES, STATES, INPUTS, DIMENSIONS, TRIALS = 256, 64, 17, 6, 8
GRADIENT_HEADS = ("poisson", "ordinal", "categorical")


def poisson_gradient(args: FigureArgs) -> None:
    """Variance of the policy gradient, heads of 11 and 31 atoms: rows of it in 1e-6, and of its ratio to the signal."""
    rows: list[dict[str, Any]] = []
    for atoms in (11, 31):
        for head in GRADIENT_HEADS:
            trials = np.array([gradient_noise(head, atoms, seed) for seed in range(TRIALS)])
            for measure, values in (("variance", 1e6 * trials[:, 0]), ("over signal", trials[:, 1])):
                mean, low, high = bootstrap_interval(values)
                row = {"atoms": atoms, "head": head, "measure": measure, "mean": mean, "low": low, "high": high}
                rows.append({**row, "entropy": float(trials[:, 2].mean())})
    of = {(row["atoms"], row["head"], row["measure"]): row for row in rows}
    for (atoms, head, measure), row in of.items():
        if head == "poisson":
            is_below = row["high"] < of[atoms, "categorical", measure]["low"]
            row["verdict"] = verdicts([("below categorical, intervals apart", is_below)]).strip()
    write_rows(args.figures / "poisson_gradient.csv", rows)
    for row in rows:
        print(row)


def gradient_noise(head: str, atoms: int, seed: int) -> tuple[float, float, float]:
    """Variance of the policy gradient of the torso over batches that differ in the sampled actions alone.

    States are drawn once, and so are the best actions whose squared distance is the advantage. All heads start with the
    same distribution, so that entropies are equal. The variance depends on the scale of a head's outputs; its ratio to
    the squared length of the expected gradient does not.

    Args:
        head: Of `palaestra_baselines.common.ordered_heads.HEADS`.
        atoms: K.
        seed: Of networks, states and best actions; the same for all heads.

    Returns:
        Variance, summed over the weights; the same over the squared length of the expected gradient; entropy.
    """
    torch.manual_seed(seed)
    torso = torch.nn.Sequential(
        *(torch.nn.Linear(INPUTS, 64), torch.nn.Tanh()), *(torch.nn.Linear(64, 64), torch.nn.Tanh())
    )
    states, best = torch.randn(STATES, INPUTS), torch.rand(STATES, DIMENSIONS) * 2.0 - 1.0
    for layer in (torso[0], torso[2]):  # as Stable-Baselines3 begins
        torch.nn.init.orthogonal_(layer.weight, 2.0**0.5)  # type: ignore[arg-type]
        torch.nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    last = OrderedHead(64, DIMENSIONS, atoms, head, start_std=EQUAL_STD)
    torch.nn.init.orthogonal_(last.linear.weight, 0.01)
    torch.nn.init.zeros_(last.linear.bias)
    gradients, entropy = [], 0.0
    for _ in range(BATCHES):
        policy = OrderedDistribution([atoms] * DIMENSIONS).proba_distribution(last(torso(states)))
        drawn = policy.sample()
        advantage = -((drawn * 2.0 / (atoms - 1) - 1.0 - best) ** 2).sum(1)
        advantage = (advantage - advantage.mean()) / advantage.std()
        loss = -(advantage * policy.log_prob(drawn)).mean()
        gradients.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(torso.parameters()))]).double())
        entropy = float(policy.entropy().mean().detach())
    table = torch.stack(gradients)
    variance = float(table.var(0).sum())
    signal = float((table.mean(0) ** 2).sum()) - variance / BATCHES  # without what the noise adds to it
    return variance, variance / signal, entropy


EQUAL_STD = 0.45
"""First deviation in `gradient_noise`: 11 and 31 atoms both allow it."""


# -- speed -------------------------------------------------------------------------------------------------------------

SPEED_ROUNDS, MOST_RATIO = 16, 1.25


def poisson_speed(args: FigureArgs) -> None:
    """Processor time of an update of each head over that of Gaussian PPO: in pairs, each first in every second one."""
    torch.set_num_threads(1)
    rows = []
    for head, atoms in (*((head, 11) for head in ordered_heads.HEADS), ("poisson", 31)):
        updates = poisson_ppo_model(head, atoms), poisson_ppo_model(GAUSSIAN, atoms)
        times = np.array([measure_pair(updates, number % 2 == 1) for number in range(SPEED_ROUNDS)])
        ratio = float(np.median(times[:, 0] / times[:, 1]))
        verdict = verdicts([(f"at most {MOST_RATIO}", ratio <= MOST_RATIO)]).strip() if head == "poisson" else ""
        own, other = np.median(times, axis=0).tolist()
        rows.append({"head": head, "atoms": atoms, "cpu_s": own, "gaussian_cpu_s": other, "ratio": ratio})
        rows[-1]["verdict"] = verdict
        print(rows[-1])
    write_rows(args.figures / "poisson_speed.csv", rows)


def measure_pair(updates: Sequence[Callable[[], None]], backwards: bool) -> list[float]:
    """Processor times of two updates, the second one first if ``backwards``."""
    times = [0.0, 0.0]
    for k in (1, 0) if backwards else (0, 1):
        began_s = time.process_time()
        updates[k]()
        times[k] = time.process_time() - began_s
    return times


def poisson_ppo_model(head: str, atoms: int) -> Callable[[], None]:
    """The update of a model on HalfCheetah after a rollout."""
    args = Args(head=head, atoms=atoms)
    model = poisson_ppo.make_model(args, poisson_ppo.Lanes(args))
    model.learn(args.lanes * args.rollout)
    return model.train


def study_of(name: str, entries: Iterable[Entry], results: Any = results, **more: Any) -> Study:
    """A study of ordered atoms."""
    shared: dict[str, Any] = {"columns": ("task", "arm"), "panels": panel_per_place, "fixed_seeds": True}
    printed: Any = lambda study, rows, made: map(str, rows)  # noqa: E731
    shared |= {"folder": folder_of, "results": results, "lines": printed}
    return Study(name, tuple(entries), ARMS, PLACES, **{**shared, **more})


FIGURES = (
    Figure("poisson_gradient", poisson_gradient),
    Figure("poisson_speed", poisson_speed),
    study_of(
        "poisson_tuning",
        (
            Entry(TUNED_ON, head, STEPS, arguments={"start_std": std}, name=f"{head} {std}")
            for std in DEVIATIONS
            for head in HEADS
        ),
        tuning_results,
        **{"lines": tuning_lines, "seeds": (TUNING_SEED,), "table": None, "panels": None, "ending": ""},
    ),
    study_of(
        "poisson_tasks",
        (
            Entry(task, arm, STEPS, seeds=SEEDS if task in CLAIMED_ON else FEW_SEEDS)
            for task in (*CLAIMED_ON, "Spread")
            for arm in ARMS
        ),
        task_results,
        table=table_with_lines,
    ),
    study_of(
        "poisson_atoms",
        (
            Entry(f"{TUNED_ON}, {head}", head, STEPS, seeds=FEW_SEEDS, arguments=with_atoms(count), name=f"K = {count}")
            for head in (POISSON, CATEGORICAL)
            for count in ATOMS
        ),
        atoms_results,
    ),
    study_of(
        "poisson_modes",
        (
            Entry(TUNED_ON, POISSON, STEPS, seeds=FEW_SEEDS, arguments=given, name=name)
            for name, given in POISSON_MODES.items()
        ),
    ),
    study_of(
        "humanoid",
        (Entry("Humanoid", arm, HUMANOID_STEPS, seeds=HUMANOID_SEEDS) for arm in (POISSON, NORMAL)),
        humanoid_results,
        table=table_with_lines,
    ),
)
