"""Pictures: drawn without a display, a new array each time, without an effect on the match."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from palaestra.drawing.canvas import LETTER_SAMPLING, Canvas, large_font
from palaestra.testing.drivers import EnvDriver
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import difference, record_change, snapshot_view
from palaestra.testing.subject import Subject

SIZE = (200, 150)
"""Columns and rows of a picture of another size than the game's own."""
MOST_SECONDS = 0.5
"""Of the processor, for a picture."""


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
    for number in subject.rounds(3, 3, 5):
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
    is_same = np.array_equal(np.asarray(sim.draw(lane=1)), sim.render(1))
    require(is_same, "draw() gives another picture than render()")
    sized = subject.batch(render_size=SIZE)
    sized.reset(seed=seed)
    shape = sized.render().shape
    require(shape == (*SIZE[::-1], 3), f"render_size={SIZE} gives a picture of {shape}")
    drawn, plain = EnvDriver(subject.env(render_mode="rgb_array"), seed), EnvDriver(subject.env(), seed)
    drawn.start()
    plain.start()
    for number in subject.rounds(3, 3, 5):
        picture = drawn.face.render()
        require(isinstance(picture, np.ndarray), f"Env.render() returns {type(picture).__name__}")
        one, other = drawn.play(), plain.play()
        require(one[1:-1] == other[1:-1], f"decision {number}: {one[1:4]} when drawn, {other[1:4]} when not")


@conformance(order=1202)
def texts_have_no_side_effects(subject: Subject) -> None:
    """The text of a match is repeatable, not empty, and changes no match: neither record nor results."""
    if subject.game.render_text is None:
        raise Skipped("the game has no text picture")
    sim = subject.batch(2)
    player = Player(sim)
    sim.reset(seed=subject.draw.seed())
    for number in subject.rounds(12, 20, 200):
        states, shown = sim.states.copy(), snapshot_view(sim)
        for lane in (0, 1):
            text = sim.render_text(lane)
            require(isinstance(text, str) and text.strip(), f"step {number}, lane {lane}: the text is {text!r}")
            place = f"step {number}: writing lane {lane}"
            for other in (0, 1):
                changed = record_change(sim, states, other)
                require(not changed, f"{place} changed the match record of lane {other}: {changed}")
            found = difference(subject.game, shown, snapshot_view(sim))
            require(not found, f"{place} changed {found}")
            require(sim.render_text(lane) == text, f"{place}: two texts of the same moment differ")
        player.play(sim)
        sim.step()


OVERHANG = 1
"""Pixels by which letters may reach beyond their place."""
LABEL = 2
"""Letters of what may stand on others: numbers and names of bodies, which touch each other."""


@conformance(order=1203)
def pictures_follow_the_match(subject: Subject) -> None:
    """Picture and text change as a match is played, soon enough; words of a picture stay on it, beside each other."""
    if reason := subject.why_not_drawn():
        raise Skipped(reason)
    sim = subject.batch(1)
    player = Player(sim)
    sim.reset(seed=subject.draw.seed())
    start = sim.render(0), sim.render_text(0)
    is_same, seconds = [True, True], list[float]()
    for number in subject.rounds(12, 20, 60):
        player.play(sim)
        sim.step()
        before = time.process_time()
        picture = sim.render(0)
        seconds.append(time.process_time() - before)
        slow = f"a picture takes {min(seconds):.2f} s of the processor, more than {MOST_SECONDS} s"
        require(number < 2 or min(seconds) <= MOST_SECONDS, slow)
        is_same = [is_same[0] and np.array_equal(picture, start[0]), is_same[1] and sim.render_text(0) == start[1]]
        _words_have_room(sim.draw(0), f"step {number + 1}")
    require(not is_same[0], f"the picture is the same after {len(seconds)} decisions")
    require(not is_same[1], f"the text is the same after {len(seconds)} decisions")


def _words_have_room(canvas: Any, place: str) -> None:
    """Words of a canvas are within it and not upon others; pictures that are arrays say nothing of their words."""
    if not isinstance(canvas, Canvas):
        return
    boxes = list[tuple[str, tuple[float, ...]]]()
    for (x, y), words, _, size, anchor in [*(canvas.layer.all_words() if canvas.layer else ()), *canvas.words]:
        box = large_font(size).getbbox(words, anchor=anchor)
        left, top, right, bottom = (edge / LETTER_SAMPLING for edge in box)
        box = (round(x) + left, round(y) + top, round(x) + right, round(y) + bottom)
        is_inside = min(box) >= -OVERHANG and box[2] <= canvas.width + OVERHANG and box[3] <= canvas.height + OVERHANG
        require(is_inside, f"{place}: {words!r} at {box} leaves its panel of {canvas.width} x {canvas.height} pixels")
        for others, other in boxes:
            across, down = (min(box[k + 2], other[k + 2]) - max(box[k], other[k]) for k in (0, 1))
            is_free = min(across, down) <= OVERHANG or words == others or min(len(words), len(others)) <= LABEL
            require(is_free, f"{place}: {words!r} stands upon {others!r}")
        boxes.append((words, box))
    for panel, _ in canvas.panels:
        _words_have_room(panel, place)
