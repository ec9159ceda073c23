"""Folders of language and embedding models that a stranger may have made: what a library may see of them.

A library that loads such a folder runs code that the folder names, asks questions on a terminal, follows paths and
allocates what numbers of the folder ask for. So it never sees the folder: `checked_copy` reads the few files that
matter, checks them, and writes them anew to a folder of its own, with links to the weights. Nothing here imports a
library.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from palaestra.core.files import FileError, printable
from palaestra.core.files.model_config import (
    LONGEST_POSITION,
    Weights,
    check_config,
    check_key,
    check_number,
    numbers_of,
    tables_of,
)
from palaestra.core.files.model_files import (
    CONFIG,
    LARGEST_JSON,
    WEIGHTS,
    content_of,
    inside,
    is_there,
    link,
    parsed,
    read_json,
    read_shapes,
    write_json,
)

INDEX = "model.safetensors.index.json"
TOKENIZER, TOKENIZER_CONFIG, SPECIAL_TOKENS = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
GENERATION, TEMPLATE, MODULES = "generation_config.json", "chat_template.jinja", "modules.json"
SENTENCES, TRANSFORMER = "config_sentence_transformers.json", "sentence_bert_config.json"
LARGEST_INDEX, LARGEST_TOKENIZER_CONFIG, LARGEST_TOKENIZER = 2**23, 2**22, 2**26
TOKENIZER_BYTES, BYTES_OF_A_TOKEN = 2**20, 256
"""Bytes of a ``tokenizer.json``, and those for each token of the model; published ones have up to 140."""
SPARE_TOKENS, NUMBER = 2**16, re.compile(rb"[:,\[]\s*([0-9]{5,40})")
"""Numbers of tokens that a model has no outputs for, and numbers of a tokenizer that are not small."""
MODULE = re.compile(r"sentence_transformers(\.[A-Za-z_]+)*\.(Transformer|Pooling|Dense|Normalize)")
MOST_MODULES_OF_SENTENCES = 16
ACTIVATION = re.compile(r"torch\.nn\.modules\.(activation|linear)\.[A-Za-z0-9]+")
DROPPED = re.compile(r".*_files?|auto_map|init_inputs|trust_remote_code")
"""Entries of a tokenizer's options that name other files, code or arguments; null is usual for the first two."""


@contextmanager
def checked_copy(folder: str | Path, sentences: bool = False, needs_tokenizer: bool = True) -> Iterator[Path]:
    """A folder for a library: the files of a model's folder that were checked, and no others.

    Args:
        folder: Of the model.
        sentences: Whether it is an embedding model of Sentence Transformers.
        needs_tokenizer: Whether a tokenizer must be there.

    Yields:
        The other folder; it is there while the block runs.

    Raises:
        FileError: What is wrong with which file.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileError(f"{folder}: no such folder: give the folder of a model")
    with tempfile.TemporaryDirectory(prefix="palaestra-model-") as name:
        copy = Path(name)
        transformer = _copy_modules(folder, copy) if sentences and is_there(folder / MODULES) else PurePosixPath()
        _copy_transformer(folder, transformer, copy, sentences)
        if needs_tokenizer and not is_there(copy / transformer / TOKENIZER):
            path = folder / transformer / TOKENIZER
            raise FileError(f"{path}: there is no such file: save the model with a tokenizer of tokenizers (fast)")
        yield copy


def _copy_transformer(root: Path, inner: PurePosixPath, copy: Path, sentences: bool) -> None:
    """Checks and copies a model of transformers and its tokenizer."""
    folder, target = root / inner, copy / inner
    target.mkdir(parents=True, exist_ok=True)
    if is_there(folder / "adapter_config.json"):
        raise FileError(f"{folder / 'adapter_config.json'}: an adapter needs another model: merge both and save them")
    config = read_json(root, folder / CONFIG, LARGEST_JSON)
    weights = read_weights(root, folder)
    check_config(folder / CONFIG, config, weights)
    write_json(target / CONFIG, config)
    _copy_weights(root, folder, target, weights)
    if is_there(folder / GENERATION):
        write_json(target / GENERATION, _plain(read_json(root, folder / GENERATION, LARGEST_JSON)))
    _copy_tokenizer(root, folder, target, config)
    if sentences and is_there(folder / TRANSFORMER):
        write_json(target / TRANSFORMER, _transformer_config(folder / TRANSFORMER, root))


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers and words of a generation's options; nobody here generates by them."""
    return {
        name: value
        for name, value in config.items()
        if isinstance(value, int | float)
        or (name.endswith("_token_id") and isinstance(value, list) and all(type(one) is int for one in value))
    }


