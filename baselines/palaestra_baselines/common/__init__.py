"""The few parts that several methods share: saved policies and curves with intervals."""
