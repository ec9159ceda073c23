"""The engine of live experts: it writes the next tokens of a text for given weights, and holds no rule.

All that it knows of a match stands in the match record: snapshots and replays need nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palaestra.game import Game
from palaestra.games.ensemble.live_models import load_expert, places_of, tokens_of_all

TINY = 1e-300
"""Takes the place of probabilities of 0 in logarithms."""


class LiveEngine:
    """A `palaestra.game.PhysicsEngine`: a body is the text of a match (`live_rules.text_dtype`).

    Attributes:
        experts: The K experts.
        tokens: The tokens of all vocabularies.
    """

    body_field = "text"
    command_fields = ("weights",)

    def __init__(
        self, game: Game, lanes: int, threads: int, *, folders: Sequence[str], prompts: Sequence[str], span_tokens: int
    ) -> None:
        """Loads the experts.

        Args:
            game: The rules.
            lanes: N.
            threads: Not used: the number of threads is that of torch.
            folders: Of the models.
            prompts: The prompts.
            span_tokens: Tokens of a span.
        """
        self.experts = [load_expert(folder) for folder in folders]
        self.tokens = tokens_of_all(self.experts)
        self._places = [places_of(expert, self.tokens) for expert in self.experts]
        self._prompts, self._span_tokens = [prompt.encode() for prompt in prompts], span_tokens
        self._log_size = np.log(len(self.tokens))

    def load(self, states: np.ndarray, lanes: np.ndarray) -> None:
        """See `palaestra.game.PhysicsEngine`."""
        texts = states[self.body_field][:, 0]
        texts["length"][lanes], texts["tokens"][lanes], texts["weights"][lanes] = 0, 0, 0.0
        for lane in lanes.tolist():
            texts["entropy"][lane] = self._entropies(self._distributions(texts[lane]))

    def advance(self, states: np.ndarray, lanes: np.ndarray) -> None:
        """See `palaestra.game.PhysicsEngine`."""
        texts = states[self.body_field][:, 0]
        for lane in lanes.tolist():
            distributions = self._distributions(texts[lane])
            for _ in range(self._span_tokens):
                texts["tokens"][lane, texts["length"][lane]] = int((texts["weights"][lane] @ distributions).argmax())
                texts["length"][lane] += 1
                distributions = self._distributions(texts[lane])
            texts["entropy"][lane] = self._entropies(distributions)

    def _distributions(self, text: Any) -> np.ndarray:
        """Distributions of the next token over the tokens of all, float64 ``[K, U]``."""
        written = b"".join([self.tokens[token] for token in text["tokens"][: text["length"]].tolist()])
        so_far = self._prompts[text["prompt"]] + written
        found = np.zeros((len(self.experts), len(self.tokens)))
        for row, expert, places in zip(found, self.experts, self._places, strict=True):
            np.add.at(row, places, expert.distribution(so_far))
        return found

    def _entropies(self, distributions: np.ndarray) -> np.ndarray:
        """As shares of log U, float64 ``[K]``."""
        surprise = -(distributions * np.log(np.maximum(distributions, TINY))).sum(axis=1)
        return np.clip(surprise / self._log_size, 0.0, 1.0)

    def save(self, lanes: np.ndarray) -> dict[str, np.ndarray]:
        """See `palaestra.game.SavingEngine`: nothing is kept outside the match records."""
        return {"nothing": np.zeros((len(lanes), 0))}

    def load_saved(self, saved: Any, lanes: np.ndarray) -> None:
        """See `palaestra.game.SavingEngine`."""

    def close(self) -> None:
        """See `palaestra.game.PhysicsEngine`."""
