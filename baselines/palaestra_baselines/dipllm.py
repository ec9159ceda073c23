"""DipLLM: a factorised policy of joint orders learns an equilibrium policy from little search, on Concert.

"DipLLM: Fine-Tuning LLM for Strategic Decision-making in Diplomacy" (arXiv 2506.09655) writes the joint order of a
power one unit after another, fine-tunes a language model to an equilibrium policy (piKL), and needs little data. We
know its abstract and its formulas; its model, data and figures are not used. Here no human games and no large model are
needed, and the numbers are ours:

* *Anchor* tau: `palaestra_baselines.common.value_anchor`, probabilities of the script `province_value`.
* *Value*: a perceptron, the mean reward after positions of the anchor's games against itself.
* *Teacher*: `palaestra_baselines.common.pikl`: K plans of each power drawn from the anchor, all pairs adjudicated
  and valued, piKL-Hedge; w(k) is its policy over the drawn plans, about exp(Q(k) / lambda) normalised.
* *Student*: `palaestra_baselines.common.joint_networks`, one network for all powers and units, learns

      loss = -sum over k of w(k) sum over d of log pi(a_d | s, a_1 ... a_{d-1}),    a = plan k

  from games in which half of the powers play by the teacher, the others by the anchor. A gradient step draws one plan
  of each position by w. The product of the conditionals that minimise this is the teacher's policy.

What it is compared with: ``--student clone`` learns the anchor's plans, all alike; ``joint`` classifies whole plans,
the 1,500 heaviest; ``--unit-order reversed`` writes the orders from the last unit to the first. The policy file draws
its plans at ``--temperature``: scores are divided by it::

    python -m palaestra_baselines.dipllm
    python -m palaestra_baselines.dipllm --env-id palaestra/ConcertDuel-20-v0 --games 100

``--model FOLDER`` trains a causal language model of Hugging Face instead of the network
(`palaestra_baselines.common.joint_text` says how it reads and what the paper does not give); its policy file plays the
model in the folder beside it.

The log has two figures: the loss, and the score against the anchor (a drawn match is half a point).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from palaestra import registry
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.flat_networks import fitting_network, load_arrays
from palaestra_baselines.common.joint_networks import (
    FactorisedPolicy,
    PlanClassifier,
    ValueNetwork,
    class_loss,
    heaviest_plans,
    plan_loss,
)
from palaestra_baselines.common.joint_orders import Terrain, View, draw_plans, drawn, has_choice, join
from palaestra_baselines.common.joint_players import Classified, OneByOne, PlanPlayer, one_against_others
from palaestra_baselines.common.joint_text import TextPlanPlayer, TextPolicy, text_views_of
from palaestra_baselines.common.lm.hf_model import MODEL
from palaestra_baselines.common.pikl import TRIALS, Results, Search, is_over, search_plans, views_of
from palaestra_baselines.common.policy_file import policy_for, read_policy, save_policy
from palaestra_baselines.common.rollout import RUN_BITS
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs, RunFolder, evaluation_hint, run_command
from palaestra_baselines.common.training import EVALUATION_SEED, Report, gradient_step, linear_schedule
from palaestra_baselines.common.value_anchor import Anchor

METHOD = "dipllm"
CLASSES = 1500
"""Most plans of the classifier."""
TAUGHT = 0.5
"""Share of the powers that play by the teacher in the games to learn from."""
VALUE_PASSES, VALUE_BATCH, VALUE_RATE = 6, 256, 2e-3
"""Passes of the value over its games, positions of a gradient step, and learning rate."""
LANES = 512
"""Positions whose lists are asked for at once."""


@dataclass
class Args(RunArgs):
    """Arguments, beside those of `RunArgs`.

    Attributes:
        env_id: A game of Concert; its decisions are all orders of a phase.
        options: Keywords of the game, ``name=value`` each.
        student: What learns: the factorised policy by the teacher, the same by the anchor, or a classifier of plans.
        model: Folder of a causal model of Hugging Face and its tokenizer, to be trained instead of the network.
        unit_order: In which order of the units the orders are written.
        games: Games of the anchor from which the value learns, and as many to learn from.
        plans: K, that each power draws.
        anchor_weight: lambda.
        rounds: Of Hedge.
        hedge_step: eta.
        total_steps: Positions of all gradient steps.
        batch_size: Positions of a gradient step.
        hidden: Widths of the student.
        learning_rate: Of Adam, at the start and at the end; falls linearly.
        max_gradient_norm: Longer gradients are clipped to this norm.
        temperature: Of the policy that is evaluated and saved.
        matches: Of an evaluation, rounded down to a multiple of the powers.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*RunArgs.MAY_BE_ZERO, "anchor_weight")

    env_id: str = "palaestra/ConcertDuel-v0"
    options: tuple[str, ...] = ()
    student: Literal["full", "clone", "joint"] = "full"
    model: str = ""
    unit_order: Literal["map", "reversed"] = "map"
    games: int = 500
    plans: int = 16
    anchor_weight: float = 0.05
    rounds: int = 150
    hedge_step: float = 10.0
    total_steps: int = 400_000
    evaluations: int = 10
    batch_size: int = 256
    hidden: tuple[int, ...] = (128, 128)
    learning_rate: tuple[float, float] = (4e-3, 1e-5)
    max_gradient_norm: float = 10.0
    temperature: float = 0.3
    matches: int = 200
    directory: Path = Path("runs/dipllm/{env_id}")

    @property
    def search(self) -> Search:
        """Numbers of the teacher."""
        return Search(self.plans, self.anchor_weight, self.rounds, self.hedge_step)

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        super().check()
        if self.student == "joint" and self.model:
            raise ValueError("--model writes one order after another: --student joint is a network")
        if self.student == "joint" and self.unit_order == "reversed":
            raise ValueError("--unit-order is of factorised students: --student joint writes whole plans")


