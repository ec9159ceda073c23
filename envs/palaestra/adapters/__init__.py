"""Views on a `palaestra.core.run.simulation.Simulation` for the libraries that learn.

Each module names one library, is imported only when asked for, and names its extra if it is missing.
"""
