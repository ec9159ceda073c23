"""QMIX and the loop of factored values: targets on numbers made by hand, the mixer, recurrence, and whole runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import assert_same_run, whole_and_resumed

from palaestra import registry
from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra_baselines import qmix
from palaestra_baselines.common import training as training_module
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import FlatUtilities
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.rollout import Position, Sequences
from palaestra_baselines.common.training import Training
from palaestra_baselines.common.unit_networks import UnitUtilities
from palaestra_baselines.qmix import Factored, FactoredArgs, td_loss, until_last

pytestmark = pytest.mark.check

BATTLE = "palaestra/Skirmish-3m-v0"
SMALL: dict[str, Any] = {
    "env_id": BATTLE,
    "total_steps": 300,
    "lanes": 8,
    "warmup_steps": 100,
    "updates": 1,
    "batch_size": 16,
    "length": 4,
    "replay_size": 240,
    "hidden": (8, 8),
    "embedding": 4,
    "mixer_hidden": 8,
    "evaluations": 2,
    "matches": 8,
    "quiet": True,
}


# -- targets -----------------------------------------------------------------------------------------------------------


class Shown(torch.nn.Module):
    """Utilities that stand in the observations: two columns for the online network, two more for the target."""

    memory_size = 0

    def __init__(self, first: int) -> None:
        super().__init__()
        self.first = first

    def evaluate(self, observations: dict[str, torch.Tensor], memory: None = None) -> tuple[torch.Tensor, None]:
        return observations["red"][..., self.first : self.first + 2], None


class Sum(torch.nn.Module):
    """A mixer whose total is the sum of the utilities."""

    def forward(self, utilities: torch.Tensor, position: Position, features: Any) -> torch.Tensor:
        return utilities.sum(-1, keepdim=True)


class Featured(Shown):
    """The same, with features: the first agent's first utility."""

    def evaluate(self, observations: dict[str, torch.Tensor], memory: None = None) -> tuple[torch.Tensor, Any]:
        values, _ = super().evaluate(observations)
        return values, values[..., 0, :1]


class SumWithFeatures(Sum):
    """A mixer that adds the features of the position."""

    def forward(self, utilities: torch.Tensor, position: Position, features: torch.Tensor) -> torch.Tensor:
        return super().forward(utilities, position, features) + features


