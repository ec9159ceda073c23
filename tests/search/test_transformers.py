# pyright: reportMissingImports=false
"""A language model of Hugging Face's transformers, tiny and of random numbers, plays SearchQA as text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from palaestra.games.search.scoring import normalize
from palaestra.games.search.search_qa import game

pytestmark = pytest.mark.peers

ID = "palaestra/SearchQA-2Hop-v1"
LANES, EPISODES, MOST_TURNS, MOST_TOKENS, CONTEXT = 32, 64, 4, 24, 192
TAGS = ("<search>", "</search>", "<answer>", "</answer>")
TURN = re.compile(r"<(search|answer)>(.*?)</\1>", re.DOTALL)
NUMBERS = {
    "exact_match": (0, 1),
    "f1": (0, 1),
    "hops_found": (0, 2),
    "turn_label": (-1, 1),
    "malformed": (0, MOST_TURNS),
}
"""Fields of `info` and their bounds."""
WORDS = {"question", "answers", "path"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved Llama of random numbers with a BPE tokenizer of about 100 tokens, the tags among them."""
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    tokenizers: Any = pytest.importorskip("tokenizers")
    passages = game(world="fixed", passages=600, form="text").codecs["text"].texts.passages  # type: ignore[attr-defined]
    prompts = [gymnasium.make(ID, form="text").reset(seed=seed)[0] for seed in range(20)]
    plain = tokenizers.Tokenizer(tokenizers.models.BPE())
    plain.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=90, special_tokens=["<pad>", "<end>"], show_progress=False)
    plain.train_from_iterator([*passages, *prompts], trainer)
    sides = {"padding_side": "left", "truncation_side": "left"}
    words = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<end>", model_max_length=CONTEXT, **sides
    )
    words.add_tokens(list(TAGS))
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    ids = {"pad_token_id": words.pad_token_id, "eos_token_id": words.eos_token_id, "bos_token_id": None}
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=len(words), **sizes, **ids))
    path = tmp_path_factory.mktemp("llama")
    model.save_pretrained(path)
    words.save_pretrained(path)
    return path


def play(folder: Path, seed: int) -> list[list[Any]]:
    """All episodes with turns that are sampled: prompt; turns, what they were answered with, reward, end and info."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    words = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    env: Any = gymnasium.make_vec(ID, num_envs=LANES, form="text", autoreset_mode="off")
    torch.manual_seed(seed)
    episodes = list[list[Any]]()
    for first in range(0, EPISODES, LANES):
        prompts, _ = env.reset(seed=first)
        transcripts, some, over = list(prompts), [[prompt] for prompt in prompts], np.zeros(LANES, bool)
        while not over.all():
            given = words(transcripts, return_tensors="pt", padding=True, truncation=True)
            with torch.no_grad():
                ids = model.generate(**given, do_sample=True, top_k=0, max_new_tokens=MOST_TOKENS)
            said = words.batch_decode(ids[:, given["input_ids"].shape[1] :], skip_special_tokens=True)
            assert all(env.single_action_space.contains(turn) for turn in said)
            answered, rewards, terminated, truncated, info = env.step(tuple(said), options={"step_mask": ~over})
            assert all(env.single_observation_space.contains(text) for text in answered)
            for k in np.flatnonzero(~over).tolist():
                transcripts[k] += said[k] + answered[k]
                told = {name: info[name][k] for name in (*NUMBERS, *WORDS)}
                some[k].append((said[k], answered[k], float(rewards[k]), bool(terminated[k]), bool(truncated[k]), told))
            over |= terminated | truncated
        episodes += some
    env.close()
    return episodes


def says_something(turn: str) -> bool:
    """Whether a turn has a query or an answer with a letter or digit that counts."""
    match = TURN.search(turn)
    if match is None:
        return False
    verb, content = match.groups()
    return any(letter.isalnum() for letter in (normalize(content) if verb == "answer" else content))


def test_a_language_model_plays_all_episodes_to_their_ends(folder: Path) -> None:
    episodes = play(folder, 0)
    assert len(episodes) == EPISODES
    answered, searches = 0, 0
    for prompt, *turns in episodes:
        silent = 0
        assert 1 <= len(turns) <= MOST_TURNS
        for number, (said, text, reward, terminated, truncated, info) in enumerate(turns, 1):
            silent += not says_something(said)
            match = TURN.search(said)
            is_answer = says_something(said) and match is not None and match[1] == "answer"
            assert (terminated, truncated) == (is_answer, number == MOST_TURNS and not is_answer)
            assert all(low <= info[name] <= high for name, (low, high) in NUMBERS.items())
            assert info["malformed"] == silent
            assert info["question"] in prompt
            assert reward == info["exact_match"]
            assert [len(step) for step in info["path"]] == [3, 3]
            assert all(isinstance(word, str) for some in (info["answers"], *info["path"]) for word in some)
            assert ("<information>" in text) == (says_something(said) and not is_answer)
            assert ("said nothing" in text) == (not says_something(said))
            answered, searches = answered + is_answer, searches + ("<information>" in text)
        assert turns[-1][3] or turns[-1][4]
    assert answered > 0
    assert searches > 0


def test_the_seed_of_torch_decides_the_episodes(folder: Path) -> None:
    assert play(folder, 3) == play(folder, 3) != play(folder, 4)
