"""One file a network; each has `build(small)`, which returns it with its default initialisation.

Those written here follow the publications named in their docstrings. They compute what the publications describe at
inference: dropout and stochastic depth, which do nothing then, are left out.
"""
