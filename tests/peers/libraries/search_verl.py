# pyright: reportMissingImports=false
"""verl: its tool registry, data set and reward on what palaestra writes and serves."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from peers.libraries.search_turns import ID, MATCHES, check_returns, played_alone, script
from peers.libraries.trials import main, trial
from verl.tools.tool_registry import load_all_tools
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.utils.import_utils import load_extern_object

from palaestra.adapters.retrieval_server import Server
from palaestra.cli.serve import worlds_of
from palaestra.games.search.verl import tool_config


async def played(tool: Any, row: dict[str, Any]) -> str:
    """What a model writes and reads in a match, as verl's loop of tool calls goes: an instance for each call."""
    seed, text = row["extra_info"]["seed"], ""
    kwargs = row["tools_kwargs"]["search"]["create_kwargs"]
    for turn in script(seed, {"path": row["extra_info"]["path"], "answers": row["answers"]}):
        text += turn
        if turn.startswith("<search>"):
            instance, _ = await tool.create(create_kwargs=kwargs)
            query = turn.removeprefix("<search>").removesuffix("</search>")
            response, reward, _ = await tool.execute(instance, {"query_list": [query]})
            await tool.release(instance)
            assert reward == 0.0
            assert response.text.startswith('Doc 1(Title: "'), response.text
            text += response.text
    return text


@trial("adapter", f"games.search.verl: {MATCHES} matches by its tool, data set and reward")
def _() -> str:
    with tempfile.TemporaryDirectory() as folder, Server(worlds=worlds_of(ID, {}), port=0) as server:
        rows, config = Path(folder, "rows.parquet"), Path(folder, "search.yaml")
        asked = ["questions", ID, "--format", "parquet", "-n", str(MATCHES), "-o", str(rows)]
        subprocess.run([sys.executable, "-m", "palaestra", *asked], check=True)
        config.write_text(tool_config(f"{server.address}/retrieve"))
        [tool] = load_all_tools(str(config), None)
        settings = OmegaConf.create({"max_prompt_length": 4096, "cache_dir": folder, "filter_overlong_prompts": False})
        dataset = RLHFDataset(str(rows), None, settings)  # the tokenizer is for filters alone
        assert len(dataset) == MATCHES
        compute_score = load_extern_object("pkg://palaestra.games.search.verl", "compute_score")
        scores, alone = [], []
        for row in (dataset[k] for k in range(MATCHES)):
            assert row["raw_prompt"] == row["prompt"]
            text = asyncio.run(played(tool, row))
            scores.append(compute_score(row["data_source"], text, row["reward_model"]["ground_truth"], {}))
            alone.append(played_alone(row["seed"], **row["extra_info"]["keywords"])[2])
    return check_returns(scores, alone)


if __name__ == "__main__":
    main("verl", "ray")
