"""Meta-DT: a sequence model acts in tasks that nobody names, by a context of a world model and a prompt of its own.

Wang et al., "Meta-DT: Offline Meta-RL as Conditional Sequence Modeling with World Model Disentanglement" (arXiv
2410.11448). From recorded matches of training tasks, first a world model learns, whose encoder makes a context z_t of
the four decisions before decision t; its decoders predict what follows:

    world model: mean of (r(s, a, s', z) - r)^2, or of (s'(s, a, z) - s')^2, or of both

Then a causal transformer learns the recorded actions from what came before, the return-to-go g, and the prompt p, which
is a segment of another match of the same task, in four of five batches' rows:

    imitation:   mean of (pi(p, s_1, g_1, z_1, a_1, r_1, ..., s_t, g_t, z_t) - a_t)^2

In a new task the player aims at the same return as in all others. Its prompt is the segment of its own earlier matches
that its world model predicts worst: ``--prompt largest``, as the paper's abstract says; segments there are short, so
that one bad prediction counts. No demonstration of the new task is needed. Compared with it, with equal networks and
equally many gradient steps:

* DT (Chen et al., arXiv 2106.01345): ``--task hidden --prompt none``;
* Prompt-DT (Xu et al., arXiv 2206.13499): ``--task hidden --prompt expert``, a segment of an expert in each task, the
  test task included, or ``--prompt uniform``, one of uniform play;
* the true task in place of the context: ``--task true --prompt none``.

Ours: one token a decision, small networks, positions by place in the sequence, no dropout and no return-to-go in
prompts; ``--layers 3 --width 128 --tokens 3`` has the published sizes. ``--data`` is what is learnt from: ``expert``,
``medium`` or ``mixed`` matches that are played at the start, or a folder of recorded ones::

    palaestra train meta_dt --env-id palaestra/MetaPoint-v0

A step is a gradient step of the transformer. Scores are returns in the test tasks, that of the script ``expert`` being
100 and that of uniform play 0: ``zero_shot`` in the first match in a task, ``score`` in the last of ``--episodes``,
before which the player collects its prompts. Where prompts are given, ``with_expert`` and ``with_uniform`` are scores
with prompts of both kinds, whichever was learnt. In games without such a script, ``--expert`` is a policy that was
trained with ``observe_task=True``; without one, scores are plain returns, and ``--data`` is a folder.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch

from palaestra.game import Game
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.decision_transformers import (
    Agent,
    Design,
    WorldModel,
    design_of,
    imitation_loss,
)
from palaestra_baselines.common.flat_networks import fitting_network, load_arrays
from palaestra_baselines.common.offline_data import (
    Learnable,
    Matches,
    TaskGroups,
    fit_scaling,
    largest_segments,
    make_learnable,
    target_of,
)
from palaestra_baselines.common.policy_file import policy_for, read_policy, save_policy
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs, RunFolder, evaluation_hint, run_command
from palaestra_baselines.common.sequence_player import SequencePlayer
from palaestra_baselines.common.task_families import (
    Family,
    find_family,
    play_matches,
    play_returns,
    read_matches,
    reference_returns,
    scores,
)
from palaestra_baselines.common.training import EVALUATION_SEED, Evaluation, Report, gradient_step

METHOD = "meta_dt"
LATE, LATE_SHARE = 0.7, 0.2
"""Part of the training after which the learning rate is this share of that before."""
PLAYED = ("expert", "medium", "mixed")
"""Data that are played at the start."""
OWN, FOREIGN = ("largest", "random"), ("expert", "uniform")
"""Prompts of the player's own earlier matches, and those that it is given."""
REFERENCES = ("expert", "uniform")
"""Players whose scores are 100 and 0."""
GIVEN = 8
"""Prompts of a test task, one for each of so many lanes."""
PROMPT_RUN = 2**20
"""Added to the number of a run: matches from which prompts are taken are no others."""
PASS = 8192
"""Decisions whose contexts are computed at once."""