def read_weights(root: Path, folder: Path) -> Weights:
    """The headers of a model's weights, in one file or in those that an index names."""
    if not is_there(folder / INDEX) or is_there(folder / WEIGHTS):
        if not is_there(folder / WEIGHTS):
            pickles = sorted(path.name for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".pth", ".ckpt"))
            held = (
                f"{folder / pickles[0]}: pickles run code" if pickles else f"{folder / WEIGHTS}: there is no such file"
            )
            raise FileError(f"{held}: save the model's weights as {WEIGHTS}")
        return Weights((folder / WEIGHTS,), read_shapes(root, folder / WEIGHTS))
    names = read_json(root, folder / INDEX, LARGEST_INDEX).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise FileError(f"{folder / INDEX}: 'weight_map' does not give each tensor its file: take another copy of it")
    files, shapes = sorted(set(names.values())), dict[str, tuple[int, ...]]()
    for name in files:
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*\.safetensors", name):
            raise FileError(f"{folder / INDEX}: {printable(name)} is no name of a .safetensors file of this folder")
        for tensor, shape in read_shapes(root, folder / name).items():
            if names.get(tensor) != name:
                raise FileError(f"{folder / INDEX}: {printable(tensor)} is not where it says: take another copy of it")
            shapes[tensor] = shape
    if missing := sorted(names.keys() - shapes.keys()):
        raise FileError(f"{folder / INDEX}: {printable(missing[0])} is in none of its files: take another copy of it")
    return Weights(tuple(folder / name for name in files), shapes)


def _copy_weights(root: Path, folder: Path, target: Path, weights: Weights) -> None:
    """Links the files of the weights, and writes their index anew."""
    for path in weights.files:
        link(inside(root, path), target / path.name)
    if weights.files != (folder / WEIGHTS,):
        names = {tensor: path.name for path in weights.files for tensor in read_shapes(root, path)}
        write_json(target / INDEX, {"metadata": {}, "weight_map": names})


# ------------------------------------------------------------------------------------------------------ the tokenizer


def _copy_tokenizer(root: Path, folder: Path, target: Path, config: Mapping[str, Any]) -> None:
    """Checks and copies a tokenizer; its texts may hold anything, they are what it is made of."""
    path = folder / TOKENIZER
    if not is_there(path):
        return
    text = config.get("text_config")
    tokens = (text if isinstance(text, dict) else config).get("vocab_size")
    most = TOKENIZER_BYTES + BYTES_OF_A_TOKEN * (tokens if type(tokens) is int and tokens > 0 else 0)
    content = content_of(root, path, min(most, LARGEST_TOKENIZER))
    _check_tokens(path, content, SPARE_TOKENS + (tokens if type(tokens) is int else 0))
    (target / TOKENIZER).write_bytes(content)
    for name in (TOKENIZER_CONFIG, SPECIAL_TOKENS):
        if is_there(folder / name):
            table = read_json(root, folder / name, LARGEST_TOKENIZER_CONFIG, prose=True)
            for inner, prefix in tables_of(table):
                for key, value in inner.items():
                    check_key(folder / name, f"{prefix}{key}", key, value)
            kept = {key: value for key, value in table.items() if not DROPPED.fullmatch(key)}
            write_json(target / name, kept)
    if is_there(folder / TEMPLATE):
        (target / TEMPLATE).write_bytes(content_of(root, folder / TEMPLATE, LARGEST_JSON))


def _check_tokens(path: Path, content: bytes, most: int) -> None:
    """Refuses numbers of tokens far above those of the model: tables are made for all below.

    Raises:
        FileError: There is one.
    """
    if max(map(int, NUMBER.findall(content)), default=0) <= most:
        return  # without the work of reading all of it
    for table, _ in tables_of(parsed(path, content)):
        for name, value in table.items():
            if number := next((number for number in numbers_of(value) if number > most), None):
                raise FileError(f"{path}: {printable(name)} has the number {number}, at most {most} fit to the model")


# ------------------------------------------------------------------------------------------------- embedding models


