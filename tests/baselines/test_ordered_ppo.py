"""PPO with ordered and Gaussian heads: resumed runs, players of saved policies, our games and Gymnasium's, errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import games.copy_game  # noqa: F401 (registers the game)
import torch

from palaestra.core.files import FileError
from palaestra.core.run.opponents import load_policy
from palaestra.evaluation import evaluate
from palaestra.game import Continuous
from palaestra_baselines import poisson_ppo
from palaestra_baselines.common.gymnasium_envs import play_gymnasium
from palaestra_baselines.common.ordered_heads import ANNEALED_TO
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.run_folder import LOG, WEIGHTS, read_rows
from palaestra_baselines.poisson_ppo import ALL_HEADS, GAUSSIAN, Args, UnitPolicy

pytestmark = pytest.mark.check

COPY = "tests/Copy-v0"
"""A game of two agents that give a number each; matches of ten decisions."""
LANES, ROLLOUT = 4, 7
"""Rollouts end within the matches."""


def small(folder: Path, **more: Any) -> Args:
    given: dict[str, Any] = {"env_id": COPY, "lanes": LANES, "rollout": ROLLOUT, "epochs": 2, "minibatches": 2}
    given |= {"matches": 8, "evaluations": 2, "hidden": (8,), "total_steps": 112, "atoms": 5}
    return Args(directory=folder, quiet=True, **{**given, **more})


def learnt(args: Args, rollouts: int = 2) -> tuple[Any, poisson_ppo.Lanes]:
    """A model after some rollouts, and its lanes."""
    lanes = poisson_ppo.Lanes(args)
    model = poisson_ppo.make_model(args, lanes)
    model.lr_schedule = lambda _: 0.1
    for _ in range(rollouts):
        model.learn(lanes.num_envs * ROLLOUT)
    return model, lanes


# -- our games ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("head", "normalise"), [("poisson", True), (GAUSSIAN, False)])
def test_resumed_ordered_runs_go_on_bitwise(head: str, normalise: bool, tmp_path: Path):
    own: dict[str, Any] = {"head": head, "normalise": normalise, "normalise_rewards": normalise, "seed": 3}
    whole, broken = runs = [small(tmp_path / name, **own) for name in ("whole", "broken")]
    poisson_ppo.train(whole)
    seen: list[Any] = []

    def breaks(player_of: Any) -> dict[str, float]:
        seen.append(player_of("team"))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return poisson_ppo.mean_return(broken, seen[-1])

    with pytest.raises(KeyboardInterrupt):
        poisson_ppo.train(broken, breaks)
    poisson_ppo.train(replace(broken, resume=True))
    (arrays, _), (others, notes) = (read_policy(run.folder / WEIGHTS) for run in runs)
    assert len(seen) == 3
    assert notes["steps"] == 112
    assert arrays.keys() == others.keys()
    assert all(np.array_equal(arrays[name], others[name]) for name in arrays)
    assert ("mean" in arrays) == normalise
    logs = [[{k: v for k, v in row.items() if k != "cpu_s"} for row in read_rows(run.folder / LOG)] for run in runs]
    np.testing.assert_equal(logs[0], logs[1])  # the first row has a nan
    assert [row["steps"] for row in logs[0]] == [0, 56, 112]  # a decision of two agents counts once
    assert [row["updates"] for row in logs[0]] == [0, 2 * 2 * 2, 4 * 2 * 2]
    assert np.isfinite([row["training_return"] for row in logs[0][1:]]).all()


def test_matches_of_ordered_runs_go_on_from_rollout_to_rollout(tmp_path: Path):
    _, lanes = learnt(small(tmp_path))
    assert lanes.sim is not None
    assert (lanes.sim.states["steps"] == 2 * ROLLOUT % 10).all()
    lanes.reset()
    assert (lanes.sim.states["steps"] == 2 * ROLLOUT % 10).all()


@pytest.mark.parametrize("head", ALL_HEADS)
@pytest.mark.parametrize("normalise", [True, False])
def test_players_of_ordered_policies_do_what_the_policy_would(head: str, normalise: bool, tmp_path: Path):
    model, lanes = learnt(small(tmp_path, normalise=normalise, head=head))
    assert lanes.sim is not None
    game = lanes.sim.game
    with torch.no_grad():
        last = model.policy.action_net.linear if head != GAUSSIAN else model.policy.action_net
        last.weight.mul_(10.0)
    player = poisson_ppo.ModePlayer(poisson_ppo.policy_arrays(model, lanes), game, "team")
    shown: Any = np.linspace(-3.0, 3.0, 400, dtype=np.float32).reshape(-1, 2, 1)
    rows = shown.reshape(-1, 1)
    chosen = model.predict(lanes.venv.normalize_obs(rows), deterministic=True)[0]  # type: ignore[attr-defined]
    wanted = chosen if head == GAUSSIAN else chosen / 2.0 - 1.0  # five atoms
    played = player.act(shown, None, None, None, None, None)
    np.testing.assert_allclose(played, wanted.reshape(-1, 2, 1), atol=1e-5)
    assert len(np.unique(played)) > 1
    model.learn(2 * LANES * ROLLOUT)
    np.testing.assert_array_equal(player.act(shown, None, None, None, None, None), played)  # its arrays are copies


def test_numbers_of_ordered_players_are_scaled_to_the_ranges_of_a_game(tmp_path: Path):
    model, lanes = learnt(small(tmp_path, head="categorical"))
    assert lanes.sim is not None
    role = replace(lanes.sim.game.roles[0], action=(Continuous("number", (), 2.0, 6.0, noop=2.0),))
    player = poisson_ppo.ModePlayer(
        poisson_ppo.policy_arrays(model, lanes), replace(lanes.sim.game, roles=(role,)), "team"
    )
    shown: Any = np.linspace(-1.0, 1.0, 20, dtype=np.float32).reshape(-1, 2, 1)
    np.testing.assert_allclose(
        player.act(shown, None, None, None, None, None), 4.0 + 2.0 * player.numbers(shown), atol=1e-6
    )


def test_rewards_of_ordered_runs_are_scaled_and_returns_are_as_paid(tmp_path: Path):
    plain, scaled = (
        poisson_ppo.Lanes(small(tmp_path, reward_scale=scale, normalise_rewards=False)) for scale in (1.0, 10.0)
    )
    paid = []
    for lanes in (plain, scaled):
        lanes.seed(0)
        lanes.reset()
        paid.append(np.stack([lanes.step(np.full((2 * LANES, 1), 2))[1] for _ in range(20)]))
    np.testing.assert_allclose(paid[1], 10.0 * paid[0], rtol=1e-6)
    assert (paid[0] > 0.0).all()
    np.testing.assert_allclose(scaled.take_returns(), [*paid[0][:10].sum(0), *paid[0][10:].sum(0)], rtol=1e-5)
    assert scaled.take_returns() == []


def test_the_first_gaussian_deviation_is_a_share_of_the_range(tmp_path: Path):
    args = small(tmp_path, head=GAUSSIAN, start_std=0.25)
    model = poisson_ppo.make_model(args, poisson_ppo.Lanes(args))
    assert model.policy.log_std.exp().tolist() == pytest.approx([0.25])  # type: ignore[operator]


@pytest.mark.parametrize("head", ["poisson", GAUSSIAN])
def test_saved_ordered_policies_play_in_evaluations(head: str, tmp_path: Path):
    report = poisson_ppo.train(small(tmp_path, head=head))
    table = evaluate(COPY, report.weights, matches=8)
    assert np.isfinite(table.mean_return)
    assert table.mean_return == pytest.approx(evaluate(COPY, str(report.weights), matches=8).mean_return)


def test_ordered_policies_of_other_games_are_refused_by_name(tmp_path: Path):
    report = poisson_ppo.train(small(tmp_path))
    cart, _ = poisson_ppo.registry.make_game("palaestra/CartPole-v0")
    with pytest.raises(FileError, match="trained in 'tests/Copy-v0'"):
        load_policy(report.weights, cart, "cart")


def test_a_learning_rate_of_zero_changes_no_ordered_policy(tmp_path: Path):
    args = small(tmp_path)
    lanes = poisson_ppo.Lanes(args)
    model = poisson_ppo.make_model(args, lanes)
    before = poisson_ppo.policy_arrays(model, lanes)
    model.lr_schedule = lambda _: 0.0
    model.learn(lanes.num_envs * ROLLOUT)
    after = poisson_ppo.policy_arrays(model, lanes)
    assert all(np.array_equal(before[name], after[name]) for name in before if name not in ("mean", "deviation"))


def test_schedules_of_ordered_runs_go_from_the_start_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[tuple[float, float, float]] = []

    def learn(model: Any, total: int) -> None:
        tau = model.policy.action_net.log_tau.exp().tolist()[0]
        seen.append((model.lr_schedule(0.3), model.ent_coef, tau))

    monkeypatch.setattr(poisson_ppo.PPO, "learn", learn)
    own: dict[str, Any] = {"learning_rate": (0.01, 0.002), "entropy": (0.1, 0.0), "tau": "annealed", "evaluations": 1}
    poisson_ppo.train(small(tmp_path, **own))
    first = seen[0][2]
    shares = np.arange(4) / 4
    np.testing.assert_allclose([rate for rate, _, _ in seen], 0.01 - 0.008 * shares)
    np.testing.assert_allclose([entropy for _, entropy, _ in seen], 0.1 - 0.1 * shares)
    np.testing.assert_allclose([tau for _, _, tau in seen], first * ANNEALED_TO**shares, rtol=1e-5)


# -- Gymnasium's environments ------------------------------------------------------------------------------------------


class Reach(gymnasium.Env[Any, Any]):
    """Five decisions; each pays the less, the farther the number is from the one that is shown."""

    def __init__(self, low: float = -2.0, high: float = 6.0, shape: tuple[int, ...] = (1,)) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, shape)
        self.action_space = spaces.Box(low, high, (1, 1))

    def _show(self) -> np.ndarray:
        self.shown = self.np_random.uniform(-1.0, 1.0, 1).astype(np.float32)
        return self.shown

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = 5
        return self._show(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        reward = -abs(float(action[0, 0]) - (2.0 + 4.0 * float(self.shown[0])))
        self.left -= 1
        return self._show(), reward, False, self.left == 0, {}


@pytest.fixture(autouse=True)
def reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers `Reach`, as ``Reach-v0``, while a test runs."""
    made: Any = Reach
    for name, keywords in (("Reach-v0", {}), ("Boundless-v0", {"high": np.inf}), ("Picture-v0", {"shape": (8, 8)})):
        spec = EnvSpec(name, made, kwargs=keywords)
        monkeypatch.setitem(gymnasium.registry, name, spec)


