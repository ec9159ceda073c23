"""ARAC: what a gradient step learns from, who plays in which lane, what is drawn from the replay, what is saved."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch

from palaestra import registry
from palaestra_baselines import arac
from palaestra_baselines.arac import GraphTraining, Learner, critic_targets, soft_values
from palaestra_baselines.arac_graphs import ABSENT, FULL_LIFE, GraphRoster, Places
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.rollout import Position, Sequences

pytestmark = pytest.mark.check

PURSUIT = "palaestra/GraphPursuit-v0"
GAMMA = 0.81


def learner_on(graph: str = "path:9", game: dict[str, Any] | None = None, **arguments: Any) -> Learner:
    """A learner of two pursuers without a run."""
    torch.manual_seed(0)
    rules = registry.make_game(PURSUIT, graph=graph, observation="nodes", **(game or {}))[0]
    args = arac.Args(**{"width": 8, "heads": 2, "lanes": 8, "gamma": GAMMA, "entropy": (0.0, 0.0), **arguments})
    training: Any = SimpleNamespace(roster=GraphRoster(rules, [args.team]))
    return Learner(args, training)


def nodes_at(*nodes: int) -> np.ndarray:
    """What `GraphRoster` observes: the first graph, nodes, lives."""
    return np.array([[0, *nodes, *(FULL_LIFE * (node >= 0) for node in nodes)]], np.int16)


def batch(learner: Learner, actions: list[int], *nodes: int) -> Sequences:
    """Two sequences of one position, in which both members may do everything; the last decision is paid with 1."""
    rows, members, count = learner.length, len(actions), 2
    observed = torch.from_numpy(nodes_at(*nodes)).expand(rows + 1, count, 1, -1)
    legal = torch.ones(rows + 1, count, members, learner.graphs.moves, dtype=torch.bool)
    rewards = torch.zeros(rows, count, 2)
    rewards[-1] = torch.tensor([1.0, -1.0])
    positions = Position({"nodes": observed}, legal, None, None, None)
    taken, one = torch.tensor(actions).expand(rows, count, -1), torch.ones(rows, count)
    return Sequences(positions, torch.zeros(0), taken, rewards, one, one)


def update(learner: Learner, some: Sequences, progress: float = 0.0) -> None:
    training: Any = SimpleNamespace(progress=progress, sample=lambda length: some, count_update=lambda *losses: None)
    learner.update(training)


def make_constant(network: Any, *numbers: float) -> None:
    """Gives a network the same outputs everywhere."""
    with torch.no_grad():
        network.output.weight.zero_()
        network.output.bias.copy_(torch.tensor(numbers))


def spy(monkeypatch: pytest.MonkeyPatch, name: str) -> list[tuple[Any, ...]]:
    """Arguments of the calls of a function of `arac`."""
    calls: list[tuple[Any, ...]] = []
    honest = getattr(arac, name)
    monkeypatch.setattr(arac, name, lambda *given: calls.append(given) or honest(*given))
    return calls


# -- a gradient step ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "rows", "gamma"), [("simultaneous", 2, GAMMA), ("alternating", 4, GAMMA**0.5)])
def test_critics_learn_the_value_of_the_next_agent_and_what_comes_by_the_target_network(
    order: str, rows: int, gamma: float, monkeypatch: pytest.MonkeyPatch
):
    learner = learner_on(game={"order": order}, steps_ahead=2)
    make_constant(learner.critics, 4.0, 3.0)
    make_constant(learner.target, 6.0, 5.0)
    errors, losses = spy(monkeypatch, "errors_of"), spy(monkeypatch, "policy_loss")
    assert learner.length == rows
    update(learner, batch(learner, [2, 1], 0, 4, 8))
    ((_, actions, targets, weights),) = errors
    last = gamma ** (rows - 1) + gamma**rows * 5.0
    assert actions.tolist() == [2, 1, 2, 1]
    assert targets.tolist() == pytest.approx([3.0, last] * 2)
    assert weights.tolist() == [1.0] * 4
    assert (losses[0][1] == 3.0).all(), "the policy ascends the smaller one of both critics"
    assert learner.returns.gamma == pytest.approx(gamma)


def test_what_comes_is_valued_by_the_alternatives_that_are_legal_there(monkeypatch: pytest.MonkeyPatch):
    learner = learner_on(entropy=(1.0, 1.0), steps_ahead=2)
    make_constant(learner.target, 6.0, 5.0)
    make_constant(learner.policy.network, 0.0)  # the entropy is the logarithm of the number of alternatives
    some = batch(learner, [2, 1], 0, 4, 8)
    some.positions.legal[1, :, 0, 1:] = False
    some.positions.legal[2, :, 0, 2:] = False
    errors = spy(monkeypatch, "errors_of")
    update(learner, some)
    last = errors[0][2].unflatten(0, (2, 2))[:, 1]
    assert last.tolist() == pytest.approx([GAMMA + GAMMA**2 * (5.0 + math.log(2))] * 2)


def test_entropy_and_learning_rate_follow_their_schedules(monkeypatch: pytest.MonkeyPatch):
    learner = learner_on(entropy=(0.4, 0.2), learning_rate=(0.03, 0.01))
    values, losses, steps = (spy(monkeypatch, name) for name in ("soft_values", "policy_loss", "gradient_step"))
    for progress, alpha, rate in ((0.0, 0.4, 0.03), (0.5, 0.3, 0.02), (1.0, 0.2, 0.01)):
        update(learner, batch(learner, [1, 2], 3, 4, 8), progress)
        assert [given[3] for given in values] == pytest.approx([alpha] * 2)
        assert [given[5] for given in losses] == pytest.approx([alpha])
        assert [given[2] for given in steps] == pytest.approx([rate] * 2)
        for calls in (values, losses, steps):
            calls.clear()


def test_who_is_absent_learns_nothing(monkeypatch: pytest.MonkeyPatch):
    learner = learner_on()
    errors, losses = spy(monkeypatch, "errors_of"), spy(monkeypatch, "policy_loss")
    update(learner, batch(learner, [0, 2], ABSENT, 4, 8))
    assert errors[0][3].tolist() == losses[0][4].tolist() == [0.0, 1.0] * 2


@pytest.mark.parametrize(("decoder", "own"), [("sequential", [[3, 4], [2, 4]]), ("independent", [[3, 4], [3, 4]])])
def test_critics_see_earlier_decisions_and_the_policy_where_it_decides_in_order(decoder: str, own: list[list[int]]):
    learner = learner_on(decoder=decoder)
    seen: dict[Any, list[Places]] = {learner.critics: [], learner.policy.network: []}
    for part in seen:
        part.register_forward_pre_hook(lambda network, given: seen[network].append(given[0]))
    update(learner, batch(learner, [1, 2], 3, 4, 8))
    assert seen[learner.critics][0].own[:2].tolist() == [[3, 4], [2, 4]]
    assert seen[learner.policy.network][0].own[:2].tolist() == own


def test_averages_follow_their_networks():
    learner = learner_on(tau=0.5, average=0.25)
    pairs = ((learner.target, learner.critics, 0.5), (learner.average, learner.policy, 0.25))
    before = [copy.deepcopy(follower) for follower, _, _ in pairs]
    update(learner, batch(learner, [1, 2], 3, 4, 8))
    for (follower, leader, rate), old in zip(pairs, before, strict=True):
        for new, then, now in zip(follower.parameters(), old.parameters(), leader.parameters(), strict=True):
            torch.testing.assert_close(new, then + rate * (now - then))
        assert any((a != b).any() for a, b in zip(leader.parameters(), old.parameters(), strict=True))


def test_values_are_those_of_the_first_agent_in_the_match():
    learner = learner_on()
    places = Places.of(torch.from_numpy(np.concatenate([nodes_at(ABSENT, 4, 8), nodes_at(3, 4, 8)])), 2)
    legal = torch.tensor([[[True, False, False], [True, True, False]], [[False, True, True], [True, True, True]]])
    found = learner.next_values(places, legal, 0.1)
    for row, agent in ((0, 1), (1, 0)):
        one, number = places.at(torch.tensor([row])), torch.tensor([agent])
        with torch.no_grad():
            values = learner.target(one, number)[0].amin(dim=2)
            logits = learner.policy.network.scores(one, number, legal)
        expected = soft_values(logits, values, legal[row : row + 1, agent], 0.1)
        torch.testing.assert_close(found[row : row + 1], expected)


def test_an_agent_learns_the_value_of_the_next_one_that_is_in_the_match():
    present = torch.tensor([[True, False, True], [False, True, False]])
    targets = critic_targets(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), present, torch.tensor([10.0, 20.0]))
    assert targets[0, [0, 2]].tolist() == [3.0, 10.0]
    assert targets[1, 1] == 20.0


# -- play --------------------------------------------------------------------------------------------------------------


def decided(learner: Learner, *nodes: int, logits: torch.Tensor | None = None) -> np.ndarray:
    """Actions in all lanes, where the policy stays, or has these logits; in the last lane nobody is asked."""
    lanes, members = learner.args.lanes, learner.members
    asked = np.ones((lanes, members), np.bool_)
    asked[-1] = False
    legal = np.ones((lanes, members, learner.graphs.moves), np.bool_)
    legal[-1, :, 1:] = False
    position = Position({"nodes": nodes_at(*nodes)[None].repeat(lanes, 0)}, legal, None, asked, None)
    played: list[np.ndarray] = []

    def play(actions: np.ndarray) -> Any:
        played.append(actions)
        rewards = np.tile(np.array([1.0, -1.0], np.float32), (lanes, 1))
        return SimpleNamespace(rewards=rewards, running=np.ones(lanes, np.bool_))

    stay = torch.tensor([1000.0] + [0.0] * (learner.graphs.moves - 1)) if logits is None else logits
    learner.policy.network.scores = lambda places, agent, legal: stay.expand(len(agent), -1)  # type: ignore[method-assign]
    rng = np.random.default_rng(0)
    training: Any = SimpleNamespace(collector=SimpleNamespace(position=position, rng=rng, play=play))
    learner.play(training)
    return played[0]


def test_alternatives_are_drawn_as_often_as_the_policy_says():
    learner, logits = learner_on(lanes=4096, beta="none"), torch.tensor([2.0, 0.0, 0.0])
    found = decided(learner, 4, 3, 8, logits=logits)[:-1]
    for member in range(2):
        shares = np.bincount(found[:, member], minlength=3) / len(found)
        assert shares == pytest.approx(logits.softmax(0).tolist(), abs=0.02)


def test_the_reference_plays_in_its_own_lanes_and_the_policy_in_the_others():
    found = decided(learner_on(reference_share=0.25), 4, 3, 8)
    assert found.tolist() == [[2, 2]] * 2 + [[0, 0]] * 6  # the first lanes go to 5 and 4


def test_without_a_weight_the_reference_plays_nowhere():
    learner = learner_on(beta="none", reference_share=0.25)
    assert not decided(learner, 4, 3, 8).any()
    assert (learner.weight.beta, learner.returns.reference_lanes) == (0.0, 0)


def test_lanes_and_divergence_of_the_reference_are_left_out_one_at_a_time(monkeypatch: pytest.MonkeyPatch):
    losses = spy(monkeypatch, "policy_loss")
    found = {}
    for arm, beta, share in (("lanes", "lanes", 0.25), ("divergence", "fixed", 0.0), ("neither", "none", 0.25)):
        learner = learner_on(beta=beta, reference_share=share)
        update(learner, batch(learner, [1, 2], 3, 4, 8))
        found[arm] = (int((decided(learner, 4, 3, 8) > 0).any(axis=1).sum()), losses.pop()[6])
    assert found == {"lanes": (2, 0.0), "divergence": (0, arac.Args.beta_first), "neither": (0, 0.0)}


@pytest.mark.parametrize(("beta", "share"), [("adaptive", 0.0), ("lanes", 0.0), ("adaptive", 0.05)])
def test_a_rule_that_needs_matches_of_the_reference_is_refused_without_a_lane_for_them(beta: Any, share: float):
    with pytest.raises(ValueError, match=f"--beta {beta} needs a lane.*--reference-share {share:g} of 8 lanes"):
        arac.Args(beta=beta, reference_share=share, lanes=8).check()
    arac.Args(beta="fixed", reference_share=share, lanes=8).check()


@pytest.mark.parametrize(("team", "reward"), [("pursuer", 1.0), ("evader", -1.0)])
def test_returns_are_those_of_the_team_that_learns(team: str, reward: float):
    learner = learner_on(team=team, game={"pursuers": 1})
    decided(learner, 4, 8)
    learner.returns.count(np.zeros(8), np.zeros(8, np.bool_))
    assert (learner.returns.of_policy, learner.returns.of_reference) == (reward, reward)


# -- the replay and the file -------------------------------------------------------------------------------------------


def test_sequences_begin_with_a_decision_of_the_team():
    count = 16
    number = torch.arange(count)
    asked = (number % 2 == 0)[None, :, None].repeat(3, 1, 2)
    asked[1:] = True
    weights = (number % 3 > 0).float()[None].repeat(2, 1)
    weights[1] = 1.0
    rows = lambda length: number.expand(length, count)  # noqa: E731
    positions = Position({"nodes": rows(3)}, rows(3), rows(3), asked, rows(3))
    some = Sequences(positions, rows(3), rows(2), rows(2), rows(2), weights)
    replay = SimpleNamespace(sample_sequences=lambda rng, size, length: some)
    training: Any = SimpleNamespace(args=SimpleNamespace(batch_size=4), replay=replay, rng=None)
    found = GraphTraining.sample(training, 2)
    for part in (found.keeps, found.actions, found.rewards, found.continues, found.positions.observations["nodes"]):
        assert part[0].tolist() == [2, 4, 8, 10]
    assert (found.weights == 1.0).all()


@pytest.mark.check
def test_the_averaged_policy_is_the_one_that_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made: list[Learner] = []
    honest = arac.Learner.__init__
    monkeypatch.setattr(arac.Learner, "__init__", lambda own, *given: (honest(own, *given), made.append(own))[0])
    sizes: dict[str, Any] = {"lanes": 8, "batch_size": 8, "replay_size": 80, "warmup_steps": 8, "total_steps": 64}
    sizes |= {"width": 8, "heads": 2, "evaluations": 1, "quiet": True, "directory": tmp_path}
    args = arac.Args(env_id=PURSUIT, options=("observation=nodes", "graph=cycle:8"), opponent="flee", **sizes)
    report = arac.train(args, lambda player_of: {})
    (learner,) = made
    arrays = read_policy(report.weights)[0]
    averaged, last = learner.average.arrays(), learner.policy.arrays()
    assert all((arrays[name] == averaged[name]).all() for name in averaged)
    assert any((arrays[name] != last[name]).any() for name in last)
