"""Counting kernels and bytes on IREE's flow IR: the yardstick, the same for plain IREE and for us."""

from smartmem_mlir.iree.flow.summary import Copy, FlowSummary, Kernel

__all__ = ["Copy", "FlowSummary", "Kernel"]
