"""An interrupt at a chosen moment of a call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np


def call_interrupted(call: Callable[[], Any], number: int, look: Callable[[], Any] = lambda: None) -> tuple[bool, Any]:
    """Calls something and raises KeyboardInterrupt at the entry of the Python function ``number`` that it enters.

    Args:
        call: What is interrupted.
        number: Functions that are entered before; the first is ``call`` itself.
        look: Called while the exception is alive.

    Returns:
        Whether there were so many functions to enter, and what ``look`` returned then.
    """
    entries = iter(range(number))

    def interrupt(frame: Any, event: str, _: Any) -> None:
        if event == "call" and next(entries, None) is None:
            sys.setprofile(None)
            raise KeyboardInterrupt

    with np.errstate():  # an interrupt as NumPy's own `errstate` ends leaves its settings behind
        try:
            sys.setprofile(interrupt)
            call()
        except KeyboardInterrupt:
            sys.setprofile(None)
            return True, look()
        finally:
            sys.setprofile(None)
    return False, None
