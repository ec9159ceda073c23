"""ARAC: its losses by hand, the weight of the reference, the references, the order of decisions, a run, its files."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import assert_same_run, whole_and_resumed

import palaestra
from palaestra import exact, registry
from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra_baselines import arac
from palaestra_baselines.arac import (
    MatchReturns,
    MoveNetwork,
    ReferenceWeight,
    WeightRule,
    critic_targets,
    errors_of,
    n_step_returns,
    policy_loss,
    soft_values,
)
from palaestra_baselines.arac_graphs import (
    ABSENT,
    FULL_LIFE,
    GraphRoster,
    Graphs,
    Places,
    Reference,
    decide,
    nodes_of,
    prefixes,
)
from palaestra_baselines.common.rollout import Position, Sequences

pytestmark = pytest.mark.check

PURSUIT = "palaestra/GraphPursuit-v0"
LEGAL = torch.tensor([[True, True, False]])
SHORT = ("observation=nodes", "graph=cycle:8", "horizon=40")
TINY: dict[str, Any] = {
    "env_id": PURSUIT,
    "options": (*SHORT, "order=alternating", "starts=winnable", "solve=True"),
    "lanes": 16,
    "batch_size": 32,
    "width": 8,
    "heads": 2,
    "warmup_steps": 64,
    "replay_size": 2_000,
    "total_steps": 320,
    "evaluations": 2,
    "matches": 16,
    "quiet": True,
}


def game_on(graph: str = "path:5", **keywords: Any) -> Any:
    return registry.make_game(PURSUIT, graph=graph, observation="nodes", **keywords)[0]


def places_at(own: list[list[int]], others: list[list[int]]) -> Places:
    """Positions on the first graph, everybody in full life."""
    members, opponents = np.array(own), np.array(others)
    rows = [np.zeros((len(own), 1), int), members, opponents]
    rows.append(np.full((len(own), members.shape[1] + opponents.shape[1]), FULL_LIFE))
    return Places.of(torch.from_numpy(np.concatenate(rows, axis=1).astype(np.int16)), members.shape[1])


# -- losses ------------------------------------------------------------------------------------------------------------


def test_the_policy_ascends_values_and_entropy_and_approaches_the_reference():
    values, reference = torch.tensor([[1.0, 0.0, 9.0]]), torch.tensor([[0.0, 1.0, 0.0]])
    logits = torch.zeros(1, 3)
    given = (values, reference, LEGAL, torch.ones(1))
    half, entropy = policy_loss(logits, *given, alpha=0.1, beta=0.5)
    assert entropy.item() == pytest.approx(np.log(2.0))
    assert half.item() == pytest.approx(-0.5 - 0.1 * np.log(2.0) + 0.5 * np.log(2.0), abs=1e-6)

    def gradient(alpha: float, beta: float, at: float = 0.0) -> float:
        """Of the first logit; the loss falls where it is negative."""
        some = torch.tensor([[at, 0.0, 0.0]], requires_grad=True)
        policy_loss(some, *given, alpha, beta)[0].backward()
        assert some.grad is not None
        assert some.grad[0, 2] == 0.0  # not legal
        return float(some.grad[0, 0])

    assert gradient(0.0, 0.0) == pytest.approx(-0.25)  # the better alternative becomes more probable
    assert gradient(0.0, 1.0) == pytest.approx(-0.25 + 0.5)  # the reference takes the other one
    assert gradient(1.0, 0.0, at=4.0) > 0.0  # entropy: a probable one becomes less so


def test_soft_values_are_expectations_over_legal_alternatives_with_their_entropy():
    values = torch.tensor([[1.0, 0.0, 9.0]])
    found = soft_values(torch.tensor([[np.log(3.0), 0.0, 7.0]], dtype=torch.float32), values, LEGAL, alpha=0.2)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert found.item() == pytest.approx(0.75 + 0.2 * entropy)


def test_errors_of_both_critics_are_those_of_the_action_taken():
    outputs = torch.tensor([[[9.0, 9.0], [1.0, 3.0]], [[9.0, 9.0], [8.0, 8.0]]])
    found = errors_of(outputs, torch.tensor([1, 0]), torch.tensor([2.0, 5.0]), torch.tensor([1.0, 0.0]))
    assert found.item() == pytest.approx((1.0 - 2.0) ** 2 + (3.0 - 2.0) ** 2)


def test_an_agent_learns_the_value_of_the_next_one_and_the_last_what_the_match_brings():
    values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    present = torch.tensor([[True, True, True], [True, True, False]])
    targets = critic_targets(values, present, torch.tensor([10.0, 20.0]))
    assert targets[0].tolist() == [2.0, 3.0, 10.0]
    assert targets[1, :2].tolist() == [5.0, 20.0]


def sequences_of(rewards: list[float], continues: list[float], weights: list[float]) -> Sequences:
    """One sequence, of the first team's rewards."""
    team = torch.tensor(rewards)[:, None, None]
    positions = Position({}, *([torch.zeros(0)] * 4))
    column = lambda numbers: torch.tensor(numbers)[:, None]  # noqa: E731
    both = torch.cat([team, -team], dim=2)
    return Sequences(positions, torch.zeros(0), torch.zeros(0), both, column(continues), column(weights))


