"""Search environments in verl: a tool that asks ``palaestra serve``, its configuration, and the score of an answer.

    palaestra serve SearchQA-2Hop
    palaestra questions SearchQA-2Hop --format parquet -o train.parquet --set "prompt=..."
    python -m palaestra.games.search.verl http://127.0.0.1:8000/retrieve > search.yaml

In verl's configuration, of version 0.9: ``actor_rollout_ref.rollout.multi_turn.tool_config_path=search.yaml``,
``actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent``, and of ``reward.custom_reward_function``
``path=pkg://palaestra.games.search.verl`` and ``name=compute_score``. Rows tell the tool the seed of their match, so
that worlds that each match draws are searched, too. Older versions have a tool of their own,
``verl.tools.search_tool.SearchTool``, that takes the same configuration, for fixed worlds alone.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

from palaestra.game import Importing
from palaestra.games.search.scoring import extract_answer, score

TIMEOUT_S = 60.0
"""Of a request; the server answers one that waits for longer than 30 s with an error."""
PASSAGE = "Doc {number}(Title: {title}) {text}"
"""As environments show it."""


def compute_score(
    data_source: str, solution_str: str, ground_truth: dict[str, Any], extra_info: Any = None, **_: Any
) -> float:
    """Exact match of what stands between ``<answer>`` and ``</answer>``, 0 without such a pair.

    Args:
        data_source: Of the row; not read.
        solution_str: What the model wrote.
        ground_truth: ``{"target": [...]}``, the right answers.
        extra_info: Of the row; not read.
        **_: Further arguments that verl may give.
    """
    answer = extract_answer(solution_str)
    return 0.0 if answer is None else float(score(answer, list(ground_truth["target"])).exact_match)


def tool_config(url: str, topk: int = 3) -> str:
    """The YAML of verl's ``tool_config_path``.

    Args:
        url: Of a server's ``/retrieve``.
        topk: Passages of a query.
    """
    return f"""tools:
  - class_name: palaestra.games.search.verl.SearchTool
    config:
      type: native
      retrieval_service_url: {json.dumps(url)}
      topk: {topk}
    tool_schema:
      type: function
      function:
        name: search
        description: Searches the passages.
        parameters:
          type: object
          properties:
            query_list:
              type: array
              items: {{type: string}}
              description: What to look for, one or more queries.
          required: [query_list]
"""


class SearchTool:
    """A tool of verl, with the methods of its ``BaseTool``. An instance lives for one call.

    Attributes:
        name: Under which the model calls it.
        tool_schema: Of its arguments.
    """

    def __init__(self, config: dict[str, Any], tool_schema: Any) -> None:
        """Takes what `tool_config` wrote.

        Raises:
            ImportError: verl is not installed.
        """
        with Importing("verl", "palaestra.games.search.verl needs verl, which is not installed: pip install verl"):
            from verl.tools.schemas import ToolResponse
        self.name, self.tool_schema, self._response = tool_schema.function.name, tool_schema, ToolResponse
        self._url, self._topk = config["retrieval_service_url"], config.get("topk", 3)
        self._seeds: dict[str, int | None] = {}

    async def create(
        self, instance_id: str | None = None, create_kwargs: dict[str, Any] | None = None, **_: Any
    ) -> tuple[str, Any]:
        """Makes an instance for a row, whose ``tools_kwargs`` may name a seed."""
        name = instance_id or uuid4().hex
        self._seeds[name] = (create_kwargs or {}).get("seed")
        return name, self._response()

    async def execute(self, instance_id: str, parameters: dict[str, Any], **_: Any) -> tuple[Any, float, dict]:
        """Searches for the queries of a call; what the model wrote wrongly is told to it.

        Raises:
            OSError: The server does not answer; verl tells the model so and logs it.
        """
        queries = parameters.get("query_list")
        if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries) or not queries:
            return self._response(text='Give "query_list", a list of queries.'), 0.0, {}
        seed = self._seeds[instance_id]
        body = {"queries": queries, "topk": self._topk} | ({} if seed is None else {"seed": seed})
        found = await asyncio.to_thread(ask, self._url, body)
        return self._response(text="\n\n".join(shown(passages) for passages in found)), 0.0, {}

    async def calc_reward(self, instance_id: str, **_: Any) -> float:
        """Searching pays nothing."""
        return 0.0

    async def release(self, instance_id: str, **_: Any) -> None:
        """Forgets an instance."""
        self._seeds.pop(instance_id, None)


def ask(url: str, body: dict[str, Any]) -> list[list[dict[str, str]]]:
    """The passages that a server's ``/retrieve`` finds for each query.

    Raises:
        OSError: It does not answer, or with an error.
    """
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer)["result"]


def shown(passages: list[dict[str, str]]) -> str:
    """The passages of a query as a text."""
    parts = [passage["contents"].partition("\n") for passage in passages]
    texts = (PASSAGE.format(number=k, title=title, text=text) for k, (title, _, text) in enumerate(parts, 1))
    return "\n".join(texts) or "Nothing was found."


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m palaestra.games.search.verl http://127.0.0.1:8000/retrieve > search.yaml")
    print(tool_config(sys.argv[1]), end="")
