"""ONNX models as static, checked graphs that torch-mlir can import without being wrong.

The stages, each in its module: `reader` (file -> skeleton and lazy weights), `structure` (names, order, local
functions), `static_dims`, `float_type`, `specialize` (one forward walk: infer, fold, rewrite), `emit` (the
graph that goes to torch-mlir).
"""
