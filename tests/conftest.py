"""What holds for all tests: no window, no sound, no oversubscribed cores, no random examples."""

import os

from hypothesis import settings

# Before anything imports pygame, matplotlib or torch.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples in every run: a red test is red for everybody. No deadline: the first call of a kernel compiles it.
settings.register_profile("palaestra", derandomize=True, deadline=None)
settings.load_profile("palaestra")
