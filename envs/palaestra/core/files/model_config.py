"""``config.json`` of a model: what may stand in it, and sizes that its weights do not have."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaestra.core.files import FileError, printable, printable_name

MOST_PARTS, MOST_MODULES, LONGEST_POSITION, MOST_LABELS = 1024, 2**13, 2**24, 2**14
"""Layers, heads, experts; layers times experts; positions; labels of a classifier."""
MOST_OF_ANY = 2**31
ATTENTION = ("eager", "sdpa")
CODE_KEYS = ("auto_map", "custom_pipelines", "custom_generate")
FOREIGN_KEYS = ("quantization_config", "compression_config", "adapter_config")
FREE = re.compile(r"(_ids?|_index|theta|seed|freq|base)$|token")
"""Names of numbers that are no sizes."""
COUNT = re.compile(r"(^|_)(num|n)_|layers?($|_)|experts?|heads?|blocks?|depths?|stages?|groups?")
LAYERS = re.compile(r"(num_|n_)?(hidden_|encoder_|decoder_)?(layers?|blocks|stages)|depths?")
POSITIONS = re.compile(r"position|ctx|length|seq_len|window")
WIDTHS = ("hidden_size", "n_embd", "d_model", "dim", "embedding_size", "word_embed_proj_dim", "embedding_dim")
WIDE = ("vocab_size", "intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size")
"""Sizes of matrices whose other side is a width."""


@dataclass
class Weights:
    """The headers of a model's weights.

    Attributes:
        files: Of ``.safetensors``.
        shapes: Of each tensor.
    """

    files: tuple[Path, ...]
    shapes: dict[str, tuple[int, ...]]

    @property
    def size(self) -> int:
        """Number of numbers."""
        return sum(map(math.prod, self.shapes.values()))


def check_config(path: Path, config: dict[str, Any], weights: Weights) -> None:
    """Refuses what makes a library run code, and sizes that the weights do not have.

    Raises:
        FileError: Names the entry.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise FileError(f"{path}: 'model_type' is {printable(kind)}: give the name that transformers has for the model")
    most_layers, most_experts = [0], [0]
    for table, prefix in tables_of(config):
        for name, value in table.items():
            place = f"{prefix}{name}"
            check_key(path, place, name, value)
            for number in numbers_of(value):
                check_number(path, place, name, number, weights)
                if LAYERS.fullmatch(name):
                    most_layers.append(int(number))
                elif "expert" in name:
                    most_experts.append(int(number))
        _check_matrices(path, prefix, table, weights)
    if max(most_layers) * max(most_experts) > MOST_MODULES:
        raise FileError(f"{path}: {max(most_layers)} layers of {max(most_experts)} experts: no model here is as large")
    if max(most_layers) > len(weights.shapes):
        raise FileError(f"{path}: {max(most_layers)} layers, but the weights are {len(weights.shapes)} tensors")


def check_key(path: Path, place: str, name: str, value: Any) -> None:
    """Refuses entries that name code, another file, or a package."""
    if value is None or value == {} or isinstance(value, bool):
        return
    if name in CODE_KEYS:
        advice = "code of a folder is never run: remove the entry if transformers has this model itself"
        raise FileError(f"{path}: {printable_name(place)} names code: {advice}")
    if name in FOREIGN_KEYS:
        raise FileError(
            f"{path}: {printable_name(place)}: quantised models and adapters are not loaded: save plain ones"
        )
    if name.endswith(("attn_implementation", "experts_implementation")) and value not in ATTENTION:
        raise FileError(f"{path}: {printable_name(place)} is {printable(value)}: remove the entry, or give 'sdpa'")


def check_number(path: Path, place: str, name: str, number: float, weights: Weights | None) -> None:
    """Refuses a number that is larger than any model's, or than the weights are."""
    if FREE.search(name):
        most = MOST_OF_ANY
    elif POSITIONS.search(name):
        most = LONGEST_POSITION
    elif COUNT.search(name) and not name.endswith("size"):
        most = MOST_LABELS if "labels" in name else MOST_PARTS
    else:
        most = LONGEST_POSITION if weights is None else max(MOST_PARTS, min(weights.size, LONGEST_POSITION))
    if not -MOST_OF_ANY <= number <= most:
        reason = f"at most {most} fit"
        raise FileError(f"{path}: {printable_name(place)} is {printable(number)}: {reason}: take another copy of it")


def _check_matrices(path: Path, prefix: str, table: Mapping[str, Any], weights: Weights) -> None:
    """Refuses a matrix that has more numbers than all weights."""
    widths = [table[name] for name in WIDTHS if type(table.get(name)) is int]
    for name in WIDE:
        size = table.get(name)
        if widths and type(size) is int and size * min(widths) > weights.size:
            raise FileError(
                f"{path}: {prefix}{name} is {size} at a width of {min(widths)}, but the weights are {weights.size} "
                "numbers in all: config and weights are of two models"
            )


def tables_of(value: Any, prefix: str = "") -> Iterator[tuple[dict[str, Any], str]]:
    """A JSON object and those inside of it, with what stands before their names."""
    if isinstance(value, dict):
        yield value, prefix
        for name, inner in value.items():
            yield from tables_of(inner, f"{prefix}{name}.")
    elif isinstance(value, list):
        for inner in value:
            yield from tables_of(inner, prefix)


def numbers_of(value: Any) -> Iterator[float]:
    """A number, or those of a list."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isnan(value) and not math.isinf(value):
            yield value
    elif isinstance(value, list):
        for inner in value:
            yield from numbers_of(inner)
