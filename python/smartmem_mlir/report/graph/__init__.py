"""A model as a graph, before and after compilation, for people to look at."""