@dataclass
class Args(RunArgs):
    """Arguments, beside those of `RunArgs`.

    Attributes:
        env_id: A family of tasks.
        options: Keywords of the game, ``name=value`` each.
        task: What each decision is told of the task: the context of a world model, nothing, or the true task.
        prompt: Where prompts come from: own earlier matches, the segment of the largest error or any, nowhere, or given
            ones of an expert or of uniform play in the task.
        data: ``expert``, ``medium`` or ``mixed``, or a folder of recorded matches, see `palaestra.data`.
        expert: Policy that plays matches of games without a script ``expert``, trained with ``observe_task=True``.
        matches_per_task: Matches that are played in each training task.
        decoder: What the world model predicts.
        context: Numbers of z.
        world_steps: Gradient steps of the world model.
        world_batch: Decisions in each.
        world_rate: Learning rate of the world model.
        total_steps: Gradient steps of the transformer.
        batch_size: Matches in each.
        context_steps: K, decisions that the transformer reads at most.
        prompt_steps: P, decisions of a prompt.
        prompt_share: Share of a batch's rows that have a prompt.
        width: Of the tokens.
        layers: Of the transformer.
        heads: Of its attention.
        tokens: 1 or 3 a decision.
        learning_rate: Of AdamW; a fifth of it in the last 30 % of the steps.
        weight_decay: Of AdamW.
        max_gradient_norm: Longer gradients are clipped to this norm.
        episodes: Matches one after the other in a test task.
        matches: How many times these are played in each test task.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*RunArgs.MAY_BE_ZERO, "weight_decay", "prompt_share")
    SHARES: ClassVar[tuple[str, ...]] = ("prompt_share",)

    env_id: str = "palaestra/MetaPoint-v0"
    options: tuple[str, ...] = ()
    task: Literal["context", "hidden", "true"] = "context"
    prompt: Literal["largest", "random", "none", "expert", "uniform"] = "largest"
    data: str = "medium"
    expert: str = ""
    matches_per_task: int = 60
    decoder: Literal["reward", "state", "both"] = "reward"
    context: int = 16
    world_steps: int = 600
    world_batch: int = 128
    world_rate: float = 1e-3
    total_steps: int = 700
    batch_size: int = 64
    context_steps: int = 20
    prompt_steps: int = 5
    prompt_share: float = 0.8
    width: int = 64
    layers: int = 2
    heads: int = 1
    tokens: int = 1
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    max_gradient_norm: float = 1.0
    evaluations: int = 5
    episodes: int = 5
    matches: int = 32
    directory: Path = Path("runs/meta_dt/{env_id}")

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        super().check()
        self.design(1).check()
        if self.prompt in OWN and self.task != "context":
            raise ValueError(f"--prompt {self.prompt} needs the world model of --task context, got --task {self.task}")

    def design(self, told: int) -> Design:
        """What the agent is made of, in a family whose true task is ``told`` numbers."""
        return Design(
            decoder=self.decoder if self.task == "context" else "",
            context={"context": self.context, "hidden": 0, "true": told}[self.task],
            segment=self.prompt if self.prompt == "largest" or self.prompt == "random" else "given",
            prompt=0 if self.prompt == "none" else self.prompt_steps,
            steps=self.context_steps,
            width=self.width,
            layers=self.layers,
            heads=self.heads,
            tokens=self.tokens,
        )


# ------------------------------------------------------------------------------------------------------ the world model


def learn_world_model(world: WorldModel, data: Learnable, args: Args, rng: np.random.Generator) -> float:
    """Trains a world model; returns the last loss."""
    optimizer = torch.optim.Adam(world.parameters(), fused=True)
    played, loss = data.weights.nonzero(), torch.zeros(())
    for _ in range(args.world_steps):
        rows, at = played[rng.integers(len(played), size=args.world_batch)].T
        loss = world.errors(data.decisions.at(rows, at), world.encode(*data.histories(rows, at))).mean()
        gradient_step(optimizer, loss, args.world_rate, args.max_gradient_norm)
    return float(loss.detach())


@torch.no_grad()
def predict(world: WorldModel, data: Learnable) -> tuple[torch.Tensor, torch.Tensor]:
    """Contexts ``[N, T, context]`` of all decisions, and squared errors ``[N, T]``, 0 behind the end of a match."""
    count, steps = data.weights.shape
    z, errors = [], []
    for part in torch.arange(count * steps).split(PASS):
        rows, at = part // steps, part % steps
        z.append(world.encode(*data.histories(rows, at)))
        errors.append(world.errors(data.decisions.at(rows, at), z[-1]))
    return torch.cat(z).unflatten(0, (count, steps)), torch.cat(errors).unflatten(0, (count, steps)) * data.weights


# ------------------------------------------------------------------------------------------------------ the transformer


class Source(NamedTuple):
    """Matches from which rows of the transformer are taken.

    Attributes:
        rows: ``[N, T, R]``.
        lengths: ``[N]``.
        starts: Of the segment that is a match's prompt, ``[N]``; None where any may be.
    """

    rows: torch.Tensor
    lengths: np.ndarray
    starts: torch.Tensor | None = None

    def segments(self, chosen: np.ndarray, size: int, rng: np.random.Generator) -> torch.Tensor:
        """A segment ``[B, size, R]`` of each of some matches."""
        starts = torch.from_numpy(rng.integers(np.maximum(self.lengths[chosen] - size, 0) + 1))
        matches = torch.from_numpy(chosen)
        if self.starts is not None:
            starts = self.starts[matches]
        steps = (starts[:, None] + torch.arange(size)).clamp(max=self.rows.shape[1] - 1)
        return self.rows[matches[:, None], steps]


class Learner:
    """Networks, data and optimizer of a run."""

    def __init__(self, args: Args, family: Family, matches: Matches, prompts: Matches | None = None) -> None:
        """Scales the data; random weights from torch's generator.

        Args:
            args: Arguments of the run.
            family: The tasks.
            matches: Recorded in training tasks.
            prompts: Matches in these from which prompts are taken; those of ``matches`` if None.

        Raises:
            ValueError: The true task is asked for, and is no table.
        """
        if args.task == "true" and not family.told.size:
            raise ValueError(f"--task true: nobody knows the tasks of {args.env_id} as numbers")
        self.args, self.family, self.matches, self.prompts = args, family, matches, prompts
        self.rng = np.random.default_rng([args.seed, 2])
        self.agent = Agent(args.design(family.told.shape[1]), matches.states.shape[2], matches.actions.shape[2])
        self.agent.scaling.load_state_dict(fit_scaling(matches).state_dict())
        self.agent.target.fill_(target_of(matches))
        self.data = make_learnable(matches, self.agent.scaling)
        self.optimizer = torch.optim.AdamW(
            self.agent.transformer.parameters(), weight_decay=args.weight_decay, fused=True
        )
        self.world_loss = 0.0

    def learn_world(self) -> None:
        """Trains the world model, where there is one."""
        if self.args.task == "context":
            self.world_loss = learn_world_model(self.agent.world, self.data, self.args, self.rng)

    def prepare(self) -> None:
        """Makes what the transformer learns from, once the world model is trained."""
        prompts = self.prompts
        self.source = self.prompt_source = self.source_of(self.matches)
        if prompts is not None:
            self.prompt_source = self.source_of(prompts)
        self.groups = TaskGroups(self.matches.tasks, None if prompts is None else prompts.tasks)

    def source_of(self, matches: Matches) -> Source:
        """Matches as rows, with contexts or true tasks."""
        args, data, starts = self.args, make_learnable(matches, self.agent.scaling), None
        z = torch.zeros(*data.weights.shape, 0)
        if args.task == "true":
            z = torch.from_numpy(self.family.told[matches.tasks]).expand(data.weights.shape[1], -1, -1).swapaxes(0, 1)
        elif args.task == "context":
            z, errors = predict(self.agent.world, data)
            if args.prompt == "largest":
                starts = largest_segments(errors, matches.lengths, args.prompt_steps)
        return Source(data.rows(z), matches.lengths, starts)

    def loss(self) -> torch.Tensor:
        """Imitation loss of the next batch."""
        args, rng, data = self.args, self.rng, self.data
        steps = min(args.context_steps, data.weights.shape[1])
        chosen = rng.integers(len(self.matches), size=args.batch_size)
        starts = rng.integers(np.maximum(self.matches.lengths[chosen] - steps, 0) + 1)
        matches, at = torch.from_numpy(chosen)[:, None], torch.from_numpy(starts)[:, None] + torch.arange(steps)
        prompt, is_there = self.draw_prompts(chosen)
        predicted = self.agent.transformer(self.source.rows[matches, at], prompt, is_there)
        return imitation_loss(predicted, data.decisions.actions[matches, at], data.weights[matches, at])

    def draw_prompts(self, chosen: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows ``[B, P, R]`` of other matches of the tasks of some matches, and which are there, bool ``[B]``."""
        args, rng, size = self.args, self.rng, self.agent.design.prompt
        if not size:
            return self.source.rows[chosen, :0], torch.zeros(len(chosen), dtype=torch.bool)
        prompts = self.prompt_source.segments(self.groups.draw(chosen, rng), size, rng)
        return prompts, torch.from_numpy(rng.random(len(chosen)) < args.prompt_share)

    def step(self, progress: float) -> float:
        """One gradient step; returns the loss."""
        loss, rate = self.loss(), self.args.learning_rate * (LATE_SHARE if progress >= LATE else 1.0)
        gradient_step(self.optimizer, loss, rate, self.args.max_gradient_norm)
        return float(loss.detach())

    def player(self, team: str, prompt: torch.Tensor | None = None, task: int | None = None) -> SequencePlayer:
        """The player by the current weights.

        Args:
            team: Name of the team.
            prompt: Rows ``[G, P, R]`` of prompts that it is given.
            task: Number of the task, which it is told where it is to know it; that of the first test task if None.
        """
        told = torch.from_numpy(self.family.told[self.family.test[0] if task is None else task])
        return SequencePlayer(
            self.agent, self.family.roster.game, team, prompt, told if self.args.task == "true" else None
        )

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        parts = {"agent": self.agent.state_dict(), "optimizer": self.optimizer.state_dict()}
        more = {"rng": self.rng.bit_generator.state, "world_loss": self.world_loss, "data": self.matches.digest}
        return {**parts, **more}

    def restore(self, state: dict[str, Any]) -> None:
        """Restores what `state` returned.

        Raises:
            ValueError: The data are others.
        """
        if state["data"] != self.matches.digest:
            raise ValueError(f"the run was begun with other data than --data {self.args.data} has now")
        self.agent.load_state_dict(state["agent"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rng.bit_generator.state, self.world_loss = state["rng"], state["world_loss"]


# ------------------------------------------------------------------------------------------------------------- training


def collect(args: Args, family: Family) -> tuple[Matches, Matches | None]:
    """What is learnt from, and the matches from which prompts are taken where these are others."""
    if args.data in PLAYED:
        matches = play_matches(family, family.training, args.data, args.matches_per_task, args.seed)
    else:
        matches = read_matches(family, Path(args.data))
    if args.prompt not in FOREIGN:
        return matches, None
    return matches, play_matches(family, family.training, args.prompt, args.matches_per_task, PROMPT_RUN + args.seed)


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files as in `palaestra_baselines.fm3q.train`.

    A run that is killed before its first checkpoint, while the world model learns, starts anew.

    Args:
        args: Arguments.
        evaluation: What evaluations measure; scores in the test tasks if None.
    """
    torch.set_num_threads(1)
    with RunFolder(args, METHOD) as folder:
        steps, cpu_s = folder.steps, 0.0
        if folder.is_finished:
            return Report(args.folder / WEIGHTS, steps, steps, folder.rows[-1]["cpu_s"], folder.rows)
        began_s = time.process_time()
        family = find_family(args.env_id, keywords(args.options), args.expert or None)
        torch.manual_seed(args.seed)
        learner = Learner(args, family, *collect(args, family))
        if folder.before is None:
            learner.learn_world()
        else:
            with folder.restoring():
                learner.restore(folder.before)
                cpu_s = folder.before["cpu_s"]
        learner.prepare()
        loss, measured = 0.0, evaluation or TestScores(learner)
        while True:
            cpu_s += time.process_time() - began_s
            if folder.is_due(steps):
                record(args, folder, learner, steps, measured(learner.player), loss, cpu_s)
            began_s = time.process_time()
            if steps >= args.total_steps:
                break
            loss = learner.step(steps / args.total_steps)
            steps += 1
            folder.progress.update(steps, loss=loss)
    return Report(args.folder / WEIGHTS, steps, steps, cpu_s, folder.rows)


class TestScores:
    """Scores in the test tasks.

    Attributes:
        prompts: By kind, rows ``[test tasks, GIVEN, P, R]`` of prompts that players are given.
    """

    def __init__(self, learner: Learner) -> None:
        """Plays the matches of the expert and of uniform play, and those from which prompts are taken."""
        self.learner, args, family = learner, learner.args, learner.family
        self.episodes = args.episodes if args.prompt in OWN else 1
        played = args.episodes, args.matches, EVALUATION_SEED
        self.references = [reference_returns(family, who, *played) for who in REFERENCES if family.has_expert]
        rng, self.prompts = np.random.default_rng([args.seed, 5]), dict[str, torch.Tensor]()
        for kind in FOREIGN if args.prompt in FOREIGN else ():
            matches = play_matches(family, family.test, kind, GIVEN, PROMPT_RUN + EVALUATION_SEED)
            rows = learner.source_of(matches).segments(np.arange(len(matches)), args.prompt_steps, rng)
            self.prompts[kind] = rows.unflatten(0, (len(family.test), GIVEN))

    def __call__(self, _: Any) -> dict[str, float]:
        """``score``, in the last match in a task, and ``zero_shot``, in the first; with given prompts one of each."""
        if self.prompts:
            found = {kind: float(self.play(prompts)[0]) for kind, prompts in self.prompts.items()}
            return {"score": found[self.learner.args.prompt], **{f"with_{kind}": x for kind, x in found.items()}}
        found = self.play().tolist()
        return {"score": found[-1], "zero_shot": found[0]}

    def play(self, prompts: torch.Tensor | None = None) -> np.ndarray:
        """Scores ``[episodes]``, means over test tasks; returns where there is no expert."""
        learner, family = self.learner, self.learner.family
        given = {} if prompts is None else dict(zip(family.test.tolist(), prompts, strict=True))
        shared = learner.player(family.team) if prompts is None and learner.args.task != "true" else None

        def player_of(task: int) -> SequencePlayer:
            return shared or learner.player(family.team, given.get(task), task)

        returns = play_returns(family, player_of, self.episodes, learner.args.matches, EVALUATION_SEED)
        return (scores(returns, *self.references) if self.references else returns.mean(2)).mean(0)


def record(
    args: Args, folder: RunFolder, learner: Learner, steps: int, figures: dict[str, float], loss: float, cpu_s: float
) -> None:
    """Writes policy, curve and checkpoint."""
    facts = {"args": args.settings, "steps": steps, "updates": steps, "figures": figures}
    design = dataclasses.asdict(learner.agent.design)
    path = args.folder / WEIGHTS
    save_policy(path, learner.agent.arrays(), method=METHOD, env_id=args.env_id, design=design, **facts)
    state = {**learner.state(), "cpu_s": cpu_s} if steps < args.total_steps else None
    losses = {"loss": loss, "world_loss": learner.world_loss}
    folder.record({"steps": steps, "updates": steps, **figures, **losses, "cpu_s": cpu_s}, state)
    shown = "  ".join(f"{name} {value:.3g}" for name, value in {**figures, **losses}.items())
    folder.progress.say(f"{steps:9d} steps: {shown}")


# ------------------------------------------------------------------------------------------------------------- players


def load_policy(path: Path, game: Game, team: str) -> SequencePlayer:
    """The player of a policy file, without prompt until it has played in the same lane.

    Raises:
        FileError: The file is no saved policy, or one of another game, or was trained to be told the task.
    """
    with policy_for(path, game, team) as arrays:
        agent = agent_of(arrays, design_of(read_policy(path)[1].get("design")))
        return SequencePlayer(agent, game, team)


def agent_of(arrays: Mapping[str, np.ndarray], design: Design) -> Agent:
    """The networks of a policy file.

    Raises:
        ValueError: The weights do not fit the design.
    """
    design.check()
    scale, head = (arrays.get(name) for name in ("scaling.state", "transformer.head.bias"))
    if scale is None or head is None or scale.ndim != 2 or head.ndim != 1:
        raise ValueError("the policy has no weights scaling.state and transformer.head.bias: another method saved it")
    agent = fitting_network(lambda: Agent(design, scale.shape[1], len(head)), arrays)
    load_arrays(agent, arrays)
    return agent


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    args, report = run_command(Args, METHOD, __doc__ or "", argv, train)
    print(report)
    print(evaluation_hint(dataclasses.replace(args, options=(*args.options, "tasks=test")), report.weights, None))


if __name__ == "__main__":
    main()
