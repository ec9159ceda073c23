"""A model and a tokenizer with the calls of Hugging Face's, without its library: letters as tokens, a chat template.

The template is ChatML with an end of turn that is the end of sequence, as Qwen's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from palaestra_baselines.common.lm import critic, hf_model, lm_players

MARKS = ("<bos>", "<|im_start|>", "<|im_end|>")
FIRST_LETTER = len(MARKS)
SIZE = FIRST_LETTER + 128
END = MARKS.index("<|im_end|>")


class Letters:
    """The tokenizer: a token is a letter or one of `MARKS`; a text of its own begins with ``<bos>``."""

    eos_token_id, all_special_ids = END, [0, 1, 2]

    def __init__(self, folder: Any, chat_template: str | None) -> None:
        self.name_or_path, self.chat_template = str(folder), chat_template

    def get_vocab(self) -> dict[str, int]:
        return {**{mark: k for k, mark in enumerate(MARKS)}, **{chr(k): FIRST_LETTER + k for k in range(128)}}

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        words, parts = self.get_vocab(), re.split(f"({'|'.join(map(re.escape, MARKS))})", text)
        ids = [words[word] for part in parts for word in ([part] if part in MARKS else part)]
        return {"input_ids": [0, *ids] if add_special_tokens else ids}

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return "".join(MARKS[k] if k < FIRST_LETTER else chr(k - FIRST_LETTER) for k in ids)

    def apply_chat_template(self, messages: Any, tokenize: bool, add_generation_prompt: bool) -> str:
        assert not tokenize
        assert add_generation_prompt
        assert [message["role"] for message in messages] == ["user", "assistant", "user"][: len(messages)]
        said = (f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in messages)
        return f"<bos>{''.join(said)}<|im_start|>assistant\n"

    def save_pretrained(self, folder: Any) -> None:
        """Nothing."""


class Output(dict):
    """What a network returns: entries that are attributes, too."""

    __getattr__ = dict.__getitem__


class Network(nn.Module):
    """A causal model: the mean of the embeddings so far, times the embeddings of the next token."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.words, self.out = (nn.Parameter(torch.randn(SIZE, 8, generator=generator)) for _ in range(2))

    def get_output_embeddings(self) -> Any:
        return Output(weight=self.out)

    def forward(
        self,
        input_ids: Any,
        attention_mask: Any,
        position_ids: Any,
        past_key_values: Any = None,
        use_cache: bool = True,
    ) -> Output:
        counted = attention_mask[:, -input_ids.shape[1] :, None].to(self.words.dtype)
        sums = (self.words[input_ids] * counted).cumsum(1)
        if past_key_values is not None:
            sums = sums + past_key_values
        read = attention_mask.cumsum(1)[:, -input_ids.shape[1] :, None].clamp(min=1)
        return Output(logits=(sums / read) @ self.out.T, past_key_values=sums[:, -1:])

    def save_pretrained(self, folder: Any) -> None:
        """Nothing."""

    def to(self, device: Any) -> Network:  # type: ignore[override]
        for name, weight in list(self.named_parameters()):
            setattr(self, name, nn.Parameter(weight.data.to(device)))
        return self


def pretend(monkeypatch: pytest.MonkeyPatch, chat_template: str | None = "ChatML") -> None:
    """Puts both where folders of Hugging Face are loaded; the folder's name is the seed of the weights."""
    load_tokenizer = lambda folder: Letters(folder, chat_template)  # noqa: E731
    monkeypatch.setattr(hf_model, "load_tokenizer", load_tokenizer)

    def load_causal_model(folder: Any, dtype: str = "float32") -> Network:
        network = Network(len(str(folder)))
        for weight in network.parameters():
            weight.data = weight.data.to(getattr(torch, dtype))
        return network

    monkeypatch.setattr(hf_model, "load_causal_model", load_causal_model)
    assert critic.token_ids is hf_model.token_ids  # nothing else loads
    assert lm_players.HFModel is hf_model.HFModel
