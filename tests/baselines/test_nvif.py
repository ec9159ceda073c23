"""NVIF: exchanges of messages, the pretraining's targets and losses, the losses of PPO and DQN by hand, runs, files."""

import dataclasses
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import assert_same_run, whole_and_resumed

from palaestra import registry
from palaestra.core.files import FileError
from palaestra_baselines import nvif
from palaestra_baselines.common.neighbours import (
    FAR,
    Exchange,
    NeighbourNetwork,
    NeighbourRoster,
    Shape,
    in_match,
    inputs_of,
    shuffled_senders,
)
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.rollout import Batch, Position, Sequences
from palaestra_baselines.nvif import (
    BOXES,
    Args,
    catches_of,
    divergence,
    load_policy,
    opponents_seen,
    ppo_losses,
    read_rollout,
    reconstruction_loss,
    td_loss,
)

pytestmark = pytest.mark.check

EASY = "palaestra/GridPursuit-BlindEasy-v0"
TINY: dict[str, Any] = {
    "env_id": EASY,
    **{"lanes": 4, "rollout": 4, "epochs": 1, "minibatches": 2, "width": 4, "hidden": (8,), "batch_size": 4},
    **{"pretraining": 3, "random_decisions": 40, "warmup_steps": 20, "replay_size": 200},
    **{"total_steps": 160, "evaluations": 2, "matches": 4, "quiet": True},
}
AGENTS, LIST, WIDTH, SIDE = 5, 3, 4, 3
INPUTS = 4 + 5 * SIDE**2


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# -- messages ----------------------------------------------------------------------------------------------------------


def draw_lists(lanes: int = 2) -> tuple[Any, Any]:
    """Lists of other agents with padding, and offsets, also in the padding."""
    order = torch.rand(lanes, AGENTS, AGENTS).argsort(-1)
    others = order[order != torch.arange(AGENTS)[:, None]].view(lanes, AGENTS, -1)[..., :LIST]
    padded = torch.arange(LIST) >= torch.randint(LIST + 1, (lanes, AGENTS, 1))
    return others.masked_fill(padded, -1).short(), torch.randint(-9, 10, (lanes, AGENTS, LIST, 2)).to(torch.int8)


def draw_observations(lanes: int = 2) -> dict[str, Any]:
    """All agents in the match."""
    neighbours, offsets = draw_lists(lanes)
    own = torch.randint(1, 100, (lanes, AGENTS, 6), dtype=torch.uint8)
    window = torch.randint(0, 101, (lanes, AGENTS, SIDE, SIDE, 5), dtype=torch.uint8)
    return {"own": own, "window": window, "neighbours": neighbours, "offsets": offsets}


def network_of(**more: Any) -> NeighbourNetwork:
    shape = {"hops": 2, "offsets": True, "latent": False, "width": WIDTH, "hidden": (8,), **more}
    return NeighbourNetwork(INPUTS, 3, Shape(**shape))


@pytest.mark.parametrize("offsets", [True, False])
def test_an_exchange_is_the_mean_of_what_each_neighbour_sends_from_where_it_is(offsets: bool):
    exchange, messages = Exchange(WIDTH, offsets), torch.randn(2, AGENTS, WIDTH)
    lists, cells = draw_lists()
    alive = torch.ones(2, AGENTS, dtype=torch.bool)
    alive[1, 2] = False
    found = exchange(messages, lists, cells, alive)
    assert (lists < 0).all(-1).any()
    for lane in range(2):
        for i in range(AGENTS):
            total, number = torch.zeros(WIDTH), 0
            for j, offset in zip(lists[lane, i].tolist(), cells[lane, i], strict=True):
                if j < 0:
                    continue
                sent = exchange.message(messages[lane, j]) if alive[lane, j] else torch.zeros(WIDTH)
                total += torch.relu(sent + (exchange.offset(offset.float() / FAR) if exchange.offset else 0.0))
                number += 1
            torch.testing.assert_close(found[lane, i], total / max(number, 1))


def test_agents_in_another_order_decide_the_same():
    network, observations = network_of(), draw_observations()
    order = torch.randperm(AGENTS)
    moved = {name: values[:, order] for name, values in observations.items()}
    lists = moved["neighbours"].long()
    moved["neighbours"] = torch.where(lists >= 0, order.argsort()[lists.clamp(min=0)], -1)
    for found, expected in zip(network.evaluate(moved), network.evaluate(observations), strict=True):
        torch.testing.assert_close(found, expected[:, order])


