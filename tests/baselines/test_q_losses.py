"""The targets and losses of FM3Q, VDN and IQL, each term on numbers made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch

from palaestra_baselines import fm3q, iql, vdn
from palaestra_baselines.common.rollout import Batch, Position

TEAM_OF = torch.tensor([0, 0, 1, 1])
SIGNS = torch.tensor([1.0, 1.0, -1.0, -1.0])


class Columns(torch.nn.Module):
    """Utilities that stand in the observations: the online network reads the first two columns, the target two more."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self.first = first

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        return observations["all"][..., self.first : self.first + 2]

    def features(self, observations: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return observations

    def values(self, features: dict[str, torch.Tensor], heads: Any = None) -> torch.Tensor:
        return self(features) if heads is None else heads["all"](self(features))


class Sums(torch.nn.Module):
    """The difference of the teams' sums, times a factor, plus what the first agent observes first times another."""

    def __init__(self, factor: float = 1.0, share: float = 0.0) -> None:
        super().__init__()
        self.factor, self.share = factor, share

    def forward(self, utilities: torch.Tensor, observations: Any) -> torch.Tensor:
        return self.factor * utilities @ SIGNS[:, None] + self.share * observations["all"][:, 0, :1]


def position(online: list[list[float]], target: list[list[float]]) -> Position:
    rows = torch.cat([torch.tensor(online), torch.tensor(target)], 1)[None].repeat(2, 1, 1)
    yes = torch.ones(2, 4, dtype=torch.bool)
    return Position({"all": rows}, yes[..., None].repeat(1, 1, 2), yes, yes, ~yes[:, 0])


def batch() -> Batch:
    """A decision with a reward of 2 and a row without weight, each of two teams of two."""
    before = position([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], [[9.0, 9.0]] * 4)
    after = position([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [[10, 20], [30, 40], [50, 60], [70, 80]])
    actions = torch.tensor([[0, 1, 0, 1], [0, 0, 0, 0]])
    rewards = torch.tensor([[2.0, -2.0], [99.0, -99.0]])
    return Batch(before, after, actions, rewards, torch.ones(2), torch.tensor([1.0, 0.0]))


def without(position: Position, agent: int) -> Position:
    alive = position.alive.clone()
    alive[0, agent] = False
    return replace(position, alive=alive)


def forbid(position: Position, agent: int, action: int) -> Position:
    legal = position.legal.clone()
    legal[0, agent, action] = False
    return replace(position, legal=legal)


def loss_of(method: str, batch: Batch, double: bool = True) -> float:
    online, target = Columns(0), Columns(2)
    if method == "fm3q":
        whole, follower = (fm3q.Factorisation(network, Sums()) for network in (online, target))  # type: ignore[arg-type]
        return float(fm3q.td_loss(whole, follower, batch, 0.5, double))
    module = {"vdn": vdn, "iql": iql}[method]
    return float(module.td_loss(online, target, batch, TEAM_OF, 0.5, double))  # type: ignore[arg-type]


def mean(*errors: float) -> float:
    return sum(e * e for e in errors) / len(errors)


# Taken utilities: 1, 4 of the first team and 5, 8 of the second. The online network chooses the actions 1, 0, 1, 0,
# which the target network values 20, 30, 60, 70. Half of that counts.
PLAIN = {
    "fm3q": mean(-8 - (2 - 40)),
    "vdn": mean(5 - (2 + 25), 13 - (-2 + 65)),
    "iql": mean(1 - 12, 4 - 17, 5 - 28, 8 - 33),
}


@pytest.mark.parametrize("method", PLAIN)
def test_the_loss_is_the_squared_error_against_reward_and_value_of_the_target_network(method: str):
    assert loss_of(method, batch()) == pytest.approx(PLAIN[method])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("fm3q", mean(-8 - (2 - 40))),  # 20 + 40 - 60 - 80
        ("vdn", mean(5 - (2 + 30), 13 - (-2 + 70))),
        ("iql", mean(1 - 12, 4 - 22, 5 - 28, 8 - 38)),
    ],
)
def test_without_double_q_the_target_network_chooses_too(method: str, expected: float):
    one_sided = batch()  # blue's second agent has one legal action, so that the teams' changes do not cancel
    one_sided = replace(one_sided, after=forbid(one_sided.after, 3, 1)) if method == "fm3q" else one_sided
    expected = mean(-8 - (2 + 0.5 * (20 + 40 - 60 - 70))) if method == "fm3q" else expected
    assert loss_of(method, one_sided, double=False) == pytest.approx(expected)
    assert loss_of(method, one_sided, double=True) == pytest.approx(PLAIN[method])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("fm3q", mean(-8 - 2)),
        ("vdn", mean(5 - 2, 13 - -2)),
        ("iql", mean(1 - 2, 4 - 2, 5 - -2, 8 - -2)),
    ],
)
def test_a_match_that_a_rule_ended_is_worth_its_reward(method: str, expected: float):
    ended = replace(batch(), continues=torch.tensor([0.0, 1.0]))
    assert loss_of(method, ended) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("fm3q", mean(-12 - (2 - 40))),
        ("vdn", mean(1 - (2 + 25), 13 - (-2 + 65))),
        ("iql", mean(1 - 12, 0 - 17, 5 - 28, 8 - 33)),
    ],
)
def test_an_agent_out_of_the_match_adds_nothing_to_the_total(method: str, expected: float):
    dead = batch()
    assert loss_of(method, replace(dead, before=without(dead.before, 1))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("fm3q", mean(-8 - (2 + 0.5 * (20 - 60 - 70)))),
        ("vdn", mean(5 - (2 + 10), 13 - (-2 + 65))),
        ("iql", mean(1 - 12, 4 - 2, 5 - 28, 8 - 33)),
    ],
)
def test_an_agent_that_leaves_adds_nothing_to_the_target(method: str, expected: float):
    dead = batch()
    assert loss_of(method, replace(dead, after=without(dead.after, 1))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("fm3q", mean(-8 - (2 + 0.5 * (10 + 30 - 60 - 70)))),
        ("vdn", mean(5 - (2 + 20), 13 - (-2 + 65))),
        ("iql", mean(1 - 7, 4 - 17, 5 - 28, 8 - 33)),
    ],
)
def test_the_target_takes_the_best_legal_action(method: str, expected: float):
    masked = batch()
    assert loss_of(method, replace(masked, after=forbid(masked.after, 0, 1))) == pytest.approx(expected)


