"""Compiled helpers that families share: small functions of numbers and arrays, called from the hooks of any game.

A helper is a plain function without a decorator: the linker compiles it with the hooks that call it
(`palaestra.core.compile.linker`). It knows no game, no match record and no `world`, allocates nothing, and writes what
it finds into arrays that its caller owns. It imports NumPy and the standard library alone, so that the core stays below
every family and this package beside it.

One file a subject, named after it:

* `scalars`: bounds of one number;
* `angles`: arithmetic on the circle;
* `vectors`: lengths and distances;
* `pairing`: assignment of targets to agents;
* `networks`: a perceptron whose weights are data.

A helper moves here when two games of different families use it, or two games of one family and nothing in it belongs
to them. A search on a graph, a line of sight on a grid and the like get a file of their own in the same way.
"""
