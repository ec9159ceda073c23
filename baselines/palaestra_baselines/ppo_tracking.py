"""PPO learns to fly a commanded attitude: the inner loop of the UCAV family.

Chai, Chen, Zhu, Yao and Zhao, "A Hierarchical Deep RL Framework for 6-DOF UCAV Air-to-Air Combat" (arXiv 2212.03830)
split air combat into an outer loop that chooses a macro behaviour and an inner loop that tracks it, both trained with
PPO (Schulman et al., arXiv 1707.06347), and claim that the inner loop tracks better than a tuned PID. States, actions,
rewards and networks are not public, so all of them are ours here:

* the task is `palaestra/UcavTrack-v3`: roll angle, flight-path angle and airspeed, ten decisions a second;
* the policy is a 64-64 tanh perceptron on the 33 numbers of that task, integrals of the errors among them. They are
  scaled by `INPUT_SCALE`, so that each acts on the stick where it is near its command; the scales are folded into the
  first layer when it is saved;
* the reward is the task's, a mean over several scales of each error, less a cost on changes of the actions and on ends;
* exploration and learning rate fall by a constant factor a decision: a tenth of a degree cannot be learnt with noise
  that moves the aircraft by more;
* half of the lanes fly *wide* commands, up to inverted flight, steep climbs and new commands twice a second: those of
  macros, for which the policy is made. The weights of a run are chosen by their errors on both kinds of commands.

PPO itself is Stable-Baselines3's, on `palaestra.adapters.sb3`. After a training, or alone for any inner loop, errors
are compared with the PID's (`CONDITIONS`) and macros are flown (`hunt`)::

    python -m palaestra_baselines.ppo_tracking --seed 1
    python -m palaestra_baselines.ppo_tracking --seed 1 --resume      # continues from the last checkpoint
    python -m palaestra_baselines.ppo_tracking --evaluate ppo         # "ppo" is the one that ships; "pid", or a file
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

import palaestra
from palaestra.adapters.sb3 import SimulationVecEnv, as_vec_env
from palaestra.core.contract.fields import bounds
from palaestra.core.run.simulation import Simulation
from palaestra.game import Continuous, Game
from palaestra.games.ucav.inner_loop import load_inner_loop
from palaestra.kernels.networks import Network, fold_normalisation
from palaestra_baselines.common.policy_file import Layers, arrays_to_layers, policy_for, save_policy
from palaestra_baselines.common.run_folder import RunArgs, RunFolder, run_command
from palaestra_baselines.pid import Errors, measure_errors

METHOD = "ppo_tracking"
Player = Callable[[np.ndarray], np.ndarray]
"""Observations ``[N, 33]`` to actions ``[N, 4]``."""
ENV_ID = "palaestra/UcavTrack-v3"
TEST_SEED, TEST_FLIGHTS = 1 << 52, 512
"""Test flights, the same for all players. No player is trained, tuned or chosen on them."""
BEST = "best.safetensors"
SELECTION_SEED = 1 << 50
"""Seed of the flights on which the best weights of a run are chosen."""
WIDE = {
    "roll_range_deg": 180.0,
    "flight_path_range_deg": 60.0,
    "speed_low_mps": 140.0,
    "speed_high_mps": 400.0,
    "command_low_s": 0.5,
    "command_high_s": 8.0,
    "altitude_low_m": 1500.0,
    "altitude_high_m": 8000.0,
    "lowest_m": 2500.0,
}
"""Parameters of wide commands: what macros may ask for."""
CONDITIONS = {
    "default": {},
    "wide": WIDE,
    "disturbed": {"gust_mps": 4.0, "wind_north_mps": 15.0, "density_deviation": -0.1, "payload_kg": 1500.0},
}
"""Parameters of the evaluations. Nobody is trained in the last one."""
SELECTED = ("default", "wide")
"""Conditions on which the best weights of a run are chosen."""
HUNT_ID, TARGETS = "palaestra/UcavPursuit-v2", ("level_turn", "weave")
"""Where `hunt` flies, and what it hunts."""
NOISE = (0.4, 1.0, 0.5, 2.0)
"""Exploration of aileron, elevator, rudder and throttle in units of `Args.std`: less for fast responses."""

# In the order of `palaestra.games.ucav.inner_loop.tracking_table`: about 1 / (range of the number in flight).
INPUT_SCALE = (
    *(0.5, 1.0, 1.0, 2.0, 3.0),  # altitude, roll, pitch
    *(1.0, 5.0, 5.0, 1.0, 2.0),  # velocity, airspeed, climb rate
    *(1.0, 3.0, 3.0, 8.0, 10.0, 3.0),  # rates, angle of attack, sideslip, load factor
    *(1.0, 1.0, 1.0, 0.5),  # mach, calibrated airspeed, engine, fuel
    *(6.0, 1.0, 25.0, 5.0, 0.5),  # errors, age of the command
    *(1.0, 2.0, 2.0, 1.0),  # last action
    25.0,  # error to pull for
    *(5.0, 5.0, 1.0),  # integrals
)


@dataclass
class Args(RunArgs):
    """Arguments, beside those of `RunArgs`.

    Attributes:
        lanes: Aircraft that fly at once.
        workers: Processes that fly them.
        wide_share: Share of the lanes with the wide commands of `WIDE`.
        horizon: Decisions of a flight in training, spread over the lanes so that they do not end together.
        rollout_steps: Decisions of each aircraft between two updates.
        batch_size: Decisions in a gradient step.
        epochs: Passes over a rollout.
        learning_rate: Of Adam, at the start and at the end; falls by a constant factor a decision.
        gamma: Discount per decision.
        gae_lambda: Decay of generalised advantage estimation.
        clip_range: How far an update may change the probability of an action.
        max_grad_norm: Bound of the gradient's norm; the value function's part is large, since returns are.
        hidden: Width of the two layers of policy and value function.
        std: Standard deviation of the actions in units of `NOISE`, at the start and at the end; falls likewise.
        control_rate_cost: Reward that a mean change of the four actions by 1 costs.
        end_cost: Reward that a crash or any other end by a rule costs.
        push_cost: Reward that a decision costs where the tables end, at -10 degrees of angle of attack.
        flights: Aircraft of an evaluation.
        evaluate: ``ppo``, ``pid`` or a file of weights, to be measured on the test flights; then nothing is trained.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*RunArgs.MAY_BE_ZERO, "control_rate_cost", "end_cost", "push_cost")
    SHARES: ClassVar[tuple[str, ...]] = ("wide_share", "gamma", "gae_lambda")

    total_steps: int = 8_000_000
    lanes: int = 256
    workers: int = 1
    wide_share: float = 0.5
    horizon: tuple[int, int] = (200, 600)
    rollout_steps: int = 32
    batch_size: int = 2048
    epochs: int = 6
    learning_rate: tuple[float, float] = (1e-3, 5e-5)
    gamma: float = 0.97
    gae_lambda: float = 0.9
    clip_range: float = 0.2
    max_grad_norm: float = 20.0
    hidden: int = 64
    std: tuple[float, float] = (0.4, 0.01)
    control_rate_cost: float = 0.1
    end_cost: float = 20.0
    push_cost: float = 1.0
    flights: int = 256
    evaluate: str = ""
    directory: Path = Path("runs/ppo_tracking")


