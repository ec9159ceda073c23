# pyright: reportMissingImports=false
"""Causal language models of Hugging Face's transformers, from a folder, with the calls of a `TinyModel`.

Nothing is downloaded (``local_files_only``) and no code of the folder is run. Here a token is a number of the model's
tokenizer plus 1, so that 0 is padding as everywhere in this package. Padding is masked, and positions do not count it.
Sampled ids are kept: a turn is decoded to text for the environment, and never made of text again, since tokenizers do
not always give back the ids that a text was decoded from.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.run.simulation import Simulation
from palaestra.search.turn_codec import TAGS
from palaestra_baselines.common.lm.tiny_model import NEVER, PAD, draw, last_tokens

CLOSING_TAGS = tuple(closing for _, closing in TAGS.values())
TAIL = 16
"""Tokens of the end of a turn that are searched for a closing tag."""
NO_LIBRARY = 'models of Hugging Face need transformers: pip install "palaestra[text]"'


def import_transformers() -> Any:
    """The library.

    Raises:
        ImportError: It is not installed; says how to.
    """
    try:
        import transformers
    except ImportError as error:
        raise ImportError(NO_LIBRARY) from error
    return transformers


class HFModel:
    """A model in a folder; `palaestra_baselines.common.lm.tiny_model.TinyModel` says what the calls do.

    Attributes:
        network: The ``AutoModelForCausalLM``, in evaluation mode: dropout would change what ratios mean.
    """

    def __init__(self, folder: str | Path) -> None:
        """Loads the weights in float32.

        Raises:
            ImportError: transformers is not installed.
            OSError: There is no model in the folder.
        """
        library = import_transformers()
        self.network: Any = library.AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32
        ).eval()
        takes = inspect.signature(self.network.forward).parameters
        self._cache_name = "cache" if "cache" in takes else "past_key_values"  # as older versions call it

    def requires_grad_(self, requires_grad: bool) -> HFModel:
        """Says whether the weights learn; returns the model."""
        self.network.requires_grad_(requires_grad)
        return self

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """The weights."""
        return self.network.parameters()

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The weights by name."""
        return self.network.state_dict()

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Restores them."""
        self.network.load_state_dict(state)

    @torch.no_grad()
    def start(self, prompts: torch.Tensor, columns: int = 0) -> None:
        """Forgets all lanes and reads prompts int64 ``[B, P]``."""
        self._ids, self._cache, self._last = prompts[:, :0], None, torch.zeros(len(prompts), 1)
        self.force(prompts)

    @torch.no_grad()
    def force(self, ids: torch.Tensor) -> None:
        """Reads further tokens int64 ``[B, L]``."""
        past = self._ids.shape[1]
        self._ids = torch.cat([self._ids, ids], 1)
        read = self.network(**self._inputs(self._ids, past), **{self._cache_name: self._cache}, use_cache=True)
        self._cache = read[self._cache_name]
        last, lanes = last_tokens(ids)[:, -1], torch.arange(len(ids))
        self._last = torch.where((last >= 0)[:, None], read.logits[lanes, last].float(), self._last)

    @torch.no_grad()
    def sample(self, generator: torch.Generator, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws a token of each lane, ids int64 ``[B]`` and logarithms of their probabilities."""
        return draw(with_padding(self._last.log_softmax(-1)), generator, temperature)

    def log_probs(self, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """Distributions of M tokens of whole sequences, float32 ``[M, V + 1]``."""
        rows, columns = at.nonzero(as_tuple=True)
        logits = self.network(**self._inputs(ids, 0), use_cache=False).logits
        return with_padding(logits[rows, last_tokens(ids)[rows, columns - 1]].float().log_softmax(-1))

    def _inputs(self, ids: torch.Tensor, past: int) -> dict[str, torch.Tensor]:
        is_token = ids != PAD
        return {
            "input_ids": (ids - 1).clamp(min=0)[:, past:],
            "attention_mask": is_token.long(),
            "position_ids": (is_token.cumsum(1) - 1).clamp(min=0)[:, past:],
        }


def with_padding(log_probs: torch.Tensor) -> torch.Tensor:
    """Distributions ``[M, V + 1]`` over tokens of this package of those over a tokenizer's, ``[M, V]``."""
    return torch.cat([torch.full_like(log_probs[:, :1], NEVER), log_probs], 1)


class TextTokens:
    """Translates between the text of an environment and tokens, with the methods of a `NameTokens`.

    A turn ends behind a closing tag, at the tokenizer's end of sequence, or after ``longest`` tokens.
    """

    def __init__(self, sim: Simulation, folder: str | Path, longest: int) -> None:
        """Loads the tokenizer of a model's folder.

        Args:
            sim: Lanes of the text form.
            folder: Of the model.
            longest: Most tokens of a turn.
        """
        library = import_transformers()
        self.tokenizer: Any = library.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.io, self.longest, self.turns = AgentIO(sim, (0,), codec="text"), longest, int(sim.game.horizon or 0)

    def new_memory(self, lanes: int) -> np.ndarray:
        """Nothing is remembered."""
        return np.zeros((lanes, 0), np.int64)

    def questions(self, observations: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """The prompts, int64 ``[N, P]``."""
        return self._encoded(special=True)

    def passages(self, observations: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """What came since the last turn, int64 ``[N, L]``."""
        return self._encoded(special=False)

    def _encoded(self, special: bool) -> np.ndarray:
        texts = self.io.observe()
        rows = [self.tokenizer(text, add_special_tokens=special)["input_ids"] for text in texts]
        table = np.full((len(rows), max(1, *map(len, rows))), PAD)
        for out, row in zip(table, rows, strict=True):
            out[: len(row)] = np.array(row, np.int64) + 1
        return table

    def is_complete(self, turn: Sequence[int]) -> bool:
        """Whether the tokens of a turn are all of it."""
        if len(turn) >= self.longest or turn[-1] - 1 == self.tokenizer.eos_token_id:
            return True
        return any(tag in self._text(turn[-TAIL:]) for tag in CLOSING_TAGS)

    def actions(self, turns: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Turns int64 ``[N, L]`` as the environment takes them, int64 ``[N, 17]``."""
        codec: Any = self.io.codec
        return codec.decode_many(None, [self._text(turn) for turn in turns.tolist()])

    def _text(self, turn: Sequence[int]) -> str:
        return self.tokenizer.decode([token - 1 for token in turn if token != PAD], skip_special_tokens=False)
