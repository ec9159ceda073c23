"""Codecs: what they say lies in the spaces they declare, and what they cannot understand moves nothing."""

from __future__ import annotations

from palaestra.testing.actions import Untouched
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player
from palaestra.testing.subject import Subject

SEED = 70
GIBBERISH = "zzz no such action 8f3a"


@conformance()
def codecs_keep_to_their_spaces(subject: Subject) -> None:
    """Every codec encodes each agent's observations into its space and refuses what it cannot decode (ValueError)."""
    if not subject.game.codecs:
        raise Skipped("the game has no codecs")
    count = 0
    for name in subject.game.codecs:
        face = subject.parallel(codec=name, mask=None)
        face.reset(seed=SEED)
        player = Player(face.sim)
        for number in subject.rounds(15, 60, 600):
            for agent in face.possible_agents:
                said = face._ports[agent].observe_lane()
                place = f"codec {name!r}, {agent}, step {number}"
                require(said in face.observation_space(agent), f"{place}: {said!r} is not in its space")
                count += 1
            player.play(face.sim)
            face.sim.step()
            if face.sim.terminated[0] or face.sim.truncated[0]:
                face.sim.reset()
        face.reset(seed=SEED)
        untouched = Untouched(face.sim)
        what = f"codec {name!r}: the action {GIBBERISH!r}"
        try:
            face.step(dict.fromkeys(face.agents, GIBBERISH))
        except ValueError:
            untouched.check(what)
        except Exception as error:
            require(False, f"{what} raises {type(error).__name__} ({error}), not ValueError")
        else:
            require(False, f"{what} is not refused")
    subject.note(f"{count} observations of {', '.join(subject.game.codecs)}")
