"""The learning figures: entries, their runs, tables and plots. ``python benchmarks/learn.py`` makes them."""
