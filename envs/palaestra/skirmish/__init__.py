"""Skirmish: battles of small armies whose numbers of agents and actions change during a match.

What the units can do is a ruleset (`palaestra.skirmish.ruleset`), where they meet is a map
(`palaestra.skirmish.maps`). Both are versioned files, bundled ones or your own. Distances are in cells, times in
seconds of 16 loops; a decision lasts 8 loops. Red is the team that learns, blue follows an order. The rules are in
`palaestra.skirmish.battle`, the environments in `palaestra.skirmish.games`: a map of yours becomes one by
``palaestra.register("mine/Crossing-v0", "palaestra.skirmish.games:battle", map="crossing.json")``.
"""

from palaestra.core.catalog import Row, presets

_GAMES = "palaestra.skirmish.games"
_BATTLES = {
    "3m": "three marines against three",
    "8m": "eight marines against eight",
    "25m": "25 marines against 25",
    "5m_vs_6m": "five marines against six",
    "8m_vs_9m": "eight marines against nine",
    "10m_vs_11m": "ten marines against eleven",
    "27m_vs_30m": "27 marines against 30",
    "MMM": "a medivac, two marauders and seven marines a side",
    "MMM2": "a medivac, two marauders and seven marines against one, three and eight",
    "2s3z": "two stalkers and three zealots a side",
    "3s5z": "three stalkers and five zealots a side",
    "3s5z_vs_3s6z": "three stalkers and five zealots against three and six",
    "3s_vs_3z": "three stalkers against three zealots",
    "3s_vs_4z": "three stalkers against four zealots",
    "3s_vs_5z": "three stalkers against five zealots",
    "1c3s5z": "a colossus, three stalkers and five zealots a side",
    "2m_vs_1z": "two marines against a zealot",
    "corridor": "six zealots against 24 zerglings at a choke",
    "6h_vs_8z": "six hydralisks against eight zealots",
    "2s_vs_1sc": "two stalkers against a spine crawler",
    "so_many_baneling": "seven zealots against 32 banelings",
    "bane_vs_bane": "20 zerglings and four banelings a side",
    "2c_vs_64zg": "two colossi against 64 zerglings, among cliffs",
}

ROWS: tuple[Row, ...] = (
    *presets(
        "Skirmish",
        f"{_GAMES}:battle",
        "skirmish",
        "battles on SMAC's 23 maps without a game client, against scripts",
        {f"palaestra/Skirmish-{name}-v0": (about, {"map": name}) for name, about in _BATTLES.items()},
    ),
    *presets(
        "SkirmishGen",
        f"{_GAMES}:generated",
        "skirmish",
        "battles whose units and places are drawn in each match, after SMACv2",
        {
            "palaestra/SkirmishGen-v0": ("kinds and places drawn in each match", {}),
            **{
                f"palaestra/SkirmishGen-{race}5v5-v0": (f"five against five of race {race}, drawn", {"race": race})
                for race in "abc"
            },
        },
    ),
    *presets(
        "SkirmishWaves",
        f"{_GAMES}:scenario",
        "skirmish",
        "battles to which units come late, with names of their own",
        {
            "palaestra/SkirmishUnshaped-Waves-v0": ("reinforcements of both sides", {"map": "waves"}),
            "palaestra/SkirmishUnshaped-Late-v0": ("allies that arrive at random times", {"map": "late"}),
        },
    ),
    *presets(
        "SkirmishAbilities",
        f"{_GAMES}:abilities",
        "skirmish",
        "a battle whose units gain and lose abilities",
        {"palaestra/SkirmishUnshaped-Abilities-v0": ("a battle whose units gain and lose abilities", {})},
    ),
    *presets(
        "SkirmishMaps",
        f"{_GAMES}:drawn_maps",
        "skirmish",
        "each match is played on another map, by another number of units",
        {"palaestra/SkirmishUnshaped-Maps-v0": ("each match is played on another map, by another number of units", {})},
    ),
    *presets(
        "SkirmishTurncoats",
        f"{_GAMES}:turncoats",
        "skirmish",
        "a battle in which units change sides",
        {"palaestra/SkirmishUnshaped-Turncoats-v0": ("a battle in which units change sides", {})},
    ),
    Row(
        "palaestra/SkirmishDuel-v0",
        f"{_GAMES}:duel",
        "skirmish",
        "a battle in which both sides learn, zero-sum",
    ),
    *presets(
        "Drill",
        f"{_GAMES}:drill",
        "skirmish",
        "exercises of movement, search and battle, after pysc2's mini-games",
        {
            "palaestra/Drill-Beacon-v0": ("a marine goes to beacons", {"name": "beacon"}),
            "palaestra/Drill-Shards-v0": ("two marines collect shards", {"name": "shards"}),
            "palaestra/Drill-Hunt-v0": ("three marines find zerglings", {"name": "hunt"}),
            "palaestra/Drill-Waves-v0": ("marines against waves of roaches", {"name": "waves"}),
            "palaestra/Drill-SplashWaves-v0": (
                "marines against waves of zerglings and banelings",
                {"name": "splash_waves"},
            ),
        },
    ),
)