@pytest.mark.parametrize(
    ("rewards", "continues", "weights", "expected"),
    [
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0], (1.75, 3, 0.125)),  # the match goes on
        ([0.0, 1.0, 8.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], (0.5, 3, 0.0)),  # a rule ended it in the second row
        ([1.0, 8.0, 8.0], [1.0, 1.0, 1.0], [1.0, 0.0, 1.0], (1.0, 1, 0.5)),  # the horizon cut it after the first
    ],
)
def test_returns_go_to_the_end_of_the_match(rewards, continues, weights, expected):
    total, row, discount = n_step_returns(sequences_of(rewards, continues, weights), team=0, gamma=0.5)
    assert (total.item(), row.item(), discount.item()) == expected
    assert n_step_returns(sequences_of(rewards, continues, weights), team=1, gamma=0.5)[0].item() == -expected[0]


# -- the weight of the reference ---------------------------------------------------------------------------------------


def weight_after(advantage: float, count: int = 200, rule: WeightRule = "adaptive") -> ReferenceWeight:
    weight = ReferenceWeight(rule, first=0.1, least=1e-4, rate=0.05, wanted=0.05)
    for k in range(count):
        weight.update(advantage, (k + 1) / count)
    return weight


def test_an_adaptive_weight_falls_while_the_policy_is_better_and_comes_back():
    assert weight_after(0.0).beta == 0.1
    assert weight_after(-0.5).beta == 0.1
    better = weight_after(0.5)
    assert better.beta == pytest.approx(0.1 * np.exp(200 * 0.05 * (0.05 - 0.5)))
    assert weight_after(0.5, 2000).beta == 1e-4
    for _ in range(2000):
        better.update(-0.1, 1.0)
    assert better.beta == 0.1


def test_the_other_weights_are_fixed_linear_or_none():
    assert weight_after(0.5, rule="fixed").beta == 0.1
    assert weight_after(0.5, rule="linear").beta == 0.0
    half = weight_after(0.0, 0, rule="linear")
    half.update(0.5, 0.5)
    assert half.beta == pytest.approx(0.05)
    assert weight_after(-0.5, rule="none").beta == 0.0


def test_returns_are_those_of_either_policy_discounted_over_a_match():
    returns = MatchReturns(lanes=3, reference_lanes=1, gamma=0.5, decay=0.25)
    running = np.array([True, True, True])
    returns.count(np.array([0.0, 1.0, 0.0]), running)
    returns.count(np.array([1.0, 1.0, 4.0]), running)
    assert returns.advantage == 0.0  # no match has ended
    returns.count(np.zeros(3), ~running)
    assert (returns.of_policy, returns.of_reference) == (1.75, 0.5)
    assert returns.advantage == pytest.approx((1.75 - 0.5) / 2.25)
    returns.count(np.array([0.0, 8.0, 0.0]), running)
    returns.count(np.zeros(3), np.array([True, False, True]))
    assert returns.of_policy == pytest.approx(1.75 + (8.0 - 1.75) / 3.0)  # the third match of the policy
    one, other = MatchReturns(3, 1, 0.5, 0.25), returns.state_dict()
    one.load_state_dict(other)
    assert one.advantage == returns.advantage


