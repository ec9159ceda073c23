"""Teams: two-team zero-sum games, many small enough to be solved exactly, and the cooperative particle tasks."""

from palaestra.game import Family, Page, Preset, presets

SPARSE = {"actions": "continuous", "reward": "first"}
"""Of the particle tasks of exploration."""

FAMILY = Family(
    "teams",
    rows=(
        *presets(
            "palaestra.games.teams.matrix:game",
            Preset("palaestra/TeamMatrix-v0", "matrix games of two against two, with known answers"),
        ),
        *presets(
            "palaestra.games.teams.trap:game",
            Preset("palaestra/TeamTrap-v0", "two agents choose a number each: a wide hill hides a narrow peak"),
        ),
        *presets(
            "palaestra.games.teams.soccer:game",
            Preset("palaestra/GridSoccer-v0", "Littman's soccer, one against one on a grid"),
            Preset(
                "palaestra/TeamGridSoccer-3x3-v0",
                "soccer two against two on 3 by 3 cells, with passes",
                rows=3,
                columns=3,
                players=2,
            ),
            Preset(
                "palaestra/TeamGridSoccer-3x4-v0",
                "soccer two against two on 3 by 4 cells, with passes",
                rows=3,
                columns=4,
                players=2,
            ),
            Preset(
                "palaestra/TeamGridSoccer-4x5-v0",
                "soccer two against two on 4 by 5 cells, with passes",
                rows=4,
                columns=5,
                players=2,
            ),
            page=Page("GridSoccer", "Littman's soccer on a grid, one against one or two against two"),
        ),
        *presets(
            "palaestra.games.teams.pong:game",
            Preset("palaestra/TeamPong-v0", "pong between two pairs of paddles, front and back"),
        ),
        *presets(
            "palaestra.games.teams.tag:game",
            Preset("palaestra/TeamTag-v0", "three chasers hunt a faster runner in a walled square"),
            Preset(
                "palaestra/TeamTag-2v2-v0",
                "two chasers hunt two faster runners in a walled square",
                chasers=2,
                runners=2,
            ),
            page=Page("TeamTag", "chasers hunt faster runners in a walled square"),
        ),
        *presets(
            "palaestra.games.teams.keep_away:game",
            Preset("palaestra/TeamKeepAway-v0", "two keep two away from a place that only these know"),
        ),
        *presets(
            "palaestra.games.teams.push:game",
            Preset("palaestra/TeamPush-v0", "two against two push a heavy puck across the line"),
        ),
        *presets(
            "palaestra.games.teams.arena_duel:game",
            Preset("palaestra/ArenaDuel2v2-v0", "two against two robots with turrets and macro moves, among obstacles"),
        ),
        *presets(
            "palaestra.games.teams.spread:game",
            Preset("palaestra/Spread-v0", "three agents cover three landmarks together"),
            Preset(
                "palaestra/SparseSpread-2-v0",
                "two agents are paid once, when both landmarks are covered",
                agents=2,
                cover_radius_m=0.2,
                **SPARSE,
            ),
            Preset(
                "palaestra/SparseSpread-v0",
                "three agents are paid once, when all landmarks are covered",
                cover_radius_m=0.2,
                **SPARSE,
            ),
            Preset(
                "palaestra/SparseSpread-5-v0",
                "five agents are paid once, when all landmarks are covered",
                agents=5,
                cover_radius_m=0.3,
                **SPARSE,
            ),
            page=Page("Spread", "agents cover landmarks together"),
        ),
        *presets(
            "palaestra.games.teams.reference:game",
            Preset("palaestra/Reference-v0", "two agents send each other their goals"),
            Preset(
                "palaestra/SparseReference-v0",
                "two agents are paid once, when both are at the goals that the other knows",
                goal_radius_m=0.25,
                **SPARSE,
            ),
            page=Page("Reference", "two agents send each other their goals"),
        ),
        *presets(
            "palaestra.games.teams.speaker_listener:game",
            Preset("palaestra/SpeakerListener-v0", "one agent can only talk, the other can only walk"),
            Preset(
                "palaestra/SparseSpeakerListener-v0",
                "one can only talk, the other only walk, and both are paid once, at the goal",
                goal_radius_m=0.04,
                **SPARSE,
            ),
            page=Page("SpeakerListener", "one agent can only talk, the other can only walk"),
        ),
    ),
    order=1,
    demo=("palaestra/TeamPong-v0", "tracker", "chaser"),
    speed=[(f"palaestra/{name}-v0", "random", 1e6) for name in ("TeamPong", "GridSoccer", "TeamTag", "Spread")],
)
