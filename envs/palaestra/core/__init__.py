"""The engine room: matches as arrays, the one batch loop, and the faces. Knows no game."""
