# pyright: reportMissingImports=false
"""TRL: text search as tools of GRPOTrainer, with a tiny model of random numbers."""

from __future__ import annotations

import importlib.resources
import inspect
import json
import tempfile
from typing import Any

import torch
from datasets import Dataset
from peers.libraries.search_turns import ID, check_alike
from peers.libraries.trials import main, trial
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer

from palaestra.adapters.trl import environment
from palaestra.wrappers.transcript import text_env

END, PAD = "<|im_end|>", "<|endoftext|>"


def tokenizer() -> PreTrainedTokenizerFast:
    """Bytes as tokens, with the chat template of Qwen 3 that TRL ships."""
    letters = pre_tokenizers.ByteLevel.alphabet()
    plain = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(sorted(letters))}, merges=[]))
    plain.pre_tokenizer, plain.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=plain, eos_token=END, pad_token=PAD)
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    made.chat_template = (importlib.resources.files("trl") / "chat_templates" / "qwen3.jinja").read_text()
    return made


def call(tool: str, **arguments: str) -> str:
    """How the model calls a tool."""
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>{END}"


def trainer_of(words: PreTrainedTokenizerFast, folder: str, rows: list[dict[str, Any]]) -> GRPOTrainer:
    """A trainer of groups of two rollouts for one step."""
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(words), eos_token_id=words.eos_token_id, **sizes, **heads))
    batches = {"per_device_train_batch_size": 4, "num_generations": 2, "max_steps": 1, "max_completion_length": 1500}
    quiet: dict[str, Any] = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "logging_steps": 1}
    settings = GRPOConfig(folder, use_cpu=True, shuffle_dataset=False, learning_rate=0.01, **batches, **quiet)
    dataset, factory = Dataset.from_list(rows), environment(ID)
    return GRPOTrainer(model, None, settings, dataset, processing_class=words, environment_factory=factory)


@trial("adapter", "adapters.trl: the tools, and episodes by seed")
def _() -> None:
    made = environment(ID)
    public = {name for name, _ in inspect.getmembers(made, inspect.isfunction) if not name.startswith("_")}
    assert public == {"reset", "get_reward", "search", "answer"}
    for tool, argument in ((made().search, "query"), (made().answer, "text")):
        schema = get_json_schema(tool)["function"]
        assert list(schema["parameters"]["properties"]) == [argument]
        assert schema["description"]

    def episode(env: Any, seed: int) -> list[Any]:
        answer = text_env(ID).reset(seed=seed)[1]["answers"][0]
        seen = [env.reset(seed=seed, prompt=[]), env.search("the mayor"), env.get_reward(), env.answer(answer)]
        assert (seen[2], env.get_reward()) == (0.0, 1.0)
        return seen

    env = made()
    check_alike(episode(env, 7), episode(made(), 7), episode(env, 8))


@trial("adapter", "adapters.trl: GRPOTrainer calls the tools and learns from their reward")
def _() -> None:
    torch.manual_seed(0)
    infos = [text_env(ID).reset(seed=seed)[1] for seed in (7, 8)]
    questions, answers = [info["question"] for info in infos], [info["answers"][0] for info in infos]
    words, said = tokenizer(), [0]

    def generate(input_ids: torch.Tensor, **given: Any) -> torch.Tensor:
        """In place of a model that knows how: search, then answer, every other rollout rightly, then be silent."""
        turn, said[0] = said[0], said[0] + 1
        texts = []
        for row, seen in enumerate(input_ids):
            assert questions[row // 2] in words.decode(seen)
            answer = call("answer", text=answers[row // 2] if row % 2 == 0 else "nobody")
            texts.append([call("search", query="the mayor"), answer, END][min(turn, 2)])
        ids = [words(text)["input_ids"] for text in texts]
        longest = max(map(len, ids))
        padded = torch.tensor([row + [words.pad_token_id] * (longest - len(row)) for row in ids])
        return torch.cat([input_ids, padded], 1)

    with tempfile.TemporaryDirectory() as folder:
        rows = [{"prompt": [{"role": "user", "content": "Answer: "}], "seed": seed} for seed in (7, 8)]
        trainer = trainer_of(words, folder, rows)
        trainer.model.generate = generate
        before = trainer.model.lm_head.weight.clone()
        trainer.train()
        logs = trainer.state.log_history[0]
        assert logs["tools/call_frequency"] == 2.0, logs
        assert logs["tools/failure_frequency"] == 0.0, logs
        assert logs["reward"] == 0.5, logs
        assert not torch.equal(before, trainer.model.lm_head.weight)


if __name__ == "__main__":
    main("trl", "transformers", "torch")
