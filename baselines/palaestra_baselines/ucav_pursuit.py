"""PPO learns to hunt another aircraft: while it wins, the cone of its gun narrows from 15 degrees to 1.

The method is Stable-Baselines3's PPO (Schulman et al., arXiv 1707.06347) on `palaestra.adapters.sb3`: 128 matches of
`palaestra/UcavPursuit-v2` at once, whose rewards pay for posture and aim before the gun hits. The curriculum has a rung
for each group of lanes (`RUNGS`): starts behind a target that turns, low starts, far starts, and targets that turn on
the learner. After each rollout the cone of a rung narrows if most of the rung's last matches were won. ::

    palaestra train ucav_pursuit
    palaestra train ucav_pursuit --hunters 0.4 --total-steps 4000000
    palaestra train ucav_pursuit --options commands=macro --gamma 0.97 --std 0.22 --cone-deg 15 3
    pilot=runs/ucav_pursuit/UcavPursuit-v2/seed_0/last.safetensors
    palaestra eval UcavPursuit-Contest --set start=offensive --a $pilot --b weave

The curve has the kills of the deterministic policy in matches of 200 s with a cone of 1 degree. A resumed run goes on
bitwise as it would have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnvWrapper

from palaestra import registry
from palaestra.adapters.sb3 import as_vec_env
from palaestra.core.run.opponents import OpponentSpec
from palaestra.evaluation import EVALUATION_RUN, evaluate
from palaestra.games.ucav.dogfight import KILL
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.policy_file import save_policy
from palaestra_baselines.common.rollout import matches_state, restore_matches
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs, RunFolder, evaluation_hint, run_command
from palaestra_baselines.common.training import EVALUATION_SEED, Evaluation, Report, linear_schedule
from palaestra_baselines.poisson_ppo import make_ppo
from palaestra_baselines.ppo import policy_arrays
from palaestra_baselines.ppo_tracking import load_policy, perceptron_player

METHOD = "ucav_pursuit"
GAME, TEAM, TARGET = "UcavPursuit", "red", "blue"
TEST_DURATION_S = 200.0
"""Length of a match of a test: a round of the contest."""


@dataclass(frozen=True)
class Rung:
    """Lanes that train the same.

    Attributes:
        share: Of all lanes, where the arguments do not say it.
        targets: Scripts that fly the target, lane by lane in turn.
        duration_s: Length of a match.
        parameters: Other numbers of the rules in these lanes.
        narrowest_deg: Here the cone stops; 0 for that of the arguments.
    """

    share: float
    targets: tuple[str, ...]
    duration_s: float = 40.0
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    narrowest_deg: float = 0.0


RUNGS = {
    "behind": Rung(0.6, ("weave", "level_turn", "weave", "straight"), 40.0, {"behind_range_low_m": 300.0}),
    "low": Rung(0.2, ("weave", "straight"), 40.0, {"altitude_low_m": 1000.0, "altitude_high_m": 2500.0}),
    "far": Rung(
        0.2,
        ("weave", "straight"),
        120.0,
        {"behind_range_low_m": 4000.0, "behind_range_high_m": 10_000.0},
    ),
    "hunters": Rung(0.0, ("pure_fast", "pure_pursuit", "pure_pursuit", "expert"), 80.0, narrowest_deg=2.0),
}


Test = tuple[str, Mapping[str, Any]]
"""Script that flies the target, and numbers of the rules."""
FINE = {"cone_half_angle_deg": 1.0}
WEAVE = "weave, 1 deg"
TESTS: dict[str, Test] = {
    "straight, 10 deg": ("straight", {"cone_half_angle_deg": 10.0}),
    "weave, 3 deg": ("weave", {"cone_half_angle_deg": 3.0}),
    WEAVE: ("weave", FINE),
    f"{WEAVE}, from 1 to 2 km height": ("weave", {**FINE, "altitude_low_m": 1000.0, "altitude_high_m": 2000.0}),
    f"{WEAVE}, from 8 to 10 km range": (
        "weave",
        {**FINE, "behind_range_low_m": 8000.0, "behind_range_high_m": 10_000.0},
    ),
    "pure_pursuit, 3 deg": ("pure_pursuit", {"cone_half_angle_deg": 3.0}),
}
"""Tests by name; the target of none is armed."""


@dataclass
class Args(RunArgs):
    """Arguments, beside those of `RunArgs`.

    Attributes:
        env_id: Preset of UcavPursuit.
        options: Keywords of the game, ``name=value`` each.
        lanes: Matches at once.
        rollout: Decisions of each lane between two updates.
        minibatches: Gradient steps of an epoch.
        epochs: Passes over a rollout.
        learning_rate: Of Adam, at the start and at the end; falls linearly.
        gamma: Discount per decision; `shaping_discount` of the game should equal it.
        gae_lambda: Decay of generalised advantage estimation.
        clip: How far an update may change the probability of an action.
        max_gradient_norm: Longer gradients are clipped to this norm.
        hidden: Widths of the layers of policy and value function.
        std: Standard deviation of the first actions.
        cone_deg: Half-angle of the gun's cone, at the start and at its narrowest.
        narrowing: Factor by which a cone narrows; 1 for no curriculum.
        won_share: A cone narrows after a rollout where more than this share of the last matches were won.
        window: Number of these matches.
        hunters: Share of the lanes in which the target turns on the learner.
        matches: Matches of an evaluation.
    """

    SHARES: ClassVar[tuple[str, ...]] = ("gamma", "gae_lambda", "clip", "narrowing", "won_share", "hunters")
    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*RunArgs.MAY_BE_ZERO, "hunters")

    env_id: str = "palaestra/UcavPursuit-v2"
    options: tuple[str, ...] = ()
    total_steps: int = 1_000_000
    evaluations: int = 10
    lanes: int = 128
    rollout: int = 16
    minibatches: int = 4
    epochs: int = 6
    learning_rate: tuple[float, float] = (7e-4, 1.4e-4)
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    max_gradient_norm: float = 0.5
    hidden: tuple[int, ...] = (64, 64)
    std: float = 0.5
    cone_deg: tuple[float, float] = (15.0, 1.0)
    narrowing: float = 0.93
    won_share: float = 0.6
    window: int = 128
    hunters: float = 0.0
    matches: int = 128
    directory: Path = Path("runs/ucav_pursuit/{env_id}")

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        super().check()
        game, _ = registry.make_game(self.env_id, **keywords(self.options))
        if game.name != GAME:
            raise ValueError(f"--env-id is a preset of {GAME}, got {self.env_id}")
        if self.hunters > 0.5:
            raise ValueError(f"--hunters leaves lanes to the other rungs, 0.5 at most, got {self.hunters}")
        if self.lanes * self.rollout % self.minibatches:
            raise ValueError(
                f"--minibatches must divide the {self.lanes * self.rollout} decisions of a rollout, "
                f"got {self.minibatches}"
            )


def lanes_of_rungs(args: Args) -> list[np.ndarray]:
    """Lanes of each rung, in the order of `RUNGS`; the first has what the others leave."""
    shares = {name: rung.share for name, rung in RUNGS.items()} | {"hunters": args.hunters}
    counts = [round(share * args.lanes) for share in shares.values()]
    counts[0] = args.lanes - sum(counts[1:])
    return np.split(np.arange(args.lanes), np.cumsum(counts)[:-1])


class Lanes(VecEnvWrapper):
    """Matches of the curriculum, which go on from rollout to rollout: Stable-Baselines3 resets in each ``learn``.

    Attributes:
        sim: The simulation.
        rung_of: Number of the rung of each lane.
        cones_deg: Cone of each rung now.
        won: Of each rung, whether the hunter won, 1 or 0, in its last matches.
    """

    def __init__(self, args: Args) -> None:
        """Starts the matches."""
        vec = as_vec_env(args.env_id, args.lanes, team=TEAM, **keywords(args.options))
        super().__init__(vec)
        self.args, self.sim, self._rows = args, vec.sim, vec.rows
        self.rung_of = np.zeros(args.lanes, np.int64)
        self.cones_deg = [args.cone_deg[0] for _ in RUNGS]
        self.won: list[list[int]] = [[] for _ in RUNGS]
        for number, (lanes, rung) in enumerate(zip(lanes_of_rungs(args), RUNGS.values(), strict=True)):
            self.rung_of[lanes] = number
            horizon = round(rung.duration_s * self.sim.game.render_fps)
            self.sim.set_parameters(lanes=lanes, horizon=horizon, **rung.parameters)
            for k, target in enumerate(rung.targets):
                self.sim.set_opponent(TARGET, target, lanes[k :: len(rung.targets)])
        self._set_cones()
        vec.seed(args.seed << 32)
        vec.reset()

    def _set_cones(self) -> None:
        self.sim.set_parameters(cone_half_angle_deg=np.array(self.cones_deg)[self.rung_of])

    def reset(self) -> Any:
        """Shows where the matches are."""
        return self._rows.observe()

    def step_wait(self) -> Any:
        """Plays one decision, and counts won matches."""
        seen, rewards, ends, infos = self.venv.step_wait()
        for lane in np.flatnonzero(ends).tolist():
            self.won[self.rung_of[lane]].append(int(infos[lane]["winner"] == 0))
        return seen, rewards, ends, infos

    def narrow(self) -> None:
        """Narrows the cones of the rungs that are won by now."""
        args = self.args
        for number, rung in enumerate(RUNGS.values()):
            won = self.won[number] = self.won[number][-args.window :]
            if len(won) == args.window and np.mean(won) > args.won_share:
                narrowest = max(args.cone_deg[1], rung.narrowest_deg)
                self.cones_deg[number] = max(args.narrowing * self.cones_deg[number], narrowest)
        self._set_cones()

    def figures(self) -> dict[str, float]:
        """Share won and cone of each rung: columns of the curve."""
        shares = {f"won_{name}": float(np.mean(won or [0])) for name, won in zip(RUNGS, self.won, strict=True)}
        return shares | {f"cone_{name}_deg": cone for name, cone in zip(RUNGS, self.cones_deg, strict=True)}

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint."""
        return {"cones_deg": self.cones_deg, "won": self.won, **matches_state(self.sim)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned.

        Raises:
            ValueError: The matches were played by other rules, or do not fit these lanes.
        """
        self.cones_deg, self.won = list(state["cones_deg"]), [list(won) for won in state["won"]]
        restore_matches(self.sim, state)


# ------------------------------------------------------------------------------------------------------------- policy


def kill_share(args: Args, player: OpponentSpec, test: Test, matches: int, seed: int = EVALUATION_RUN) -> float:
    """Share of the matches of a test in which the target is shot down.

    Args:
        args: Environment and keywords.
        player: Flies red.
        test: Target and rules.
        matches: Number of matches, all at once.
        seed: Number of the run, as for `palaestra.evaluation.evaluate`.
    """
    target, rules = test
    given: dict[str, Any] = {"duration_s": TEST_DURATION_S, **keywords(args.options), **rules}
    options: dict[str, Any] = {"matches": matches, "num_envs": matches, "swap": False, "seed": seed}
    results = evaluate(args.env_id, player, target, **options, **given).results
    return float(((results["outcome"] == 1) & (results["end_reason"] == KILL)).mean())


def weaving_kills(args: Args, player_of: Callable[[str], OpponentSpec]) -> dict[str, float]:
    """Kills in the test `WEAVE`, in matches that no training plays."""
    return {"kills": kill_share(args, player_of(TEAM), TESTS[WEAVE], args.matches, EVALUATION_SEED)}


# ----------------------------------------------------------------------------------------------------------- training


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files as in `palaestra_baselines.fm3q.train`.

    The draws of a rollout start from the seed and the number of decisions before it.

    Args:
        args: Arguments of the run.
        evaluation: What evaluations measure; the kills in the test `WEAVE` if None.
    """
    torch.set_num_threads(1)
    with RunFolder(args, METHOD) as folder:
        lanes = Lanes(args)
        model = make_ppo(args, "MlpPolicy", lanes, log_std_init=float(np.log(args.std)))
        steps, updates, cpu_s = folder.steps, 0, 0.0
        if folder.before:
            with folder.restoring():
                model.set_parameters(folder.before["model"], device="cpu")
                lanes.restore(folder.before["lanes"])
                updates, cpu_s = folder.before["updates"], folder.before["cpu_s"]
        while True:
            if folder.is_due(steps):
                figures = record(args, folder, model, lanes, evaluation, {"steps": steps, "updates": updates}, cpu_s)
                shown = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
                folder.progress.say(f"{steps:9d} decisions: {shown}")
            if steps >= args.total_steps:
                break
            began_s = time.process_time()
            set_random_seed((args.seed * 1_000_003 + steps) % 2**32)
            rate = linear_schedule(args.learning_rate, steps / args.total_steps)
            model.lr_schedule = lambda _, rate=rate: rate
            model.learn(args.lanes * args.rollout)
            lanes.narrow()
            steps += args.lanes * args.rollout
            updates += args.epochs * args.minibatches
            cpu_s += time.process_time() - began_s
            folder.progress.update(steps, **lanes.figures())
        lanes.close()
    last = folder.rows[-1]
    return Report(args.folder / WEIGHTS, steps, int(last["updates"]), last["cpu_s"], folder.rows)


def record(
    args: Args,
    folder: RunFolder,
    model: PPO,
    lanes: Lanes,
    evaluation: Evaluation | None,
    counts: Mapping[str, int],
    cpu_s: float,
) -> dict[str, float]:
    """Evaluates, and writes policy, curve and checkpoint; returns what was measured."""
    arrays = policy_arrays(model)
    player_of = partial(perceptron_player, arrays, lanes.sim.game)
    measure = partial(weaving_kills, args) if evaluation is None else evaluation
    figures = {**measure(player_of), **lanes.figures()}
    facts = {"args": args.settings, "figures": figures, "rules": lanes.sim.rules, **counts}
    save_policy(args.folder / WEIGHTS, arrays, method=METHOD, env_id=args.env_id, **facts)
    state = {"model": model.get_parameters(), "lanes": lanes.state(), "updates": counts["updates"], "cpu_s": cpu_s}
    folder.record({**counts, **figures, "cpu_s": cpu_s}, state)
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    """Trains, and prints the kills in all tests."""
    args, report = run_command(Args, METHOD, __doc__ or "", argv, train)
    print(report)
    for name, test in TESTS.items():
        print(f"{name:36s} kills {kill_share(args, str(report.weights), test, args.matches):.3f}")
    print(evaluation_hint(args, report.weights, "weave"))


__all__ = ["Args", "load_policy", "main", "train"]

if __name__ == "__main__":
    main()