@dataclass(frozen=True)
class Report:
    """Result of `train`.

    Attributes:
        weights: Saved policy of the best evaluation.
        best: That evaluation, on the selection flights.
        steps: Decisions learnt from.
        wall_s: Wall time of all parts of the run, evaluations included.
        cpu_s: Processor time of all its processes.
        log: One row per evaluation.
    """

    weights: Path
    best: Errors
    steps: int
    wall_s: float
    cpu_s: float
    log: list[dict[str, float]] = field(default_factory=list)


# --------------------------------------------------------------------------------------------------------- test flights


def evaluation_flights(
    flights: int = TEST_FLIGHTS, workers: int = 2, script: str | None = None, **parameters: float
) -> Simulation:
    """Flights of the registered task for `measure_errors`; ``script="pid"`` lets the PID fly."""
    opponents = {"pilot": script} if script else {}
    options: dict[str, Any] = {"autoreset_mode": "off", "workers": workers, "opponents": opponents}
    return palaestra.make_batch(ENV_ID, flights, **options, **parameters)


def measure_conditions(
    player: Player | None,
    flights: int = TEST_FLIGHTS,
    seed: int = TEST_SEED,
    workers: int = 2,
    conditions: Sequence[str] = tuple(CONDITIONS),
) -> dict[str, Errors]:
    """Errors of a player, or of the PID for None, by the name of the condition."""
    results = {}
    for name in conditions:
        sim = evaluation_flights(flights, workers, None if player else "pid", **CONDITIONS[name])
        results[name] = measure_errors(sim, seed, player)
        sim.close()
    return results


