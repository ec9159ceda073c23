"""GRPO: a language model learns to search from the returns of matches, compared within a group of one question.

Shao et al., "DeepSeekMath" (arXiv 2402.03300): G matches of the same question are played, and a match is good as far as
it is better than its group. There is no critic::

    A = (r - mean(r)) / (std(r) + 1e-4)    over the group, r is the return of a match
    loss = -mean min(rho A, clip(rho, 1 - c, 1 + c) A) + kl * KL(policy, base) - entropy * H(policy)

rho = pi(token) / pi_old(token), and the mean is over all tokens that the model sampled. The tokens of passages, which
it only read, are masked, as in Jin et al., "Search-R1" (arXiv 2503.09516); ``--mask-retrieved no`` lets them count.
Each rollout is learnt from in two passes and forgotten. ``--level turn`` or ``sequence`` takes one ratio for a whole
turn (arXiv 2511.20718) or match (arXiv 2507.18071).

The return is the sum of the environment's rewards: 1 for a right answer, and what keywords such as ``turn_reward`` add.
Where there is no answer, exact match is the share of matches that are won.
``--reward exact_match`` knows right and wrong answers alone. ``--reward module:function`` calls
``function(rollout, info)`` for N numbers, with N matches (`palaestra_baselines.common.lm.rollouts.Rollout`) and the
environment's ``info`` after their last turns, arrays ``[N, ...]``.

Learning starts from base weights (`palaestra_baselines.common.lm.base`), as a model that has never searched is never
right. The curve has the exact match of the same questions sampled, at temperature 0.5, and greedy::

    python -m palaestra_baselines.grpo
    python -m palaestra_baselines.grpo --env-id palaestra/SearchQA-3Hop-v1 --base noisy

``--model FOLDER`` trains a model of Hugging Face on the same matches as text, each lane at its own pace, in chat
messages where its tokenizer has a chat template, on ``--device cuda`` and in ``--dtype bfloat16`` if wanted. Its policy
file plays the model in the folder beside it. It is a demonstration for small models: one process holds the model, its
optimizer and the matches, and rollouts are sampled by the model that learns.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from palaestra import registry
from palaestra.cli import one_line
from palaestra.core.contract.factories import load
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.lm.hf_model import MODEL, Dtype, HFModel, TextTokens, check_device
from palaestra_baselines.common.lm.lm_players import TextPlayer, TokenPlayer
from palaestra_baselines.common.lm.losses import (
    Level,
    chosen,
    entropy,
    group_advantages,
    kl_to_reference,
    loss_mask,
    policy_loss,
    ratios,
    reverse_kl,
)
from palaestra_baselines.common.lm.rollouts import (
    LanguageModel,
    Rollout,
    check_fits,
    make_batch,
    measure_all,
    play,
    play_at_own_pace,
)
from palaestra_baselines.common.lm.tiny_model import load_base, model_of
from palaestra_baselines.common.policy_file import policy_for
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs, RunFolder, evaluation_hint, run_command
from palaestra_baselines.common.training import FolderTraining, Report, gradient_step

METHOD = "grpo"
TURN_TOKENS = "turn_tokens"
"""All that such a policy file holds."""


@dataclass
class Args(RunArgs):
    """Arguments, beside those of `RunArgs`.

    Attributes:
        env_id: An environment of texts, such as text search.
        options: Keywords of the game, ``name=value`` each.
        base: Weights to start from: a bundled base by its name, as shortcut, or a file.
        model: Folder of a causal model of Hugging Face and its tokenizer, to be trained instead.
        turn_tokens: Most tokens of a turn of such a model.
        opponent: Player of the teams behind the first one, which such a model plays; none where there are none.
        device: Where such a model learns and plays: cpu, cuda, cuda:1 or another device of torch.
        dtype: Of its weights: float32 or bfloat16.
        groups: Questions of a rollout.
        group: Matches of each question.
        reward: What is compared: return, exact_match, or module:function.
        passes: Gradient steps on each rollout.
        learning_rate: Of Adam.
        clip: How far from 1 a ratio pays.
        level: What a ratio is of: each token, a turn, or the whole match.
        mask_retrieved: Whether the tokens of passages are left out of the loss.
        kl: Coefficient of KL(policy, base).
        entropy: Coefficient of the entropy.
        max_gradient_norm: Longer gradients are clipped to this norm.
        questions: Matches of an evaluation.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*RunArgs.MAY_BE_ZERO, "kl", "entropy")

    env_id: str = "palaestra/SearchQA-2Hop-v1"
    options: tuple[str, ...] = ()
    base: str = "shortcut"
    model: str = ""
    turn_tokens: int = 64
    opponent: str = "default"
    device: str = "cpu"
    dtype: Dtype = "float32"
    total_steps: int = 50_000
    evaluations: int = 10
    groups: int = 16
    group: int = 8
    reward: str = "return"
    passes: int = 2
    learning_rate: float = 6e-4
    clip: float = 0.2
    level: Level = "token"
    mask_retrieved: Literal["yes", "no"] = "yes"
    kl: float = 0.0
    entropy: float = 0.0
    max_gradient_norm: float = 1.0
    questions: int = 512
    directory: Path = Path("runs/grpo/{env_id}")

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that does not fit, or a device that is not there; names the option.
        """
        super().check()
        reward_function(self.reward)
        if not self.model and (self.device, self.dtype) != ("cpu", "float32"):
            raise ValueError("--device and --dtype are for --model FOLDER: the tiny model learns on the CPU in float32")
        check_device(self.device)


Reward = Callable[[Rollout, Mapping[str, Any]], Any]
"""Gives rewards ``[N]`` for N matches and the environment's ``info`` after their last turns."""