# -- references --------------------------------------------------------------------------------------------------------


def reference_of(name: str, game: Any, places: Places, agent: int = 0) -> np.ndarray:
    graphs = Graphs(game)
    agents = torch.full((len(places.graph),), agent)
    moves = graphs.neighbours(places.graph, places.own[:, agent])
    return Reference(name, game, graphs, "pursuer")(places, agents, moves >= 0, moves).numpy()


def test_the_shortest_path_is_shared_by_equal_ways_and_avoids_where_teammates_go():
    grid = game_on("grid:3x3", pursuers=2)  # moves of node 0: stay, 1, 3
    apart = places_at([[0, 6]], [[8]])
    assert reference_of("shortest_path", grid, apart)[0].tolist() == [0.0, 0.5, 0.5, 0.0, 0.0]
    decided = dataclasses.replace(places_at([[3, 0]], [[8]]), decided=torch.tensor([[True, False]]))
    assert reference_of("shortest_path", grid, decided, agent=1)[0].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_a_random_reference_is_uniform_over_what_is_legal():
    assert reference_of("random", game_on("path:5"), places_at([[0, 2]], [[4]]))[0].tolist() == [0.5, 0.5, 0.0]


def test_the_optimal_reference_takes_optimal_moves_alone():
    game = game_on("grid:4x4", pursuers=2, order="alternating", solve=True)
    solution, graphs = exact.pursuit("grid:4x4", 2), Graphs(game)
    reference = Reference("optimal", game, graphs, "pursuer")
    ways_of = solution.graph.neighbours

    def moves_of(a: int, b: int, e: int) -> int:
        """Further moves to a capture when the pursuers have gone to a and b."""
        if solution.times[a, b, e] == 0:
            return 0
        return max(int(solution.times[a, b, n]) for n in ways_of[e] if n >= 0)

    for a, b, e in [(0, 15, 6), (0, 1, 15), (5, 10, 3), (12, 2, 9), (0, 0, 15), (1, 4, 11)]:
        best = int(solution.times[a, b, e]) - 1
        joint = {(x, y): moves_of(x, y, e) for x in ways_of[a] for y in ways_of[b] if x >= 0 and y >= 0}
        assert min(joint.values()) == best
        first = reference_of("optimal", game, places_at([[a, b]], [[e]]))[0]
        expected = {x for (x, _), moves in joint.items() if moves == best}
        assert {ways_of[a][k] for k in np.flatnonzero(first)} == expected
        went = min(expected)
        after = dataclasses.replace(places_at([[went, b]], [[e]]), decided=torch.tensor([[True, False]]))
        agent, moves = torch.tensor([1]), graphs.neighbours(after.graph, after.own[:, 1])
        second = reference(after, agent, moves >= 0, moves)[0].numpy()
        assert {ways_of[b][k] for k in np.flatnonzero(second)} == {
            y for (x, y), moves in joint.items() if x == went and moves == best
        }


def test_an_optimal_reference_needs_a_solution():
    game = game_on("cycle:5")
    with pytest.raises(ValueError, match="add --options solve=True"):
        Reference("optimal", game, Graphs(game), "pursuer")


# -- the network -------------------------------------------------------------------------------------------------------


def network_on(game: Any, outputs: int = 1) -> MoveNetwork:
    torch.manual_seed(0)
    return MoveNetwork(Graphs(game), 16, 2, outputs)


def test_one_network_plays_all_graphs_and_team_sizes_and_does_not_see_the_order_of_others():
    small = network_on(game_on("grid:4x4", pursuers=3, evaders=2))
    places = places_at([[0, 5, 10]], [[15, 2]])
    swapped = places_at([[0, 10, 5]], [[2, 15]])
    agent = torch.tensor([0])
    assert torch.allclose(small(places, agent)[0], small(swapped, agent)[0], atol=1e-6)
    other = network_on(game_on("petersen", pursuers=6))
    other.load_state_dict(small.state_dict())
    assert other(places_at([[0, 1, 2, 3, 4, 5]], [[9]]), agent)[0].shape == (1, 4, 1)


