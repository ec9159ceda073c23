# pyright: reportMissingImports=false
"""Loads language and embedding models from folders by Hugging Face's libraries, which see a checked copy alone.

Nothing is downloaded, no code of a folder is run, and nothing is asked on a terminal.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from palaestra.core.files import FileError, printable_error, printable_name
from palaestra.core.files.model_config import Weights
from palaestra.core.files.model_files import CONFIG, WEIGHTS
from palaestra.core.files.model_folder import INDEX, TOKENIZER, checked_copy, read_weights
from palaestra.core.interrupts import Importing

OWN: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
BUFFER_BYTES = 2**26
"""Bytes that a model may compute for itself beside the size of its weights, such as masks of all positions."""
MAY_BE_LEFT = ("position_ids",)
"""Ends of names of tensors that older versions saved and newer ones compute."""


def import_transformers() -> Any:
    """The library.

    Raises:
        ImportError: It is not installed; says how to.
    """
    with Importing("transformers", 'models of Hugging Face need transformers: pip install "palaestra[text]"'):
        import transformers
    return transformers


def load_tokenizer(folder: str | Path) -> Any:
    """The tokenizer of a model's folder.

    Raises:
        FileError: There is none, or something is wrong with the folder; names the file.
        ImportError: transformers is not installed; says how to install it.
    """
    with checked_copy(folder) as copy:
        library = import_transformers()
        with refusing(Path(folder) / TOKENIZER, copy):
            tokenizer = library.AutoTokenizer.from_pretrained(str(copy), **OWN)
            tokenizer.name_or_path = str(folder)
            tokenizer("a")
            return tokenizer


def token_ids(tokenizer: Any, text: str, special: bool = True) -> list[int]:
    """The numbers of a text's tokens.

    Args:
        tokenizer: Of `load_tokenizer`.
        text: The text.
        special: Whether the special tokens stand around it that the tokenizer puts there.

    Raises:
        FileError: The tokenizer cannot read this text: its expressions take too long, say.
    """
    with refusing(Path(tokenizer.name_or_path) / TOKENIZER, Path(tokenizer.name_or_path)):
        return list(tokenizer(text, add_special_tokens=special)["input_ids"])


def load_causal_model(folder: str | Path, dtype: str = "float32") -> Any:
    """The ``AutoModelForCausalLM`` of a folder, in evaluation mode.

    Args:
        folder: Of the model.
        dtype: Of the weights in memory, a name of torch's.

    Raises:
        FileError: There is none, or something is wrong with the folder; names the file.
        ImportError: transformers is not installed; says how to install it.
    """
    with Importing("torch"):
        import torch

    with checked_copy(folder, needs_tokenizer=False) as copy:
        kind = import_transformers().AutoModelForCausalLM
        return _loaded(Path(folder), Path(), copy, kind, dtype=getattr(torch, dtype)).eval()


def load_embedder(folder: str | Path) -> Any:
    """The ``SentenceTransformer`` of a folder.

    Raises:
        FileError: There is none, or something is wrong with the folder; names the file.
        ImportError: Sentence Transformers is not installed; says how to install it.
    """
    with checked_copy(folder, sentences=True) as copy:
        with Importing("sentence_transformers", f"{folder} needs Sentence Transformers: pip install 'palaestra[text]'"):
            from sentence_transformers import SentenceTransformer
        transformer = next(path.parent for path in copy.rglob(TOKENIZER)).relative_to(copy)
        _loaded(Path(folder), transformer, copy, import_transformers().AutoModel)
        with refusing(Path(folder), copy):
            return SentenceTransformer(str(copy), **OWN)


def _loaded(folder: Path, inner: Path, copy: Path, kind: Any, **options: Any) -> Any:
    """A model whose sizes were looked at before memory is taken, and which its weights fill.

    Args:
        folder: As the user calls it.
        inner: Where the model is in it.
        copy: What was checked of it.
        kind: An auto class of transformers.
        options: For loading.

    Raises:
        FileError: Something is wrong with the folder; names the file.
    """
    weights, config = read_weights(folder, folder / inner), folder / inner / CONFIG
    with refusing(config, copy):
        _check_size(config, _built(kind, copy / inner), weights)
    name = folder / inner / (WEIGHTS if (copy / inner / WEIGHTS).exists() else INDEX)
    with refusing(name, copy):
        model, told = kind.from_pretrained(
            str(copy / inner), **OWN, use_safetensors=True, output_loading_info=True, **options
        )
        for wrong, said in (
            ("missing_keys", "does not hold"),
            ("mismatched_keys", "holds in another shape"),
            ("unexpected_keys", "holds beside what the model of config.json has"),
        ):
            keys = sorted(str(key) for key in told[wrong] if not str(key).endswith(MAY_BE_LEFT))
            if keys:
                many = f" and {len(keys) - 1} more" if keys[1:] else ""
                raise FileError(f"{name}: {said} {printable_name(keys[0])}{many}: weights and config are of two models")
    return model


def _built(kind: Any, copy: Path) -> Any:
    """The model without memory."""
    with Importing("torch"):
        import torch

    config = import_transformers().AutoConfig.from_pretrained(str(copy), **OWN)
    with torch.device("meta"):
        return kind.from_config(config, trust_remote_code=False)


def _check_size(path: Path, model: Any, weights: Weights) -> None:
    """Refuses a model that would be larger than its weights.

    Raises:
        FileError: It would.
    """
    numbers = sum(tensor.numel() for tensor in model.parameters())
    own = sum(tensor.numel() * tensor.element_size() for tensor in model.buffers())
    if numbers > weights.size:
        raise FileError(f"{path}: asks for {numbers} numbers, the weights hold {weights.size}: they are of two models")
    if own > BUFFER_BYTES + 4 * weights.size:
        raise FileError(f"{path}: asks for {own} bytes beside the weights, which are {weights.size} numbers: give less")


@contextmanager
def refusing(path: Path, copy: Path) -> Iterator[None]:
    """Turns every error of a library into a refusal of a file, and keeps what it says off the terminal.

    It quotes the folder, raw, and its remedies (run code, install a package) are the folder's wishes.

    Raises:
        FileError: The library cannot load it.
    """
    silent = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except FileError:
        raise
    except ImportError:
        raise FileError(f"{path}: needs a package that such models do not need here: take another model") from None
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # that of libraries in Rust
            raise
        said = printable_error(error).replace(str(copy), "the folder")
        reason = said if not any(word in said for word in ("install", "trust_remote_code")) else type(error).__name__
        raise FileError(f"{path}: the library cannot load it ({reason}): save the model again") from None
    finally:
        logging.disable(silent)