# ----------------------------------------------------------------------------------------------------------------- data


@dataclass
class Data:
    """What the student learns from.

    Attributes:
        value: The value network.
        records: Match records ``[N]``.
        plans: Of each power, int16 ``[N, Q, K, S]``.
        weights: The teacher's policy over them, float32 ``[N, Q, K]``.
    """

    value: ValueNetwork
    records: np.ndarray
    plans: np.ndarray
    weights: np.ndarray

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        rows = np.ascontiguousarray(self.records).view(np.uint8).reshape(len(self.records), -1)
        value = self.value.state_dict()
        return {"value": value, "records": rows, "plans": self.plans, "weights": self.weights}


class Teacher:
    """The search, and the games that are played with it.

    Attributes:
        terrain: Of the game.
        anchor: Draws the plans.
        results: Asks the rules.
    """

    def __init__(self, args: Args, value: ValueNetwork) -> None:
        """Makes the lanes of the search."""
        powers = len(make_game(args).teams)
        sim = make_lanes(args, TRIALS if powers == 2 else args.games * args.plans)
        self.args, self.terrain = args, Terrain(sim.game)
        self.anchor, self.results = Anchor(self.terrain), Results(self.terrain, sim, value)

    def search(
        self, records: np.ndarray, views: Sequence[View], rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Plans int64 ``[N, Q, K, S]`` drawn from the anchor, and the policies over them, float64 ``[N, Q, K]``."""
        shape = (len(records), self.args.plans, self.terrain.slots)
        plans = [draw_plans(self.anchor, view, rng.random(shape)) for view in views]
        weights = search_plans(self.results, records, plans, self.args.search, rng)
        return np.stack(plans, 1), np.stack(weights, 1)


def make_lanes(args: Args, lanes: int) -> Simulation:
    """Lanes that stop at the end of their match."""
    return registry.make_batch(args.env_id, lanes, autoreset_mode="off", **keywords(args.options))


def play_anchor(args: Args, seed: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Games of the anchor against itself: features of all powers float32 ``[M, F]``, and their rewards ``[M]``."""
    sim = make_lanes(args, args.games)
    terrain = Terrain(sim.game)
    anchor, features, lanes = Anchor(terrain), [], []
    rewards = np.zeros((args.games, terrain.powers), np.float32)
    sim.reset(seed=seed << RUN_BITS)
    while not is_over(sim).all():
        playing = np.flatnonzero(~is_over(sim))
        actions: Any = sim.actions
        for power, view in enumerate(views_of(terrain, sim)):
            actions[:, power] = draw_plans(anchor, view, rng.random((args.games, 1, terrain.slots)))[:, 0]
            features.append(view.features[playing])
            lanes.append(playing * terrain.powers + power)
        sim.step()
        over = playing[is_over(sim)[playing]]
        rewards[over] = sim.rewards[over]
    sim.close()
    return np.concatenate(features), rewards.reshape(-1)[np.concatenate(lanes)]


def fit_value(network: ValueNetwork, features: np.ndarray, rewards: np.ndarray, rng: np.random.Generator) -> None:
    """Learns the mean reward after positions, by squared errors."""
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    x, y = torch.from_numpy(features), torch.from_numpy(rewards)
    for _ in range(VALUE_PASSES):
        for rows in torch.from_numpy(rng.permutation(len(y))).split(VALUE_BATCH):
            gradient_step(optimizer, ((network(x[rows]) - y[rows]) ** 2).mean(), VALUE_RATE, 10.0)


def play_taught(args: Args, teacher: Teacher, seed: int, rng: np.random.Generator) -> Data:
    """Games to learn from: each power plays one by the teacher or by the anchor; the teacher weighs all plans."""
    sim, terrain = make_lanes(args, args.games), teacher.terrain
    records, plans, weights = [], [], []
    taught = rng.random((args.games, terrain.powers)) < TAUGHT
    sim.reset(seed=seed << RUN_BITS)
    while not is_over(sim).all():
        playing = np.flatnonzero(~is_over(sim))
        states, views = sim.states[playing], [view.take(playing) for view in views_of(terrain, sim)]
        drawn_plans, policies = teacher.search(states, views, rng)
        shares = np.where(taught[playing][..., None], policies, 1.0).reshape(-1, args.plans).cumsum(1)
        chosen = drawn(shares, rng.random(len(shares))).reshape(len(playing), -1)
        actions: Any = sim.actions
        actions[playing] = np.take_along_axis(drawn_plans, chosen[..., None, None], 2)[:, :, 0]
        records.append(states)
        plans.append(drawn_plans.astype(np.int16))
        weights.append(policies.astype(np.float32))
        sim.step()
    sim.close()
    return Data(teacher.results.value, *map(np.concatenate, (records, plans, weights)))  # type: ignore[arg-type]


def collect(args: Args, folder: RunFolder) -> Data:
    """The value, then the games to learn from."""
    folder.progress.say(f"{args.games} games of the anchor, then {args.games} with the teacher")
    rng = np.random.default_rng([args.seed, 4])
    features, rewards = play_anchor(args, args.seed, rng)
    value = ValueNetwork(features.shape[1])
    fit_value(value, features, rewards, rng)
    teacher = Teacher(args, value)
    data = play_taught(args, teacher, EVALUATION_SEED // 2 + args.seed, rng)
    teacher.results.sim.close()
    return data


@dataclass(frozen=True)
class Samples:
    """All positions in which a power has a choice.

    Attributes:
        view: N of them.
        plans: int64 ``[N, K, S]``.
        shares: Cumulative weights, float64 ``[N, K]``.
    """

    view: View
    plans: np.ndarray
    shares: np.ndarray


def samples_of(args: Args, data: Data) -> Samples:
    """What the student learns from, of all powers alike."""
    sim = make_lanes(args, LANES)
    terrain, views, look = Terrain(sim.game), [], text_views_of if args.model else views_of
    for first in range(0, len(data.records), LANES):
        some = data.records[first : first + LANES]
        sim.load_states(np.resize(some, LANES))
        views.append([view.take(slice(len(some))) for view in look(terrain, sim)])
    sim.close()
    view = join([join(of_power) for of_power in zip(*views, strict=True)])
    plans, weights = (np.concatenate(list(x.swapaxes(0, 1))) for x in (data.plans, data.weights))
    chooses = np.flatnonzero(has_choice(view.lists).any(1))
    weights = np.ones(weights.shape) if args.student == "clone" else weights.astype(np.float64)
    samples = Samples(view.take(chooses), plans[chooses].astype(np.int64), weights[chooses].cumsum(1))
    if args.unit_order == "map":
        return samples
    return Samples(samples.view.backwards(), samples.plans[..., ::-1].copy(), samples.shares)


# ------------------------------------------------------------------------------------------------------------- training


class Learner:
    """The student, and a gradient step of it."""

    def __init__(self, args: Args, terrain: Terrain, samples: Samples) -> None:
        """Makes the network."""
        self.args, self.terrain, self.samples, self.classes = args, terrain, samples, None
        self.rng = np.random.default_rng([args.seed, 5])
        self.network: Any
        if args.model:
            self.network = TextPolicy(args.model)
        elif args.student == "joint":
            weights = np.diff(samples.shares, axis=1, prepend=0.0)
            plans, self.classes = heaviest_plans(samples.plans, weights, CLASSES)
            self.network = PlanClassifier(terrain, plans, args.hidden)
        else:
            self.network = FactorisedPolicy(terrain, args.hidden)
        self.optimizer = torch.optim.Adam(self.network.parameters(), fused=True)

    def step(self, progress: float) -> float:
        """One gradient step; returns the loss."""
        args, samples = self.args, self.samples
        rows = self.rng.integers(len(samples.view), size=args.batch_size)
        plan = drawn(samples.shares[rows], self.rng.random(len(rows)))
        view = samples.view.take(rows)
        if args.model:
            loss = self.network.loss(view, samples.plans[rows, plan])
        elif self.classes is None:
            loss = plan_loss(self.network, view, samples.plans[rows, plan])
        else:
            loss = class_loss(self.network, view, self.classes[rows, plan])
        gradient_step(self.optimizer, loss, linear_schedule(args.learning_rate, progress), args.max_gradient_norm)
        return float(loss.detach())

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        learnt = {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        return {**learnt, "rng": self.rng.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rng.bit_generator.state = state["rng"]


def train(args: Args) -> Report:
    """Collects the games, then trains, or resumes; files as in `palaestra_baselines.fm3q.train`.

    A run that is killed before its first checkpoint, while the games are collected, starts anew.
    """
    torch.set_num_threads(1)
    with RunFolder(args, METHOD) as folder:
        steps, updates, cpu_s = folder.steps, 0, 0.0
        if folder.is_finished:
            last = folder.rows[-1]
            return Report(args.folder / WEIGHTS, steps, int(last["updates"]), last["cpu_s"], folder.rows)
        began_s, game = time.process_time(), make_game(args)
        anchor_player(game, next(iter(game.teams)))  # refuses games that it cannot play before any is played
        torch.manual_seed(args.seed)
        data = collect(args, folder) if folder.before is None else restored_data(args, folder)
        learner = Learner(args, Terrain(game), samples_of(args, data))
        if folder.before is not None:
            with folder.restoring():
                learner.restore(folder.before)
                updates, cpu_s = folder.before["updates"], folder.before["cpu_s"]
        loss = 0.0
        while True:
            cpu_s += time.process_time() - began_s
            if folder.is_due(steps):
                record(args, folder, learner, data, {"steps": steps, "updates": updates}, loss, cpu_s)
            began_s = time.process_time()
            if steps >= args.total_steps:
                break
            loss = learner.step(steps / args.total_steps)
            steps, updates = steps + args.batch_size, updates + 1
            folder.progress.update(steps, loss=loss)
    return Report(args.folder / WEIGHTS, steps, updates, cpu_s, folder.rows)


def record(
    args: Args, folder: RunFolder, learner: Learner, data: Data, counts: dict[str, int], loss: float, cpu_s: float
) -> None:
    """Evaluates, and writes policy, curve and checkpoint."""
    path, game = args.folder / WEIGHTS, learner.terrain.game
    if args.model:
        learner.network.save(args.folder / MODEL)
    own = {} if args.model else arrays_of(learner.network)  # the weights of a model are in the folder
    arrays = {**own, **{f"value.{k}": v for k, v in arrays_of(data.value).items()}}
    facts = {"args": args.settings, **counts}
    save_policy(path, arrays, method=METHOD, env_id=args.env_id, **facts)
    players = {team: load_policy(path, game, team) for team in game.teams}
    anchors = {team: anchor_player(game, team) for team in game.teams}
    score = one_against_others(args.env_id, keywords(args.options), players, anchors, args.matches, EVALUATION_SEED)
    figures = {"score": float(score.mean()), "loss": loss}
    state = None
    if counts["steps"] < args.total_steps:
        state = {**data.state(), **learner.state(), "updates": counts["updates"], "cpu_s": cpu_s}
    folder.record({**counts, **figures, "cpu_s": cpu_s}, state, is_one_file=not args.model)
    shown = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
    folder.progress.say(f"{counts['steps']:9d} positions: {shown}")


def restored_data(args: Args, folder: RunFolder) -> Data:
    """The data of the checkpoint."""
    before: Any = folder.before
    with folder.restoring():
        game = make_game(args)
        value = ValueNetwork(Terrain(game).features)
        value.load_state_dict(before["value"])
        records = before["records"].view(game.state_dtype).reshape(-1)
        return Data(value, records, before["plans"], before["weights"])


def make_game(args: Args) -> Game:
    """The rules."""
    return registry.make_game(args.env_id, **keywords(args.options))[0]


def arrays_of(network: torch.nn.Module) -> dict[str, np.ndarray]:
    """Weights by name, float32; numbers of orders are exact in it."""
    return {name: value.detach().float().numpy().copy() for name, value in network.state_dict().items()}


# ------------------------------------------------------------------------------------------------------------- players


def anchor_player(game: Game, team: str) -> PlanPlayer:
    """The anchor as a player."""
    terrain = Terrain(game)
    return PlanPlayer(terrain, team, OneByOne(Anchor(terrain)))


def load_policy(path: Path, game: Game, team: str) -> PlanPlayer:
    """The player of a power by a saved policy, see `PlanPlayer`.

    Raises:
        FileError: It is not a saved policy, or was trained for another game or map, or plays a model of Hugging Face
            that is not in the folder beside it.
        ImportError: It plays such a model, and transformers is not installed.
    """
    with policy_for(path, game, team) as arrays:
        terrain = Terrain(game)
        notes = read_policy(path)[1].get("args", {})
        missing = [name for name in ("student", "unit_order", "hidden", "temperature") if name not in notes]
        if missing:
            raise ValueError(f"its metadata do not say {missing[0]!r}: train the policy again")
        if notes.get("model"):
            policy = TextPolicy(path.parent / MODEL).requires_grad_(False)
            policy.temperature = float(notes["temperature"])
            return TextPlanPlayer(terrain, team, OneByOne(policy, notes["unit_order"] == "reversed"))
        network = network_of(arrays, terrain, notes)
        network.temperature = float(notes["temperature"])
        if isinstance(network, PlanClassifier):
            return PlanPlayer(terrain, team, Classified(network, Anchor(terrain)))
        return PlanPlayer(terrain, team, OneByOne(network, notes["unit_order"] == "reversed"))


def network_of(arrays: Mapping[str, np.ndarray], terrain: Terrain, notes: Mapping[str, Any]) -> Any:
    """The student of a policy file.

    Raises:
        ValueError: The weights do not fit the map.
    """
    hidden, own = tuple(notes["hidden"]), {k: v for k, v in arrays.items() if not k.startswith("value.")}
    if notes["student"] == "joint":
        plans = own["plans"].astype(np.int64)
        network: Any = fitting_network(lambda: PlanClassifier(terrain, plans, hidden), own)
        own = {**own, "plans": plans}
    else:
        network = fitting_network(lambda: FactorisedPolicy(terrain, hidden), own)
    load_arrays(network, own)
    return network.requires_grad_(False)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    args, report = run_command(Args, METHOD, __doc__ or "", argv, train)
    print(report)
    print(evaluation_hint(args, report.weights, "province_value"))


__all__ = ["Args", "load_policy", "main", "train"]

if __name__ == "__main__":
    main()
