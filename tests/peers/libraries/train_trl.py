# pyright: reportMissingImports=false
"""TRL: text search by tags and as tools of GRPOTrainer, with tiny models of random numbers."""

from __future__ import annotations

import copy
import importlib.resources
import inspect
import json
import tempfile
from functools import partial
from typing import Any

import torch
from datasets import Dataset
from peers.libraries.search_turns import ID, MATCHES, check_alike, check_returns, played_alone
from peers.libraries.trials import main, trial
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer

from palaestra.adapters.trl import environment, match_return, rollout
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


class Forced:
    """A processor of logits that makes a model say prepared turns; the last token of each ends it."""

    def __init__(self, turns: list[list[int]], width: int) -> None:
        self.turns, self.width = turns, width

    def __call__(self, ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        at = ids.shape[1] - self.width
        forced = torch.full_like(logits, -torch.inf)
        for row, turn in enumerate(self.turns):
            forced[row, turn[at] if at < len(turn) else turn[-1]] = 0.0
        return forced


def forced_generate(model: Any, words: PreTrainedTokenizerFast, told: list[list[str]]) -> Any:
    """``model.generate`` that says the turns ``told[k]`` of match k, for prompts that begin with match 0 to K."""
    left = [[words(turn)["input_ids"] for turn in turns] for turns in told]
    own = type(model).generate

    def generate(input_ids: torch.Tensor, logits_processor: list[Any], **given: Any) -> torch.Tensor:
        speaking = [k for k, turns in enumerate(left) if turns]
        assert len(speaking) == len(input_ids)
        processors = [*logits_processor, Forced([left[k].pop(0) for k in speaking], input_ids.shape[1])]
        return own(model, input_ids=input_ids, logits_processor=processors, **given)

    return generate


@trial("adapter", f"adapters.trl: rollout_func plays {MATCHES} matches, token by token, and learns from one update")
def _() -> str:
    torch.manual_seed(0)
    words, folder = tokenizer(), tempfile.TemporaryDirectory()
    words.chat_template = None  # plain text; what a template adds is tested without TRL
    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads: dict[str, Any] = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 4096}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(words), eos_token_id=words.eos_token_id, **sizes, **heads))
    alone = [played_alone(seed, prompt="plain") for seed in range(MATCHES)]
    batches = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": MATCHES // 8, "num_generations": 2}
    quiet: dict[str, Any] = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "logging_steps": 1}
    settings = GRPOConfig(
        folder.name, use_cpu=True, shuffle_dataset=False, learning_rate=0.01, max_steps=1, temperature=0.7,
        max_completion_length=2500, bf16=False, **batches, **quiet,
    )  # fmt: skip
    before = copy.deepcopy(model)  # the trainer wraps what it is given
    play, seen = rollout(ID, prompt="plain"), []

    def watched(prompts: list[str], trainer: GRPOTrainer) -> Any:
        # TRL asks for a group twice; here each of its rollouts is a match of its own.
        assert prompts == [str(k) for k in range(MATCHES // 2) for _ in range(2)]
        seen.append(play([str(seed) for seed in range(MATCHES)], trainer))
        return seen[-1]

    rows = Dataset.from_list([{"prompt": str(seed)} for seed in range(MATCHES // 2)])
    trainer = GRPOTrainer(model, match_return, settings, rows, processing_class=words, rollout_func=watched)
    trainer.model.generate = forced_generate(trainer.model, words, [said for said, _, _ in alone])
    check_tokens = partial(check_tokens_of, words, before, settings.temperature)
    trainer.train()
    [found] = seen
    for k, (said, texts, _) in enumerate(alone):
        row = {name: found[name][k] for name in ("prompt_ids", "completion_ids", "env_mask", "logprobs")}
        check_tokens(said, texts, **row)
    assert not torch.equal(before.lm_head.weight, trainer.model.lm_head.weight)
    folder.cleanup()
    return check_returns(found["match_return"], [total for _, _, total in alone])


def check_tokens_of(
    words: PreTrainedTokenizerFast,
    model: LlamaForCausalLM,
    temperature: float,
    said: list[str],
    texts: list[str],
    prompt_ids: list[int],
    completion_ids: list[int],
    env_mask: list[int],
    logprobs: list[float],
) -> None:
    """The tokens of a match: what was said is the model's, with its probabilities, and all else the environment's."""
    assert prompt_ids == words(texts[0])["input_ids"]
    segments = [(turn, 1) for turn in said]
    heard = [*texts[1:-1], ""]  # nobody reads what comes behind the last turn
    wanted = [pair for turn, text in zip(segments, heard, strict=True) for pair in (turn, (text, 0))]
    ids = [number for text, _ in wanted for number in words(text)["input_ids"]]
    mask = [m for text, m in wanted for _ in words(text)["input_ids"]]
    assert (completion_ids, env_mask) == ([*ids, words.eos_token_id], [*mask, 0])
    with torch.no_grad():
        logits = model(torch.tensor([prompt_ids + completion_ids])).logits[0, len(prompt_ids) - 1 : -1]
    exact = (logits / temperature).log_softmax(-1)[torch.arange(len(completion_ids)), completion_ids]
    exact *= torch.tensor(env_mask)
    assert torch.allclose(exact, torch.tensor(logprobs), atol=1e-4), (exact - torch.tensor(logprobs)).abs().max()


@trial("adapter", "adapters.trl: rollout_func samples")
def _() -> str:
    torch.manual_seed(0)
    words, folder = tokenizer(), tempfile.TemporaryDirectory()
    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8}
    heads: dict[str, Any] = {"num_attention_heads": 2, "num_key_value_heads": 1}
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(words), eos_token_id=words.eos_token_id, **sizes, **heads))
    quiet: dict[str, Any] = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "logging_steps": 1}
    batch: dict[str, Any] = {"per_device_train_batch_size": 4, "num_generations": 2, "max_completion_length": 1500}
    settings = GRPOConfig(folder.name, use_cpu=True, max_steps=1, **batch, **quiet)
    rows = Dataset.from_list([{"prompt": str(seed)} for seed in range(2)])
    play = rollout(ID, "Search first.", turn_tokens=20, prompt="plain")
    rewards = [match_return, lambda completions, **_: [float(len(text)) for text in completions]]
    trainer = GRPOTrainer(model, rewards, settings, rows, processing_class=words, rollout_func=play)
    before = trainer.model.lm_head.weight.clone()
    trainer.train()
    logs = trainer.state.log_history[0]
    assert logs["rewards/match_return/mean"] == 0.0, logs
    assert 4 <= logs["completions/mean_length"] <= 4 * 20, "of the model's own tokens, in four turns"
    assert not torch.equal(before, trainer.model.lm_head.weight)
    folder.cleanup()
    return f"{logs['completions/mean_length']:g} tokens of its own a match"


if __name__ == "__main__":
    main("trl", "transformers", "torch")