def hunt(inner_loop: str, target: str, seed: int = TEST_SEED, matches: int = 64) -> tuple[int, int]:
    """Kills and own losses of the macro script ``"lag_pursuit"`` in `palaestra/UcavPursuit-v2` over an inner loop.

    Args:
        inner_loop: ``"pid"``, ``"ppo"`` or a file of weights.
        target: Script of the target.
        seed: Of the first match.
        matches: Number of them.
    """
    options: dict[str, Any] = {"commands": "macro", "inner_loop": inner_loop, "autoreset_mode": "off"}
    sim = palaestra.make_batch(HUNT_ID, matches, opponents={"red": "lag_pursuit", "blue": target}, **options)
    sim.reset(seed=seed)
    while not (sim.terminated | sim.truncated).all():
        sim.step()
    winner, is_decided = sim.info["winner"], sim.terminated
    sim.close()
    return int((is_decided & (winner == 0)).sum()), int((is_decided & (winner == 1)).sum())


def cpu_seconds(*sims: Simulation) -> float:
    """Processor time so far of this process and of the worker processes of some simulations (0 for those off Linux)."""
    total = time.process_time()
    for process in (p for sim in sims for p in getattr(sim, "processes", ())):
        try:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / 100.0
    return total


# ----------------------------------------------------------------------------------------------------------- policy


