"""A decoder-only transformer of a quarter of a million weights, in float32, with a cache of keys and values.

The form of GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019): learnt positions, layer
normalisation before each part of a block, GELU (exact, which is faster than its tanh form), and one matrix for both
embedding and output. A ``GPT2LMHeadModel`` of the same size has the same weights under other names.

A language model here is four calls. ``start`` reads a prompt, ``sample`` draws the next token of each lane, ``force``
makes the lanes read tokens, sampled or not, and ``log_probs`` evaluates whole sequences with gradients::

    model.start(prompts)
    ids, log_probs = model.sample(generator)
    model.force(ids[:, None])

Token 0 is padding. It may stand anywhere: no token attends to it, positions do not count it, and it is never drawn. So
lanes of different lengths share an array, and what fills the gaps does not change a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import palaestra_assets
from palaestra_baselines.common.flat_networks import fitting_network, load_arrays
from palaestra_baselines.common.policy_file import read_policy

Base = Literal["shortcut", "early", "noisy", "teacher", "sums", "worked"]
"""Names of bundled weights, which `palaestra_baselines.common.lm.base` makes."""
PAD = 0
WIDTH, LAYERS, HEADS = 96, 2, 4
ALL = slice(None)
NEVER = -1e9
"""Logit of the padding."""
DEVIATION = 0.02
"""Standard deviation of new weights, as in GPT-2; where a block adds to its input, divided by sqrt(2 layers)."""
EMBEDDINGS = ("tokens.weight", "positions.weight")
TOKEN_DEVIATION = 0.1
"""That of tokens: names that are told apart from the start are copied after half as many gradient steps."""


class Block(nn.Module):
    """``x + attention(norm(x))``, then ``x + perceptron(norm(x))``."""

    def __init__(self) -> None:
        """Weights of torch's own initialisation."""
        super().__init__()
        self.attention_norm, self.perceptron_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor, cache: torch.Tensor | None, past: int, wanted: Any = ALL
    ) -> torch.Tensor:
        """One block.

        Args:
            x: float32 ``[B, L, WIDTH]``.
            mask: bool ``[B, 1, L, past + L]``: which tokens each attends to.
            cache: float32 ``[2, B, HEADS, columns, WIDTH / HEADS]``, keys and values of the ``past`` columns before;
                those of these columns are written into it. None: there is nothing before.
            past: Columns before.
            wanted: Index of the columns whose outputs are wanted.
        """
        normed, weight, bias = self.attention_norm(x), self.qkv.weight, self.qkv.bias
        k, v = by_head(functional.linear(normed, weight[WIDTH:], bias[WIDTH:]), 2)
        (q,) = by_head(functional.linear(normed[:, wanted], weight[:WIDTH], bias[:WIDTH]), 1)
        if cache is not None:
            columns = past + x.shape[1]
            cache[0, :, :, past:columns], cache[1, :, :, past:columns] = k, v
            k, v = cache[:, :, :, :columns]
        attended = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, :, wanted])
        x = x[:, wanted] + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.perceptron_norm(x))))


def by_head(x: torch.Tensor, parts: int) -> torch.Tensor:
    """``[parts, B, HEADS, L, WIDTH / HEADS]`` of ``[B, L, parts * WIDTH]``."""
    return x.unflatten(-1, (parts, HEADS, -1)).permute(2, 0, 3, 1, 4)


