"""Folders of models that a stranger may have made: libraries see a checked copy, and most forgeries never reach one."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from reliability.forged_folders import FORGERIES, Forgery
from reliability.model_folders import write_embedder, write_json, write_llama

from palaestra.core.files import FileError, model_loading
from palaestra.core.files.model_files import digest_of_folder
from palaestra.core.files.model_folder import checked_copy

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
WITHOUT_LIBRARIES = [forgery for forgery in FORGERIES if not forgery.by_library]
BY_DIGEST = ("a link to another", "a pipe beside", "20 GB beside", "a card of 20 GB")


def check_refused(forgery: Forgery, folder: Path) -> None:
    forgery.make(folder)
    began = time.process_time()
    with pytest.raises(FileError) as caught, checked_copy(folder, sentences=forgery.kind == "embedder"):
        pass
    said = str(caught.value)
    assert time.process_time() - began < 1.0
    assert str(folder / forgery.file) in said
    assert said.isprintable()
    assert len(said) < 1000
    assert "install" not in said


@pytest.mark.parametrize("forgery", WITHOUT_LIBRARIES[::4], ids=lambda f: f"{f.kind}: {f.name}")
def test_a_forged_folder_is_refused_before_a_library_is_imported(forgery: Forgery, tmp_path: Path):
    check_refused(forgery, tmp_path / "model")


@pytest.mark.slow  # all of the written list; with the libraries: forged_models.py
def test_all_forged_folders_are_refused_before_a_library_is_imported(tmp_path: Path):
    for number, forgery in enumerate(WITHOUT_LIBRARIES):
        check_refused(forgery, tmp_path / str(number))


@pytest.mark.parametrize("name", BY_DIGEST)
def test_a_digest_reads_nothing_outside_of_the_folder(name: str, tmp_path: Path):
    (forgery,) = (one for one in FORGERIES if one.name.removeprefix("folder: ") == name)
    with pytest.raises(FileError, match=forgery.file):
        digest_of_folder(forgery.make(tmp_path / "model"))


def test_a_copy_holds_what_was_checked_alone(tmp_path: Path):
    folder = write_embedder(tmp_path / "model")
    for name in ("modeling_x.py", "pytorch_model.bin", "vocab.txt", "custom_generate/generate.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
    options = {"tokenizer_file": "/etc/passwd", "auto_map": None, "pad_token": "[PAD]"}
    write_json(folder / "tokenizer_config.json", options)
    with checked_copy(folder, sentences=True) as copy:
        names = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if not path.is_dir()}
        assert json.loads((copy / "tokenizer_config.json").read_text()) == {"pad_token": "[PAD]"}
        assert (copy / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert not copy.exists()
    assert names == {
        *("config.json", "model.safetensors", "modules.json", "tokenizer.json", "tokenizer_config.json"),
        *("config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json"),
        *("2_Dense/config.json", "2_Dense/model.safetensors"),
    }


def test_the_cache_of_hugging_face_is_a_folder_of_links(tmp_path: Path):
    snapshot, blobs = tmp_path / "models--x" / "snapshots" / "abc", tmp_path / "models--x" / "blobs"
    write_llama(snapshot)
    blobs.mkdir()
    for path in list(snapshot.iterdir()):
        path.rename(blobs / path.name)
        path.symlink_to(f"../../blobs/{path.name}")
    with checked_copy(snapshot) as copy:
        assert json.loads((copy / "config.json").read_text())["model_type"] == "llama"
    assert digest_of_folder(snapshot)


def test_entries_that_usual_folders_have_are_no_reason_to_refuse(tmp_path: Path):
    usual = {
        "max_window_layers": 28, "rope_theta": 1_000_000.0, "sliding_window": 4096, "image_token_index": 262_144,
        "_attn_implementation_autoset": True, "quantization_config": None, "attn_implementation": "sdpa",
        "rope_scaling": {"factor": 8.0, "original_max_position_embeddings": 8192}, "time_step": [0.0, float("inf")],
        "max_position_embeddings": 1_048_576, "rope_local_base_freq": 10_000, "query_pre_attn_scalar": 256,
    }  # fmt: skip
    with checked_copy(write_llama(tmp_path / "model", **usual)) as copy:
        assert json.loads((copy / "config.json").read_text())["rope_scaling"] == usual["rope_scaling"]


@pytest.mark.parametrize("number", [70_000, 2**32 - 1, 10**12])
def test_numbers_of_tokens_fit_the_model(number: int, tmp_path: Path):
    folder = write_llama(tmp_path / "model")
    table = json.loads((folder / "tokenizer.json").read_text())
    table["model"]["vocab"][": 99999999999,"] = 265  # a text of digits is none of them
    write_json(folder / "tokenizer.json", table)
    with checked_copy(folder) as copy:
        assert (copy / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()
    table["model"]["vocab"]["a"] = number
    write_json(folder / "tokenizer.json", table)
    with (
        pytest.raises(FileError, match=rf"tokenizer\.json: 'a' has the number {number}, at most 65796 fit"),
        checked_copy(folder),
    ):
        pass


class Library:
    """What `load_causal_model` calls of transformers: a model of two numbers, of the type that it is asked for."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.AutoConfig = self.AutoModelForCausalLM = self

    def from_config(self, config: Any, trust_remote_code: bool) -> Any:
        return self.torch.nn.Linear(2, 1, bias=False)

    def from_pretrained(self, copy: str, dtype: Any = None, **options: Any) -> Any:
        told = {"missing_keys": [], "mismatched_keys": [], "unexpected_keys": []}
        return self.torch.nn.Linear(2, 1, bias=False, dtype=dtype), told


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_has_the_dtype_that_is_asked_for(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(model_loading, "import_transformers", lambda: Library(torch))
    model = model_loading.load_causal_model(write_llama(tmp_path / "model"), dtype)
    assert model.weight.dtype == getattr(torch, dtype)
    assert not model.training


@pytest.mark.peers
def test_a_model_of_the_library_has_the_dtype_that_is_asked_for_whatever_its_file_has(tmp_path: Path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    folder = write_llama(tmp_path / "model")
    half = model_loading.load_causal_model(folder, "bfloat16")
    assert {weight.dtype for weight in half.parameters()} == {torch.bfloat16}
    half.save_pretrained(tmp_path / "half")
    full = model_loading.load_causal_model(tmp_path / "half")
    assert {weight.dtype for weight in full.parameters()} == {torch.float32}
