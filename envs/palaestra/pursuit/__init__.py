"""Pursuit: teams move along the edges of a graph, hunt evaders, guard exits, or fight another team."""