class TinyModel(nn.Module):
    """The model.

    Attributes:
        context: Most tokens of a lane, paddings not counted.
    """

    def __init__(self, vocabulary: int, context: int, seed: int = 0) -> None:
        """Random weights.

        Args:
            vocabulary: Number of tokens V, the padding among them.
            context: Most tokens of a lane.
            seed: Of the weights.
        """
        super().__init__()
        self.context = context
        self.tokens, self.positions = nn.Embedding(vocabulary, WIDTH), nn.Embedding(context, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        generator = torch.Generator().manual_seed(seed)
        for name, weight in self.named_parameters():
            if weight.is_meta or "norm" in name:
                continue
            adds = name.endswith(("out.weight", "down.weight"))
            deviation = DEVIATION / (2 * LAYERS) ** 0.5 if adds else DEVIATION
            deviation = TOKEN_DEVIATION if name in EMBEDDINGS else deviation
            nn.init.normal_(weight, std=deviation, generator=generator) if weight.ndim == 2 else nn.init.zeros_(weight)

    # -- the four calls ------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def start(self, prompts: torch.Tensor, columns: int = 0) -> None:
        """Forgets all lanes and reads prompts.

        Args:
            prompts: int64 ``[B, P]``, at least one token in each lane.
            columns: Most columns that the lanes will have, paddings counted; twice the context by default.
        """
        lanes = len(prompts)
        shape = (LAYERS, 2, lanes, HEADS, max(columns or 2 * self.context, prompts.shape[1]), WIDTH // HEADS)
        self._cache, self._ids = torch.empty(shape), prompts[:, :0]
        self._last = torch.zeros(lanes, WIDTH)
        self.force(prompts)

    @torch.no_grad()
    def force(self, ids: torch.Tensor) -> None:
        """Reads further tokens, int64 ``[B, L]``; a lane that reads paddings alone stays as it is."""
        past = self._ids.shape[1]
        self._ids = torch.cat([self._ids, ids], 1)
        hidden = self._hidden(self._ids, past, self._cache)
        last, lanes = last_tokens(ids)[:, -1], torch.arange(len(ids))
        self._last = torch.where((last >= 0)[:, None], hidden[lanes, last], self._last)

    @torch.no_grad()
    def sample(self, generator: torch.Generator, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws a token of each lane, which no lane has read yet.

        Args:
            generator: Of the draws.
            temperature: Divides the logits; 0 takes the most probable token.

        Returns:
            Tokens int64 ``[B]``, and the logarithms of their probabilities at temperature 1, float32 ``[B]``.
        """
        return draw(self.next_log_probs(), generator, temperature)

    @torch.no_grad()
    def next_log_probs(self) -> torch.Tensor:
        """What each lane may say next: logarithms of probabilities float32 ``[B, V]``."""
        return self._log_probs_of(self._last)

    def log_probs(self, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """Distributions of M tokens of whole sequences, with gradients.

        Args:
            ids: int64 ``[B, T]``.
            at: bool ``[B, T]``: which tokens, M in all; none that is the first of its lane.

        Returns:
            Logarithms of the probabilities float32 ``[M, V]``, lane by lane: row m is what the model expected in place
            of the m-th token, given those before it.
        """
        rows, columns = at.nonzero(as_tuple=True)
        before = last_tokens(ids)[rows, columns - 1]
        wanted = before.unique()  # the last block may leave out the other columns, most of which are passages
        hidden = self._hidden(ids, 0, None, wanted)[rows, torch.searchsorted(wanted, before)]
        return self._log_probs_of(hidden)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _hidden(self, ids: torch.Tensor, past: int, cache: torch.Tensor | None, wanted: Any = ALL) -> torch.Tensor:
        """Outputs of the last block of tokens ``[B, T]``, ``past`` of which are in the cache.

        Returns:
            float32 ``[B, T - past, WIDTH]``, or of these columns the ``wanted`` ones.
        """
        is_token, columns = ids != PAD, torch.arange(ids.shape[1])
        before = columns <= columns[past:, None]
        mask = ((is_token[:, None] & before) | (columns == columns[past:, None]))[:, None]
        places = (is_token.cumsum(1) - 1).clamp(min=0)[:, past:]
        x = self.tokens(ids[:, past:]) + self.positions(places)
        for number, block in enumerate(self.blocks):
            is_last = number == LAYERS - 1
            x = block(x, mask, None if cache is None else cache[number], past, wanted if is_last else ALL)
        return x

    def _log_probs_of(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logarithms of probabilities ``[M, V]`` of outputs ``[M, WIDTH]``."""
        logits = functional.linear(self.norm(hidden), self.tokens.weight)
        return torch.cat([torch.full_like(logits[:, :1], NEVER), logits[:, 1:]], 1).log_softmax(-1)

    # -- files ---------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name, as `palaestra_baselines.common.policy_file.save_policy` takes them."""
        return {name: weight.detach().numpy().copy() for name, weight in self.state_dict().items()}


def draw(log_probs: torch.Tensor, generator: torch.Generator, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Draws from distributions ``[B, V]``; see `TinyModel.sample`."""
    if temperature == 0.0:
        ids = log_probs.argmax(-1)
    else:
        below = (log_probs / temperature).softmax(-1).cumsum(-1)
        draws = torch.rand((len(below), 1), generator=generator).to(below.device) * below[:, -1:]
        ids = torch.searchsorted(below, draws, right=True)[:, 0].clamp(max=below.shape[1] - 1)
    return ids, log_probs.gather(1, ids[:, None])[:, 0]


class Nucleus:
    """Plays a model by nucleus sampling (Holtzman et al., arXiv 1904.09751).

    Each token is drawn among the most probable ones that together have a probability of at least `top_p`.
    """

    def __init__(self, model: Any, top_p: float) -> None:
        """Keeps the model, whose lanes are played.

        Args:
            model: A `TinyModel`, or what has its calls.
            top_p: Above 0, at most 1.
        """
        self.model, self.top_p = model, top_p
        self.start, self.force = model.start, model.force

    @torch.no_grad()
    def sample(self, generator: torch.Generator, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        """As `TinyModel.sample`; logarithms are those of the model's own probabilities."""
        log_probs = self.model.next_log_probs()
        ordered, order = log_probs.sort(-1, descending=True)
        before = ordered.exp().cumsum(-1) - ordered.exp()
        is_rare = torch.zeros_like(order, dtype=torch.bool).scatter_(-1, order, before >= self.top_p)
        ids, _ = draw(log_probs.masked_fill(is_rare, NEVER), generator, temperature)
        return ids.cpu(), log_probs.gather(1, ids[:, None])[:, 0].cpu()


def last_tokens(ids: torch.Tensor) -> torch.Tensor:
    """Column of the last token up to each column, int64 ``[B, T]``; -1 where there were paddings alone."""
    columns = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    return torch.where(ids != PAD, columns, -1).cummax(1).values


def model_of(arrays: Mapping[str, np.ndarray]) -> TinyModel:
    """The model of a policy file.

    Raises:
        ValueError: The weights are not those of such a model.
    """
    tokens, positions = (arrays.get(f"{name}.weight", np.empty(0)) for name in ("tokens", "positions"))
    if tokens.ndim != 2 or positions.ndim != 2:
        raise ValueError("the policy has no matrices tokens.weight and positions.weight: it is no language model")
    model = fitting_network(lambda: TinyModel(len(tokens), len(positions)), arrays)
    load_arrays(model, arrays)
    return model


def base_file(name: str) -> Path:
    """The file of weights to start from: bundled ones by their name, or any policy of a language model by its path."""
    return palaestra_assets.path(f"weights/lm_{name}.safetensors") if name in get_args(Base) else Path(name)


def load_base(name: str) -> TinyModel:
    """The model of `base_file`, with gradients.

    Raises:
        FileError: It is no saved policy.
        ValueError: It is one of another method.
    """
    return model_of(read_policy(base_file(name))[0]).requires_grad_(True)
