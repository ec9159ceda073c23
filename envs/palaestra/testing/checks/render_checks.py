"""Pictures: drawn without a display, a new array each time, without an effect on the match."""

from __future__ import annotations

import numpy as np

from palaestra.testing.drivers import EnvDriver
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import record_change
from palaestra.testing.subject import Subject


@conformance(order=1201)
def render_has_no_side_effects(subject: Subject) -> None:
    """A picture is uint8 [H, W, 3] of one size, shows something, is drawn anew each time, and changes no match."""
    if reason := subject.why_not_drawn():
        raise Skipped(reason)
    sim = subject.batch(2)
    player = Player(sim)
    seed = subject.draw.seed()
    sim.reset(seed=seed)
    first = sim.render(0)
    for number in range(5):
        before = sim.states.copy()
        picture, again = sim.render(1), sim.render(1)
        kind = getattr(picture, "dtype", type(picture).__name__), getattr(picture, "shape", ())
        fits = kind[0] == np.uint8 and len(kind[1]) == 3 and kind[1][2] == 3 and kind[1] == first.shape
        require(fits, f"picture {number} is {kind[0]} {kind[1]}, not uint8 {first.shape[:2]} x 3")
        for lane in range(2):
            changed = record_change(sim, before, lane)
            require(not changed, f"step {number}: drawing lane 1 changed the match record of lane {lane}: {changed}")
        require(np.array_equal(picture, again), f"step {number}: two pictures of the same moment differ")
        require(not np.shares_memory(picture, again), f"step {number}: two pictures share their memory")
        require(picture.min() < picture.max(), f"step {number}: the picture is of one colour")
        player.play(sim)
        sim.step()
    drawn, plain = EnvDriver(subject.env(render_mode="rgb_array"), seed), EnvDriver(subject.env(), seed)
    drawn.start()
    plain.start()
    for number in range(5):
        picture = drawn.face.render()
        require(isinstance(picture, np.ndarray), f"Env.render() returns {type(picture).__name__}")
        one, other = drawn.play(), plain.play()
        require(one[1:-1] == other[1:-1], f"decision {number}: {one[1:4]} when drawn, {other[1:4]} when not")