def sequence() -> Sequences:
    """Two decisions of two agents; the online network prefers the actions 1 and 0, the target network 0 and 1."""
    online = [[[1.0, 2.0], [4.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]
    target = [[[9.0, 9.0], [9.0, 9.0]], [[20.0, 10.0], [30.0, 40.0]], [[70.0, 50.0], [60.0, 80.0]]]
    rows = torch.cat([torch.tensor(online), torch.tensor(target)], -1)[:, None]
    yes = torch.ones(3, 1, 2, dtype=torch.bool)
    positions = Position({"red": rows}, yes[..., None].repeat(1, 1, 1, 2), yes, yes, ~yes[..., 0])
    ones = torch.ones(2, 1)
    rewards = torch.tensor([[[-99.0, 4.0]], [[-99.0, 6.0]]])
    return Sequences(positions, yes[..., None].float(), torch.tensor([[[0, 1]], [[1, 0]]]), rewards, ones, ones)


def loss_of(sequences: Sequences, mixer: Any = None, **given: Any) -> float:
    args = FactoredArgs(**{"gamma": 0.5, "td_lambda": 0.0, "reward_scale": 1.0, **given})
    mixer = mixer or Sum()
    return float(td_loss(Factored(Shown(0), mixer), Factored(Shown(2), mixer), sequences, 1, args))  # type: ignore[arg-type]


def mean(*errors: float) -> float:
    return sum(e * e for e in errors) / len(errors)


# Totals of the chosen actions: 1 + 3 and 1 + 1. The online network's greedy actions are worth 10 + 30 and 50 + 60.


def test_one_step_targets_are_reward_and_value_of_the_target_network_at_the_online_networks_choice():
    assert loss_of(sequence()) == pytest.approx(mean(4 - (4 + 20), 2 - (6 + 55)))


def test_without_double_q_learning_the_target_network_chooses():
    assert loss_of(sequence(), double=False) == pytest.approx(mean(4 - (4 + 30), 2 - (6 + 75)))


def test_returns_decay_by_lambda_over_the_sequence():
    last = 6 + 55.0
    first = 4 + 0.5 * (0.25 * 40 + 0.75 * last)
    assert loss_of(sequence(), td_lambda=0.75) == pytest.approx(mean(4 - first, 2 - last))


def test_rewards_are_scaled():
    assert loss_of(sequence(), reward_scale=0.1) == pytest.approx(mean(4 - (0.4 + 20), 2 - (0.6 + 55)))


def test_nothing_follows_a_match_that_a_rule_ended():
    ended = replace(sequence(), continues=torch.tensor([[0.0], [1.0]]))
    assert loss_of(ended, td_lambda=0.75) == pytest.approx(mean(4 - 4, 2 - 61))


def test_returns_stop_at_the_last_position_of_a_match_which_counts_by_its_value():
    restarts = replace(sequence(), weights=torch.tensor([[1.0], [0.0]]))
    assert loss_of(restarts, td_lambda=0.75) == pytest.approx(mean(4 - (4 + 20)))


def test_an_agent_out_of_the_match_has_no_share_in_the_total_nor_in_the_target():
    alive = torch.ones(3, 1, 2, dtype=torch.bool)
    alive[1, 0, 0] = False
    before = sequence()
    dead = replace(before, positions=replace(before.positions, alive=alive))
    assert loss_of(dead) == pytest.approx(mean(4 - (4 + 15), 1 - (6 + 55)))


def test_the_mixer_sees_the_features_of_the_position_that_it_values():
    online, target = (Factored(Featured(first), SumWithFeatures()) for first in (0, 2))  # type: ignore[arg-type]
    args = FactoredArgs(gamma=0.5, td_lambda=0.0, reward_scale=1.0)
    errors = (4 + 1) - (4 + 0.5 * (40 + 20)), (2 + 0) - (6 + 0.5 * (110 + 70))
    assert float(td_loss(online, target, sequence(), 1, args)) == pytest.approx(mean(*errors))


def test_greedy_actions_are_legal():
    before = sequence()
    legal = before.positions.legal.clone()
    legal[1, 0, 0, 1] = False
    limited = replace(before, positions=replace(before.positions, legal=legal))
    assert loss_of(limited) == pytest.approx(mean(4 - (4 + 25), 2 - 61))


def test_targets_have_no_gradient():
    online = Factored(Shown(0), Sum())  # type: ignore[arg-type]
    rows = sequence().positions.observations["red"].requires_grad_()
    learnt = replace(sequence(), positions=replace(sequence().positions, observations={"red": rows}))
    td_loss(online, Factored(Shown(2), Sum()), learnt, 1, FactoredArgs()).backward()  # type: ignore[arg-type]
    assert rows.grad is not None
    assert rows.grad[..., 2:].abs().max() == 0.0
    assert rows.grad[-1].abs().max() == 0.0
    assert rows.grad[0, 0, 0, 0] != 0.0


# -- the mixer ---------------------------------------------------------------------------------------------------------


def position_of(state: torch.Tensor) -> Position:
    return Position({}, None, None, None, None, state=state)


def test_the_monotone_mixer_computes_its_formula():
    mixer = qmix.MonotoneMixer(1, 2, 1, 3)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.zero_()
        mixer.hyper[2].bias.copy_(torch.tensor([-2.0, 3.0, -0.5, 1.0, 7.0]))  # type: ignore[operator]
    for q, expected in (([1.0, 2.0], 0.5 * 9.0 + 7.0), ([-1.0, -1.0], 0.5 * (np.exp(-4.0) - 1.0) + 7.0)):
        total = mixer(torch.tensor([q]), position_of(torch.zeros(1, 1)), None)
        assert total.item() == pytest.approx(expected)


def test_the_total_never_falls_in_a_utility_and_its_weights_depend_on_the_state():
    torch.manual_seed(0)
    mixer = qmix.MonotoneMixer(5, 3, 4, 8)
    utilities = torch.randn(200, 3, requires_grad=True)
    mixer(utilities, position_of(torch.randn(200, 5)), None).sum().backward()
    assert utilities.grad is not None
    assert utilities.grad.min() > 0.0
    assert utilities.grad.std() > 0.01
    same = mixer(torch.ones(2, 3), position_of(torch.randn(2, 5)), None)
    assert abs(same[0].item() - same[1].item()) > 1e-3


def test_totals_of_sequences_are_those_of_their_positions():
    mixer = qmix.MonotoneMixer(5, 3, 4, 8)
    q, state = torch.randn(4, 6, 3), torch.randn(4, 6, 5)
    whole = mixer(q, position_of(state), None)
    assert whole.shape == (4, 6, 1)
    torch.testing.assert_close(whole[2], mixer(q[2], position_of(state[2]), None))


def test_networks_are_those_that_the_arguments_name():
    roster = Roster(registry.make_game(BATTLE)[0], ["red"])
    made = qmix.make_networks(qmix.Args(network="entity"), roster, 84)
    assert isinstance(made.utilities, UnitUtilities)
    made = qmix.make_networks(qmix.Args(recurrent=True), roster, 84)
    assert isinstance(made.utilities, FlatUtilities)
    assert made.utilities.memory_size == 64
    assert isinstance(qmix.make_networks(qmix.Args(), roster, 84).mixer, qmix.MonotoneMixer)
    summed: Any = qmix.make_networks(qmix.Args(mixer="sum", network="entity"), roster, 84)
    assert isinstance(summed.utilities, UnitUtilities)
    assert summed.mixer(torch.tensor([[1.0, -3.0, 0.5], [2.0, 0.0, 0.0]]), None, None).tolist() == [[-1.5], [2.0]]


# -- recurrence --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", ["flat", "entity"])
def test_recurrent_states_go_through_a_sequence_and_stop_where_a_match_does(network: Any):
    roster = Roster(registry.make_game(BATTLE)[0], ["red"])
    torch.manual_seed(0)
    made = qmix.make_networks(qmix.Args(network=network, recurrent=True, hidden=(8, 8)), roster, 84)
    rows, memory = torch.rand(3, 5, 3, roster.sizes["red"]), torch.rand(3, 5, 3, 8)
    yes = torch.ones(3, 5, 3, dtype=torch.bool)
    keeps = torch.ones(3, 5, 3, 1)
    keeps[2, 0] = 0.0
    positions = Position({"red": rows}, yes, yes, yes, ~yes[..., 0], memory=memory)
    nothing = torch.zeros(2, 5)
    values, features = made.evaluate(Sequences(positions, keeps, nothing, nothing, nothing, nothing))
    step = made.utilities.evaluate
    first, state = step({"red": rows[0]}, memory[0])
    second, state = step({"red": rows[1]}, state)
    third, state = step({"red": rows[2]}, state * keeps[2])
    torch.testing.assert_close(values, torch.stack([first, second, third]))
    torch.testing.assert_close(features[2], state)
    fresh, _ = step({"red": rows[2]}, torch.zeros(5, 3, 8))
    torch.testing.assert_close(values[2, 0], fresh[0])
    assert (values[2, 1:] - fresh[1:])[..., :6].abs().max() > 1e-4


def test_a_recurrent_flat_network_wants_its_state():
    utilities = FlatUtilities(Roster(registry.make_game(BATTLE)[0], ["red"]), (8, 8), recurrent=True)
    with pytest.raises(ValueError, match="wants the recurrent state"):
        utilities({"red": torch.zeros(1, 3, utilities.first.in_features)})


def test_positions_before_decisions_leave_out_the_last():
    positions = sequence().positions
    before = until_last(positions)
    assert before.alive.shape[0] == 2
    assert torch.equal(before.observations["red"], positions.observations["red"][:2])


# -- runs --------------------------------------------------------------------------------------------------------------


def trained(args: qmix.Args) -> tuple[Any, Any, dict[str, Any]]:
    """The report, the training and the state of what it has learnt."""
    seen: list[Any] = []
    resume = Training.resume

    def resumed(training: Training, **learnt: Any) -> None:
        resume(training, **learnt)
        seen.extend((training, learnt))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "resume", resumed)
        report = qmix.train(args)
    training, learnt = seen
    return report, training, {name: part.state_dict() for name, part in learnt.items()}


NETWORKS = [("flat", False), ("flat", True), ("entity", False), ("entity", True)]


@pytest.mark.parametrize(("network", "recurrent"), NETWORKS)
def test_a_run_writes_a_policy_that_plays_as_the_averaged_weights(network: Any, recurrent: bool, tmp_path: Path):
    args = qmix.Args(**SMALL, network=network, recurrent=recurrent, average=0.05, directory=tmp_path)
    report, training, state = trained(args)
    assert (report.steps >= 300, report.updates > 20) == (True, True)
    target, online = state["target"], state["online"]
    assert any((target[name] != online[name]).any() for name in target)
    saved, average, followed = (
        {np.asarray(array).tobytes() for array in arrays.values()}
        for arrays in (read_policy(report.weights)[0], state["average"], target)
    )
    if recurrent or network == "entity":  # else what is saved has the scales of inputs in its weights
        assert saved <= average
        assert not saved <= followed
    if recurrent:
        assert np.abs(training.replay.arrays["memory"]).max() > 0.0
    game = registry.make_game(BATTLE)[0]
    player: Any = qmix.load_policy(report.weights, game, "red")
    table = evaluate(BATTLE, player, "builtin", matches=8, num_envs=8, seed=2**30, swap=False)
    assert table.results["return_a"].mean() == pytest.approx(report.log[-1]["return"])
    assert player.memory_size == (24 if recurrent else 0)


def test_an_interrupted_recurrent_run_resumes_bitwise_equal(tmp_path: Path):
    small = {**SMALL, "total_steps": 240, "recurrent": True, "average": 0.05}
    assert_same_run(*whole_and_resumed(qmix, qmix.Args(**small), tmp_path))


@pytest.mark.check
def test_a_run_keeps_a_large_replay_to_go_on_and_at_the_end_five_megabytes_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    args = qmix.Args(**{**SMALL, "total_steps": 16, "evaluations": 1}, directory=tmp_path)
    args.replay_size = qmix.Args().replay_size
    sizes: list[float] = []
    inner = Training.__init__

    def with_full_replay(training: Training, *given: Any, **named: Any) -> None:
        inner(training, *given, **named)
        training.collector.play(np.ones((8, 3), np.int64))
        training.replay.filled = training.replay.rows - 1

    monkeypatch.setattr(Training, "__init__", with_full_replay)
    qmix.train(args, lambda player_of: sizes.append(megabytes(args.folder)) or {})
    assert sizes[1] > 50.0
    assert megabytes(args.folder) <= 5.0
    names = ["checkpoint.safetensors", "last.safetensors", "log.csv", "run.lock", "settings.toml"]
    assert sorted(path.name for path in args.folder.iterdir()) == names


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def test_schedules_reach_the_gradient_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen = SimpleNamespace(epsilons=[], random=[], rates=[], taus=[], norms=[], lengths=[])

    def spy(name: str, note: Any, module: Any = training_module) -> None:
        inner = getattr(module, name)

        def spied(*given: Any) -> Any:
            note(*given)
            return inner(*given)

        monkeypatch.setattr(module, name, spied)

    def note_decision(_: Any, __: Any, values: Any, epsilon: float) -> None:
        seen.epsilons.append(epsilon)
        seen.random.append(values is None)

    spy("epsilon_greedy", note_decision)
    spy("gradient_step", lambda _, __, rate, norm: (seen.rates.append(rate), seen.norms.append(norm)))
    spy("polyak_update", lambda _, __, tau: seen.taus.append(tau))
    spy("td_loss", lambda _, __, batch, *___: seen.lengths.append(tuple(batch.actions.shape[:2])), qmix)
    args = qmix.Args(**SMALL, directory=tmp_path, epsilon_until=0.5, max_gradient_norm=3.0, average=0.02)
    qmix.train(args)
    assert (seen.epsilons[0], seen.epsilons[-1]) == (1.0, pytest.approx(0.05))
    assert seen.epsilons[10] == pytest.approx(1.0 - 0.95 * 80 / 150, abs=0.02)
    assert seen.random[:12] == [True] * 12
    assert not any(seen.random[14:])
    assert seen.rates[0] > seen.rates[-1] == pytest.approx(1e-4, rel=0.2)
    assert seen.taus == [args.tau, 0.02] * len(seen.rates)
    assert (set(seen.norms), set(seen.lengths)) == ({3.0}, {(4, 4)})


def test_inputs_of_all_networks_are_scaled_by_what_was_observed(tmp_path: Path):
    args = qmix.Args(**{**SMALL, "total_steps": 200}, network="entity", directory=tmp_path)
    _, _, state = trained(args)
    for network in ("online.utilities", "target.utilities", "average"):
        part, _, inside = network.partition(".")
        for name in ("encoder.row_scale", "encoder.own_scale"):
            assert (state[part][f"{inside}.{name}" if inside else name] != 1.0).all()


def test_learning_as_no_team_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="say which by --team"):
        qmix.train(qmix.Args(**SMALL, team="", directory=tmp_path))


def test_a_flat_policy_of_another_battle_is_refused(tmp_path: Path):
    report = qmix.train(qmix.Args(**{**SMALL, "total_steps": 120}, recurrent=True, directory=tmp_path))
    for map in ("5m_vs_6m", "8m"):
        with pytest.raises(FileError, match="weights do not fit"):
            qmix.load_policy(report.weights, registry.make_game(BATTLE, map=map)[0], "red")
