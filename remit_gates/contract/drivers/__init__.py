"""One module a framework, each run in that framework's own environment.

A driver imports the framework, the standard library and `_kit`; of the rest of this package
it may import only the gate's adapter for its framework, and that only for the gated column.
"""