def reward_function(name: str) -> Reward:
    """The rewards of matches by a name of ``--reward``.

    Raises:
        ValueError: No such reward.
    """
    if name in ("return", "exact_match"):
        return lambda rollout, info: rollout.returns if name == "return" else rollout.exact_match
    try:
        return load(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"--reward {name}: give return, exact_match, or module:function ({one_line(error)})") from None


@dataclass(frozen=True)
class Teacher:
    """A policy that knows more, at the tokens of one rollout.

    Attributes:
        log_probs: float32 ``[M, V]``, its distributions at the M tokens of the loss mask.
        weight: Coefficient of KL(policy, teacher).
    """

    log_probs: torch.Tensor
    weight: float


def update(
    model: LanguageModel,
    reference: LanguageModel | None,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    advantages: torch.Tensor,
    args: Args,
    teacher: Teacher | None = None,
) -> None:
    """Learns from a rollout.

    Args:
        model: The policy.
        reference: Its base, where ``args.kl`` is not 0.
        optimizer: Of the policy.
        rollout: N matches.
        advantages: float32 ``[N]`` or, for each token, ``[N, T]``.
        args: Arguments of the run.
        teacher: Whom the policy comes nearer to.
    """
    mask, old = loss_mask(rollout, retrieved=args.mask_retrieved == "no"), rollout.log_probs
    if args.mask_retrieved == "no":
        with torch.no_grad():
            old = chosen(model.log_probs(rollout.ids, mask), rollout.ids, mask)
    if advantages.ndim == 1:
        advantages = advantages[:, None]
    learns = (advantages != 0.0).any(1)
    if reference is not None or teacher is not None or args.entropy:
        learns[:] = True
    if not learns.any():
        return
    # Matches whose advantage is 0 have no gradient and are left out; their tokens count in the mean.
    share = int(mask[learns].sum()) / int(mask.sum())
    ids, turn, old, advantages, mask = (x[learns] for x in (rollout.ids, rollout.turn, old, advantages, mask))
    for _ in range(args.passes):
        log_probs = model.log_probs(ids, mask)
        new = chosen(log_probs, ids, mask)
        loss = share * policy_loss(ratios(new, old, mask, turn, args.level), advantages, mask, args.clip)
        if reference is not None:
            with torch.no_grad():
                base = chosen(reference.log_probs(ids, mask), ids, mask)
            loss = loss + args.kl * kl_to_reference(new, base, mask)
        if teacher is not None:
            loss = loss + teacher.weight * reverse_kl(log_probs, teacher.log_probs)
        if args.entropy:
            loss = loss - args.entropy * entropy(log_probs)
        gradient_step(optimizer, loss, args.learning_rate, args.max_gradient_norm)


