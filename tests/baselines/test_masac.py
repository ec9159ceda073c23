"""MASAC: draws from paid matches, losses and targets by hand, visits, training, resuming, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import assert_same_run, whole_and_resumed
from games import aim, copy_game
from torch.distributions import Normal, TanhTransform, TransformedDistribution

from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra_baselines import masac
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.policy_file import read_policy, save_policy
from palaestra_baselines.common.rollout import Decision, Position, Sequences
from palaestra_baselines.common.stratified_replay import StratifiedReplay
from palaestra_baselines.common.visit_counts import CELLS, TABLE, VisitCounts
from palaestra_baselines.masac import actor_loss, critic_loss, soft_values, temperature_loss

COPY = "tests/Copy-v0"
TINY: dict[str, Any] = {
    **{"env_id": COPY, "options": (), "total_steps": 320, "lanes": 8, "warmup_steps": 80, "batch_size": 8},
    **{"replay_size": 160, "hidden": (8,), "critic_hidden": (8,), "evaluations": 4, "matches": 4, "quiet": True},
    **{"decisions_per_update": 16},
}


# -- draws from paid matches -------------------------------------------------------------------------------------------


def played(rewards: list[list[float]], running: list[list[int]] | None = None, rows: int = 20) -> StratifiedReplay:
    """A replay of decisions with these rewards ``[decisions][lanes]``; the k-th position shows 100 k + lane."""
    lanes = len(rewards[0])
    replay = StratifiedReplay(rows, lanes)
    for k, paid in enumerate([*rewards, [0.0] * lanes]):
        number = 100.0 * k + np.arange(lanes, dtype=np.float32)
        yes = np.ones((lanes, 1), np.bool_)
        replay.write_position(Position({"all": number[:, None, None]}, yes[:, :, None], yes, yes, ~yes[:, 0]))
        if k < len(rewards):
            goes_on = np.ones(lanes, np.bool_) if running is None else np.array(running[k], np.bool_)
            pay, no = np.array(paid, np.float32)[:, None], np.zeros(lanes, np.bool_)
            replay.write_decision(Decision(np.zeros((lanes, 1), np.uint8), pay, no, goes_on))
    return replay


def drawn_starts(replay: StratifiedReplay, length: int = 1, size: int = 2000, share: float = 1.0) -> list[float]:
    """What the first positions of drawn sequences show."""
    replay.share = share
    batch = replay.sample_sequences(np.random.default_rng(0), size, length)
    return batch.positions.observations["all"][0, :, 0, 0].tolist()


def test_a_match_that_is_paid_is_marked_from_its_first_decision_to_its_last_and_others_are_not():
    rewards = [[0.0], [0.0], [0.0], [0.0], [0.0], [-1.0], [0.0], [0.0], [0.0]]
    running = [[1], [1], [0], [1], [1], [1], [1], [0], [1]]  # the second match is paid in its third decision
    assert played(rewards, running).marks[:9, 0].tolist() == [False] * 3 + [True] * 4 + [False] * 2
    assert set(drawn_starts(played(rewards, running))) == {300.0, 400.0, 500.0, 600.0}


def test_what_another_lane_is_paid_marks_nothing():
    assert not played([[0.0, 1.0], [0.0, 0.0]]).marks[:, 0].any()


def test_the_asked_share_of_a_batch_comes_from_paid_matches_and_the_rest_from_all():
    rewards = [[0.0] * 10 for _ in range(8)]
    rewards[3][4] = 1.0  # one lane of ten
    starts = np.array(drawn_starts(played(rewards), share=0.25, size=4000))
    shares = [(starts % 100.0 == lane).mean() for lane in range(10)]
    assert shares[4] == pytest.approx(0.25 + 0.75 * 0.1, abs=0.02)
    assert shares[:4] == pytest.approx([0.075] * 4, abs=0.02)
    assert (np.array(drawn_starts(played(rewards), share=0.25, size=40))[:10] % 100.0 == 4.0).all()


def test_without_a_paid_match_all_are_drawn_alike():
    assert set(drawn_starts(played([[0.0], [0.0], [0.0]]))) == {0.0, 100.0, 200.0}


def test_sequences_of_paid_matches_end_with_the_last_decision_that_was_written_and_none_is_overwritten():
    replay = played([[1.0]] * 12, rows=6)  # decisions 7 to 11 are kept
    assert set(drawn_starts(replay)) == {700.0, 800.0, 900.0, 1000.0, 1100.0}
    assert set(drawn_starts(replay, 3)) == {700.0, 800.0, 900.0}
    assert set(drawn_starts(played([[1.0], *[[0.0]] * 5], [[1], [1], [0], [1], [1], [1]], rows=6))) == {100.0}
    with pytest.raises(ValueError, match="sequences of 6 decisions were asked for; 5 of a lane are kept"):
        drawn_starts(replay, 6)


def test_a_restored_replay_draws_the_same_and_goes_on_with_the_running_match():
    rewards = [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    whole, other = played(rewards), StratifiedReplay(20, 2)
    other.restore(whole.state())
    assert drawn_starts(other, share=0.5) == drawn_starts(whole, share=0.5)
    for replay in (whole, other):
        pay, no = np.array([[1.0], [0.0]], np.float32), np.zeros(2, np.bool_)
        replay.write_decision(Decision(np.zeros((2, 1), np.uint8), pay, no, ~no))
        assert replay.marks[:5].tolist() == [[True, True]] * 4 + [[False, False]]


# -- losses and targets ------------------------------------------------------------------------------------------------


def test_the_value_of_a_position_is_the_lesser_one_less_the_temperature_times_all_logarithms():
    values, logs = torch.tensor([[1.0, 5.0], [2.0, 3.0]]), torch.tensor([[0.5, 1.5], [-1.0, 0.0]])
    assert soft_values(values, logs, torch.tensor(0.1)).tolist() == pytest.approx([1.0 - 0.2, 3.0 + 0.1])
    assert soft_values(values, None, torch.tensor(0.1)).tolist() == [1.0, 3.0]


def test_losses_are_those_of_the_equations_and_rows_that_are_no_decision_do_not_count():
    weights = torch.tensor([1.0, 1.0, 0.0])
    values = torch.tensor([[1.0, 2.0, 9.0], [0.0, 4.0, 9.0]], requires_grad=True)
    loss = critic_loss(values, torch.tensor([1.0, 3.0, 0.0]), weights)
    assert loss.item() == pytest.approx((0.0 + 1.0 + 1.0 + 1.0) / 2)
    logs = torch.tensor([[0.5, 0.5], [1.0, -3.0], [9.0, 9.0]])
    assert actor_loss(values, logs, torch.tensor(0.5), weights).item() == pytest.approx((0.5 - 0.0 - 1.0 - 2.0) / 2)
    assert torch.autograd.grad(actor_loss(values, logs, torch.tensor(0.5), weights), values)[0].tolist() == [
        [0.0, -0.5, 0.0],
        [-0.5, 0.0, 0.0],
    ]


@pytest.mark.parametrize(("logs", "grows"), [([[3.0, -1.0]], True), ([[1.0, -1.0]], False)])
def test_the_temperature_grows_while_the_entropy_is_below_its_target(logs: Any, grows: bool):
    log_temperature = torch.zeros((), requires_grad=True)  # entropies -2 and 0; the target is -1
    loss = temperature_loss(log_temperature, torch.tensor(logs), torch.tensor([-1.0]), torch.ones(1))
    (gradient,) = torch.autograd.grad(loss, log_temperature)
    assert gradient.item() == (-1.0 if grows else 1.0)


def test_the_policy_gives_draws_under_tanh_with_their_densities_and_agents_of_a_role_share_it():
    torch.manual_seed(0)
    roster = Roster(copy_game.game(), ["team"], numbers=True)
    actor = masac.Actor(roster, (8,))
    seen = torch.tensor([[[0.3], [0.3]], [[-1.0], [2.0]]])
    rows = actor.inputs({"copier": seen})
    assert rows.tolist()[0] == [[pytest.approx(0.3), 1.0, 0.0], [pytest.approx(0.3), 0.0, 1.0]]
    noise, legal = torch.randn(2, 2, 1), torch.ones(2, 2, 1, dtype=torch.bool)
    actions, logs = actor.policy(rows, legal, noise)
    network: Any = actor.policy.network
    mean, raw = network(rows).chunk(2, -1)
    deviation = (-4.0 + 2.5 * (raw.tanh() + 1.0)).exp()
    torch.testing.assert_close(actions, (mean + deviation * noise).tanh())
    density = TransformedDistribution(Normal(mean, deviation), TanhTransform()).log_prob(actions)
    torch.testing.assert_close(logs, density[..., 0], atol=1e-3, rtol=1e-3)
    actions, _ = actor.policy(rows[:, [0, 0]], legal, torch.zeros(2, 2, 1))
    assert torch.equal(actions[:, 0], actions[:, 1])
    assert not actor.policy(rows, ~legal, noise)[0].any()


def tiny_learner(**changes: Any) -> masac.Learner:
    """A learner of Copy with random critics."""
    torch.manual_seed(0)
    args = masac.Args(**{**TINY, "gamma": 0.5, "value_steps": 3, "temperature": 0.1, "team": "team", **changes})
    roster = Roster(copy_game.game(), ["team"], numbers=True)
    learner = masac.Learner(args, roster, masac.Actor(roster, (8,)))
    with torch.no_grad():
        for parameter in [*learner.critic.parameters(), *learner.target.parameters()]:
            parameter.uniform_(-0.7, 0.7)
    return learner


def sequences(continues: Any, weights: Any, seed: int = 0) -> Sequences:
    """Three decisions of Copy in four lanes."""
    draw = torch.Generator().manual_seed(seed)
    seen = torch.randn(4, 4, 2, 1, generator=draw)
    legal = torch.ones(4, 4, 2, 1, dtype=torch.bool)
    position = Position({"copier": seen}, legal, legal[..., 0], legal[..., 0], torch.zeros(4, 4))
    actions = torch.rand(3, 4, 2, 1, generator=draw) * 2.0 - 1.0
    flags = (torch.tensor(x, dtype=torch.float32) for x in (continues, weights))
    return Sequences(position, torch.zeros(0), actions, torch.randn(3, 4, 1, generator=draw), *flags)


# lanes: goes on; the second decision ends the match by a rule; the first is truncated; no decision at first
CONTINUES = [[1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1]]
WEIGHTS = [[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1]]


def test_targets_have_rewards_up_to_the_end_of_the_match_and_the_soft_value_there():
    learner, batch = tiny_learner(), sequences(CONTINUES, WEIGHTS)
    noise = torch.randn(4, 2, 1)
    seen = learner.actor.inputs(batch.positions.observations)
    with torch.no_grad():
        y = learner.targets(batch, learner.actor.read(seen), noise)
        expected, r = list[float](), batch.rewards[..., 0]
        for lane, place in ((0, 3), (2, 1)):  # positions whose values count
            rows = seen[place, lane][None]
            actions, logs = learner.actor.policy(rows, torch.ones(1, 2, 1, dtype=torch.bool), noise[lane][None])
            assert logs is not None
            expected.append((learner.target(rows, actions).amin(0) - 0.1 * logs.sum()).item())
    assert y[0].item() == pytest.approx((r[0, 0] + 0.5 * r[1, 0] + 0.25 * r[2, 0] + 0.125 * expected[0]).item())
    assert y[1].item() == pytest.approx((r[0, 1] + 0.5 * r[1, 1]).item())
    assert y[2].item() == pytest.approx((r[0, 2] + 0.5 * expected[1]).item())


def test_a_step_moves_each_network_by_its_own_loss_and_the_target_by_its_share(monkeypatch: pytest.MonkeyPatch):
    learner, batch = tiny_learner(tau=0.25), sequences(CONTINUES, WEIGHTS)
    parts = {"critic": learner.critic, "policy": learner.actor.policy, "temperature": learner.log_temperature}
    moved, step = list[Any](), masac.gradient_step

    def watched(optimizer: Any, *given: Any) -> float:
        before = {name: [p.clone() for p in part.parameters()] for name, part in parts.items()}
        norm = step(optimizer, *given)
        pairs = {name: zip(before[name], part.parameters(), strict=True) for name, part in parts.items()}
        moved.append({name for name, both in pairs.items() if any(not torch.equal(a, b) for a, b in both)})
        return norm

    monkeypatch.setattr(masac, "gradient_step", watched)
    before = [p.clone() for p in learner.target.parameters()]
    losses = learner.update(batch, 1e-2, np.random.default_rng(0))
    assert moved == [{"critic"}, {"policy"}, {"temperature"}]
    assert len(losses) == len(masac.Training.LOSSES)
    for old, new, online in zip(before, learner.target.parameters(), learner.critic.parameters(), strict=True):
        torch.testing.assert_close(new, old + 0.25 * (online - old))
    assert all(p.requires_grad for p in learner.critic.parameters())


def test_the_target_of_the_temperature_is_that_of_a_number_times_numbers(monkeypatch: pytest.MonkeyPatch):
    learner, found = tiny_learner(target_entropy=-0.7), list[Any]()
    loss = masac.temperature_loss
    monkeypatch.setattr(masac, "temperature_loss", lambda *given: found.append(given[2]) or loss(*given))
    learner.update(sequences(CONTINUES, WEIGHTS), 1e-2, np.random.default_rng(0))
    assert found[0].tolist() == pytest.approx([-1.4] * 4)


# -- visits ------------------------------------------------------------------------------------------------------------


def test_rare_pairs_of_code_and_region_have_a_greater_bonus_and_agents_that_do_not_act_none():
    visits = VisitCounts(3)
    codes, actions = torch.tensor([[5, 5, 6]]), torch.tensor([[[-1.0, 1.0], [-0.4, 0.9], [0.0, 0.0]]])
    index = visits.index(codes, actions)
    assert index[0, 0] == index[0, 1]  # one cell
    assert CELLS == 3
    acts = torch.tensor([[True, True, False]])
    visits.visit(index, acts)
    assert visits.counts[index[0]].tolist() == [2.0, 2.0, 0.0]
    assert visits.bonus(index, acts).item() == pytest.approx(2.0 / 3.0**0.5 / 3.0)
    cells = torch.cartesian_prod(*[torch.tensor([-1.0, 0.0, 1.0])] * 2)
    every = visits.index(torch.arange(256)[:, None], cells)
    assert len(every.unique()) == 256 * 9 < TABLE


def test_the_bonus_falls_with_the_share_of_paid_matches():
    visits = VisitCounts(3)
    assert visits.weight == 1.0
    visits.end_matches(np.zeros(0, np.bool_))
    visits.end_matches(np.array([True, True, False]))
    assert visits.weight == pytest.approx(1.0 - (1.0 - 0.99**3) * 2 / 3)
    for _ in range(1000):
        visits.end_matches(np.ones(2, np.bool_))
    assert visits.weight < 1e-4


def test_targets_have_the_bonus_of_each_of_their_decisions():
    found = []
    for bonus in (0.0, 0.5):
        learner, batch = tiny_learner(bonus=bonus), sequences(CONTINUES, WEIGHTS)
        learner.visits.paid.fill_(0.4)
        seen = learner.actor.inputs(batch.positions.observations)
        found.append(learner.targets(batch, learner.actor.read(seen), torch.zeros(4, 2, 1)))
    assert (found[1] - found[0]).tolist()[:3] == pytest.approx([0.3 * x for x in (1.75, 1.5, 1.0)])  # all are new


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_a_team_learns_what_each_agent_sees_and_the_saved_policy_plays_so(tmp_path: Path):
    small = {"env_id": "tests/Aim-v0", "total_steps": 2400, "warmup_steps": 400, "replay_size": 2400, "matches": 32}
    small |= {"learning_rate": (1e-2, 1e-3), "batch_size": 64, "hidden": (16,), "critic_hidden": (32, 32)}
    small |= {"gamma": 0.5, "temperature": 0.01, "decisions_per_update": 8, "evaluations": 1, "value_steps": 1}
    report = masac.train(masac.Args(**{**TINY, **small}, directory=tmp_path))
    assert report.log[0]["return"] < -2.5
    assert report.log[-1]["return"] > -0.5
    player = masac.load_policy(report.weights, aim.game(), "team")
    kept = evaluate("tests/Aim-v0", player, matches=32, seed=2**30, num_envs=32).results["return_a"].mean()
    assert kept == pytest.approx(report.log[-1]["return"], rel=1e-6)
    drawn = masac.load_policy(report.weights, aim.game(), "team", explore=True)
    returns = [evaluate("tests/Aim-v0", drawn, matches=32, seed=5, num_envs=n).results["return_a"] for n in (32, 7)]
    np.testing.assert_allclose(*returns, rtol=1e-6)  # draws do not depend on what is played beside
    assert returns[0].mean() < kept


@pytest.mark.check
def test_a_resumed_run_ends_as_one_without_a_break(tmp_path: Path):
    whole, resumed = whole_and_resumed(masac, masac.Args(**{**TINY, "bonus": 0.1, "replay_size": 96}), tmp_path)
    assert_same_run(whole, resumed)
    assert whole.updates == 20


def test_arguments_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="--warmup-steps 24 are too few for --value-steps 3 in 8 lanes: at least 32"):
        masac.Args(**{**TINY, "warmup_steps": 24}).check()
    with pytest.raises(ValueError, match="--replay-size 40 is less than --warmup-steps 80"):
        masac.Args(**{**TINY, "replay_size": 40}).check()
    with pytest.raises(ValueError, match="--target-entropy must be finite, got nan"):
        masac.Args(**{**TINY, "target_entropy": float("nan")}).check()
    with pytest.raises(ValueError, match="agents make choices, and this method learns real numbers"):
        masac.learning_team(masac.Args(env_id="palaestra/Spread-v0", options=()))
    with pytest.raises(ValueError, match="say by --team which one learns"):
        masac.learning_team(masac.Args(env_id="tests/Aim-v0", options=("archer=red_0", "gunner=blue_0")))


def test_files_of_other_networks_are_refused(tmp_path: Path):
    roster = Roster(copy_game.game(), ["team"], numbers=True)
    arrays = masac.Actor(roster, (8, 4)).arrays()
    path = tmp_path / "policy.safetensors"
    save_policy(path, arrays, method="masac", env_id=COPY, args={})
    assert masac.load_policy(path, copy_game.game(), "team").memory_size == 1
    with pytest.raises(FileError, match="was trained in 'tests/Copy-v0'"):
        masac.load_policy(path, aim.game(), "team")
    for broken in ({"a": np.zeros(3, np.float32)}, {**arrays, "inputs.mean": np.zeros((2, 5), np.float32)}):
        save_policy(path, broken, method="masac", env_id=COPY, args={})
        with pytest.raises(FileError, match=r"the policy has no layers|the weights do not fit"):
            masac.load_policy(path, copy_game.game(), "team")
    assert read_policy(path)[1]["method"] == "masac"
