# pyright: reportMissingImports=false
"""Causal language models of Hugging Face with tokenizers of their own, and the tokens of all of them.

Nothing is downloaded and no code of a folder is run, see `palaestra.core.files.model_loading`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.files import FileError
from palaestra.core.files.model_files import digest_of_folder
from palaestra.core.files.model_folder import checked_copy
from palaestra.core.files.model_loading import import_transformers, load_causal_model, load_tokenizer, token_ids
from palaestra.game import Importing

END = b""
"""In place of the bytes of a token: it ends the text."""
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
"""How tokenizers of SentencePiece call a byte."""
SPACE = "\u2581"
"""How they write a space."""


def byte_letters() -> dict[str, int]:
    """The letters by which byte-level tokenizers write bytes, as GPT-2 does: printable ones stand for themselves."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + k): byte for k, byte in enumerate(others)}


def bytes_of_tokens(tokenizer: Any) -> list[bytes | None]:
    """The bytes that each token of a tokenizer stands for; `END` where it ends a text, None where it is no text.

    Raises:
        FileError: The tokenizer is none of the library tokenizers.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise FileError(f"{tokenizer.name_or_path}: its tokenizer has no fast form: save it with a tokenizer.json")
    decoder = json.dumps(json.loads(tokenizer.backend_tokenizer.to_str())["decoder"])
    letters = byte_letters() if '"ByteLevel"' in decoder else None
    special = set(tokenizer.all_special_ids)
    added = tokenizer.added_tokens_decoder
    found = list[bytes | None]()
    for number, token in enumerate(tokenizer.convert_ids_to_tokens(range(len(tokenizer)))):
        if number == tokenizer.eos_token_id:
            found.append(END)
        elif number in special or token is None or token == "":
            found.append(None)
        elif number in added:
            found.append(added[number].content.encode())
        elif letters is not None:
            found.append(bytes(letters[letter] for letter in token if letter in letters) or None)
        else:
            byte = BYTE_TOKEN.fullmatch(token)
            found.append(bytes([int(byte[1], 16)]) if byte else token.replace(SPACE, " ").encode())
    return found


class Expert:
    """A model and its tokenizer.

    Attributes:
        tokenizer: Of the library.
        tokens: Bytes of each of its tokens, see `bytes_of_tokens`.
    """

    def __init__(self, folder: Path) -> None:
        """Loads the tokenizer; the model is loaded when it is first asked.

        Args:
            folder: Of the model.

        Raises:
            ImportError: transformers is not installed.
            FileError: There is no tokenizer in the folder, or something is wrong with it; names the file.
        """
        self._folder = folder
        self.tokenizer: Any = load_tokenizer(folder)
        self.tokens = bytes_of_tokens(self.tokenizer)
        self._single = {token: number for number, token in enumerate(self.tokens) if token and len(token) == 1}

    @cached_property
    def network(self) -> Any:
        """The ``AutoModelForCausalLM`` in float32, in evaluation mode.

        Raises:
            FileError: There is no such model in the folder; names the file.
        """
        return load_causal_model(self._folder)

    def encode(self, text: bytes) -> list[int]:
        """Ids of a text; bytes at its end that are no complete character are added one by one, where they can be."""
        complete = text.decode("utf-8", "ignore")
        ids = token_ids(self.tokenizer, complete)
        tail = text[len(complete.encode()) :]
        return ids + [self._single[tail[i : i + 1]] for i in range(len(tail)) if tail[i : i + 1] in self._single]

    def distribution(self, text: bytes) -> np.ndarray:
        """Probabilities of the next token, float64 ``[len(tokens)]``; they add up to 1 over those that are text or end.

        The text is read alone: what other lanes read does not change a bit of it.
        """
        with Importing("torch"):
            import torch

        with torch.inference_mode():
            logits = self.network(input_ids=torch.tensor([self.encode(text)]), use_cache=False).logits[0, -1]
        numbers = logits.double().numpy()[: len(self.tokens)]
        numbers = np.where(self._is_text[: len(numbers)], numbers, -np.inf)
        probs = np.zeros(len(self.tokens))
        probs[: len(numbers)] = np.exp(numbers - numbers.max())
        return probs / probs.sum()

    @cached_property
    def _is_text(self) -> np.ndarray:
        return np.array([token is not None for token in self.tokens])


def tokens_of_all(experts: Sequence[Expert]) -> tuple[bytes, ...]:
    """The tokens of all vocabularies: `END`, then each once, by their bytes."""
    return (END, *sorted({token for expert in experts for token in expert.tokens if token}))


def places_of(expert: Expert, tokens: Sequence[bytes]) -> np.ndarray:
    """Where the tokens of an expert stand among those of all, int64; 0 for those without text, which have no mass."""
    numbers = {token: number for number, token in enumerate(tokens)}
    return np.array([numbers[token] if token else 0 for token in expert.tokens], np.int64)


def load_expert(folder: str | Path) -> Expert:
    """The expert of a folder; loaded once a process for the same files.

    Raises:
        ImportError: transformers is not installed.
        FileError: No such folder, or something is wrong with it; names the file.
    """
    path = Path(folder)
    if not path.is_dir():
        raise FileError(f"live: there is no folder {str(folder)!r}: give folders of causal language models")
    with checked_copy(path):  # before gigabytes are read for the digest
        import_transformers()
    return _expert(path.absolute(), digest_of_folder(path))


@lru_cache(maxsize=16)
def _expert(folder: Path, digest: str) -> Expert:
    return Expert(folder)


@dataclass(frozen=True)
class ModelsDigest:
    """Says which models write: `palaestra.game.Game.model_digest`."""

    folders: tuple[str, ...]

    def __call__(self) -> str:
        """Digests of the folders."""
        return " ".join(digest_of_folder(Path(folder)) for folder in self.folders)


def library_version() -> str:
    """Versions of the libraries: `palaestra.game.Game.engine_version`."""
    with Importing("torch"):
        import torch

    return f"transformers-{import_transformers().__version__} torch-{torch.__version__}"