def test_who_is_absent_or_unseen_changes_nothing():
    network = network_on(game_on("grid:4x4", pursuers=2, evaders=2))
    more = network_on(game_on("grid:4x4", pursuers=3, evaders=2))
    agent = torch.tensor([1])
    two = network(places_at([[0, 5]], [[15, ABSENT]]), agent)[0]
    assert torch.allclose(more(places_at([[0, 5, ABSENT]], [[15, ABSENT]]), agent)[0], two, atol=1e-6)
    assert not torch.allclose(network(places_at([[0, 5]], [[15, 3]]), agent)[0], two)


def test_teammates_decide_one_after_the_other():
    game = game_on("path:9", pursuers=3)
    graphs, places = Graphs(game), places_at([[0, 4, 8]], [[2]])
    actions = torch.tensor([[1, 2, 1]])  # to 1, to 5, to 7
    at, agent = prefixes(places, graphs, actions, sequential=True)
    assert agent.tolist() == [0, 1, 2]
    assert at.own.tolist() == [[0, 4, 8], [1, 4, 8], [1, 5, 8]]
    assert at.decided.int().tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    at_once, _ = prefixes(places, graphs, actions, sequential=False)
    assert at_once.own.tolist() == [[0, 4, 8]] * 3
    assert not at_once.decided.any()


def test_decisions_take_the_most_probable_legal_alternative_given_earlier_ones():
    game = game_on("grid:4x4", pursuers=2)
    network, graphs = network_on(game), Graphs(game)
    places = places_at([[5, 6]], [[15]])
    legal = torch.ones(1, 2, 5, dtype=torch.bool)
    found = decide(network.scores, graphs, places, legal, None)
    at, agent = prefixes(places, graphs, found, sequential=True)
    assert network(at, agent)[0][..., 0].argmax(dim=1).tolist() == found[0].tolist()
    legal[0, 0, found[0, 0]] = False
    assert decide(network.scores, graphs, places, legal, None)[0, 0] != found[0, 0]
    drawn = torch.zeros(1, 2, 5)
    drawn[0, 1, 3] = 100.0
    assert decide(network.scores, graphs, places, legal, drawn)[0, 1] == 3


def test_positions_are_read_from_what_the_team_sees():
    sim = palaestra.make_batch(PURSUIT, 4, observation="nodes", graph="path:9", pursuers=3, fewest_pursuers=2, vision=2)
    sim.reset(seed=0)
    roster = GraphRoster(sim.game, ["pursuer"])
    rows = roster.read_observations(sim)["nodes"][:, 0]
    for lane, record in enumerate(sim.states):
        nodes = [int(n) if alive else ABSENT for n, alive in zip(record["node"][:3], record["alive"][:3], strict=True)]
        evader = int(record["node"][3])
        near = any(abs(node - evader) <= 2 for node in nodes if node != ABSENT)
        assert rows[lane].tolist()[1:5] == [*nodes, evader if near else ABSENT]
    assert len(set(rows[:, 3].tolist())) > 1  # some matches have two pursuers


# -- runs --------------------------------------------------------------------------------------------------------------


def test_two_pursuers_learn_to_catch_on_a_cycle(tmp_path: Path):
    more = {"total_steps": 5_000, "learning_rate": (6e-3, 1e-3), "lanes": 32, "batch_size": 64, "width": 16}
    args = arac.Args(**{**TINY, **more, "average": 0.03})
    report = arac.train(dataclasses.replace(args, directory=tmp_path, evaluations=1, matches=128, warmup_steps=500))
    assert report.log[0]["win_rate"] < 0.8
    assert report.log[-1]["win_rate"] > 0.95


def test_an_interrupted_run_resumes_bitwise_equal(tmp_path: Path):
    assert_same_run(*whole_and_resumed(arac, arac.Args(**TINY), tmp_path))


