"""The colours of all pictures, and how they are mixed."""

from __future__ import annotations

Color = tuple[int, ...]
"""Red, green, blue and, where it blends, opacity; each 0 to 255."""

BACKGROUND: Color = (13, 19, 26)
PANEL: Color = (20, 28, 37)
LINE: Color = (44, 57, 70)
MUTED: Color = (128, 145, 161)
TEXT: Color = (224, 231, 238)
TEAMS: tuple[Color, ...] = ((255, 112, 86), (88, 178, 255))
"""Red and blue: they differ in hue and in lightness with every common kind of colour vision."""
SIGNAL: Color = (255, 209, 92)
"""What demands attention, and every commanded value."""
SKY: Color = (58, 104, 146)
GROUND: Color = (104, 80, 58)


def blend(color: Color, other: Color, share: float) -> Color:
    """The colour that lies ``share`` of the way from one to the other."""
    return tuple(round(a + share * (b - a)) for a, b in zip(color[:3], other[:3], strict=True))


def fade(color: Color, opacity: float) -> Color:
    """The colour with an opacity, 0 to 1."""
    return (*color[:3], round(255 * min(max(opacity, 0.0), 1.0)))
