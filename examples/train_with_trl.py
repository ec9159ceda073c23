"""GRPO of TRL on SearchQA: a language model learns to search and to answer by calling tools.

    pip install trl
    python examples/train_with_trl.py --model Qwen/Qwen3-0.6B --steps 200

``--model`` is a folder or a name of Hugging Face; its chat template has to know tools. TRL takes the public methods of
`Environment` as tools, ``search(query)`` and ``answer(text)``, and asks its ``get_reward()`` after each rollout. Rows
of the dataset have a seed, so that all rollouts of a group answer one question: without a dataset each would draw its
own, and a group would compare different questions.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from palaestra.adapters.trl import environment

ID, TURNS = "palaestra/SearchQA-2Hop-v1", 4
INSTRUCTIONS = "Search for the facts that you need, then answer by the tool. "
"""The question follows it in the same message."""
MISSING = "this example needs TRL 1.16 or later, which palaestra does not install: pip install trl"
Environment = environment(ID, max_turns=TURNS)


def questions(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Rows of a dataset: the beginning of a prompt, and the seed that asks the question.

    Args:
        count: Number of questions.
        first: Seed of the first one; the next ones count up.
    """
    prompt = [{"role": "user", "content": INSTRUCTIONS}]
    return [{"prompt": prompt, "seed": seed} for seed in range(first, first + count)]


def main(argv: Sequence[str] | None = None) -> None:
    """Trains, and says how the reward went.

    Args:
        argv: Words of the command line; those of the process if None.

    Raises:
        SystemExit: TRL is not installed; names the command that installs it.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", required=True, help="folder or Hugging Face's name of a causal model")
    parser.add_argument("--steps", type=int, default=200, help="gradient steps")
    parser.add_argument("--questions", type=int, default=4, help="questions of a step")
    parser.add_argument("--group", type=int, default=8, help="rollouts of a question")
    parser.add_argument("--max-tokens", type=int, default=1024, help="most tokens of a rollout, passages included")
    parser.add_argument("--learning-rate", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=0, help="of the run")
    parser.add_argument("--output", default="runs/trl", help="folder of the trained model")
    given = parser.parse_args(argv)
    try:
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer
    except ImportError as error:
        raise SystemExit(f"{MISSING} (no module {error.name})") from error
    import torch  # TRL brings it

    has_gpu = torch.cuda.is_available()
    config = GRPOConfig(
        given.output,
        max_steps=given.steps,
        per_device_train_batch_size=given.group,
        gradient_accumulation_steps=given.questions,
        num_generations=given.group,
        max_completion_length=given.max_tokens,
        max_tool_calling_iterations=TURNS,
        learning_rate=given.learning_rate,
        seed=given.seed,
        use_cpu=not has_gpu,
        bf16=has_gpu,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
    )
    rows = Dataset.from_list(questions(given.steps * given.questions))
    trainer = GRPOTrainer(model=given.model, args=config, train_dataset=rows, environment_factory=Environment)
    trainer.train()
    trainer.save_model(given.output)
    rewards = [row["reward"] for row in trainer.state.log_history if "reward" in row]
    tenth = max(1, len(rewards) // 10)
    first, last = (sum(some) / tenth for some in (rewards[:tenth], rewards[-tenth:]))
    print(f"after {given.steps} steps: reward {last:.3f}, at the beginning {first:.3f}; {given.output} is the model")


if __name__ == "__main__":
    main()
