"""Simulations and their parts: buffers, parameters, opponents, snapshots, worker processes, engines outside."""