class Run(FolderTraining):
    """One training: the model and its lanes. Other methods learn otherwise, see `learn`.

    Attributes:
        method: Name of the method in files.
        model: The policy.
        speaker: What plays the rollouts: the policy, or the policy sampled otherwise.
        seeds: uint64 ``[N]``, of the last rollout; the matches of a group have the same one.
        updates: Rollouts so far.
    """

    method, COUNT, CONTINUES = METHOD, "iterations", True

    def __init__(self, args: Any, folder: RunFolder | None = None) -> None:
        """Starts from the base weights.

        Args:
            args: Those of the method, an `Args`.
            folder: The run's files, entered; a run without them can iterate, but neither evaluate nor resume.
        """
        super().__init__(args, folder, np.random.default_rng([args.seed, 1]), ("reward", "turns", "mixed"))
        matches, self.IS_ONE_FILE = args.groups * args.group, not args.model
        self.device, self.reward = torch.device(args.device), reward_function(args.reward)
        self.model: Any
        self.tokens: Any
        if args.model:
            self.sim, self.tokens = self._text_batch(matches)
            self.model, self.player = self.load(args.model), play_at_own_pace
            self.questions = self._text_batch(args.questions)
        else:
            self.model, self.player = load_base(args.base), play
            self.sim, self.tokens = make_batch(args.env_id, matches, **keywords(args.options))
            self.questions = make_batch(args.env_id, args.questions, **keywords(args.options))
            check_fits(self.model, self.tokens)
        self.speaker: Any = self.model
        self.reference = copy.deepcopy(self.model).requires_grad_(False) if args.kl else None
        self.optimizer: torch.optim.Optimizer = torch.optim.Adam(self.model.parameters(), fused=True)
        self.seeds = np.empty(0, np.uint64)
        self.generator = torch.Generator().manual_seed(args.seed)

    def _text_batch(self, lanes: int) -> tuple[Simulation, Any]:
        args = self.args
        options: dict[str, Any] = {"form": "text", **keywords(args.options)}
        _, *others = registry.make_game(args.env_id, **options)[0].teams
        opponents = dict.fromkeys(others, args.opponent)
        sim = registry.make_batch(args.env_id, lanes, autoreset_mode="off", opponents=opponents, **options)
        return sim, TextTokens(sim, args.model, args.turn_tokens)

    def load(self, folder: str) -> HFModel:
        """A model of Hugging Face with the tokens of this run."""
        return HFModel(folder, self.tokens.size, self.args.device, self.args.dtype)

    def iterate(self) -> None:
        """Plays one match in each lane and learns from them."""
        args = self.args
        self.seeds = np.repeat(self.rng.integers(2**62, size=args.groups, dtype=np.uint64), args.group)
        rollout = self.player(self.speaker, self.sim, self.tokens, self.seeds, self.generator).to(self.device)
        rewards = self.rewards(rollout)
        advantages = group_advantages(rewards, args.group)
        self.losses |= {
            "reward": float(rewards.mean()),
            "turns": float(rollout.turns.float().mean()),
            "mixed": float((advantages != 0.0).float().mean()),
        }
        self.learn(rollout, advantages)
        self.steps += int(rollout.turns.sum())
        self.updates += 1

    def rewards(self, rollout: Rollout) -> torch.Tensor:
        """What the matches are worth, float32 ``[N]``.

        Raises:
            ValueError: A function of the user's gives no such numbers.
        """
        given = torch.as_tensor(self.reward(rollout, self.sim.info), dtype=torch.float32, device=self.device)
        if given.shape != rollout.turns.shape or not given.isfinite().all():
            raise ValueError(
                f"--reward {self.args.reward} gave {tuple(given.shape)} numbers, or some that are not finite: "
                f"give one for each of {len(rollout.turns)} matches"
            )
        return given

    def learn(self, rollout: Rollout, advantages: torch.Tensor) -> None:
        """Learns from a rollout whose matches have these advantages, float32 ``[N]``."""
        update(self.model, self.reference, self.optimizer, rollout, advantages, self.args)

    def learnt(self) -> dict[str, Any]:
        """The parts that learn, by name."""
        return {"model": self.model, "optimizer": self.optimizer}

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds beside these; each iteration starts matches of its own, so none is among it."""
        return {**super().state(), "generator": self.generator.get_state(), "steps": self.steps}

    def restore(self, before: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        super().restore(before)
        self.generator.set_state(before["generator"])
        self.steps = before["steps"]

    def measure(self, policy: Any) -> dict[str, float]:
        """Exact match by column of the curve."""
        return measure_all(self.model, *self.questions, self.player)

    def arrays(self) -> dict[str, np.ndarray]:
        """What the policy file holds; a model of Hugging Face is written to the folder beside it."""
        args = self.args
        if not args.model:
            return self.model.arrays()
        self.model.network.save_pretrained(args.folder / MODEL)
        self.tokens.tokenizer.save_pretrained(args.folder / MODEL)
        return {TURN_TOKENS: np.array([args.turn_tokens], np.float32)}

    def notes(self) -> dict[str, Any]:
        """Nothing more about the policy."""
        return {}

    def report(self) -> Report:
        """Ends the run."""
        weights = self.args.folder / (MODEL if self.args.model else WEIGHTS)
        return dataclasses.replace(super().report(), weights=weights, updates=self.updates * self.args.passes)


def train(args: Args, run_type: type[Run] = Run) -> Report:
    """Trains, or resumes; files as in `palaestra_baselines.common.run_folder`, and ``last.safetensors``."""
    with RunFolder(args, run_type.method) as folder:
        run = run_type(args, folder)
        run.resume(**run.learnt())
        while run.should_continue(run):
            run.iterate()
        return run.report()


def load_policy(path: Path, game: Game, team: str) -> TokenPlayer | TextPlayer:
    """The greedy player of a policy file; called by `palaestra.core.run.opponents.load_policy`.

    Raises:
        FileError: The file is no saved policy, or one of another game, or it plays a model of Hugging Face that is not
            in the folder beside it.
        ImportError: It plays such a model, and transformers is not installed.
    """
    with policy_for(path, game, team) as arrays:
        if TURN_TOKENS in arrays:
            return TextPlayer(path.parent / MODEL, game, team, int(arrays[TURN_TOKENS].ravel()[0]))
        return TokenPlayer(model_of(arrays), game)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    command(Args, METHOD, __doc__ or "", argv, train)


def command(args_type: Any, method: str, about: str, argv: Sequence[str] | None, train: Any) -> None:
    """Trains by a command line and prints what to do next."""
    args, report = run_command(args_type, method, about, argv, train)
    print(report)
    args.options = ("form=text", *args.options)  # the default form is for other learners
    teams = registry.make_game(args.env_id, **keywords(args.options))[0].teams
    print(evaluation_hint(args, args.folder / WEIGHTS, args.opponent if len(teams) > 1 else None))


if __name__ == "__main__":
    main()
