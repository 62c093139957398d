"""The choice of one layout per tensor for a whole function, without IR: graph, candidates, costs, solver."""
