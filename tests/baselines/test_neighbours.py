"""Messages of neighbours: exchanges against a loop, agents in another order, padding, agents out of the match."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch

from palaestra import registry
from palaestra_baselines.common.neighbours import (
    FAR,
    Exchange,
    NeighbourNetwork,
    NeighbourRoster,
    Shape,
    inputs_of,
    shuffled_senders,
)

AGENTS, LIST, WIDTH, SIDE = 5, 3, 4, 3
INPUTS = 4 + 5 * SIDE**2


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


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("offsets", [True, False])
def test_an_exchange_is_the_mean_of_what_each_neighbour_sends_from_where_it_is(offsets: bool):
    exchange, messages = Exchange(WIDTH, offsets), torch.randn(2, AGENTS, WIDTH)
    lists, cells = draw_lists()
    alive = torch.ones(2, AGENTS, dtype=torch.bool)
    alive[1, 2] = False
    found = exchange(messages, lists, cells, alive)
    assert (lists < 0).any()
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


def test_an_agent_without_neighbours_gets_nothing_whatever_stands_beyond_its_list():
    exchange, alive = Exchange(WIDTH, True), torch.ones(2, AGENTS, dtype=torch.bool)
    messages, (lists, cells) = torch.randn(2, AGENTS, WIDTH), draw_lists()
    found = exchange(messages, lists, cells, alive)
    other = torch.where((lists < 0)[..., None], 99, cells)
    torch.testing.assert_close(exchange(messages, lists, other, alive), found)
    assert (exchange(messages, torch.full_like(lists, -1), cells, alive) == 0.0).all()
    wide = torch.nn.functional.pad(lists, (0, 5), value=-1), torch.nn.functional.pad(cells, (0, 0, 0, 5))
    torch.testing.assert_close(exchange(messages, *wide, alive), found)


def test_the_message_of_an_agent_out_of_the_match_is_zero():
    exchange, alive = Exchange(WIDTH, False), torch.arange(AGENTS).expand(2, -1) != 1
    messages, (lists, cells) = torch.randn(2, AGENTS, WIDTH), draw_lists()
    found = exchange(messages, lists, cells, alive)
    messages[:, 1] += 1.0
    torch.testing.assert_close(exchange(messages, lists, cells, alive), found)
    assert (exchange(messages, torch.where(lists == 1, lists, -1), cells, alive) == 0.0).all()


def test_who_observes_zeros_alone_is_out_of_the_match():
    network, observations = network_of(), draw_observations()
    observations |= {
        name: observations[name] * (torch.arange(AGENTS) != 1).view(-1, *[1] * dims)
        for name, dims in (("own", 1), ("window", 3))
    }
    expected = network(observations)
    torch.nn.init.zeros_(network.exchanges[0].message.weight)
    torch.nn.init.zeros_(network.exchanges[1].message.weight)
    alone = {**observations, "neighbours": torch.where(observations["neighbours"] == 1, 1, -1)}
    torch.nn.init.ones_(network.exchanges[0].message.bias)
    assert (network(observations) != expected).any()
    heard = network(alone)
    torch.nn.init.normal_(network.exchanges[0].message.bias)
    torch.testing.assert_close(network(alone), heard)


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
