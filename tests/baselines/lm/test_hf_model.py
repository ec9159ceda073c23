# pyright: reportMissingImports=false
"""Models of Hugging Face: the same numbers as a tiny model of the same weights, and a tiny Llama that is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch

from palaestra import registry
from palaestra.search.turn_codec import parse
from palaestra_baselines import grpo
from palaestra_baselines.common.lm.hf_model import HFModel, TextTokens
from palaestra_baselines.common.lm.losses import chosen, loss_mask
from palaestra_baselines.common.lm.name_tokens import CONTEXT, PAD
from palaestra_baselines.common.lm.rollouts import Rollout, play_at_own_pace
from palaestra_baselines.common.lm.tiny_model import HEADS, LAYERS, WIDTH, TinyModel
from palaestra_baselines.common.run_folder import read_rows

ID = "palaestra/SearchQA-2Hop-v0"
TAGS = ["<search>", "</search>", "<answer>", "</answer>"]
LANES, GROUP, TURN_TOKENS = 6, 3, 12


def test_without_the_library_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ImportError, match=r'pip install "palaestra\[text\]"'):
        HFModel("a folder")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved Llama of random numbers with a byte-level tokenizer, the tags among its tokens."""
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    tokenizers: Any = pytest.importorskip("tokenizers")
    prompts = [gymnasium.make(ID, form="text").reset(seed=seed)[0] for seed in range(20)]
    plain = tokenizers.Tokenizer(tokenizers.models.BPE())
    plain.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=120, special_tokens=["<pad>", "<end>"], show_progress=False)
    plain.train_from_iterator(prompts, trainer)
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<end>")
    words.add_tokens(TAGS)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    ids = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id, "bos_token_id": None}
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=len(words), **sizes, **ids))
    path = tmp_path_factory.mktemp("llama")
    model.save_pretrained(path)
    words.save_pretrained(path)
    return path


def play(folder: Path) -> tuple[HFModel, TextTokens, Rollout]:
    sim = registry.make_batch(ID, LANES, autoreset_mode="off", form="text", prompt="plain")
    model, tokens = HFModel(folder), TextTokens(sim, folder, TURN_TOKENS)
    seeds = np.repeat(np.arange(LANES // GROUP, dtype=np.uint64), GROUP)
    return model, tokens, play_at_own_pace(model, sim, tokens, seeds, torch.Generator().manual_seed(1))


@pytest.mark.peers
def test_equal_weights_give_equal_probabilities(tmp_path: Path):
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    tiny = TinyModel(30, CONTEXT, seed=1)
    generator = torch.Generator().manual_seed(0)
    for weight in tiny.parameters():
        weight.data += 0.2 * torch.randn(weight.shape, generator=generator)
    config = transformers.GPT2Config(
        vocab_size=29, n_positions=CONTEXT, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, activation_function="gelu"
    )
    peer, w = transformers.GPT2LMHeadModel(config), tiny.state_dict()
    names = {"ln_1": "attention_norm", "ln_2": "perceptron_norm", "attn.c_attn": "qkv", "attn.c_proj": "out",
             "mlp.c_fc": "up", "mlp.c_proj": "down"}  # fmt: skip
    state = {"wte.weight": w["tokens.weight"][1:], "wpe.weight": w["positions.weight"]}
    state |= {f"ln_f.{kind}": w[f"norm.{kind}"] for kind in ("weight", "bias")}
    for layer in range(LAYERS):
        for theirs, ours in names.items():
            weight = w[f"blocks.{layer}.{ours}.weight"]
            state[f"h.{layer}.{theirs}.weight"] = (
                weight.T if weight.ndim == 2 else weight
            )  # theirs is [inputs, outputs]
            state[f"h.{layer}.{theirs}.bias"] = w[f"blocks.{layer}.{ours}.bias"]
    peer.transformer.load_state_dict(state)
    peer.save_pretrained(tmp_path)
    found = HFModel(tmp_path)
    ids = torch.randint(1, 30, (3, 24), generator=generator)
    ids[0, :3], ids[1, 7:11], ids[2, 20:] = PAD, PAD, PAD
    at = (ids != PAD) & ((ids != PAD).cumsum(1) > 1)
    torch.testing.assert_close(found.log_probs(ids, at), tiny.log_probs(ids, at), atol=1e-4, rtol=0.0)
    for model in (found, tiny):
        model.start(ids[:, :5])
    for start, end in ((5, 6), (6, 15), (15, 24)):
        draws = [model.sample(torch.Generator().manual_seed(3)) for model in (found, tiny)]
        assert torch.equal(draws[0][0], draws[1][0])
        torch.testing.assert_close(draws[0][1], draws[1][1], atol=1e-4, rtol=0.0)
        found.force(ids[:, start:end])
        tiny.force(ids[:, start:end])


@pytest.mark.peers
def test_a_tiny_llama_plays_text_and_its_sampled_ids_are_kept(folder: Path):
    model, tokens, rollout = play(folder)
    mask = loss_mask(rollout)
    with torch.no_grad():
        again = chosen(model.log_probs(rollout.ids, mask), rollout.ids, mask)
    torch.testing.assert_close(again, rollout.log_probs, atol=1e-4, rtol=0.0)
    prompts = rollout.ids[:, :5].view(-1, GROUP, 5)
    assert (prompts == prompts[:, :1]).all()
    for lane in range(LANES):
        assert sorted(set(rollout.turn[lane].tolist()) - {-1}) == list(range(int(rollout.turns[lane])))
        for number in range(int(rollout.turns[lane])):
            said = (rollout.ids[lane][rollout.turn[lane] == number] - 1).tolist()
            text = tokens.tokenizer.decode(said)
            is_over = len(said) == TURN_TOKENS or said[-1] == tokens.tokenizer.eos_token_id
            assert is_over or text.endswith(("</search>", "</answer>", "</judge>")), text
            assert parse(text, ("search", "answer"))[0] in ("none", "search", "answer")
        passages = (rollout.ids[lane][rollout.retrieved[lane]] - 1).tolist()
        assert "<information>" in tokens.tokenizer.decode(passages) or "said nothing" in tokens.tokenizer.decode(
            passages
        )


@pytest.mark.peers
@pytest.mark.parametrize("masked", ["yes", "no"])
def test_it_is_trained_and_resumed(folder: Path, tmp_path: Path, masked: Any):
    options = {"groups": 2, "group": GROUP, "questions": 4, "turn_tokens": TURN_TOKENS, "quiet": True, "evaluations": 2}
    words: dict[str, Any] = {**options, "model": str(folder), "options": ("prompt=plain",), "mask_retrieved": masked}
    words |= {"entropy": 0.01, "kl": 0.01, "directory": tmp_path}
    grpo.train(grpo.Args(**words, total_steps=20))
    report = grpo.train(grpo.Args(**words, total_steps=40, resume=True))
    assert report.updates >= 4
    assert len(read_rows(tmp_path / "seed_0" / "log.csv")) >= 3
    before, after = HFModel(folder).state_dict(), HFModel(report.weights).state_dict()
    assert max((before[name] - after[name]).abs().max().item() for name in before) > 1e-4
