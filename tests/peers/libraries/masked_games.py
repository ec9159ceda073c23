"""Two games with forbidden actions, as a third party would register them: one against one, and two against two."""

from palaestra import register

ONE, TWO = "masked/Duel-v0", "masked/Teams-v0"
BY_MODULE = f"peers.libraries.masked_games:{ONE}"
"""Form of the id that imports this module first."""

register(ONE, "games.duel:game")
register(TWO, "games.duel:game", players=2)
