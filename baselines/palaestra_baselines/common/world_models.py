"""Latent world models of the agents of a team: encoders, dynamics, rewards, actors, and a twin critic.

Every agent has networks of its own. Their weights stand in one tensor ``[A, inputs, outputs]``, so that a layer of all
agents is one batched matrix product; therefore tensors in this file have the agent first, ``[A, B, ...]``, B rows.

    z_i = encoder_i(o_i),    (z_i', r_i) = transition_i(z_i, a_i, a_j of the others that agent i sees)
    a_i ~ actor_i(z_i, a_j of the earlier agents),    Q = critic(z_1, .., z_A, a_1, .., a_A)

A latent is a row of groups of `GROUP` numbers that add up to 1 each. Rewards and values are categorical over bins of
their symlog (Hafner et al., arXiv 2301.04104). This is as in TD-MPC2 (Hansen et al., arXiv 2310.16828). Hidden layers
are normalised (Ba et al., arXiv 1607.06450), ours without weights, and have SiLU units, cheaper on a CPU than Mish.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import nn

from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import FLATTEST, ranges

Mode = Literal["seq", "random", "centralised", "decentralised"]
"""Whose actions the model of an agent sees: of earlier agents in the order of the roster, or in an order that is drawn
for each decision; of all; of none."""
Sight = Literal["earlier", "own"]
"""Whether actors see the actions of earlier agents, or their own latent alone."""
GROUP = 8
"""Numbers of a group of a latent."""
LOG_DEVIATION = (-4.0, 1.0)
"""Range of the logarithm of an actor's deviation; (-10, 2) in the paper's code."""
LEAST_RANGE = 0.05
"""Least range of values by which they are scaled, where all values are nearly equal."""


@dataclass(frozen=True)
class Design:
    """What networks and planner are made of.

    Attributes:
        mode: Whose actions models see.
        actor_sees: Whose actions actors see.
        plan: Whether actions come from the planner; else from the actor alone.
        gamma: Discount per decision.
        latent: Numbers of a latent, a multiple of `GROUP`.
        encoder: Widths of the hidden layers of an encoder.
        models: Width of the hidden layers of a transition: one for the dynamics, one for the reward.
        hidden: Widths of the hidden layers of actors and critics.
        bins: Categories of rewards and values.
        largest: Symlog of the largest value that the categories represent.
        horizon: H, decisions of a plan, and of a sequence of a gradient step.
        samples: Plans that an iteration compares.
        actor_samples: How many of them come from the actor.
        elites: Best plans, from which the next mean and deviation come.
        iterations: Of the planner.
        deviation: Standard deviation of the first plans, whose numbers lie in [-1, 1].
        temperature: Of the weights of the elites, as a share of the running range of values.
    """

    mode: Mode
    actor_sees: Sight
    plan: bool
    gamma: float
    latent: int
    encoder: tuple[int, ...]
    models: int
    hidden: tuple[int, ...]
    bins: int
    largest: float
    horizon: int
    samples: int
    actor_samples: int
    elites: int
    iterations: int
    deviation: float
    temperature: float

    def check(self) -> None:
        """Looks at the numbers.

        Raises:
            ValueError: Some do not fit each other; names the options.
        """
        if self.latent % GROUP:
            raise ValueError(f"--latent must be a multiple of {GROUP}, got {self.latent}")
        if self.bins < 2:
            raise ValueError(f"--bins must be at least 2, got {self.bins}")
        if self.actor_samples > self.samples:
            raise ValueError(f"--actor-samples {self.actor_samples} are more than --samples {self.samples}")
        if self.elites > self.samples:
            raise ValueError(f"--elites {self.elites} are more than --samples {self.samples}")


SIZES: dict[str, dict[str, Any]] = {
    "small": {
        "latent": 32,
        "encoder": (64,),
        "models": 64,
        "hidden": (64, 64),
        "bins": 41,
        "largest": 5.0,
        "horizon": 2,
        "samples": 24,
        "actor_samples": 8,
        "elites": 6,
        "iterations": 2,
        "deviation": 1.0,
        "batch_size": 128,
    },
    "published": {
        "latent": 512,
        "encoder": (512,),
        "models": 1024,
        "hidden": (256, 256),
        "bins": 101,
        "largest": 10.0,
        "horizon": 1,
        "samples": 512,
        "actor_samples": 32,
        "elites": 64,
        "iterations": 6,
        "deviation": 2.0,
        "batch_size": 1000,
    },
}
"""Numbers of a `Design`, and the sequences of a gradient step, by size: ours, and those of the paper's code."""


# ---------------------------------------------------------------------------------------------- numbers and categories


