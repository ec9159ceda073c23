"""Teams: two-team zero-sum games, many small enough to be solved exactly, and the cooperative particle tasks."""

from palaestra.core.catalog import Row, presets

ROWS: tuple[Row, ...] = (
    Row(
        "palaestra/TeamMatrix-v0",
        "palaestra.teams.matrix:game",
        "teams",
        "matrix games of two against two, with known answers",
    ),
    *presets(
        "GridSoccer",
        "palaestra.teams.soccer:game",
        "teams",
        "Littman's soccer on a grid, one against one or two against two",
        {
            "palaestra/GridSoccer-v0": ("Littman's soccer, one against one on a grid", {}),
            "palaestra/TeamGridSoccer-3x3-v0": (
                "soccer two against two on 3 by 3 cells, with passes",
                {"rows": 3, "columns": 3, "players": 2},
            ),
            "palaestra/TeamGridSoccer-3x4-v0": (
                "soccer two against two on 3 by 4 cells, with passes",
                {"rows": 3, "columns": 4, "players": 2},
            ),
            "palaestra/TeamGridSoccer-4x5-v0": (
                "soccer two against two on 4 by 5 cells, with passes",
                {"rows": 4, "columns": 5, "players": 2},
            ),
        },
    ),
    Row(
        "palaestra/TeamPong-v0",
        "palaestra.teams.pong:game",
        "teams",
        "pong between two pairs of paddles, front and back",
    ),
    *presets(
        "TeamTag",
        "palaestra.teams.tag:game",
        "teams",
        "chasers hunt faster runners in a walled square",
        {
            "palaestra/TeamTag-v0": ("three chasers hunt a faster runner in a walled square", {}),
            "palaestra/TeamTag-2v2-v0": (
                "two chasers hunt two faster runners in a walled square",
                {"chasers": 2, "runners": 2},
            ),
        },
    ),
    Row(
        "palaestra/TeamKeepAway-v0",
        "palaestra.teams.keep_away:game",
        "teams",
        "two keep two away from a place that only these know",
    ),
    Row(
        "palaestra/TeamPush-v0",
        "palaestra.teams.push:game",
        "teams",
        "two against two push a heavy puck across the line",
    ),
    Row(
        "palaestra/ArenaDuel2v2-v0",
        "palaestra.teams.arena_duel:game",
        "teams",
        "two against two robots with turrets and macro moves, among obstacles",
    ),
    Row(
        "palaestra/Spread-v0",
        "palaestra.teams.spread:game",
        "teams",
        "three agents cover three landmarks together",
    ),
    Row(
        "palaestra/Reference-v0",
        "palaestra.teams.reference:game",
        "teams",
        "two agents tell each other where to go",
    ),
    Row(
        "palaestra/SpeakerListener-v0",
        "palaestra.teams.speaker_listener:game",
        "teams",
        "one agent can only talk, the other can only walk",
    ),
)
