"""Every id: the page of a match has the score of `evaluate`, names for numbers, and the texts of games of texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from palaestra import make_batch, registry
from palaestra.evaluation.matches import EVALUATION_RUN, play_seeds
from palaestra.game import Choice
from palaestra.replay import Replay, frames, record
from palaestra.replay.agent_tables import AgentTables, shown_action, shown_field, text_codec
from palaestra.replay.headline import name_of
from palaestra.wrappers.transcript import text_ids

IDS = [id for id in registry.ROWS if id.startswith("palaestra/")]
SEED = EVALUATION_RUN << 32
HORIZON = 4
"""Decisions of the matches here."""


def game_of(id: str) -> Any:
    """The rules of an id; skips what needs a package or a keyword that is missing."""
    try:
        return registry.make_game(id)[0]
    except (ImportError, ValueError, TypeError) as error:
        pytest.skip(str(error)[:100])


def tables_of(replay: Replay) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a page, without pictures and before they are packed."""
    tables: Any = None
    rows = list[dict[str, np.ndarray]]()
    for number, sim in enumerate(frames(replay)):
        tables = tables or AgentTables(sim, 0, replay)
        rows.append(tables.rows(number - 1 if number else None))
    blocks = {name: np.stack([row[name] for row in rows]) for name in rows[-1]}
    return tables.header(dict(blocks)), blocks


def numbers_of(header: dict[str, Any]) -> list[dict[str, Any]]:
    """All fields that show numbers."""
    fields = [field for name in ("fields", "actions") for fields in header[name] for field in fields]
    return [*fields, *(c for field in fields for c in field.get("columns", ())), *header["match"]]


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
def test_the_page_of_a_match_has_the_score_of_its_evaluation_and_names_for_numbers(id: str):
    game = game_of(id)
    if len(game.teams) == 1 and not game.scripts:
        pytest.skip("nobody plays it by name")
    players = dict.fromkeys(game.teams, "random")
    header, blocks = tables_of(record(id, players, seed=SEED, horizon=HORIZON))
    sim = make_batch(id, 1, autoreset_mode="off", horizon=HORIZON)
    try:
        for team, player in players.items():
            sim.set_opponent(team, player)
        (result,) = play_seeds(sim, np.array([SEED], np.uint64), 0)
    finally:
        sim.close()
    score = np.cumsum(blocks["team_rewards"], axis=0)[-1]
    assert score[0] == result["return_a"]
    if len(score) == 2:
        assert score[1] == result["return_b"]
    assert len(blocks["rewards"]) == result["steps"] + 1

    for field in numbers_of(header):
        assert not field["unit"][:1].isdigit(), field
        assert field["factor"] > 0
    options = [field["options"] for fields in header["actions"] for field in fields]
    assert not [name for names in options for name in names or () if name.lstrip("-").isdigit()]
    if "option_names" in blocks:
        assert blocks["option_names"].shape[1] == sum(map(len, filter(None, options)))
    role = game.roles[0]
    if role.action and isinstance(role.action[0], Choice) and text_codec(game) is None and role.action[0].n <= 64:
        assert options[0] is None or len(options[0]) == role.action[0].n


UNNAMED = {
    "GridSoccer": ("own", "opponents", "ball"),
    "TeamGridSoccer": ("own", "opponents", "ball", "teammate"),
    "SearchQA": ("known",),
}
"""Fields of real numbers whose columns have no names: cells of a grid; what passages say of all pairs of entities."""


@pytest.mark.check
@pytest.mark.parametrize("id", IDS)
def test_each_number_of_a_field_has_a_name(id: str):
    game = game_of(id)
    unnamed = set[str]()
    for role in game.roles:
        real = [f for f in role.observation if np.dtype(f.dtype).kind == "f"]
        real_actions = [f for f in role.action if not isinstance(f, Choice)]
        for agent in range(len(role.agents)):
            shown = [*(shown_field(f, agent) for f in real), *(shown_action(f, agent) for f in real_actions)]
            columns = [column for field in shown for column in field.get("columns", (field,))]
            assert not [c for c in columns if len(set(c["parts"])) < len(c["parts"]) and "no joint" not in c["parts"]]
            unnamed |= {column["name"] for column in columns if column["size"] > 1 and not column["parts"]}
    assert unnamed <= set(UNNAMED.get(name_of(id).partition("-")[0], ()))


TEXTS = text_ids()


@pytest.mark.check
@pytest.mark.parametrize("id", TEXTS)
def test_the_texts_of_a_page_are_what_agents_read_and_their_turns(id: str):
    game = game_of(id)
    player = game.scripts[-1] if game.scripts else "random"
    header, blocks = tables_of(record(id, dict.fromkeys(game.teams, player), seed=3, form="text", horizon=12))
    strings = ["", *header["strings"]]
    read = [strings[number] for number in blocks["texts"].ravel() if number]
    turns = [strings[number] for number in blocks["turns"].ravel() if number]
    assert read[0]
    assert turns
    assert not blocks["turns"][0].any()
    assert header["actions"] == [[]] * len(game.agents)
    assert not [field for fields in header["fields"] for field in fields if field["size"] > 6]