def test_who_observes_zeros_alone_is_out_of_the_match():
    own = torch.zeros(1, 3, 6, dtype=torch.uint8)
    own[0, 1, 0], own[0, 2, 5] = 1, 7
    assert in_match({"own": own}).tolist() == [[False, True, True]]


def test_offsets_matter_where_receivers_know_them_and_messages_without_hops_never():
    observations = draw_observations()
    for shape, knows_offsets, knows_lists in (({}, True, True), ({"offsets": False}, False, True), ({"hops": 0}, 0, 0)):
        network = network_of(**shape)
        expected = network(observations)
        turned = {**observations, "offsets": -observations["offsets"]}
        assert (network(turned) != expected).any() == knows_offsets
        silent = {**observations, "neighbours": torch.full_like(observations["neighbours"], -1)}
        assert (network(silent) != expected).any() == knows_lists


def test_no_agent_knows_its_absolute_place_but_all_else_that_it_sees():
    observations = draw_observations()
    seen = inputs_of(observations)
    assert seen.shape == (2, AGENTS, INPUTS)
    for name, index, counts in (("own", 3, True), ("own", 4, False), ("own", 5, False), ("window", (1, 2, 3), True)):
        changed = {**observations, name: observations[name].clone()}
        place = (slice(None), slice(None), *(index if isinstance(index, tuple) else (index,)))
        changed[name][place] = 101
        assert (inputs_of(changed) != seen).any() == counts
    assert seen.max() <= 1.0


def test_a_latent_is_a_linear_map_of_the_last_messages_divided_by_its_scale():
    network, observations = network_of(latent=True), draw_observations()
    with torch.no_grad():
        expected = network(observations)
        network.scale.fill_(4.0)
        assert network.normal is not None
        network.normal.weight[:WIDTH] *= 4.0
        network.normal.bias[:WIDTH] *= 4.0
    torch.testing.assert_close(network(observations), expected)


def test_a_frozen_network_learns_behind_the_latent_alone():
    network = network_of(latent=True)
    network.freeze()
    scores, values = network.evaluate(draw_observations())
    (scores.sum() + values.sum()).backward()
    learnt = {name for name, weight in network.named_parameters() if weight.grad is not None}
    assert learnt == {f"{part}.{kind}" for part in ("layers.0", "scores", "value") for kind in ("weight", "bias")}


def test_shuffled_lists_name_each_living_agent_in_the_place_of_one_and_keep_their_padding():
    lists = torch.tensor([[1, 2, 4, -1]]).expand(5, -1)[None].repeat(50, 1, 1)
    alive = torch.tensor([True, True, True, False, True]).expand(50, -1)
    found = shuffled_senders(lists, alive, torch.Generator().manual_seed(0))
    assert (found[..., 3] == -1).all()
    assert set(found[..., :3].flatten().tolist()) == {0, 1, 2, 4}
    assert all(len(set(row)) == 3 for row in found[:, 0, :3].tolist())
    assert (found == found[:, :1]).all()
    assert len({tuple(row) for row in found[:, 0].tolist()}) > 10


def test_a_game_without_lists_of_neighbours_is_refused():
    with pytest.raises(ValueError, match="messages are learnt by agents of one role that observe own, window, neigh"):
        NeighbourRoster(registry.make_game("palaestra/TeamTag-v0")[0], ["red"])


# -- pretraining -------------------------------------------------------------------------------------------------------


def test_boxes_tell_where_an_agent_and_its_neighbours_see_opponents():
    generator = torch.Generator().manual_seed(0)
    window = (torch.rand(3, 4, 5, 5, 5, generator=generator) < 0.1) * 100
    neighbours = torch.tensor([[1, 2, -1], [0, -1, -1], [3, 1, 0], [-1, -1, -1]]).expand(3, -1, -1)
    offsets = torch.randint(-12, 13, (3, 4, 3, 2), generator=generator).to(torch.int8)
    found = opponents_seen({"window": window, "neighbours": neighbours, "offsets": offsets})
    expected = torch.zeros(3, 4, BOXES, BOXES)
    for s in range(3):
        for i in range(4):
            near = zip(neighbours[s, i].tolist(), offsets[s, i].tolist(), strict=True)
            for j, (down, across) in [(i, (0, 0)), *((j, cells) for j, cells in near if j >= 0)]:
                for a, b in window[s, j, :, :, 3].nonzero().tolist():
                    row, column = math.floor((down + a - 2 + 10) / 3), math.floor((across + b - 2 + 10) / 3)
                    if 0 <= row < BOXES and 0 <= column < BOXES:
                        expected[s, i, row, column] = 1.0
    assert 0.0 < expected.mean() < 0.5
    assert torch.equal(found, expected.flatten(2))


