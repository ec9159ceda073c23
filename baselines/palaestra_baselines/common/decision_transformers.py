"""Networks of sequence models for offline families of tasks: scaling, a world model with a context, a transformer.

Rows of a batch come first, decisions second: states ``[B, k, n]``, actions ``[B, k, m]`` in [-1, 1], rewards
``[B, k]``. Everything but actions is scaled by `Scaling` before networks read it.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import nn
from torch.nn.functional import pad, scaled_dot_product_attention

from palaestra_baselines.common.number_networks import perceptron
from palaestra_baselines.common.training import weighted_mean

HISTORY = 4
"""Decisions before a decision that its context is made of."""
FLATTEST = 1e-3
"""Least standard deviation by which a quantity is divided."""
MOST = 1024
"""Largest size that a policy file may have."""
Decoder = Literal["reward", "state", "both", ""]
Segment = Literal["largest", "random", "given"]


class Scaling(nn.Module):
    """Mean and standard deviation of what training tasks show."""

    state: torch.Tensor
    change: torch.Tensor
    reward: torch.Tensor
    to_go: torch.Tensor

    def __init__(self, states: int) -> None:
        """Mean 0 and deviation 1."""
        super().__init__()
        for name, size in (("state", states), ("change", states), ("reward", 1), ("to_go", 1)):
            self.register_buffer(name, torch.stack([torch.zeros(size), torch.ones(size)]))

    def fit(self, **samples: torch.Tensor) -> None:
        """Measures quantities by name; ``samples[name]`` is ``[N]`` or ``[N, size]``."""
        for name, values in samples.items():
            rows = values.reshape(len(values), -1).double()
            getattr(self, name).copy_(torch.stack([rows.mean(0), rows.std(0).clamp(min=FLATTEST)]))

    def forward(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Scaled values of a quantity: ``[..., size]``, or ``[...]`` where it is one number."""
        mean, deviation = getattr(self, name)
        return (values - mean) / deviation


@dataclass(frozen=True)
class Design:
    """What an agent is made of.

    Attributes:
        decoder: Of the world model, see `WorldModel`; empty for none.
        context: Numbers of z, which the world model makes, or which is the true task where there is none.
        segment: Which of its own earlier decisions are its prompt: those of the largest error of the world model, or
            any; ``given`` where a prompt comes from elsewhere.
        prompt: P, decisions of a prompt; 0 for none.
        steps: K, decisions that the transformer reads at most.
        width: Of a token.
        layers: Blocks.
        heads: Of the attention.
        tokens: 1 or 3 a decision.
    """

    decoder: Decoder
    context: int
    segment: Segment
    prompt: int
    steps: int
    width: int
    layers: int
    heads: int
    tokens: int

    def check(self) -> None:
        """Looks at the numbers.

        Raises:
            ValueError: Some do not fit each other; names the options.
        """
        if self.width % self.heads:
            raise ValueError(f"--width must be a multiple of --heads, got {self.width} and {self.heads}")
        if self.tokens not in (1, 3):
            raise ValueError(f"--tokens is 1 or 3, got {self.tokens}")
        if self.steps <= max(HISTORY, self.prompt):
            least = max(HISTORY, self.prompt) + 1
            raise ValueError(f"--context-steps must be at least {least}, got {self.steps}")


class Decisions(NamedTuple):
    """Scaled decisions, and what followed.

    Attributes:
        states: ``[..., n]``.
        actions: ``[..., m]``.
        rewards: ``[...]``.
        changes: Of the state, ``[..., n]``.
    """

    states: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    changes: torch.Tensor

    def at(self, *index: Any) -> Decisions:
        """Some of them, by an index of leading axes."""
        return Decisions(*(part[index] for part in self))


