"""A family of one small game that offers something to every service; `tests/cli/test_families.py` puts it in."""

from palaestra.game import Family, Page, Preset, presets

COINS = "palaestra.games.toy_family.coins"

FAMILY = Family(
    "toy_family",
    rows=presets(
        f"{COINS}:game",
        Preset("toy/Coins-v0", "guess which side of a coin is up"),
        Preset("toy/Coins-Three-v0", "guess three times", coins=3),
        page=Page("Coins", "guess which side is up"),
    ),
    needs={"toy-engine": "toys[engine]"},
    example="toy/Coins-Three-v0",
    speed=[("toy/Coins-v0", "random", 1e6)],
    exports={"coins": ("the sides of the coins", f"{COINS}:write_sides")},
    questions={f"{COINS}:game": COINS},
    corpus=f"{COINS}:read_index",
    exact={"guessing_chance": f"{COINS}:guessing_chance"},
)