@pytest.mark.parametrize("method", PLAIN)
def test_a_row_that_starts_the_next_match_has_no_weight_in_the_loss(method: str):
    both = replace(batch(), weights=torch.ones(2))
    assert loss_of(method, both) != pytest.approx(PLAIN[method], rel=0.1)
    assert loss_of(method, batch()) == pytest.approx(PLAIN[method])


def test_each_total_has_its_own_mixer_and_its_own_observations():
    online = fm3q.Factorisation(Columns(0), Sums(2.0, share=100.0))  # type: ignore[arg-type]
    target = fm3q.Factorisation(Columns(2), Sums(3.0, share=1000.0))  # type: ignore[arg-type]
    shifted = batch()
    shifted.after.observations["all"][:, 0, :2] += 5.0  # the first agent observes 5 after the decision, 1 before
    loss = fm3q.td_loss(online, target, shifted, 0.5)
    assert float(loss) == pytest.approx(mean(2 * -8 + 100 * 1 - (2 + 0.5 * (3 * -80 + 1000 * 5))))


@pytest.mark.parametrize(
    ("method", "team", "expected"),
    [
        ("vdn", 0, mean(5 - (2 + 25))),
        ("vdn", 1, mean(13 - (-2 + 65))),
        ("iql", 0, mean(1 - 12, 4 - 17)),
        ("iql", 1, mean(5 - 28, 8 - 33)),
    ],
)
def test_a_team_that_learns_alone_learns_from_its_own_reward(method: str, team: int, expected: float):
    module, both, its = {"vdn": vdn, "iql": iql}[method], batch(), TEAM_OF.eq(team)
    before, after = (
        replace(p, observations={"all": p.observations["all"][:, its]}, legal=p.legal[:, its], alive=p.alive[:, its])
        for p in (both.before, both.after)
    )
    one = replace(both, before=before, after=after, actions=both.actions[:, its])
    loss = module.td_loss(Columns(0), Columns(2), one, TEAM_OF[its], 0.5)  # type: ignore[arg-type]
    assert float(loss) == pytest.approx(expected)


def test_the_target_gives_no_gradient():
    values = torch.nn.Parameter(torch.ones(1))

    class Scaled(Columns):
        def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
            return values * super().forward(observations)

    network: Any = Scaled(0)
    vdn.td_loss(network, network, batch(), TEAM_OF, 0.5).backward()
    # y is 2 + 0.5 (1 + 1) and -2 + 0.5 (1 + 1), totals are 5 and 13; only these move with the parameter
    assert values.grad is not None
    assert values.grad.item() == pytest.approx(((5 - 3) * 5 + (13 - -1) * 13) * 2 / 2)


class Doubled(Sums):
    """Twice the difference of the teams' sums."""

    weights = SIGNS

    def forward(self, utilities: torch.Tensor, observations: Any) -> torch.Tensor:
        return 2.0 * super().forward(utilities, observations)


class Tripled(torch.nn.Module):
    """Three times its input."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return 3.0 * values


def test_the_auxiliary_loss_of_fm3q_is_the_squared_error_of_the_sum_of_each_teams_heads_against_its_target():
    heads = torch.nn.ModuleDict({"all": Tripled()})
    online, target = (fm3q.Factorisation(Columns(k), Doubled(), heads) for k in (0, 2))  # type: ignore[arg-type]
    y, total = 2.0 + 0.5 * 2 * (20 + 30 - 60 - 70), 2.0 * (1 + 4 - 5 - 8)
    loss = fm3q.td_loss(online, target, batch(), 0.5, auxiliary_weight=3.0)
    assert float(loss) == pytest.approx((y - total) ** 2 + 3.0 * mean(3 * (1 + 4) - y, 3 * (5 + 8) + y))


def test_an_auxiliary_loss_needs_the_monotone_mixer():
    with pytest.raises(ValueError, match="monotone"):
        fm3q.make_mixer(fm3q.Args(mixer="vdn", auxiliary_weight=1.0), None)  # type: ignore[arg-type]
