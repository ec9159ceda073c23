"""A causal language model of Hugging Face as a policy of joint orders: the orders of a unit are scored as text.

The prompt is what the text of the Concert games (`palaestra.games.concert.concert_text`) says of the position and of
the last orders, and `OPENED`. Behind it stand the orders given so far, an order a line. An order a of a list L has the
tokens of its line, the end of the line among them, and

    score(a | s, a_1 ... a_{d-1}) = sum over its tokens t of log p(t | prompt, a_1 ... a_{d-1}, the tokens before)
    pi(a | s, a_1 ... a_{d-1}) = softmax of score / temperature over L

This is the distribution of a `palaestra_baselines.common.joint_networks.FactorisedPolicy`, with other scores, and it
learns by the same loss. Only legal orders are ever written. All texts of a position are one tree of tokens, so that a
model reads what they share once.

"DipLLM" (arXiv 2506.09655) fine-tunes Llama-3-8B with LoRA on 500 games, which nothing here does: all weights of a
small model learn. Its abstract and formulas do not give what a reader needs to do the same: how the text of an order is
scored, and whether over a list; the prompt; the orders of a list. Ours: the sum over the tokens, which is their
probability as a line, and no mean, which would favour long orders such as supports; the prompt above, without the list
of orders; all orders of a unit that are legal, a few to some dozens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.files import FileError
from palaestra.core.files.model_loading import token_ids
from palaestra.core.run.simulation import Simulation
from palaestra.game import AgentView
from palaestra.games.concert.order_reader import OPENED
from palaestra_baselines.common.joint_networks import NEVER
from palaestra_baselines.common.joint_orders import Terrain, View, has_choice
from palaestra_baselines.common.joint_players import PlanPlayer
from palaestra_baselines.common.lm.hf_model import HFModel, TextTurns
from palaestra_baselines.common.lm.tiny_model import PAD
from palaestra_baselines.common.pikl import views_of

# --------------------------------------------------------------------------------------------------------------- texts


def with_texts(terrain: Terrain, view: View, seen: Sequence[AgentView]) -> View:
    """Adds the texts of N positions: the prompt, then those of the orders of each list with a choice.

    Args:
        terrain: Of the game.
        view: The positions.
        seen: The same, for the codec.
    """
    codec: Any = terrain.game.codecs["text"]
    texts = np.full((len(view), 1 + view.lists.shape[1]), None, object)
    choices = has_choice(view.lists)
    for n in np.flatnonzero(choices.any(1)).tolist():
        texts[n, 0] = f"{codec.position_text(seen[n])}\n{OPENED}\n"
        for slot, orders in zip(np.flatnonzero(choices[n]).tolist(), codec.order_texts(seen[n]), strict=True):
            texts[n, 1 + slot] = orders
    return replace(view, texts=texts)


def text_views_of(terrain: Terrain, sim: Simulation) -> list[View]:
    """As `palaestra_baselines.common.pikl.views_of`, with texts."""
    views = []
    for power, view in enumerate(views_of(terrain, sim)):
        io = AgentIO(sim, (power,), codec="text")
        views.append(with_texts(terrain, view, [io.agent_view(lane) for lane in range(len(view))]))
    return views


class TextPlanPlayer(PlanPlayer):
    """Plays one power by a policy that reads text; see `PlanPlayer`."""

    def look(self, observations: Any, legal: Any) -> View:
        """The positions that are observed in n lanes, with texts."""
        game, own = self.terrain.game, observations
        masks = legal[self.role] if isinstance(legal, dict) else legal
        lanes: Any = [None] * len(masks)
        if isinstance(observations, dict):
            own, lanes = observations[self.role], np.zeros(len(masks), game.observation_dtype["lane"])
            for name, values in observations["lane"].items():
                lanes[name] = values
        rows = np.ascontiguousarray(own[:, 0]).view(game.observation_dtype[self.role].base).reshape(-1)
        seen = [
            AgentView(game.roles[0], self.number, row, None, lane, game.world, mask, None)
            for row, lane, mask in zip(rows, lanes, masks[:, 0], strict=True)
        ]
        return with_texts(self.terrain, super().look(observations, legal), seen)


# --------------------------------------------------------------------------------------------------------------- trees


class Tree:
    """Texts of one position that begin alike, as a tree of tokens.

    Attributes:
        ids: The tokens.
        parents: The number of the token before each, -1 for the first.
        edges: Tokens to be scored: the number of the token before, the token, and the text to which its score goes.
    """

    def __init__(self, prompt: Sequence[int]) -> None:
        """The tokens with which all texts begin."""
        self.ids, self.parents = list(prompt), list(range(-1, len(prompt) - 1))
        self.edges = list[tuple[int, int, int]]()
        self._children = dict[tuple[int, int], int]()

    def follow(self, node: int, ids: Sequence[int]) -> int:
        """The last of some tokens behind a token; adds what is not there."""
        for token in ids:
            child = self._children.setdefault((node, token), len(self.ids))
            if child == len(self.ids):
                self.ids.append(token)
                self.parents.append(node)
            node = child
        return node

    def score(self, node: int, ids: Sequence[int], text: int) -> None:
        """Asks for the score of some tokens behind a token, as part of the score of a text."""
        for k, token in enumerate(ids):
            node = self.follow(node, ids[k - 1 : k]) if k else node
            self.edges.append((node, token, text))


# -------------------------------------------------------------------------------------------------------------- policy


class TextPolicy(nn.Module):
    """The policy, a `palaestra_baselines.common.joint_orders.Conditionals` of views with texts.

    Attributes:
        model: Reads and scores.
        temperature: Scores are divided by it when it plays.
    """

    def __init__(self, folder: str | Path) -> None:
        """Loads the model and its tokenizer.

        Args:
            folder: Of both.

        Raises:
            ImportError: transformers is not installed.
            FileError: There is no model in the folder, one that has no masks, or something is wrong with it.
        """
        super().__init__()
        self.turns, self.temperature = TextTurns(folder, 1), 1.0
        self.model = HFModel(folder, self.turns.size)
        if not self.model.reads_trees():
            raise FileError(f"{folder}: the model takes no mask of its own for each token: take one with attention")
        self.network = self.model.network
        self._lines = dict[str, list[int]]()

    def save(self, folder: Path) -> None:
        """Writes the model and its tokenizer."""
        self.network.save_pretrained(folder)
        self.turns.tokenizer.save_pretrained(folder)

    def scores(self, view: View, prompts: Sequence[Sequence[int]], plans: np.ndarray, slots: range) -> torch.Tensor:
        """Scores float32 ``[N, S, K]`` of the orders of lists with a choice; `NEVER` beyond a list.

        Args:
            view: N positions.
            prompts: Their tokens.
            plans: int64 ``[N, S]``; orders of earlier slots are given.
            slots: Which lists to score, successive ones.
        """
        lists, trees = view.lists, []
        numbers, choices = np.arange(lists.size).reshape(lists.shape), has_choice(lists)
        for n, prompt in enumerate(prompts):
            tree, node = Tree(prompt), len(prompt) - 1
            for slot in np.flatnonzero(choices[n, : slots.stop]).tolist():
                lines = self._orders(view, n, slot)
                if slot in slots:
                    for line, number in zip(lines, numbers[n, slot], strict=False):
                        tree.score(node, line, int(number))
                if slot + 1 < slots.stop:
                    node = tree.follow(node, lines[int((lists[n, slot] == plans[n, slot]).argmax())])
            trees.append(tree)
        scores = self._sums(trees, lists.size).view(lists.shape)
        return scores.masked_fill(torch.from_numpy(lists < 0), NEVER)

    def loss(self, view: View, plans: np.ndarray) -> torch.Tensor:
        """`palaestra_baselines.common.joint_networks.plan_loss` of these scores; arguments as there."""
        scores = self.scores(view, self._prompts(view), plans, range(plans.shape[1]))
        chosen = view.lists == plans[..., None]
        return -(scores.log_softmax(-1) * torch.from_numpy(chosen)).sum() / len(plans)

    def prepare(self, view: View) -> tuple[View, list[list[int]]]:
        """See `palaestra_baselines.common.joint_orders.Conditionals`."""
        return view, self._prompts(view)

    @torch.no_grad()
    def probabilities(
        self, known: tuple[View, list[list[int]]], rows: np.ndarray, slot: int, earlier: np.ndarray
    ) -> np.ndarray:
        """See `palaestra_baselines.common.joint_orders.Conditionals`."""
        view, prompts = known
        scores = self.scores(view.take(rows), [prompts[row] for row in rows], earlier, range(slot, slot + 1))
        return (scores[:, slot] / self.temperature).softmax(-1).double().numpy()

    def _prompts(self, view: View) -> list[list[int]]:
        """Tokens of the prompts; none where there is no choice."""
        texts: Any = view.texts
        return [[k + 1 for k in token_ids(self.turns.tokenizer, text or "")] for text in texts[:, 0]]

    def _orders(self, view: View, row: int, slot: int) -> list[list[int]]:
        """Tokens of the orders of a list."""
        texts: Any = view.texts
        orders = texts[row, 1 + slot]
        for text in orders:
            if text not in self._lines:
                self._lines[text] = [k + 1 for k in token_ids(self.turns.tokenizer, f"{text}\n", special=False)]
        return [self._lines[text] for text in orders]

    def _sums(self, trees: Sequence[Tree], count: int) -> torch.Tensor:
        """Sums of the scores of tokens, by text, float32 ``[count]``."""
        length = max(len(tree.ids) for tree in trees)
        ids, parents = np.full((len(trees), length), PAD), np.full((len(trees), length), -1)
        for row, tree in enumerate(trees):
            ids[row, : len(tree.ids)], parents[row, : len(tree.ids)] = tree.ids, tree.parents
        edges = torch.tensor([(row, *edge) for row, tree in enumerate(trees) for edge in tree.edges]).view(-1, 4).T
        log_probs = self.model.tree_log_probs(torch.from_numpy(ids), torch.from_numpy(parents), edges[:3])
        return torch.zeros(count).index_add(0, edges[3], log_probs)
