"""All ids of the suite, and ids that a user would register: two games with forbidden actions, one with other keywords.

A name of this module before an id lets Gymnasium import it first, also in other processes.
"""

import gymnasium

from palaestra import register

ONE, TWO, JOINT = "masked/Duel-v0", "masked/Pairs-v0", "joint/TeamPong-v0"
"""One against one with masks; two against two with masks; the two paddles of a team as one Discrete."""
ALL = tuple(id for id in gymnasium.registry if id.startswith("palaestra/"))
"""The ids of the suite."""
TEXTS = ("palaestra/SearchQA-Custom-v1",)
"""Those that see and answer texts."""
MODULE = "peers.libraries.more_ids"

register(ONE, "games.duel:game")
register(TWO, "games.duel:game", players=2)
gymnasium.register(
    JOINT, "palaestra.registry:make_env", kwargs={"game_id": "palaestra/TeamPong-v0", "choices": "discrete"}
)