GYM: dict[str, Any] = {"env_id": "Reach-v0", "lanes": 8, "rollout": 32, "minibatches": 4, "epochs": 5, "atoms": 9}
GYM |= {"learning_rate": (2e-2, 2e-3), "hidden": (16,), "evaluations": 2, "matches": 20, "total_steps": 3072}


@pytest.mark.parametrize("head", ["poisson", GAUSSIAN])
def test_ordered_ppo_learns_an_environment_of_gymnasium(head: str, tmp_path: Path):
    report = poisson_ppo.train(Args(directory=tmp_path, quiet=True, head=head, **GYM))
    first, last = report.log[0]["return"], report.log[-1]["return"]
    assert first < -8.0  # about 2 a decision away
    assert last > -3.5
    assert last > report.log[-1]["training_return"] - 1.0
    policy = UnitPolicy(read_policy(report.weights)[0])
    assert np.mean(play_gymnasium("Reach-v0", policy, 20)) == pytest.approx(last)


def test_a_resumed_run_of_gymnasium_starts_new_episodes(tmp_path: Path):
    args = Args(directory=tmp_path, quiet=True, **{**GYM, "total_steps": 512})
    poisson_ppo.train(args)
    report = poisson_ppo.train(replace(args, total_steps=1024, resume=True))
    assert [row["steps"] for row in report.log] == [0, 256, 512, 1024]
    assert report.updates == 4 * 5 * 4
    assert np.isfinite(report.log[-1]["training_return"])