def symexp(values: torch.Tensor) -> torch.Tensor:
    """sign(x) (exp(abs(x)) - 1), the inverse of symlog(x) = sign(x) log(1 + abs(x))."""
    return values.sign() * values.abs().expm1()


class TwoHot:
    """Numbers as weights of the two nearest bins, which are equally far apart in symlog.

    The weights are those by which the bins' values have the number as their mean, so that the mean of a distribution is
    unbiased (Hafner et al., arXiv 2301.04104). TD-MPC2 takes the symexp of the mean of symlog, which hides what is rare
    and bad: a fall of -10 in every tenth decision, beside 1 in all others, is worth 0.47 there, and -0.1 here.
    """

    def __init__(self, bins: int, largest: float) -> None:
        """Bins whose symlog is -``largest`` to ``largest``."""
        self.values = symexp(torch.linspace(-largest, largest, bins))

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        """Weights ``[..., bins]`` that add up to 1, of values ``[...]``; those out of range get the outermost bin."""
        bins = len(self.values)
        values = values.clamp(self.values[0], self.values[-1])
        lower = (torch.searchsorted(self.values, values.contiguous(), right=True) - 1).clamp(0, bins - 2)
        below = self.values[lower]
        share = ((values - below) / (self.values[lower + 1] - below))[..., None]
        target = torch.zeros(*values.shape, bins)
        return target.scatter_(-1, lower[..., None], 1.0 - share).scatter_(-1, lower[..., None] + 1, share)

    def decode(self, logits: torch.Tensor) -> torch.Tensor:
        """Values ``[...]``: means of the bins under the softmax of logits ``[..., bins]``."""
        return logits.softmax(-1) @ self.values

    def loss(self, logits: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Cross-entropy ``[...]`` of logits ``[..., bins]`` and the weights of values ``[...]``."""
        return -(self.encode(values) * logits.log_softmax(-1)).sum(-1)


def sim_norm(outputs: torch.Tensor) -> torch.Tensor:
    """Softmax in groups of `GROUP` numbers of ``[..., latent]``; those of a group stand latent / `GROUP` apart.

    PyTorch's softmax is faster over them, on a CPU, than over so few neighbours.
    """
    return outputs.unflatten(-1, (GROUP, -1)).softmax(-2).flatten(-2)


# --------------------------------------------------------------------------------------------------- who sees whom


class Masks(NamedTuple):
    """1 where agent i sees the action of agent j, ``[A(i), A(j), B or 1]``; its own is not among these.

    Attributes:
        models: What transitions see.
        actors: What actors see.
    """

    models: torch.Tensor
    actors: torch.Tensor

    def repeated(self, times: int) -> Masks:
        """For rows that each stand ``times`` times in succession."""
        return Masks(*(m if m.shape[-1] == 1 else m.repeat_interleave(times, -1) for m in self))

    def tiled(self, times: int) -> Masks:
        """For all rows, then all again, ``times`` times."""
        return Masks(*(m if m.shape[-1] == 1 else m.repeat(1, 1, times) for m in self))


def make_masks(mode: Mode, actor_sees: Sight, places: torch.Tensor) -> Masks:
    """Who sees whose action.

    Args:
        mode: Of the models.
        actor_sees: Of the actors.
        places: ``[A, B or 1]``, the place of each agent in the order.
    """
    earlier = (places[None] < places[:, None]).float()
    nobody = torch.zeros_like(earlier)
    if mode == "centralised":
        models = torch.ones_like(earlier) - torch.eye(len(places))[..., None]
    else:
        models = nobody if mode == "decentralised" else earlier
    actors = earlier if actor_sees == "earlier" and mode != "decentralised" else nobody
    return Masks(models, actors)


def others_seen(actions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Actions ``[A, B, (A - 1) M]`` of the others, in the order of the roster, as each agent sees them.

    Args:
        actions: ``[A, B, M]``.
        mask: ``[A, A, B or 1]``; an action that is not seen is 0.
    """
    agents = len(actions)
    if agents == 1:
        return actions[..., :0]
    rows = [torch.cat([actions[j] * mask[i, j][:, None] for j in range(agents) if j != i], -1) for i in range(agents)]
    return torch.stack(rows)


# ------------------------------------------------------------------------------------------------------- the networks


class StackedLinear(nn.Module):
    """K linear layers: ``[K, B, inputs] -> [K, B, outputs]``."""

    def __init__(self, stack: int, inputs: int, outputs: int, zero: bool = False) -> None:
        """Uniform random weights within 1 / sqrt(inputs), or zeros."""
        super().__init__()
        bound = 0.0 if zero else max(inputs, 1) ** -0.5
        self.weight = nn.Parameter(torch.empty(stack, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(stack, 1, outputs).uniform_(-bound, bound))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return torch.baddbmm(self.bias, rows, self.weight)


def units(rows: torch.Tensor) -> torch.Tensor:
    """Layer normalisation without weights, and SiLU units, of the layers before: ``[..., width]``."""
    return nn.functional.silu(nn.functional.layer_norm(rows, rows.shape[-1:]))


class Perceptrons(nn.Module):
    """K perceptrons: ``[K, B, inputs] -> [K, B, outputs]``."""

    def __init__(self, stack: int, inputs: int, hidden: Sequence[int], outputs: int, zero: bool = False) -> None:
        """Random weights; those of the last layer are 0 where ``zero``."""
        super().__init__()
        self.layers = nn.ModuleList(StackedLinear(stack, a, b) for a, b in pairwise((inputs, *hidden)))
        self.last = StackedLinear(stack, (inputs, *hidden)[-1], outputs, zero)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """See the class."""
        for layer in self.layers:
            rows = units(layer(rows))
        return self.last(rows)


def squashed_normal(
    outputs: torch.Tensor, noise: torch.Tensor | None, counts: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Numbers a = tanh(u) with u normal, and the logarithms of their densities.

        log pi(a) = sum_k log N(u_k) - log(1 - a_k^2)

    Args:
        outputs: ``[..., 2 M]``: means of u, and logarithms of its deviations before they are put into `LOG_DEVIATION`.
        noise: Standard normal draws ``[..., M]``; None takes the means, without densities.
        counts: 1 for numbers that an agent has, else 0; broadcast to ``[..., M]``.

    Returns:
        ``[..., M]`` and ``[...]``.
    """
    means, raw = outputs.chunk(2, -1)
    if noise is None:
        return means.tanh() * counts, None
    low, high = LOG_DEVIATION
    logs = low + 0.5 * (high - low) * (raw.tanh() + 1.0)
    actions = (means + logs.exp() * noise).tanh()
    density = -0.5 * noise**2 - logs - 0.5 * math.log(2.0 * math.pi) - (1.0 - actions**2 + 1e-6).log()
    return actions * counts, (density * counts).sum(-1)


class Transitions(nn.Module):
    """Dynamics and reward of each agent, one hidden layer each; both first layers are one product."""

    def __init__(self, agents: int, inputs: int, width: int, latent: int, bins: int) -> None:
        """Random weights; rewards are 0 at first."""
        super().__init__()
        self.first = StackedLinear(agents, inputs, 2 * width)
        self.following = StackedLinear(agents, width, latent)
        self.reward = StackedLinear(agents, width, bins, zero=True)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Next latents ``[A, B, latent]`` and logits of the rewards ``[A, B, bins]`` of inputs ``[A, B, inputs]``."""
        hidden = units(self.first(rows).unflatten(-1, (2, -1)))
        return sim_norm(self.following(hidden[..., 0, :])), self.reward(hidden[..., 1, :])


class TwinCritics(nn.Module):
    """Two values of latents and actions: of the team, or of each agent by its own alone.

    The first layer is a sum over agents, so that no agent is first.
    """

    def __init__(self, agents: int, inputs: int, hidden: Sequence[int], bins: int, joint: bool) -> None:
        """Random weights; values are 0 at first."""
        super().__init__()
        self.joint, width = joint, hidden[0]
        self.first = StackedLinear(agents, inputs, 2 * width)
        self.rest = Perceptrons(2 if joint else 2 * agents, width, hidden[1:], bins, zero=True)

    def forward(self, latents: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Logits ``[2, G, B, bins]`` of latents ``[A, B, L]`` and actions ``[A, B, M]``; G is 1 for a team, else A."""
        rows = self.first(torch.cat([latents, actions], -1)).unflatten(-1, (2, -1))
        if self.joint:
            rows = rows.sum(0, keepdim=True)
        groups = len(rows)
        return self.rest(units(rows).permute(2, 0, 1, 3).flatten(0, 1)).unflatten(0, (2, groups))


class WorldModel(nn.Module):
    """All networks of the agents of a team.

    Attributes:
        design: What it is made of.
        roster: The agents.
        two_hot: Categories of rewards and values.
        value_range: ``[1]``, running range of values: see `track_range`.
    """

    mean: torch.Tensor
    scale: torch.Tensor
    counts: torch.Tensor
    value_range: torch.Tensor

    def __init__(self, roster: Roster, design: Design) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        self.roster, self.design = roster, design
        agents, numbers, size = roster.agents, roster.actions, max(roster.sizes.values())
        inputs = design.latent + agents * numbers
        self.two_hot = TwoHot(design.bins, design.largest)
        self.encoder = Perceptrons(agents, size, design.encoder, design.latent)
        self.transitions = Transitions(agents, inputs, design.models, design.latent, design.bins)
        self.actor = Perceptrons(agents, inputs - numbers, design.hidden, 2 * numbers)
        self.critics = TwinCritics(
            agents, design.latent + numbers, design.hidden, design.bins, design.mode != "decentralised"
        )
        counts = torch.zeros(agents, 1, numbers)
        for name, columns in roster.columns.items():
            counts[columns, :, : roster.choices[name]] = 1.0
        self.register_buffer("counts", counts, persistent=False)
        self.register_buffer("mean", torch.zeros(agents, 1, size))
        self.register_buffer("scale", torch.ones(agents, 1, size))
        self.register_buffer("value_range", torch.full((1,), LEAST_RANGE))

    def read(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Observations ``[A, B, size]``, of roles that see less filled up by 0, of ``[..., A_role, size]`` by role."""
        width = self.mean.shape[-1]
        rows = [
            nn.functional.pad(seen, (0, width - seen.shape[-1])).movedim(-2, 0).flatten(1, -2)
            for seen in observations.values()
        ]
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def standardise(self, observed: Mapping[str, np.ndarray]) -> None:
        """Scales inputs of each agent by mean and standard deviation of observations ``[N, A_role, size]`` by role."""
        for role in self.roster.game.roles:
            if role.name in observed:
                rows = observed[role.name]
                size, columns = rows.shape[-1], self.roster.columns[role.name]
                least = FLATTEST * np.concatenate(ranges(role.observation))
                deviation = np.maximum(rows.std(axis=0, dtype=np.float64), least)
                self.mean[columns, 0, :size] = torch.from_numpy(rows.mean(axis=0, dtype=np.float64)).float()
                self.scale[columns, 0, :size] = torch.from_numpy(1.0 / deviation).float()

    def encode(self, observed: torch.Tensor) -> torch.Tensor:
        """Latents ``[A, B, L]`` of what `read` gives."""
        return sim_norm(self.encoder((observed - self.mean) * self.scale))

    def step(self, latents: torch.Tensor, actions: torch.Tensor, masks: Masks) -> tuple[torch.Tensor, torch.Tensor]:
        """Next latents ``[A, B, L]`` and logits of rewards ``[A, B, bins]``."""
        return self.transitions(torch.cat([latents, actions, others_seen(actions, masks.models)], -1))

    def act(
        self, latents: torch.Tensor, masks: Masks, noise: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Actions ``[A, B, M]`` of all agents in their order, and the logarithms ``[A, B]`` of their densities.

        The density of a = tanh(u), u normal: log pi(a) = sum_k log N(u_k) - log(1 - a_k^2). Each agent sees the actions
        of earlier ones without a gradient.

        Args:
            latents: ``[A, B, L]``.
            masks: Who sees whom. After k passes those are right that have k - 1 others before them.
            noise: Standard normal draws ``[A, B, M]``; None takes the means, without densities.
        """
        actions, logs = torch.zeros(*latents.shape[:2], self.counts.shape[-1]), None
        passes = int(masks.actors.sum(1).max()) + 1
        for number in range(passes):
            with torch.set_grad_enabled(torch.is_grad_enabled() and number == passes - 1):
                actions, logs = self._act_once(latents, actions, masks, noise)
        return actions, logs

    def _act_once(
        self, latents: torch.Tensor, before: torch.Tensor, masks: Masks, noise: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        outputs = self.actor(torch.cat([latents, others_seen(before, masks.actors)], -1))
        return squashed_normal(outputs, noise, self.counts)

    def values(self, latents: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Both values ``[2, G, B]``."""
        return self.two_hot.decode(self.critics(latents, actions))

    @torch.no_grad()
    def track_range(self, values: torch.Tensor, share: float) -> None:
        """Moves the running range by a share towards that of values of any shape, from 5 to 95 % of them."""
        if not values.numel():
            return
        low, high = torch.quantile(values.flatten(), torch.tensor([0.05, 0.95]))
        self.value_range.lerp_(high - low, share).clamp_(min=LEAST_RANGE)

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name for a player."""
        return {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}

    def masks(self, places: torch.Tensor) -> Masks:
        """Who sees whom where agents have places ``[A, B or 1]`` in the order."""
        return make_masks(self.design.mode, self.design.actor_sees, places)

    def parameters_of(self, *names: str) -> list[nn.Parameter]:
        """Parameters of some of its networks."""
        parts: list[Any] = [getattr(self, name) for name in names]
        return [parameter for part in parts for parameter in part.parameters()]
