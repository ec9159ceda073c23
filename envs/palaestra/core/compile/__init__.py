"""From the hooks of a game to machine code: all that touches private parts of Numba, caches and messages."""