def test_evaluations_of_gymnasium_are_of_their_own_episodes_and_the_same_each_time():
    def still(observations: np.ndarray) -> np.ndarray:
        return np.zeros((len(observations), 1))

    first, second = (play_gymnasium("Reach-v0", still, 4) for _ in range(2))
    assert first == second
    assert len(set(first)) == 4
    assert play_gymnasium("Reach-v0", still, 4, seed=1) != first


# -- errors and the command --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"team": "robot"}, r"Copy has the teams team .* got --team 'robot'"),
        ({"opponent": "random"}, r"--opponent 'random': this PPO learns the only team"),
        ({"env_id": "palaestra/CartPole-v0"}, "agents make choices"),
        ({"minibatches": 3}, "--minibatches must divide the 56 decisions"),
        ({"head": "gauss"}, r"--head is one of poisson, .*, got 'gauss'"),
        ({"tau": "free"}, r"--tau is one of learnt, fixed, annealed, got 'free'"),
        ({"atoms": 1}, "--atoms must be at least 2, got 1"),
        ({"start_std": 1.0}, r"--start-std lies between 0 and 1, got 1\.0"),
        ({"env_id": "Boundless-v0"}, r"--env-id Boundless-v0: atoms need finite bounds"),
        ({"env_id": "CartPole-v1"}, r"--env-id CartPole-v1: atoms are made of a Box of real numbers, got Discrete"),
        (
            {"env_id": "Picture-v0"},
            r"--env-id Picture-v0: this PPO learns from a Box of one dimension, got Box",
        ),
        ({"env_id": "Reach-v0", "team": "a"}, "Reach-v0 has no teams, got --team 'a'"),
    ],
)
def test_ordered_ppo_names_what_it_cannot_learn(given: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(ValueError, match=message):
        small(tmp_path, **given).check()


def test_ordered_ppo_says_how_to_install_mujoco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def make(*_: Any, **__: Any) -> Any:
        raise gymnasium.error.DependencyNotInstalled("MuJoCo is not installed")

    monkeypatch.setattr(gymnasium, "make", make)
    with pytest.raises(ModuleNotFoundError, match=r'HalfCheetah-v5 needs .*: pip install "gymnasium\[mujoco\]"'):
        Args(directory=tmp_path).check()


def test_the_ordered_command_trains_and_says_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    few = ["--total-steps", "256", "--lanes", "8", "--rollout", "32", "--minibatches", "2", "--evaluations", "1"]
    poisson_ppo.main(["--env-id", "Reach-v0", *few, "--directory", str(tmp_path / "a"), "--head", "ordinal"])
    assert "20 new episodes" in capsys.readouterr().out
    poisson_ppo.main(["--env-id", "tests/Copy-v0", *few, "--directory", str(tmp_path / "b")])
    assert "palaestra eval tests/Copy-v0 --a" in capsys.readouterr().out
    with pytest.raises(KeyError, match="no environment 'HalfCheeta-v5'"):
        poisson_ppo.main(["--env-id", "HalfCheeta-v5"])