class ScaledInput(BaseFeaturesExtractor):
    """Multiplies the observation by `INPUT_SCALE`."""

    scale: torch.Tensor

    def __init__(self, observation_space: Any) -> None:
        """Keeps the scales beside the weights."""
        super().__init__(observation_space, len(INPUT_SCALE))
        self.register_buffer("scale", torch.tensor(INPUT_SCALE))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Scaled observations."""
        return observations * self.scale


def layer_arrays(layers: Layers) -> dict[str, np.ndarray]:
    """Names the arrays of a perceptron ``layer_0.weight``, ``layer_0.bias``, ..."""
    named = {}
    for number, (weight, bias) in enumerate(layers):
        named[f"layer_{number}.weight"], named[f"layer_{number}.bias"] = weight, bias
    return named


class PerceptronPlayer:
    """An opponent (`palaestra.core.run.opponents`) that clips a tanh perceptron's output to the bounds of its action.

    Attributes:
        memory_size: 0, it remembers nothing.
    """

    memory_size = 0

    def __init__(self, layers: Layers, low: np.ndarray, high: np.ndarray) -> None:
        """Keeps the layers in float64.

        Args:
            layers: Of one agent: its observation to its action.
            low: Lower bounds of the action.
            high: Upper bounds of the action.
        """
        self.layers = [(np.asarray(w, np.float64).T, np.asarray(b, np.float64)) for w, b in layers]
        self.low, self.high = np.asarray(low, np.float64), np.asarray(high, np.float64)

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Actions float64 ``[..., outputs]`` of observations ``[..., inputs]``."""
        hidden = np.asarray(observations, np.float64)
        for number, (weight, bias) in enumerate(self.layers):
            hidden = hidden @ weight + bias
            if number < len(self.layers) - 1:
                hidden = np.tanh(hidden)
        return np.clip(hidden, self.low, self.high)

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Actions of the team; see `palaestra.core.run.opponents.Opponent`."""
        return self(observations)


def perceptron_player(arrays: Mapping[str, np.ndarray], game: Game, team: str) -> PerceptronPlayer:
    """A player for one team of a game with continuous actions.

    Raises:
        ValueError: The network has other inputs or outputs than the team's agents.
    """
    role, _ = game.role_of(game.teams[team][0])
    layers = arrays_to_layers(arrays)
    reals = [f for f in role.action if isinstance(f, Continuous)]
    if len(reals) < len(role.action):
        raise ValueError(f"{team} of {game.name} has choices to make, the policy gives numbers")
    low, high = (np.concatenate([pair[side].reshape(-1) for pair in map(bounds, reals)]) for side in (0, 1))
    seen, sees = sum(f.size for f in role.observation), layers[0][0].shape[1]
    if (sees, len(layers[-1][1])) != (seen, len(low)):
        raise ValueError(
            f"the policy sees {sees} numbers and gives {len(layers[-1][1])}; "
            f"{team} of {game.name} sees {seen} and gives {len(low)}, so it was trained for another game"
        )
    return PerceptronPlayer(layers, low, high)


def policy_layers(model: PPO) -> Layers:
    """The mean of the policy as a perceptron on the raw observation."""
    policy: Any = model.policy
    linear = [m for m in policy.mlp_extractor.policy_net if isinstance(m, torch.nn.Linear)] + [policy.action_net]
    layers = [(m.weight.detach().double().numpy(), m.bias.detach().double().numpy()) for m in linear]
    scale = np.array(INPUT_SCALE)
    return [fold_normalisation(layers[0], np.zeros_like(scale), 1.0 / scale), *layers[1:]]


def player_of(layers: Layers) -> PerceptronPlayer:
    """The deterministic player of some layers."""
    return PerceptronPlayer(layers, np.full(4, -1.0), np.full(4, 1.0))


def save_weights(path: Path, layers: Layers, args: Args, **notes: Any) -> None:
    """Writes the policy's file, which `palaestra.games.ucav.inner_loop.load_inner_loop` reads too."""
    save_policy(path, layer_arrays(layers), method=METHOD, env_id=ENV_ID, args=args.settings, **notes)