class WorldModel(nn.Module):
    """Predicts rewards and states of a task that nobody names, from its last decisions.

    The encoder, a GRU, makes a context z of the last decisions (s, a, r) of a match; decoders predict from z: the
    reward r(s, a, s', z), the change of the state s'(s, a, z) - s, or both. Without context, z of size 0, it predicts
    alike for all tasks.
    """

    def __init__(self, states: int, actions: int, context: int, decoder: Decoder, width: int = 64) -> None:
        """Random weights from torch's generator.

        Args:
            states: n.
            actions: m.
            context: Numbers of z, may be 0.
            decoder: What is predicted.
            width: Of all hidden layers.

        """
        super().__init__()
        self.context = context
        if context:
            self.gru = nn.GRU(states + actions + 2, width, batch_first=True)
            self.head = nn.Linear(width, context)
        given = states + actions + context
        if decoder != "state":
            self.reward = perceptron(given + states, (width, width), 1)
        if decoder != "reward":
            self.state = perceptron(given, (width, width), states)

    def encode(self, before: Decisions, is_there: torch.Tensor) -> torch.Tensor:
        """Contexts z ``[B, context]``.

        Args:
            before: Decisions ``[B, HISTORY, ...]``, the latest last; their changes are not read.
            is_there: bool ``[B, HISTORY]``: false where the match had not begun; such decisions count as zeros.
        """
        if not self.context:
            return is_there.new_zeros((len(is_there), 0), dtype=torch.float32)
        there = is_there[..., None].float()
        rows = torch.cat([before.states, before.actions, before.rewards[..., None]], -1)
        return self.head(self.gru(torch.cat([rows * there, there], -1))[0][:, -1])

    def errors(self, now: Decisions, z: torch.Tensor) -> torch.Tensor:
        """Squared errors ``[...]`` of predictions, the mean over numbers of a state."""
        given, errors = torch.cat([now.states, now.actions, z], -1), torch.zeros_like(now.rewards)
        if hasattr(self, "reward"):
            predicted = self.reward(torch.cat([given, now.changes], -1))[..., 0]
            errors = errors + (predicted - now.rewards) ** 2
        if hasattr(self, "state"):
            errors = errors + ((self.state(given) - now.changes) ** 2).mean(-1)
        return errors