def _copy_modules(root: Path, copy: Path) -> PurePosixPath:
    """Checks and copies the modules of Sentence Transformers; returns where their transformer is."""
    path = root / MODULES
    modules = parsed(path, content_of(root, path, LARGEST_JSON))
    if not isinstance(modules, list) or not 1 <= len(modules) <= MOST_MODULES_OF_SENTENCES:
        raise FileError(f"{path}: no list of 1 to 16 modules: give the folder as Sentence Transformers saves it")
    transformer, kept, kinds = PurePosixPath(), [], []
    for number, module in enumerate(modules):
        kind = module.get("type") if isinstance(module, dict) else None
        match = MODULE.fullmatch(kind) if isinstance(kind, str) else None
        if match is None:
            known = "Transformer, Pooling, Dense and Normalize of sentence_transformers"
            raise FileError(f"{path}: 'type' of module {number} is {printable(kind)}: modules are {known}")
        inner = module.get("path")
        if not isinstance(inner, str) or not re.fullmatch(r"([A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*)?", inner):
            raise FileError(f"{path}: 'path' of module {number} is {printable(inner)}: no folder inside of this one")
        kinds.append(match[2])
        kept.append({"idx": number, "name": str(number), "path": inner, "type": kind})
        if match[2] == "Transformer":
            transformer = PurePosixPath(inner)
        else:
            _copy_module(root, root / inner, copy / inner, match[2])
    if kinds[0] != "Transformer" or kinds.count("Transformer") != 1 or len({one["path"] for one in kept}) < len(kept):
        raise FileError(f"{path}: give one Transformer, as the first, and each module a folder of its own")
    write_json(copy / MODULES, kept)
    if is_there(root / SENTENCES):
        table = read_json(root, root / SENTENCES, LARGEST_JSON, prose=True)
        write_json(copy / SENTENCES, _sentences(root / SENTENCES, table))
    return transformer


def _copy_module(root: Path, folder: Path, target: Path, kind: str) -> None:
    """Checks and copies a module behind the transformer."""
    target.mkdir(parents=True, exist_ok=True)
    if not is_there(folder / CONFIG):
        if kind == "Normalize":
            return
        raise FileError(f"{folder / CONFIG}: there is no such file: give the folder as Sentence Transformers saves it")
    config = read_json(root, folder / CONFIG, LARGEST_JSON)
    if any(isinstance(value, dict) for value in config.values()):
        raise FileError(f"{folder / CONFIG}: an object inside of another: give the file as the library saves it")
    if kind == "Dense":
        shapes = read_shapes(root, folder / WEIGHTS)
        sides, bias = (config.get("out_features"), config.get("in_features")), config.get("bias", True)
        wanted: dict[str, Any] = {"linear.weight": sides} | ({"linear.bias": sides[:1]} if bias else {})
        if shapes != wanted:
            raise FileError(f"{folder / WEIGHTS}: its shapes are not those of {CONFIG} beside it: save the model again")
        activation = config.get("activation_function")
        if activation is not None and not (isinstance(activation, str) and ACTIVATION.fullmatch(activation)):
            raise FileError(
                f"{folder / CONFIG}: 'activation_function' is {printable(activation)}: give a class of "
                "torch.nn.modules.activation"
            )
        link(inside(root, folder / WEIGHTS), target / WEIGHTS)
    else:
        for name, value in config.items():
            for number in numbers_of(value):
                check_number(folder / CONFIG, name, name, number, None)
    write_json(target / CONFIG, config)


def _sentences(path: Path, table: dict[str, Any]) -> dict[str, Any]:
    """What is kept of an embedding model's own config: its prompts and its measure of similarity."""
    prompts, measure = table.get("prompts") or {}, table.get("similarity_fn_name")
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise FileError(f"{path}: 'prompts' are no texts by name: take another copy of it")
    if measure not in (None, "cosine", "dot", "euclidean", "manhattan"):
        raise FileError(f"{path}: 'similarity_fn_name' is {printable(measure)}: give 'cosine' or 'dot'")
    default = table.get("default_prompt_name")
    if default is not None and default not in prompts:
        raise FileError(f"{path}: 'default_prompt_name' is {printable(default)}, which is none of its prompts")
    kept = {"prompts": prompts, "similarity_fn_name": measure, "default_prompt_name": default}
    return {"model_type": "SentenceTransformer", **kept}


def _transformer_config(path: Path, root: Path) -> dict[str, Any]:
    """What is kept of the options of an embedding model's transformer."""
    table = read_json(root, path, LARGEST_JSON)
    longest = table.get("max_seq_length")
    if longest is not None and not (type(longest) is int and 0 < longest <= LONGEST_POSITION):
        raise FileError(f"{path}: 'max_seq_length' is {printable(longest)}: give a number of tokens")
    task = table.get("transformer_task", "feature-extraction")
    if task != "feature-extraction":
        raise FileError(f"{path}: 'transformer_task' is {printable(task)}: give 'feature-extraction'")
    for name in ("model_args", "model_kwargs", "tokenizer_args", "processor_kwargs", "config_args", "config_kwargs"):
        if table.get(name):
            raise FileError(f"{path}: {name!r} are words for another library: remove the entry")
    kept = {"max_seq_length": longest, "do_lower_case": table.get("do_lower_case") is True}
    return {name: value for name, value in kept.items() if value is not None and value is not False}