def test_reconstruction_weighs_occupied_boxes_and_leaves_out_agents_out_of_the_match():
    logits = torch.tensor([[[0.0, 2.0, -1.0], [9.0, 9.0, 9.0]]], requires_grad=True)
    window, boxes = torch.tensor([[[0.25], [0.0]]]), torch.tensor([[[1.0, 0.0], [1.0, 1.0]]])
    loss = reconstruction_loss(logits, window, boxes, torch.tensor([[True, False]]), 15.0)
    expected = math.log(2.0) - 15.0 * math.log(1 / (1 + math.exp(-2.0))) - math.log(1 - 1 / (1 + math.exp(1.0)))
    assert loss.item() == pytest.approx(expected / 3, rel=1e-5)
    loss.backward()
    assert logits.grad is not None
    assert logits.grad[0, 0].sign().tolist() == [1.0, -1.0, 1.0]
    assert not logits.grad[0, 1].any()


def test_the_divergence_is_that_of_normal_distributions_of_agents_in_the_match():
    mean, log_variance = torch.tensor([[[0.6, 0.0], [7.0, 7.0]]]), torch.tensor([[[-1.0, 0.0], [0.0, 0.0]]])
    found = divergence(mean, log_variance, torch.tensor([[True, False]]))
    assert found.item() == pytest.approx(0.5 * (0.36 + math.exp(-1.0) - 1.0 + 1.0))


# -- PPO ---------------------------------------------------------------------------------------------------------------


class Outputs(torch.nn.Module):
    """A network that says ``logits`` and ``values`` whatever agents observe."""

    def __init__(self, logits: Any, values: Any) -> None:
        super().__init__()
        self.logits, self.values = (torch.nn.Parameter(torch.as_tensor(x)) for x in (logits, values))

    def evaluate(self, observations: Any) -> tuple[Any, Any]:
        return self.logits, self.values

    def forward(self, observations: Any) -> Any:
        return self.logits


def test_ppo_ascends_advantages_and_learns_targets_of_agents_that_acted():
    network: Any = Outputs(torch.zeros(1, 3, 3), torch.tensor([[1.0, 1.0, 1.0]]))
    batch = {
        "legal": torch.tensor([[[True, True, False]] * 3]),
        "actions": torch.tensor([[0, 1, 0]]),
        "acts": torch.tensor([[1.0, 1.0, 0.0]]),
        "old": torch.full((1, 3), math.log(0.5)),
        "advantages": torch.tensor([[2.0, -1.0, 5.0]]),
        "targets": torch.tensor([[3.0, 0.0, 9.0]]),
    }
    loss, error, entropy = ppo_losses(network, batch, 0.2)
    assert (loss.item(), error.item()) == (pytest.approx(-0.5), pytest.approx((4.0 + 1.0) / 2))
    assert entropy.item() == pytest.approx(math.log(2.0))
    (loss + error).backward()
    slope = network.logits.grad[0]
    assert slope[0, 0] < 0.0 < slope[0, 1]  # the action that was good becomes more probable
    assert slope[1, 0] < 0.0 < slope[1, 1]  # the one that was bad less
    assert not slope[2].any()
    assert not slope[:, 2].any()
    assert network.values.grad[0].tolist() == [-2.0, 1.0, 0.0]


def position_of(alive: Any, asked: Any, legal: Any, **observations: Any) -> Position:
    return Position(observations, legal, alive, asked, torch.zeros(alive.shape[:-1], dtype=torch.bool))


def test_a_rollout_gives_each_agent_its_own_advantage_and_none_to_the_dead():
    alive = torch.tensor([[[True, True]], [[True, True]], [[True, False]], [[True, False]]])
    values = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 600.0]], [[7.0, 800.0]]])
    positions = position_of(alive, alive, torch.ones(4, 1, 2, 3, dtype=torch.bool), seen=torch.zeros(4, 1, 2))
    rewards = torch.tensor([[[0.0, 1.0]], [[1.0, -2.0]], [[0.0, 0.0]]])
    one = torch.ones(3, 1)
    rollout = Sequences(positions, torch.ones(4, 1, 2, 1), torch.zeros(3, 1, 2, dtype=torch.long), rewards, one, one)
    args: Any = SimpleNamespace(gamma=0.5, gae_lambda=0.0)
    network: Any = Outputs(torch.zeros(4, 1, 2, 3), values)
    samples = read_rollout(rollout, network, args)
    deltas = torch.tensor([[0.0 + 1.5 - 1.0, 1.0 + 2.0 - 2.0], [1.0 + 2.5 - 3.0, -2.0 - 4.0], [3.5 - 5.0, 0.0]])
    acts = torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    assert torch.equal(samples["acts"], acts)
    torch.testing.assert_close(samples["targets"] * acts, (deltas + values[:-1, 0]) * acts)
    living = deltas[acts > 0]
    expected = (living - living.mean()) / living.std(correction=0)
    torch.testing.assert_close(samples["advantages"][acts > 0], expected)
    torch.testing.assert_close(samples["old"], torch.full((3, 2), -math.log(3.0)))