@pytest.mark.parametrize(
    "arguments",
    [
        {"beta": "none"},
        {"decoder": "independent", "beta": "linear"},
        {"reference": "optimal", "beta": "fixed"},
        {"options": (*SHORT, "pursuers=3", "fewest_pursuers=1"), "opponent": "flee"},
        {"options": SHORT, "team": "evader", "opponent": "greedy"},
    ],
)
def test_every_kind_of_run_goes_through(arguments: dict[str, Any], tmp_path: Path):
    report = arac.train(arac.Args(**{**TINY, **arguments, "evaluations": 1}, directory=tmp_path))
    assert report.updates > 0


def test_a_saved_policy_plays_other_graphs_and_teams(tmp_path: Path):
    report = arac.train(arac.Args(**{**TINY, "evaluations": 1}, directory=tmp_path))
    for keywords in ({"graph": "grid:4x4", "pursuers": 3}, {"graph": "petersen", "evaders": 2}):
        table = evaluate(
            PURSUIT, str(report.weights), "flee", matches=4, swap=False, num_envs=4, observation="nodes", **keywords
        )
        assert table.matches == 4
    with pytest.raises(FileError, match='make it with observation="nodes"'):
        evaluate(PURSUIT, str(report.weights), "flee", matches=4, swap=False)


def test_a_policy_that_draws_plays_as_often_as_it_says_by_the_seeds_of_the_lanes():
    lanes, game = 4096, game_on("path:9")
    policy = arac.GraphPolicy(Graphs(game), 8, 2, "sequential", "drawn")
    logits = torch.tensor([2.0, 0.0, 0.0])
    policy.network.scores = lambda places, agent, legal: logits.expand(len(agent), -1)  # type: ignore[method-assign]
    player: Any = policy.player(game, "pursuer")
    sim = palaestra.make_batch(PURSUIT, lanes, observation="nodes", graph="path:9", start_hops=3)
    sim.reset(seed=0)
    sim.states["node"][:, :3] = 4, 3, 8
    rows = sim.team_view("pursuer", "observations")
    legal, seeds = np.ones((lanes, 2, 3), np.int8), np.arange(lanes, dtype=np.uint64)
    memory = np.zeros((lanes, player.memory_size))
    first, second = (player.act(rows, legal, None, None, seeds, memory) for _ in range(2))
    for member in range(2):
        shares = np.bincount(first[:, member], minlength=3) / lanes
        assert shares == pytest.approx(logits.softmax(0).tolist(), abs=0.03)
    assert 0.3 < (first == second).mean() < 0.8, "the next decision is drawn anew"
    again = player.act(rows, legal, None, None, seeds, np.zeros((lanes, 1)))
    np.testing.assert_array_equal(again, first)
    assert player.kept_size == 1, "the matches of a lane are drawn apart"
    assert arac.GraphPolicy(Graphs(game), 8, 2, "sequential").player(game, "pursuer").memory_size == 0


def test_a_file_says_how_its_policy_plays(tmp_path: Path):
    report = arac.train(arac.Args(**{**TINY, "evaluations": 1}, play="drawn", directory=tmp_path))
    player: Any = arac.load_policy(report.weights, game_on(), "pursuer")
    assert player.memory_size == 1
    table = evaluate(PURSUIT, str(report.weights), "flee", matches=4, swap=False, num_envs=4, observation="nodes")
    assert table.matches == 4


def test_the_greedy_player_gives_legal_moves_of_the_network():
    sim = palaestra.make_batch(PURSUIT, 8, observation="nodes", graph="grid:4x4")
    sim.reset(seed=0)
    torch.manual_seed(0)
    policy = arac.GraphPolicy(Graphs(sim.game), 8, 2, "sequential")
    player = policy.player(sim.game, "pursuer")
    rows = sim.team_view("pursuer", "observations")
    legal = sim.team_view("pursuer", "legal")
    nothing = np.zeros(0)
    moves = np.asarray(player.act(rows, legal, nothing, nothing, nothing, nothing))
    assert moves.shape == (8, 2)
    assert all(legal[k, i, moves[k, i]] for k, i in itertools.product(range(8), range(2)))
    assert nodes_of(rows).shape == (8, 1 + 2 * 3)