def load_policy(path: Path, game: Game, team: str) -> PerceptronPlayer:
    """Player of a saved policy; called by `palaestra.core.run.opponents.load_policy`.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        return perceptron_player(arrays, game, team)


def network_layers(network: Network) -> Layers:
    """The layers of an inner loop as `load_inner_loop` reads it."""
    layers, weight, bias = [], 0, 0
    for inputs, outputs in itertools.pairwise(network.sizes.tolist()):
        matrix = network.weights[weight : weight + inputs * outputs].reshape(inputs, outputs).T
        layers.append((matrix, network.biases[bias : bias + outputs]))
        weight, bias = weight + inputs * outputs, bias + outputs
    return layers


# --------------------------------------------------------------------------------------------------------- training


def make_vec_env(args: Args) -> SimulationVecEnv:
    """The training flights, the last lanes with wide commands."""
    vec = as_vec_env(
        ENV_ID,
        args.lanes,
        workers=args.workers,
        monitor=True,
        control_rate_cost=args.control_rate_cost,
        end_cost=args.end_cost,
        push_cost=args.push_cost,
    )
    for k in range(args.lanes):
        vec.set_attr("horizon", round(args.horizon[0] + k % 16 / 15 * (args.horizon[1] - args.horizon[0])), k)
    for name, value in WIDE.items():
        vec.set_attr(name, value, indices=wide_lanes(args))
    return vec


def wide_lanes(args: Args) -> range:
    """Lanes with wide commands."""
    return range(args.lanes - round(args.wide_share * args.lanes), args.lanes)


def make_model(args: Args, vec: SimulationVecEnv) -> PPO:
    """PPO with a small policy, so that it also runs inside the rules of the dogfight."""
    return PPO(
        "MlpPolicy",
        vec,
        learning_rate=lambda left: geometric_schedule(args.learning_rate, 1.0 - left),
        n_steps=args.rollout_steps,
        batch_size=args.batch_size,
        n_epochs=args.epochs,
        gamma=args.gamma,
        gae_lambda=args.gae_lambda,
        clip_range=args.clip_range,
        max_grad_norm=args.max_grad_norm,
        seed=args.seed,
        device="cpu",
        policy_kwargs={
            "net_arch": [args.hidden, args.hidden],
            "activation_fn": torch.nn.Tanh,
            "features_extractor_class": ScaledInput,
        },
    )


def geometric_schedule(ends: tuple[float, float], share: float) -> float:
    """Geometric interpolation from the first to the second number; constant where ``share`` is over 1."""
    return ends[0] * (ends[1] / ends[0]) ** min(share, 1.0)


class Trainer(BaseCallback):
    """Between two rollouts: narrows the reward, evaluates the policy, keeps the best one and a checkpoint."""

    def __init__(self, args: Args, vec: SimulationVecEnv, folder: RunFolder) -> None:
        """Flies the PID once: the best policy is the one that comes closest to its errors.

        Args:
            args: Of the run.
            vec: The training flights.
            folder: Files of the run, entered.
        """
        super().__init__()
        self.args, self.vec, self.folder = args, vec, folder
        self.best_layers: Layers = ()
        self.best_notes: dict[str, Any] = {"score": math.inf}
        self.wall_before = self.cpu_before = 0.0
        if folder.before is not None:
            with folder.restoring():
                self._restore(folder.before)
        self.started_s, self.cpu_started_s = time.perf_counter(), cpu_seconds(vec.sim)
        self.reference = self._measure(None)

    def _restore(self, before: dict[str, Any]) -> None:
        """Goes on from a checkpoint; weights that were saved after it are replaced by the best ones until then."""
        self.best_layers = [(weight, bias) for weight, bias in before["best_layers"]]
        self.best_notes = before["best"]
        self.wall_before, self.cpu_before = before["wall_s"], before["cpu_s"]
        if not self.folder.is_finished:
            save_weights(self.args.folder / BEST, self.best_layers, self.args, **self.best_notes)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        std = geometric_schedule(self.args.std, self.num_timesteps / self.args.total_steps)
        log_std: Any = self.model.policy.log_std
        log_std.requires_grad_(False).copy_(torch.tensor(NOISE).mul(std).log())
        if self.folder.is_due(self.num_timesteps):
            self.evaluate()
        episodes = self.model.ep_info_buffer or ()
        reward = np.mean([e["r"] / e["l"] for e in episodes]) if episodes else math.nan
        self.folder.progress.update(self.num_timesteps, reward=float(reward))

    def _measure(self, player: Player | None) -> dict[str, Errors]:
        return measure_conditions(player, self.args.flights, SELECTION_SEED, 0, SELECTED)

    def evaluate(self) -> None:
        """Flies the selection flights with the mean action, logs, and keeps the weights if they are the best."""
        assert isinstance(self.model, PPO)
        layers = policy_layers(self.model)
        results = self._measure(player_of(layers))
        mean = score(results, self.reference, self.args.flights)
        std = geometric_schedule(self.args.std, self.num_timesteps / self.args.total_steps)
        wall_s = self.wall_before + time.perf_counter() - self.started_s
        cpu_s = self.cpu_before + cpu_seconds(self.vec.sim) - self.cpu_started_s
        wide = {f"wide_{name}": getattr(results["wide"], name) for name in ("roll_deg", "flight_path_deg", "ended")}
        row = {"steps": self.num_timesteps, **vars(results["default"]), **wide}
        row |= {"score": mean, "std": std, "wall_s": wall_s, "cpu_s": cpu_s}
        if mean < self.best_notes["score"] or not self.best_layers:
            self.best_layers = layers
            self.best_notes = {"steps": self.num_timesteps, "score": mean, "errors": vars(results["default"])}
            save_weights(self.args.folder / BEST, layers, self.args, **self.best_notes)
        best = {"best": self.best_notes, "best_layers": self.best_layers, "wall_s": wall_s, "cpu_s": cpu_s}
        self.folder.record(row, {"model": self.model.get_parameters(), **best})
        texts = [f"{name} {ratio:.2f}" for name, ratio in results["default"].ratios(self.reference["default"]).items()]
        ended = f"ended {results['default'].ended} and {results['wide'].ended} (wide)"
        self.folder.progress.say(
            f"{self.num_timesteps / 1e6:5.2f}M decisions, over the PID: {', '.join(texts)}; {ended}"
        )


def score(results: Mapping[str, Errors], reference: Mapping[str, Errors], flights: int) -> float:
    """Mean of what the bars compare, over the PID's: the best policy has the least.

    The six errors and the action change of the commands of the task, both angles of wide ones; each hundredth of the
    flights that a rule ends, beyond the PID's, costs 0.1.
    """
    default, wide = (results[name].ratios(reference[name]) for name in SELECTED)
    ended = sum(max(results[name].ended - reference[name].ended, 0) for name in SELECTED)
    compared = [*default.values(), wide["roll_deg"], wide["flight_path_deg"]]
    return sum(compared) / len(compared) + 10.0 * ended / flights


def train(args: Args) -> Report:
    """Trains, or resumes, and returns the best weights.

    Files of the run, in ``args.folder``: those of `palaestra_baselines.common.run_folder`, and
    ``best.safetensors``.
    """
    torch.set_num_threads(1)
    weights = args.folder / BEST
    with RunFolder(args, METHOD) as folder:
        vec = make_vec_env(args)
        model = make_model(args, vec)
        if folder.before is not None:
            with folder.restoring():
                model.set_parameters(folder.before["model"], device="cpu")
            model.num_timesteps = folder.steps
        vec.seed((args.seed << 32) + folder.steps)  # a resumed run does not repeat the first flights
        trainer = Trainer(args, vec, folder)
        left = max(args.total_steps - folder.steps, 0)
        model.learn(left, callback=trainer, reset_num_timesteps=folder.before is None)
        if folder.is_due(model.num_timesteps):
            trainer.evaluate()
    vec.close()
    last, best = folder.rows[-1], Errors(**trainer.best_notes["errors"])
    return Report(weights, best, int(last["steps"]), last["wall_s"], last["cpu_s"], folder.rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains, unless there is something to evaluate, and prints errors and hunts next to the PID's."""
    args, report = run_command(Args, METHOD, __doc__ or "", argv, lambda args: None if args.evaluate else train(args))
    weights = args.evaluate or str(report.weights)
    player = None if weights == "pid" else player_of(network_layers(load_inner_loop(weights)))
    pid, results = (measure_conditions(who, workers=args.workers) for who in (None, player))
    for name, errors in results.items():
        figures = "".join(
            f"  {error} {getattr(errors, error):.3g} ({ratio:.2f})" for error, ratio in errors.ratios(pid[name]).items()
        )
        print(f"{name:10s}{figures}  ended {errors.ended} ({pid[name].ended})")
    for target in TARGETS:
        kills, lost = hunt(weights, target)
        print(f"macros of lag_pursuit against {target}: {kills} kills, {lost} own losses of 64")
    if report is not None:
        print(f"{weights}: {report.steps} decisions, {report.wall_s:.0f} s, {report.cpu_s:.0f} s of processor")


if __name__ == "__main__":
    main()