# -- DQN ---------------------------------------------------------------------------------------------------------------


def test_dqn_learns_the_own_reward_and_the_target_network_s_value_of_the_online_network_s_choice():
    alive, asked = torch.tensor([[True, True, True]]), torch.tensor([[True, True, False]])
    legal = torch.tensor([[[True, True, False]] * 3])
    before, after = position_of(alive, asked, legal), position_of(torch.tensor([[True, False, True]]), asked, legal)
    batch = Batch(
        before, after, torch.tensor([[0, 1, 0]]), torch.tensor([[1.0, 2.0, 9.0]]), torch.ones(1), torch.ones(1)
    )
    online: Any = Outputs([[[5.0, 7.0, 99.0]] * 3], torch.zeros(1))
    target: Any = Outputs([[[4.0, 3.0, 50.0]] * 3], torch.zeros(1))
    loss = td_loss(online, target, batch, 0.5)
    errors = 5.0 - (1.0 + 0.5 * 3.0), 7.0 - 2.0  # the second is dead afterwards, the third was not asked
    assert loss.item() == pytest.approx(sum(e**2 for e in errors) / 2)
    loss.backward()
    assert online.logits.grad[0].tolist() == [[errors[0], 0.0, 0.0], [0.0, errors[1], 0.0], [0.0, 0.0, 0.0]]
    assert target.logits.grad is None
    simple = td_loss(online, target, batch, 0.5, double=False)
    assert simple.item() == pytest.approx(((5.0 - (1.0 + 0.5 * 4.0)) ** 2 + errors[1] ** 2) / 2)
    ended = dataclasses.replace(batch, continues=torch.zeros(1))
    assert td_loss(online, target, ended, 0.5).item() == pytest.approx((4.0**2 + 5.0**2) / 2)
    started = dataclasses.replace(batch, weights=torch.zeros(1))
    assert td_loss(online, target, started, 0.5).item() == 0.0


# -- arguments, runs, files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"team": ""}, "--team says which team learns"),
        ({"messages": "mean", "tuned": "frozen"}, "--tuned frozen keeps a pretrained latent"),
        ({"minibatches": 17}, "--minibatches 17 are more than the decisions of a rollout"),
    ],
)
def test_arguments_that_cannot_be_are_refused(given: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        Args(**{**TINY, **given}).check()


KINDS = {"nvif": {}, "frozen": {"tuned": "frozen"}, "mean": {"messages": "mean"}, "dqn": {"algorithm": "dqn"}}


@pytest.mark.check
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_is_the_same_to_the_bit_and_its_file_plays_on_any_map(kind: str, tmp_path: Path):
    args = Args(**TINY, **KINDS[kind])
    whole, resumed = whole_and_resumed(nvif, args, tmp_path, stop_at=2)
    assert_same_run(whole, resumed)
    for options in (("map_size=40", "predators=24"), ()):
        caught = catches_of(EASY, options, "predator", str(whole.weights), "wander", 3, 0)
        assert caught.shape == (3,)
    game = registry.make_game(EASY)[0]
    assert load_policy(whole.weights, game, "predator").gives_logits == (kind != "dqn")
    with pytest.raises(FileError, match="GridBattle"):
        load_policy(whole.weights, registry.make_game("palaestra/GridBattle-12-v0")[0], "red")


@pytest.mark.check
def test_pretraining_tells_boxes_with_opponents_from_empty_ones_and_scales_the_latent(tmp_path: Path):
    args = Args(env_id=EASY, random_decisions=3_200, pretraining=400, total_steps=1, quiet=True, directory=tmp_path)
    occupied, empty = read_policy(nvif.train(args, lambda _: {}).weights)[1]["readings"]
    assert occupied > 0.4 > 0.2 > empty


@pytest.mark.slow
def test_a_short_training_catches_what_random_play_does_not(tmp_path: Path):
    report = nvif.train(Args(env_id=EASY, total_steps=16_000, evaluations=1, quiet=True, directory=tmp_path))
    assert report.log[-1]["catches"] > 2.0 > 0.5 > catches_of(EASY, (), "predator", "random", "wander", 64, 0).mean()
