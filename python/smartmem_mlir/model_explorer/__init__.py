"""An extension of Model Explorer (ai-edge-model-explorer) that opens this project's `.mlir` files of every stage.

`model-explorer --extensions=smartmem_mlir.model_explorer`
"""
