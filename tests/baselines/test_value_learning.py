"""What FM3Q, VDN and IQL share: schedules, gradient steps, evaluations, checkpoints, and players from files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import Stop, assert_same_policy, whole_and_resumed

import palaestra
from palaestra import registry
from palaestra.evaluation import evaluate
from palaestra_baselines import fm3q, iql, vdn
from palaestra_baselines.common import training as training_module
from palaestra_baselines.common.agents import two_team_roster
from palaestra_baselines.common.flat_networks import Utilities, UtilityPlayer
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import (
    LearningArgs,
    Training,
    gradient_step,
    linear_schedule,
    polyak_update,
    weighted_mean,
)

pytestmark = pytest.mark.check

METHODS = {"fm3q": fm3q, "vdn": vdn, "iql": iql}
PONG, SOCCER, TAG = "palaestra/TeamPong-v0", "palaestra/GridSoccer-v0", "palaestra/TeamTag-2v2-v0"
SMALL: dict[str, Any] = {
    "env_id": SOCCER,
    "options": ("order=alternating",),
    "total_steps": 1200,
    "lanes": 16,
    "warmup_steps": 200,
    "updates": 1,
    "batch_size": 32,
    "replay_size": 800,
    "hidden": (16, 16),
    "evaluations": 2,
    "opponent": "",
    "quiet": True,
}


# -- one gradient step -------------------------------------------------------------------------------------------------


def test_a_number_between_two_ends_stays_at_the_second():
    assert [linear_schedule((1.0, 0.2), share) for share in (0.0, 0.5, 1.0, 3.0)] == pytest.approx([1.0, 0.6, 0.2, 0.2])


def test_a_gradient_step_has_the_given_rate_and_clips_the_norm_over_all_parameters():
    weights = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    optimizer = torch.optim.SGD(weights, lr=99.0)
    for _ in range(2):  # gradients of the step before are forgotten
        gradient_step(optimizer, 30.0 * weights[0].sum() + 40.0 * weights[1].sum(), rate=0.1, max_norm=10.0)
    assert [w.item() for w in weights] == pytest.approx([-2 * 0.6, -2 * 0.8])
    gradient_step(optimizer, weights[0].sum(), rate=0.1, max_norm=10.0)
    assert weights[0].item() == pytest.approx(-1.3)


def test_the_target_network_is_a_polyak_average():
    online, target = (torch.nn.Linear(1, 1) for _ in range(2))
    torch.nn.init.constant_(online.weight, 10.0)
    torch.nn.init.constant_(target.weight, 2.0)
    polyak_update(target, online, 0.25)
    assert (target.weight.item(), online.weight.item()) == (4.0, 10.0)


def test_rows_without_weight_count_neither_in_the_sum_nor_in_the_number():
    assert weighted_mean(torch.tensor([4.0, 100.0, 6.0]), torch.tensor([1.0, 0.0, 1.0])).item() == 5.0


# -- the loop ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Watched:
    """What a training did."""

    args: Any
    epsilons: list[float]
    random: list[bool]
    rates: list[float]
    norms: list[float]
    taus: list[float]
    doubles: list[bool]
    learnt: dict[str, Any]
    weights: dict[str, np.ndarray]


def watched(method: str, folder: Path) -> Watched:
    """Trains by small arguments and notes what the loop hands to its parts."""
    module: Any = METHODS[method]
    args = module.Args(**{**SMALL, "lanes": 32, "max_gradient_norm": 0.01}, directory=folder, double=False)
    seen = Watched(args, [], [], [], [], [], [], {}, {})
    with pytest.MonkeyPatch.context() as patch:

        def spy(name: str, note: Callable[..., Any], module: Any = training_module) -> None:
            inner = getattr(module, name)

            def spied(*given: Any, **named: Any) -> Any:
                note(*given, **named)
                return inner(*given, **named)

            patch.setattr(module, name, spied)

        spy("epsilon_greedy", lambda _, __, values, e: (seen.epsilons.append(e), seen.random.append(values is None)))
        spy("gradient_step", lambda _, __, rate, norm: (seen.rates.append(rate), seen.norms.append(norm)))
        spy("polyak_update", lambda _, __, tau: seen.taus.append(tau))
        spy("td_loss", lambda *given: seen.doubles.append(given[-1]), module)
        resume = Training.resume

        def resumed(training: Training, **learnt: Any) -> None:
            resume(training, **learnt)
            seen.learnt = learnt

        patch.setattr(Training, "resume", resumed)
        report = module.train(args)
    seen.weights = read_policy(report.weights)[0]
    return seen


@pytest.fixture(scope="module", params=list(METHODS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    return watched(request.param, tmp_path_factory.mktemp(request.param))


def test_exploration_falls_linearly_until_its_share_of_the_training(run: Watched):
    assert run.epsilons[0] == 1.0
    assert run.epsilons[-1] == pytest.approx(0.05)
    share = 32 * 6 / 1200 / 0.3  # no match ends in the first six decisions
    assert run.epsilons[6] == pytest.approx(1.0 - 0.95 * share, abs=0.03)
    assert all(a >= b for a, b in zip(run.epsilons, run.epsilons[1:], strict=False))


def test_decisions_are_random_until_learning_starts(run: Watched):
    assert run.random[:6] == [True] * 6
    assert not any(run.random[8:])
    assert len(run.rates) == run.random.count(False) + 1  # the first update follows the decision that ends the warm-up


def test_a_recurrent_network_only_remembers_until_learning_starts(monkeypatch: pytest.MonkeyPatch):
    """Its values are unknown to the decisions of the warm-up, its memory goes on."""

    def evaluate(observed: Any, before: Any) -> Any:
        return torch.ones(4, 3), before + 1.0

    position = SimpleNamespace(observations={}, memory=np.zeros((4, 2), np.float32), legal=None)
    played = []
    monkeypatch.setattr(training_module, "epsilon_greedy", lambda rng, legal, values, epsilon: values)
    collector = SimpleNamespace(rng=None, position=position, play=lambda *given: played.append(given))
    for is_warming_up in (True, False):
        training: Any = SimpleNamespace(collector=collector, is_warming_up=is_warming_up)
        Training.play(training, SimpleNamespace(memory_size=2, evaluate=evaluate), 0.1)
    (warming, memory), (learning, _) = played
    assert warming is None
    assert (memory == 1.0).all()
    assert (learning == 1.0).all()


def test_the_learning_rate_falls_linearly_to_that_of_the_end(run: Watched):
    assert run.rates[0] == pytest.approx(1e-3 - 9e-4 * 200 / 1200, rel=0.03)
    assert run.rates[-1] == pytest.approx(1e-4)
    steps = np.diff(run.rates)
    assert (steps < 0.0).all()
    assert steps.std() < 0.2 * abs(steps.mean())


def test_the_arguments_reach_the_gradient_steps(run: Watched):
    assert set(run.norms) == {0.01}
    assert set(run.taus) == {0.01}
    assert set(run.doubles) == {False}


def test_the_target_network_is_another_than_the_online_network_and_the_one_that_is_evaluated(run: Watched):
    target, online = (run.learnt[name].state_dict() for name in ("target", "online"))
    name = next(key for key in target if key.endswith("layers.2.weight"))
    (saved,) = (array for key, array in run.weights.items() if key.endswith("layer_2.weight"))
    np.testing.assert_array_equal(saved, target[name])
    assert (target[name] != online[name]).any()


def test_inputs_of_both_networks_are_scaled_by_what_was_observed_at_random_play(run: Watched):
    for name in ("online", "target"):
        scales = [value for key, value in run.learnt[name].state_dict().items() if key.endswith((".mean", ".scale"))]
        assert len(scales) == 2
        assert (scales[0].abs() > 0.01).any()
        assert (scales[1] != 1.0).all()


def test_inputs_are_standardised_but_not_magnified_where_they_hardly_change():
    roster = two_team_roster(registry.make_game(SOCCER)[0])
    utilities = Utilities(roster, (8,))
    size = roster.sizes["player"]
    observed = np.zeros((2, 2, size), np.float32)
    observed[0], observed[1, :, 0] = 1.0, 5.0
    observed[1, :, 1:] = 1.0
    utilities.standardise({"player": observed})
    network: Any = utilities.networks["player"]
    assert (network.mean[0].item(), network.scale[0].item()) == (3.0, 0.5)
    assert network.mean[1].item() == 1.0
    assert 1.0 < network.scale[1].item() <= 20.0
    network.place_bias.data.zero_()
    bias = network.layers[0].bias
    torch.testing.assert_close(network.layers[0]((network.mean - network.mean) * network.scale), bias)
    at_mean = utilities({"player": network.mean.expand(1, 2, size)})
    torch.testing.assert_close(at_mean[0, 0], network.layers[1](torch.relu(bias)))


def test_other_heads_read_the_same_features_and_leave_the_last_layers_alone():
    roster = two_team_roster(registry.make_game(SOCCER)[0])
    utilities = Utilities(roster, (8, 8))
    heads = utilities.other_heads()
    observations = {"player": torch.rand(3, 2, roster.sizes["player"])}
    features = utilities.features(observations)
    torch.testing.assert_close(utilities.values(features), utilities(observations))
    utilities.values(features, heads).sum().backward()
    network: Any = utilities.networks["player"]
    assert network.layers[0].weight.grad.abs().max() > 0
    assert network.layers[-1].weight.grad is None
    assert [head.weight.grad.abs().max() > 0 for head in heads.children()] == [True]  # type: ignore[union-attr]


# -- evaluations -------------------------------------------------------------------------------------------------------


def test_evaluations_by_a_script_count_the_wins_of_either_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    calls = []

    def fake(id: str, players: Any, opponent: str, matches: int, seed: int, **options: Any):
        calls.append((id, sorted(players), opponent, matches, seed))
        return type("Table", (), {"win_rate": 0.5, "win_rates": (0.25, 0.75)})

    monkeypatch.setattr("palaestra_baselines.common.training.play_both_sides", fake)
    for id, columns in ((PONG, {"win_rate": 0.5}), (TAG, {"win_rate_red": 0.25, "win_rate_blue": 0.75})):
        folder = tmp_path / id
        args = LearningArgs(env_id=id, lanes=1, opponent="script:0.5", directory=folder, matches=20, quiet=True)
        with RunFolder(args, "some") as folder:
            training = Training(args, folder, None)
            training.should_continue(Utilities(training.roster, (4,)))
        assert folder.rows[0]["win_rate"] == 0.5
        assert {name: folder.rows[0][name] for name in columns} == columns
    assert calls == [(id, ["blue", "red"], "script:0.5", 20, 2**30) for id in (PONG, TAG)]


# -- resume ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_run_resumes_bitwise_equal(method: str, tmp_path: Path):
    module = METHODS[method]
    args = module.Args(**SMALL)
    whole, resumed = whole_and_resumed(module, args, tmp_path, evaluation=None, stop=Stop)
    assert_same_policy(whole, resumed)
    assert [row["steps"] for row in resumed.log] == [row["steps"] for row in whole.log]
    assert [row["loss"] for row in resumed.log] == pytest.approx([row["loss"] for row in whole.log], rel=1e-5)


def test_a_finished_run_is_not_trained_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    args = vdn.Args(**SMALL, directory=tmp_path)
    first = vdn.train(args)
    before = {path.name: path.read_bytes() for path in args.folder.iterdir()}
    again = vdn.train(dataclasses.replace(args, resume=True, quiet=False))
    assert again == dataclasses.replace(first, cpu_s=again.cpu_s)
    assert len(again.log) == 3
    assert {path.name: path.read_bytes() for path in args.folder.iterdir()} == before
    assert "the run is finished, 1200 of 1200 decisions: nothing is done" in capsys.readouterr().out


def test_a_seed_decides_everything(tmp_path: Path):
    arrays = []
    for k, seed in enumerate((5, 5, 6)):
        report = fm3q.train(fm3q.Args(**{**SMALL, "total_steps": 600}, seed=seed, directory=tmp_path / str(k)))
        arrays.append(read_policy(report.weights)[0]["player.layer_0.weight"])
    np.testing.assert_array_equal(arrays[0], arrays[1])
    assert (arrays[0] != arrays[2]).any()


# -- players -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [PONG, TAG])
def test_a_player_does_what_the_networks_say_whichever_team_it_plays(id: str):
    sim = palaestra.make_batch(id, 20)
    sim.reset(seed=0)
    roster = two_team_roster(sim.game)
    torch.manual_seed(1)
    utilities = Utilities(roster, (16, 16))
    utilities.standardise({name: rows.copy() for name, rows in roster.read_observations(sim).items()})
    observed = {name: torch.from_numpy(rows.copy()) for name, rows in roster.read_observations(sim).items()}
    greedy = utilities(observed).argmax(2).numpy()
    for team, slots in roster.game.teams.items():
        player = UtilityPlayer(utilities.arrays(), roster.game, team)
        seen = sim.team_view(team, "observations")
        np.testing.assert_array_equal(player.act(seen, None, None, None, None, None), greedy[:, list(slots)])


def test_a_saved_policy_plays_where_the_name_of_a_script_could_stand(tmp_path: Path):
    report = vdn.train(
        vdn.Args(**{**SMALL, "env_id": PONG, "options": (), "opponent": "tracker:0.8"}, matches=8, directory=tmp_path)
    )
    assert 0.0 <= report.log[-1]["win_rate"] <= 1.0
    table = evaluate(PONG, str(report.weights), "tracker", matches=4)
    assert table.wins + table.losses + table.draws == 4


def test_a_policy_of_another_game_is_refused():
    pong, tag = (registry.make_game(id)[0] for id in (PONG, TAG))
    arrays = Utilities(two_team_roster(pong), (8,)).arrays()
    with pytest.raises(ValueError, match="trained for another game"):
        UtilityPlayer(arrays, tag, "red")
    renamed = {name.replace("paddle", "player_red"): array for name, array in arrays.items()}
    with pytest.raises(ValueError, match="red of TeamTag sees"):
        UtilityPlayer(renamed, tag, "red")
