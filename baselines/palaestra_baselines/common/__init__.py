"""The few parts that several methods share: saved policies, curves with intervals, progress."""
