"""Writes folders of tiny models as Hugging Face's libraries save them, without these libraries."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, INNER, POSITIONS, TOKENS = 16, 32, 64, 260
Shapes = Mapping[str, tuple[int, ...]]

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "vocab_size": TOKENS,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
BERT = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": POSITIONS,
    "type_vocab_size": 2,
    "vocab_size": TOKENS,
    "pad_token_id": 0,
}
MODULES = [
    ("", "sentence_transformers.models.Transformer"),
    ("1_Pooling", "sentence_transformers.models.Pooling"),
    ("2_Dense", "sentence_transformers.models.Dense"),
    ("3_Normalize", "sentence_transformers.models.Normalize"),
]


def shapes_of_llama() -> Shapes:
    """The tensors of `LLAMA`."""
    layer = "model.layers.0"
    return {
        "model.embed_tokens.weight": (TOKENS, WIDTH),
        **{f"{layer}.self_attn.{side}_proj.weight": (WIDTH, WIDTH) for side in "qkvo"},
        **{f"{layer}.mlp.{name}_proj.weight": (INNER, WIDTH) for name in ("gate", "up")},
        f"{layer}.mlp.down_proj.weight": (WIDTH, INNER),
        f"{layer}.input_layernorm.weight": (WIDTH,),
        f"{layer}.post_attention_layernorm.weight": (WIDTH,),
        "model.norm.weight": (WIDTH,),
        "lm_head.weight": (TOKENS, WIDTH),
    }


def shapes_of_bert() -> Shapes:
    """The tensors of `BERT`."""
    layer = "encoder.layer.0"
    linear = {
        f"{layer}.attention.self.query": (WIDTH, WIDTH),
        f"{layer}.attention.self.key": (WIDTH, WIDTH),
        f"{layer}.attention.self.value": (WIDTH, WIDTH),
        f"{layer}.attention.output.dense": (WIDTH, WIDTH),
        f"{layer}.intermediate.dense": (INNER, WIDTH),
        f"{layer}.output.dense": (WIDTH, INNER),
        "pooler.dense": (WIDTH, WIDTH),
    }
    norms = ("embeddings.LayerNorm", f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm")
    return {
        "embeddings.word_embeddings.weight": (TOKENS, WIDTH),
        "embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        **{f"{name}.weight": shape for name, shape in linear.items()},
        **{f"{name}.bias": shape[:1] for name, shape in linear.items()},
        **{f"{name}.{kind}": (WIDTH,) for name in norms for kind in ("weight", "bias")},
    }


def write_weights(path: Path, shapes: Shapes, **header: Any) -> None:
    """Writes random weights as safetensors has them; ``header`` replaces entries of the header."""
    generator, entries, parts, at = np.random.default_rng(0), dict[str, Any](), list[bytes](), 0
    for name, shape in shapes.items():
        parts.append(generator.normal(0, 0.02, math.prod(shape)).astype("<f4").tobytes())
        entries[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    text = json.dumps({"__metadata__": {"format": "pt"}, **entries, **header}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON value."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_llama(folder: Path, shapes: Shapes | None = None, **config: Any) -> Path:
    """A causal language model with a byte-level tokenizer; ``config`` replaces entries of its config."""
    write_json(folder / "config.json", {**LLAMA, **config})
    write_weights(folder / "model.safetensors", shapes or shapes_of_llama())
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [*map(chr, plain), *(chr(256 + k) for k in range(256 - len(plain)))]
    words = {word: k for k, word in enumerate(["<pad>", "<end>", "<a>", "<b>", *letters])}
    special = [
        {"id": k, "content": word, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for k, word in enumerate(["<pad>", "<end>"])
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    write_json(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor")),
            "added_tokens": special,
            "pre_tokenizer": level,
            "decoder": level,
            "model": {"type": "BPE", "vocab": words, "merges": []},
        },
    )
    tokens = {"pad_token": "<pad>", "eos_token": "<end>", "tokenizer_class": "PreTrainedTokenizerFast"}
    write_json(folder / "tokenizer_config.json", tokens)
    return folder


def write_embedder(folder: Path, **config: Any) -> Path:
    """An embedding model of Sentence Transformers; ``config`` replaces entries of its transformer's config."""
    write_json(folder / "config.json", {**BERT, **config})
    write_weights(folder / "model.safetensors", shapes_of_bert())
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
    words += [f"##{letter}" for letter in words[5:]]
    vocabulary = {word: k for k, word in enumerate(words)}
    special = [
        {"id": k, "content": word, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for k, word in enumerate(words[:5])
    ]
    piece = {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
    }
    write_json(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            **dict.fromkeys(("truncation", "padding", "post_processor")),
            "added_tokens": special,
            "normalizer": {"type": "Lowercase"},
            "pre_tokenizer": {"type": "Whitespace"},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {**piece, "vocab": vocabulary},
        },
    )
    names = ("pad", "unk", "cls", "sep", "mask")
    tokens = {f"{name}_token": f"[{name.upper()}]" for name in names}
    write_json(folder / "tokenizer_config.json", {**tokens, "tokenizer_class": "PreTrainedTokenizerFast"})
    modules = [{"idx": k, "name": str(k), "path": path, "type": kind} for k, (path, kind) in enumerate(MODULES)]
    write_json(folder / "modules.json", modules)
    write_json(
        folder / "1_Pooling" / "config.json", {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True}
    )
    dense = {
        "in_features": WIDTH,
        "out_features": 8,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    write_json(folder / "2_Dense" / "config.json", dense)
    write_weights(folder / "2_Dense" / "model.safetensors", {"linear.weight": (8, WIDTH), "linear.bias": (8,)})
    prompts = {
        "prompts": {"query": "ask ", "document": ""},
        "similarity_fn_name": "cosine",
        "default_prompt_name": None,
    }
    write_json(folder / "config_sentence_transformers.json", prompts)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 32, "do_lower_case": False})
    return folder
