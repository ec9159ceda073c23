"""The mark of functions that are compiled into their callers."""

from __future__ import annotations

from palaestra.core.compile.reachable import author_options
from palaestra.kernels.inlining import inlined


def test_a_marked_function_is_compiled_into_its_callers_and_stays_a_plain_function():
    @inlined
    def twice(number):
        return 2 * number

    assert author_options(twice) == {"forceinline": True}
    assert twice(3) == 6
