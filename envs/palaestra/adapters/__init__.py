"""Views on a `palaestra.core.simulation.Simulation` for the libraries that learn.

Each module names one library, is imported only when asked for, and says which extra brings it if it is missing.
"""