class Block(nn.Module):
    """Attention and a perceptron, each on normalised inputs and added to them (Vaswani et al., arXiv 1706.03762)."""

    def __init__(self, width: int, heads: int) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = perceptron(width, (4 * width,), width)

    def forward(self, rows: torch.Tensor, may_see: torch.Tensor) -> torch.Tensor:
        """Rows ``[B, L, width]`` of such rows; ``may_see[b, 0, i, j]``: i sees j."""
        parts = self.attention(self.norms[0](rows)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = scaled_dot_product_attention(*parts, attn_mask=may_see)
        rows = rows + self.out(seen.transpose(1, 2).flatten(-2))
        return rows + self.perceptron(self.norms[1](rows))


class DecisionTransformer(nn.Module):
    """Actions from the decisions so far and the return that is still aimed at (Chen et al., arXiv 2106.01345).

    A row is a decision: state, return-to-go, action, reward, z. One token a decision holds state, return-to-go, the
    action and reward before, and z; with ``tokens=3`` these are three, as published: return-to-go, state, then action
    and reward, z in each. Before them stand the tokens of a prompt, one a row, without its return-to-go. Positions are
    places in the sequence. No token sees a later one.
    """

    def __init__(self, states: int, actions: int, context: int, design: Design) -> None:
        """Random weights from torch's generator.

        Args:
            states: n.
            actions: m.
            context: Numbers of z, may be 0.
            design: Sizes.
        """
        super().__init__()
        self.sizes, self.prompt, self.tokens = (states, 1, actions, 1, context), design.prompt, design.tokens
        outcome, width = actions + 1, design.width
        sizes = (states + 1 + outcome,) if self.tokens == 1 else (1, states, outcome)
        self.embeddings = nn.ModuleList(nn.Linear(size + context, width) for size in sizes)
        if self.prompt:
            self.prompt_embedding = nn.Linear(states + outcome + context, width)
        self.places = nn.Parameter(0.02 * torch.randn(self.prompt + design.steps * self.tokens, width))
        self.blocks = nn.ModuleList(Block(width, design.heads) for _ in range(design.layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, actions)

    def forward(self, rows: torch.Tensor, prompt: torch.Tensor, is_there: torch.Tensor) -> torch.Tensor:
        """Actions ``[B, k, m]`` in [-1, 1] of k <= K decisions.

        Args:
            rows: The decisions ``[B, k, R]``; neither action nor reward is read for its own decision.
            prompt: Rows ``[B, P, R]`` of another match.
            is_there: bool ``[B]``: false where there is no prompt.
        """
        state, to_go, action, reward, z = rows.split(self.sizes, -1)
        outcome = torch.cat([action, reward], -1)
        parts = [to_go, state, outcome]
        if self.tokens == 1:
            parts = [torch.cat([state, to_go, pad(outcome, (0, 0, 1, -1))], -1)]
        embedded = [e(torch.cat([part, z], -1)) for e, part in zip(self.embeddings, parts, strict=True)]
        tokens = torch.stack(embedded, 2).flatten(1, 2)
        if self.prompt:
            state, _, *others = prompt.split(self.sizes, -1)
            tokens = torch.cat([self.prompt_embedding(torch.cat([state, *others], -1)), tokens], 1)
        tokens = tokens + self.places[: tokens.shape[1]]
        may_see = self.visible(tokens.shape[1], is_there)
        for block in self.blocks:
            tokens = block(tokens, may_see)
        first = self.prompt + (0 if self.tokens == 1 else 1)  # the token of the first state
        return torch.tanh(self.head(self.norm(tokens[:, first :: self.tokens])))

    def visible(self, length: int, is_there: torch.Tensor) -> torch.Tensor:
        """Bool ``[B, 1, L, L]``: which token sees which; those of a prompt that is not there see themselves alone."""
        places = torch.arange(length)
        known = is_there[:, None] | (places >= self.prompt)
        may_see = (places <= places[:, None]) & known[:, None]
        return (may_see | torch.eye(length, dtype=torch.bool))[:, None]


def imitation_loss(predicted: torch.Tensor, actions: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Mean squared error of actions ``[B, k, m]`` by weights ``[B, k]``, 0 for decisions that are padding."""
    return weighted_mean(((predicted - actions) ** 2).mean(-1), weights)


class Agent(nn.Module):
    """All networks of a player.

    Attributes:
        scaling: Of what it sees.
        world: The world model, where the design has one.
        transformer: What acts.
        target: Return-to-go at the start of a match, not scaled: one number for a family.
    """

    target: torch.Tensor

    def __init__(self, design: Design, states: int, actions: int) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        self.design, self.sizes = design, (states, actions)
        self.scaling = Scaling(states)
        if design.decoder:
            self.world = WorldModel(states, actions, design.context, design.decoder)
        self.transformer = DecisionTransformer(states, actions, design.context, design)
        self.register_buffer("target", torch.zeros(1))

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name for a player."""
        return {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}


def design_of(notes: Any) -> Design:
    """The design in the metadata of a policy file, which may be anybody's.

    Raises:
        ValueError: It is none, or a word or number of it cannot be.
    """
    if not isinstance(notes, dict) or set(notes) != {f.name for f in fields(Design)}:
        raise ValueError("the metadata hold no design of a sequence model: it was not saved by this version of meta_dt")
    words = {"decoder": get_args(Decoder), "segment": get_args(Segment)}
    for name, value in notes.items():
        least = 0 if name in ("context", "prompt") else 1
        if not (value in words[name] if name in words else type(value) is int and least <= value <= MOST):
            raise ValueError(f"{name} of the policy's design is {reprlib.repr(value)}")
    return Design(**notes)
