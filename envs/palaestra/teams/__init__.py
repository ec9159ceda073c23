"""Teams: two-team zero-sum games, many of them small enough to be solved exactly, and the cooperative particle tasks."""

from palaestra.core.catalog import Row

ROWS: tuple[Row, ...] = ()
