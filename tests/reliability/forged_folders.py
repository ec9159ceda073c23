# ruff: noqa: E501 - a written list: a row a line
"""The written list of forged folders of models: each is an honest tiny one with one thing changed."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reliability.model_folders import (
    TOKENS,
    WIDTH,
    Shapes,
    shapes_of_bert,
    shapes_of_llama,
    write_embedder,
    write_json,
    write_llama,
    write_weights,
)
from reliability.mutations import Payload

ESCAPES = "\x1b[2J\u202e\r\n"
MODULE = "canary_of_a_folder"
"""Name of a module that leaves a mark when it is imported."""
CODE = "import os\nopen(os.environ['CANARY'], 'w').close()\nclass Model:\n    def __init__(self, *a, **k): pass\n"
HUGE = 10**9
SPARSE = 20 * 10**9


WRITERS: dict[str, Callable[[Path], Any]] = {"model": write_llama, "embedder": write_embedder}
"""What writes an honest folder of a kind."""


@dataclass(frozen=True)
class Forgery:
    """A forged folder.

    Attributes:
        name: Says what was changed.
        kind: One of `WRITERS`.
        change: Changes an honest folder.
        file: What a refusal must name.
        by_library: Whether the libraries are needed to see it.
        harmless: Whether it may be played: what was changed is never looked at.
    """

    name: str
    kind: str
    change: Callable[[Path], None]
    file: str
    by_library: bool = False
    harmless: bool = False

    def make(self, folder: Path) -> Path:
        """Writes it."""
        folder.mkdir(parents=True)
        WRITERS[self.kind](folder)
        self.change(folder)
        return folder


def edit(file: str, **entries: Any) -> Callable[[Path], None]:
    """Other entries of a JSON file; ``a__b`` is an entry of an object inside."""

    def change(folder: Path) -> None:
        path = folder / file
        table = json.loads(path.read_text()) if path.exists() else {}
        for name, value in entries.items():
            *outer, last = name.split("__") if "__" in name.strip("_") else [name]
            inner = table
            for one in outer:
                inner = inner.setdefault(one, {})
            inner[last] = value
        write_json(path, table)

    return change


def content(file: str, text: str | bytes) -> Callable[[Path], None]:
    """Another content of a file."""

    def change(folder: Path) -> None:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())

    return change


def config(**entries: Any) -> Callable[[Path], None]:
    """Other entries of config.json."""
    return edit("config.json", **entries)


def coded(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """The same with a module that leaves a mark."""

    def both(folder: Path) -> None:
        for name in (MODULE, "modeling_x", "custom_generate/generate", "generate"):
            content(f"{name}.py", CODE)(folder)
        change(folder)

    return both


def missing(file: str) -> Callable[[Path], None]:
    """Without a file."""
    return lambda folder: (folder / file).unlink()


def linked(file: str, target: str) -> Callable[[Path], None]:
    """A link in the place of a file."""

    def change(folder: Path) -> None:
        (folder / file).unlink(missing_ok=True)
        (folder / file).symlink_to(target)

    return change


def pipe(file: str) -> Callable[[Path], None]:
    """A named pipe in the place of a file."""

    def change(folder: Path) -> None:
        (folder / file).unlink(missing_ok=True)
        os.mkfifo(folder / file)

    return change


def directory(file: str) -> Callable[[Path], None]:
    """A folder in the place of a file."""

    def change(folder: Path) -> None:
        (folder / file).unlink()
        (folder / file).mkdir()

    return change


def sparse(file: str, size: int = SPARSE) -> Callable[[Path], None]:
    """As many bytes, of which the first are those of the file."""

    def change(folder: Path) -> None:
        (folder / file).touch()
        os.truncate(folder / file, size)

    return change


def weights(file: str, shapes: Shapes, **header: Any) -> Callable[[Path], None]:
    """Other weights."""
    return lambda folder: write_weights(folder / file, shapes, **header)


def cut(file: str, left: int) -> Callable[[Path], None]:
    """A file that ends early."""
    return lambda folder: os.truncate(folder / file, left)


def pickled(folder: Path, name: str) -> None:
    """Weights that run code when they are unpickled."""
    (folder / "model.safetensors").unlink(missing_ok=True)
    (folder / name).write_bytes(pickle.dumps(Payload(Path(os.environ.get("CANARY", "/tmp/none")))))


def sharded(**names: str) -> Callable[[Path], None]:
    """An index in the place of one file of weights."""

    def change(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "part.safetensors")
        table = dict.fromkeys(shapes_of_llama(), "part.safetensors") | names
        write_json(folder / "model.safetensors.index.json", {"weight_map": table})

    return change


def modules(*kinds: tuple[str, str]) -> Callable[[Path], None]:
    """Other modules: folders and types."""
    table = [{"idx": k, "name": str(k), "path": path, "type": kind} for k, (path, kind) in enumerate(kinds)]
    return lambda folder: write_json(folder / "modules.json", table)


def many_files(folder: Path) -> None:
    for number in range(10_001):
        (folder / f"{number}.txt").touch()


def entry(name: str, **values: Any) -> dict[str, Any]:
    """An entry of the header of weights, other than it should be."""
    shape = shapes_of_llama()["model.norm.weight"]
    return {name: {"dtype": "F32", "shape": list(shape), "data_offsets": [0, 64], **values}}


LLAMA, BERT = shapes_of_llama(), shapes_of_bert()
NORM = "model.norm.weight"
OUR = "sentence_transformers.models."
START = ("", f"{OUR}Transformer")
W, C, T, I = "model.safetensors", "config.json", "tokenizer.json", "model.safetensors.index.json"  # noqa: E741


def of_models(*rows: tuple) -> list[Forgery]:
    return [Forgery(row[0], "model", row[1], row[2], *row[3:]) for row in rows]


def of_embedders(*rows: tuple) -> list[Forgery]:
    return [Forgery(row[0], "embedder", row[1], row[2], *row[3:]) for row in rows]


MODELS = of_models(
    # code
    ("auto_map of an unknown model", coded(config(model_type="x", auto_map={"AutoConfig": "modeling_x.Model"})), C),
    ("auto_map of a known model", coded(config(auto_map={"AutoModelForCausalLM": "modeling_x.Model"})), C),
    ("auto_map inside", coded(config(text_config__auto_map={"AutoModel": "modeling_x.Model"})), C),
    ("auto_map of another repository", config(auto_map={"AutoModel": "someone/code--modeling_x.Model"}), C),
    ("auto_map of the tokenizer", coded(edit("tokenizer_config.json", auto_map={"AutoTokenizer": ["modeling_x.Model", None]})), "tokenizer_config.json"),
    ("unknown model with code", coded(config(model_type="x")), C, True),
    ("a way to generate", coded(config(custom_generate="generate")), C),
    ("a folder of a way to generate", coded(lambda folder: None), W, True, True),
    ("quantised", config(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}), C),
    ("quantised inside", config(text_config__quantization_config={"quant_method": "gptq", "bits": 4}), C),
    ("attention of a repository", config(attn_implementation="someone/kernels"), C),
    ("attention of a repository, as an object", config(_attn_implementation={"": "someone/kernels"}), C),
    ("attention of a package", config(attn_implementation="flash_attention_3"), C),
    ("experts of a repository", config(experts_implementation="someone/kernels"), C),
    ("an adapter", edit("adapter_config.json", base_model_name_or_path="/etc", peft_type="LORA"), "adapter_config.json"),
    ("pickles alone", lambda folder: pickled(folder, "pytorch_model.bin"), "pytorch_model.bin"),
    ("pickles of a checkpoint", lambda folder: pickled(folder, "model.ckpt"), "model.ckpt"),
    ("a pickle with another name", lambda folder: pickled(folder, W), W),
    ("a tokenizer that needs a package", edit("tokenizer_config.json", tokenizer_class="BertJapaneseTokenizer"), T, True, True),
    ("a tokenizer class of code", edit("tokenizer_config.json", tokenizer_class=f"{MODULE}.Model"), T, True, True),
    ("a tokenizer of another file", edit("tokenizer_config.json", tokenizer_file="/etc/passwd", vocab_file="/etc/passwd"), T, True, True),
    ("arguments of a tokenizer", edit("tokenizer_config.json", init_inputs=["/etc/passwd"], trust_remote_code=True), T, True, True),
    ("a chat template that breaks out", content("chat_template.jinja", "{{ ''.__class__.__mro__[1].__subclasses__() }}"), T, True, True),
    ("options of generating", edit("generation_config.json", custom_generate="x/y", watermarking_config={"a": 1}), C, True, True),
    # sizes
    *((f"{name} {size:g}", config(**{name: size}), C) for size in (HUGE, 10**13) for name in (
        "hidden_size", "vocab_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "head_dim", "max_position_embeddings", "num_labels", "num_local_experts")),
    ("a size as a decimal number", config(num_hidden_layers=1e9), C),
    ("a size as a list", config(num_hidden_layers=[HUGE]), C),
    ("a size inside", config(text_config__num_hidden_layers=HUGE), C),
    ("a negative size", config(hidden_size=-(10**12)), C),
    ("no size", config(hidden_size=0), C, True),
    ("more layers than tensors", config(num_hidden_layers=500), C),
    ("many experts in many layers", config(model_type="mixtral", num_hidden_layers=12, num_local_experts=1000), C),
    ("more words than the weights have", config(vocab_size=2000), C),
    ("a few words more", config(vocab_size=TOKENS + 8), W, True),
    ("another width", config(hidden_size=WIDTH // 2), W, True),
    ("heads that do not divide", config(num_attention_heads=7), C, True),
    ("masks of a million positions", config(model_type="gptj", n_embd=WIDTH, n_layer=1, n_head=2, rotary_dim=4, n_positions=10**6), C, True),
    ("a table of positions", config(model_type="gpt2", n_embd=WIDTH, n_layer=1, n_head=2, n_positions=10**7), C, True),
    ("a number of 5,000 digits", content(C, '{"model_type": "llama", "hidden_size": 1' + "0" * 5000 + "}"), C),
    ("not a number", config(hidden_size="16"), C, True),
    # the file of the config
    ("config: no JSON", content(C, "{"), C),
    ("config: a list", content(C, "[]"), C),
    ("config: 100,000 brackets", content(C, "[" * 100_000), C),
    ("config: 100,000 objects", content(C, '{"a":' * 100_000), C),
    ("config: no UTF-8", content(C, b'{"model_type": "\xff"}'), C),
    ("config: missing", missing(C), C),
    ("config: a pipe", pipe(C), C),
    ("config: a folder", directory(C), C),
    ("config: sparse", sparse(C), C),
    ("config: a private file", linked(C, "/etc/passwd"), C),
    ("config: a device", linked(C, "/dev/zero"), C),
    ("config: a broken link", linked(C, "nothing"), C),
    ("config: a link to itself", linked(C, C), C),
    ("config: no type", content(C, "{}"), C),
    ("config: a number as type", config(model_type=3), C),
    ("config: a type that is no language model", config(model_type="clip"), C, True),
    ("config: escapes in the type", config(model_type=f"x{ESCAPES}"), C),
    ("config: escapes in a name", config(**{f"x{ESCAPES}": HUGE}), C),
    ("config: escapes in a text", config(hidden_act=f"silu{ESCAPES}"), C),
    ("config: an unknown activation", config(hidden_act="antigravity.fly"), C, True),
    ("config: other positions", config(rope_parameters={"rope_type": "antigravity", "factor": "x"}), C, True),
    ("config: kinds of layers", config(layer_types=["antigravity"]), C, True),
    ("config: methods replaced", config(get_text_config=1, to_dict="x", save_pretrained=2, __class__="x"), C, True),
    # weights
    ("weights: missing", missing(W), W),
    ("weights: a pipe", pipe(W), W),
    ("weights: a device", linked(W, "/dev/zero"), W),
    ("weights: a private file", linked(W, "/etc/passwd"), W),
    ("weights: a folder", directory(W), W),
    ("weights: sparse", sparse(W), W),
    ("weights: empty", content(W, b""), W),
    ("weights: cut", cut(W, 5000), W),
    ("weights: a header of 2**63 bytes", content(W, (2**63).to_bytes(8, "little") + b"{}"), W),
    ("weights: a header that is no JSON", content(W, (2).to_bytes(8, "little") + b"[{"), W),
    ("weights: a header that is a list", content(W, (2).to_bytes(8, "little") + b"[]"), W),
    ("weights: none", content(W, (2).to_bytes(8, "little") + b"{}"), W),
    ("weights: two in one place", weights(W, LLAMA, **entry(NORM)), W),
    ("weights: a negative shape", weights(W, LLAMA, **entry(NORM, shape=[-16])), W),
    ("weights: a shape of 2**62", weights(W, LLAMA, **entry(NORM, shape=[2**62])), W),
    ("weights: places before the file", weights(W, LLAMA, **entry(NORM, data_offsets=[-64, 0])), W),
    ("weights: an unknown type", weights(W, LLAMA, **entry(NORM, dtype="F4")), W),
    ("weights: a type that is a list", weights(W, LLAMA, **entry(NORM, dtype=[])), W),
    ("weights: escapes in a name", weights(W, {**LLAMA, f"x{ESCAPES}": (2,)}), W),
    ("weights: one is missing", weights(W, {name: shape for name, shape in LLAMA.items() if name != NORM}), W, True),
    ("weights: one too many", weights(W, {**LLAMA, "model.layers.7.extra": (3,)}), W, True),
    ("weights: another shape", weights(W, {**LLAMA, NORM: (WIDTH + 1,)}), W, True),
    ("weights: of another model", weights(W, BERT), W, True),
    ("index: out of the folder", sharded(**{NORM: "../part.safetensors"}), I),
    ("index: an absolute path", sharded(**{NORM: "/etc/passwd.safetensors"}), I),
    ("index: a pickle", sharded(**{NORM: "part.bin"}), I),
    ("index: a missing file", sharded(**{NORM: "other.safetensors"}), "other.safetensors"),
    ("index: a tensor that is not there", sharded(other="part.safetensors"), I),
    ("index: a number", sharded(**{NORM: 3}), I),  # type: ignore[arg-type]
    ("index: no table", lambda folder: (sharded()(folder), content(I, "{}")(folder)), I),
    ("index: a pipe", lambda folder: (sharded()(folder), pipe(I)(folder)), I),
    ("index: escapes", sharded(**{NORM: f"x{ESCAPES}.safetensors"}), I),
    # the tokenizer
    ("tokenizer: missing", missing(T), T),
    ("tokenizer: a pipe", pipe(T), T),
    ("tokenizer: a folder", directory(T), T),
    ("tokenizer: sparse", sparse(T), T),
    ("tokenizer: 30 MB for 260 tokens", content(T, b"{" + b" " * 30_000_000 + b"}"), T),
    ("tokenizer: a private file", linked(T, "/etc/passwd"), T),
    ("tokenizer: no JSON", content(T, "{"), T, True),
    ("tokenizer: 100,000 brackets", content(T, "[" * 100_000), T, True),
    ("tokenizer: an unknown model", edit(T, model={"type": "Antigravity"}), T, True),
    ("tokenizer: numbers of 10**12", edit(T, model={"type": "WordLevel", "vocab": {"a": 10**12}, "unk_token": "a"}), T),
    ("tokenizer: numbers of 4e9", edit(T, model={"type": "WordLevel", "vocab": {"a": 4 * 10**9}, "unk_token": "a"}), T),
    ("tokenizer: padding of 10**9", edit(T, padding={"strategy": {"Fixed": HUGE}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}), T),
    ("tokenizer: an expression without end", edit(T, pre_tokenizer={"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Isolated", "invert": False}), T, True),
    ("tokenizer: options of 20 GB", sparse("tokenizer_config.json"), "tokenizer_config.json"),
    ("tokenizer: options that are a list", content("tokenizer_config.json", "[]"), "tokenizer_config.json"),
    ("tokenizer: a token that is a number", edit("tokenizer_config.json", eos_token=3), T, True),
    ("tokenizer: special tokens, a pipe", pipe("special_tokens_map.json"), "special_tokens_map.json"),
    ("tokenizer: a template of 20 GB", sparse("chat_template.jinja"), "chat_template.jinja"),
    # the folder
    ("folder: 10,001 files", many_files, "10000 files", True),
    ("folder: a link to another", lambda folder: (folder / "more").symlink_to("/etc"), "more", True),
    ("folder: a pipe beside", pipe("notes.txt"), "notes.txt", True),
    ("folder: 20 GB beside", sparse("pytorch_model.bin"), "pytorch_model.bin", True),
)  # fmt: skip

EMBEDDERS = of_embedders(
    # modules
    ("module of the folder", coded(modules(START, ("1_Pooling", f"{MODULE}.Model"))), "modules.json"),
    ("module first", coded(modules(("", f"{MODULE}.Model"))), "modules.json"),
    ("module of Python", modules(START, ("1_Pooling", "antigravity.fly")), "modules.json"),
    ("module of the system", modules(START, ("1_Pooling", "os.system")), "modules.json"),
    ("module of another's name", coded(modules(START, ("1_Pooling", "sentence_transformersx.Pooling"))), "modules.json"),
    ("module of modules", modules(START, ("1_Pooling", f"{OUR}Router")), "modules.json"),
    ("module of pictures", modules(START, ("1_Pooling", f"{OUR}CLIPModel")), "modules.json"),
    ("module of words", modules(("1_Pooling", f"{OUR}WordEmbeddings"),), "modules.json"),
    ("module that is no module", modules(START, ("1_Pooling", "sentence_transformers.util.http_get")), "modules.json"),
    ("module that is no text", modules(START, ("1_Pooling", ["os", "system"])), "modules.json"),  # type: ignore[arg-type]
    ("module with escapes", modules(START, ("1_Pooling", f"x{ESCAPES}")), "modules.json"),
    ("module above", modules(START, ("../1_Pooling", f"{OUR}Pooling")), "modules.json"),
    ("module elsewhere", modules(START, ("/etc", f"{OUR}Pooling")), "modules.json"),
    ("module behind a link", lambda folder: ((folder / "out").symlink_to("/etc"), modules(START, ("out", f"{OUR}Pooling"))(folder)), "out"),
    ("two transformers", modules(START, ("1_Pooling", f"{OUR}Transformer")), "modules.json"),
    ("no transformer", modules(("1_Pooling", f"{OUR}Pooling")), "modules.json"),
    ("one folder twice", modules(START, ("1_Pooling", f"{OUR}Pooling"), ("1_Pooling", f"{OUR}Normalize")), "modules.json"),
    ("100 modules", modules(START, *[(f"n{k}", f"{OUR}Normalize") for k in range(100)]), "modules.json"),
    ("modules: an object", content("modules.json", "{}"), "modules.json"),
    ("modules: empty", content("modules.json", "[]"), "modules.json"),
    ("modules: numbers", content("modules.json", "[1, 2]"), "modules.json"),
    ("modules: a pipe", pipe("modules.json"), "modules.json"),
    ("modules: sparse", sparse("modules.json"), "modules.json"),
    # the modules' files
    *((f"activation {name}", coded(edit("2_Dense/config.json", activation_function=name)), "2_Dense/config.json") for name in (
        "antigravity.fly", "os.system", "torch.hub.load", "torch.load", f"{MODULE}.Model", "torch.nn.modules.activation.Tanh.__init__", 3)),
    ("an activation that is none", edit("2_Dense/config.json", activation_function="torch.nn.modules.activation.warnings"), "", True),
    ("dense: another shape", edit("2_Dense/config.json", out_features=HUGE), "2_Dense/model.safetensors"),
    ("dense: no weights", missing("2_Dense/model.safetensors"), "2_Dense/model.safetensors"),
    ("dense: pickles", lambda folder: pickled(folder / "2_Dense", "pytorch_model.bin"), "2_Dense/model.safetensors"),
    ("dense: objects", edit("2_Dense/config.json", activation_function={"a": 1}), "2_Dense/config.json"),
    ("dense: more arguments", edit("2_Dense/config.json", init_weight="x", init_bias=[HUGE]), "2_Dense/config.json", True, True),
    ("dense: of another width", lambda folder: (edit("2_Dense/config.json", in_features=8)(folder), weights("2_Dense/model.safetensors", {"linear.weight": (8, 8), "linear.bias": (8,)})(folder)), "", True),
    ("pooling: huge", edit("1_Pooling/config.json", word_embedding_dimension=HUGE), "1_Pooling/config.json"),
    ("pooling: objects", edit("1_Pooling/config.json", pooling_mode={"a": 1}), "1_Pooling/config.json"),
    ("pooling: unknown", edit("1_Pooling/config.json", pooling_mode="antigravity"), "", True),
    ("pooling: a folder", directory("1_Pooling/config.json"), "1_Pooling/config.json"),
    ("pooling: missing", missing("1_Pooling/config.json"), "1_Pooling/config.json"),
    # its own options
    ("a similarity of code", edit("config_sentence_transformers.json", similarity_fn_name="antigravity"), "config_sentence_transformers.json"),
    ("prompts that are numbers", edit("config_sentence_transformers.json", prompts={"query": 3}), "config_sentence_transformers.json"),
    ("a default prompt that is not there", edit("config_sentence_transformers.json", default_prompt_name="x"), "config_sentence_transformers.json"),
    ("a package that is required", edit("config_sentence_transformers.json", requirements=["evil-package>=1"]), "config_sentence_transformers.json", True, True),
    ("another kind of model", edit("config_sentence_transformers.json", model_type="CrossEncoder"), "config_sentence_transformers.json", True, True),
    *((f"words for transformers: {name}", edit("sentence_bert_config.json", **{name: {"trust_remote_code": True}}), "sentence_bert_config.json")
      for name in ("model_args", "tokenizer_args", "config_args", "model_kwargs", "processor_kwargs", "config_kwargs")),
    ("another task", edit("sentence_bert_config.json", transformer_task="any-to-any"), "sentence_bert_config.json"),
    ("a method that is called", edit("sentence_bert_config.json", modality_config={"text": {"method": "save_pretrained", "method_output_name": "x"}}), "sentence_bert_config.json", True, True),
    ("10**12 tokens", edit("sentence_bert_config.json", max_seq_length=10**12), "sentence_bert_config.json"),
    ("a card of 20 GB", sparse("README.md"), "README.md", True),
    # its transformer
    ("code", coded(config(model_type="x", auto_map={"AutoModel": "modeling_x.Model"})), C),
    ("sizes", config(hidden_size=HUGE), C),
    ("layers", config(num_hidden_layers=1000), C),
    ("attention of a repository", config(attn_implementation="someone/kernels"), C),
    ("weights: pickles", lambda folder: pickled(folder, "pytorch_model.bin"), "pytorch_model.bin"),
    ("weights: one is missing", weights(W, {name: shape for name, shape in BERT.items() if name != "pooler.dense.weight"}), W, True),
    ("weights: one too many", weights(W, {**BERT, "x.weight": (2,)}), W, True),
    ("weights: another shape", weights(W, {**BERT, "pooler.dense.bias": (2,)}), W, True),
)  # fmt: skip
FORGERIES = [*MODELS, *EMBEDDERS]
