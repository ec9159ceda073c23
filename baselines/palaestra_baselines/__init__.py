"""Learning methods for palaestra: one file a paper, each readable from top to bottom.

A module here has a docstring (paper, claim, what is ours because the paper does not say), a dataclass ``Args`` and a
function ``train(args)``. Run it by ``python -m palaestra_baselines.<method>`` or ``palaestra train <method>``; both
print the options with ``--help``. What several methods share is in `palaestra_baselines.common`.

The suite itself never imports this package. It finds methods through the entry-point group ``palaestra.baselines``,
which is open to other packages as well.
"""
