"""Concert: games of simultaneous orders and supports, for two to seven powers (Diplomacy-rules compatible)."""

from palaestra.game import Family, Page, Preset, presets

FAMILY = Family(
    "concert",
    rows=(
        *presets(
            "palaestra.games.concert.concert_powers:game",
            Preset("palaestra/Concert-v0", "seven powers on the standard map"),
            page=Page("Concert", "seven powers give orders at once, on the standard map"),
        ),
        *presets(
            "palaestra.games.concert.concert_duel:game",
            Preset("palaestra/ConcertDuel-v0", "two powers on a map of 12 provinces"),
            Preset("palaestra/ConcertDuel-20-v0", "two powers on a map of 20 provinces", map="duel20"),
            Preset(
                "palaestra/ConcertDuel-FranceAustria-v0", "France against Austria on the standard map",
                map="france_austria",
            ),
            page=Page("ConcertDuel", "two powers give orders at once, zero-sum"),
        ),
    ),
    example="palaestra/ConcertDuel-v0",
    speed=[("palaestra/Concert-v0", "random", 15e3), ("palaestra/ConcertDuel-v0", "random", 50e3)],
)  # fmt: skip
