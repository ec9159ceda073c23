"""The canvas that pictures of matches are drawn on, and what draws on it."""
