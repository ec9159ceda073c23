"""Skirmish: battles of small armies whose numbers of agents and actions change during a match.

What the units can do is a ruleset (`palaestra.games.skirmish.ruleset`), where they meet is a map
(`palaestra.games.skirmish.maps`). Both are versioned files, bundled ones or your own. Distances are in cells, times in
seconds of 16 loops; a decision lasts 8 loops. Red is the team that learns, blue follows an order. The rules are in
`palaestra.games.skirmish.battle`, the environments in `palaestra.games.skirmish.games`: a map of yours becomes one by
``palaestra.register("mine/Crossing-v0", "palaestra.games.skirmish.games:battle", map="crossing.json")``.
"""

from palaestra.game import Family, Page, Preset, presets


def _battle(name: str, about: str) -> Preset:
    """The battle on a map of SMAC."""
    return Preset(f"palaestra/Skirmish-{name}-v0", about, map=name)


FAMILY = Family(
    "skirmish",
    rows=(
        *presets(
            "palaestra.games.skirmish.games:battle",
            _battle("3m", "three marines against three"),
            _battle("8m", "eight marines against eight"),
            _battle("25m", "25 marines against 25"),
            _battle("5m_vs_6m", "five marines against six"),
            _battle("8m_vs_9m", "eight marines against nine"),
            _battle("10m_vs_11m", "ten marines against eleven"),
            _battle("27m_vs_30m", "27 marines against 30"),
            _battle("MMM", "a medivac, two marauders and seven marines a side"),
            _battle("MMM2", "a medivac, two marauders and seven marines against one, three and eight"),
            _battle("2s3z", "two stalkers and three zealots a side"),
            _battle("3s5z", "three stalkers and five zealots a side"),
            _battle("3s5z_vs_3s6z", "three stalkers and five zealots against three and six"),
            _battle("3s_vs_3z", "three stalkers against three zealots"),
            _battle("3s_vs_4z", "three stalkers against four zealots"),
            _battle("3s_vs_5z", "three stalkers against five zealots"),
            _battle("1c3s5z", "a colossus, three stalkers and five zealots a side"),
            _battle("2m_vs_1z", "two marines against a zealot"),
            _battle("corridor", "six zealots against 24 zerglings at a choke"),
            _battle("6h_vs_8z", "six hydralisks against eight zealots"),
            _battle("2s_vs_1sc", "two stalkers against a spine crawler"),
            _battle("so_many_baneling", "seven zealots against 32 banelings"),
            _battle("bane_vs_bane", "20 zerglings and four banelings a side"),
            _battle("2c_vs_64zg", "two colossi against 64 zerglings, among cliffs"),
            page=Page("Skirmish", "battles on SMAC's 23 maps without a game client, against scripts"),
        ),
        *presets(
            "palaestra.games.skirmish.games:generated",
            Preset("palaestra/SkirmishGen-v0", "kinds and places drawn in each match"),
            Preset("palaestra/SkirmishGen-a5v5-v0", "five against five of race a, drawn", race="a"),
            Preset("palaestra/SkirmishGen-b5v5-v0", "five against five of race b, drawn", race="b"),
            Preset("palaestra/SkirmishGen-c5v5-v0", "five against five of race c, drawn", race="c"),
            page=Page("SkirmishGen", "battles whose units and places are drawn in each match, after SMACv2"),
        ),
        *presets(
            "palaestra.games.skirmish.games:scenario",
            Preset("palaestra/SkirmishUnshaped-Waves-v0", "reinforcements of both sides", map="waves"),
            Preset("palaestra/SkirmishUnshaped-Late-v0", "allies that arrive at random times", map="late"),
            page=Page("SkirmishWaves", "battles with reinforcements, as agents of their own"),
        ),
        *presets(
            "palaestra.games.skirmish.games:abilities",
            Preset("palaestra/SkirmishUnshaped-Abilities-v0", "a battle whose units gain and lose abilities"),
            page=Page("SkirmishAbilities"),
        ),
        *presets(
            "palaestra.games.skirmish.games:drawn_maps",
            Preset(
                "palaestra/SkirmishUnshaped-Maps-v0", "each match is played on another map, by another number of units"
            ),
            page=Page("SkirmishMaps"),
        ),
        *presets(
            "palaestra.games.skirmish.games:turncoats",
            Preset("palaestra/SkirmishUnshaped-Turncoats-v0", "a battle in which units change sides"),
            page=Page("SkirmishTurncoats"),
        ),
        *presets(
            "palaestra.games.skirmish.games:duel",
            Preset("palaestra/SkirmishDuel-v0", "a battle in which both sides learn, zero-sum"),
        ),
        *presets(
            "palaestra.games.skirmish.games:drill",
            Preset("palaestra/Drill-Beacon-v0", "a marine goes to beacons", name="beacon"),
            Preset("palaestra/Drill-Shards-v0", "two marines collect shards", name="shards"),
            Preset("palaestra/Drill-Hunt-v0", "three marines find zerglings", name="hunt"),
            Preset("palaestra/Drill-Waves-v0", "marines against waves of roaches", name="waves"),
            Preset(
                "palaestra/Drill-SplashWaves-v0",
                "marines against waves of zerglings and banelings",
                name="splash_waves",
            ),
            page=Page("Drill", "exercises of movement, search and battle, after pysc2's mini-games"),
        ),
    ),
    order=3,
    players=("focus_fire", "builtin"),
)
