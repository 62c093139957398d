"""Forms of operators that real models have and ONNX's backend tests do not: other opsets, ranks, sizes, attributes.

These the importer replaces; `kept_forms` has those that go to torch-mlir as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from onnx_cases import single, value

I64 = TensorProto.INT64
F16 = TensorProto.FLOAT16
U8 = TensorProto.UINT8
RNG = np.random.default_rng(0)


def f32(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def i64(*numbers: int) -> Any:
    return np.asarray(numbers, dtype=np.int64)


def resize(
    shape: list[int], *, scales: list[float] | None = None, sizes: list[int] | None = None, **attributes: Any
) -> Any:
    empty = np.zeros(0, np.float32) if attributes.get("opset", 18) < 13 else None  # operands were not optional
    operands = {
        "x": value("x", shape),
        "roi": empty,
        "scales": np.asarray(scales, dtype=np.float32) if scales else empty,
        "sizes": np.asarray(sizes, dtype=np.int64) if sizes else None,
    }
    if sizes is None:
        del operands["sizes"]
    return single("Resize", operands, **attributes)


def lstm(direction: str, directions: int, **attributes: Any) -> onnx.ModelProto:
    size = 5
    operands = {
        "x": value("x", [7, 2, 3]),
        "w": f32(directions, 4 * size, 3),
        "r": f32(directions, 4 * size, size),
        "b": f32(directions, 8 * size),
        "lengths": None,
        "h": f32(directions, 2, size),
        "c": f32(directions, 2, size),
        "p": f32(directions, 3 * size),
    }
    return single("LSTM", operands, outputs=3, hidden_size=size, direction=direction, **attributes)


def gru(direction: str, directions: int, **attributes: Any) -> onnx.ModelProto:
    operands = {
        "x": value("x", [6, 2, 3]),
        "w": f32(directions, 12, 3),
        "r": f32(directions, 12, 4),
        "b": f32(directions, 24),
    }
    return single("GRU", operands, outputs=2, hidden_size=4, direction=direction, **attributes)


def conv(x: list[int], w: tuple[int, ...], opset: int = 18, **attributes: Any) -> onnx.ModelProto:
    return single("Conv", {"x": value("x", x), "w": f32(*w), "b": f32(w[0])}, opset=opset, **attributes)


def pool(op: str, x: list[int], **attributes: Any) -> onnx.ModelProto:
    return single(op, {"x": value("x", x)}, **attributes)


REWRITTEN: dict[str, Callable[[], onnx.ModelProto]] = {
    "softmax_11": lambda: single("Softmax", {"x": value("x", [2, 3, 4])}, opset=11, axis=1),
    "softmax_11_default": lambda: single("Softmax", {"x": value("x", [2, 3, 2, 2])}, opset=12),
    "log_softmax_11": lambda: single("LogSoftmax", {"x": value("x", [3, 4, 2])}, opset=11, axis=0),
    "hardmax_11": lambda: single("Hardmax", {"x": value("x", [3, 2, 4])}, opset=11, axis=1),
    "group_norm_18": lambda: single(
        "GroupNormalization", {"x": value("x", [2, 6, 4, 4]), "s": f32(3), "b": f32(3)}, num_groups=3, opset=18
    ),
    "dft_17": lambda: single("DFT", {"x": value("x", [2, 9, 1])}, opset=17, onesided=1),
    "grid_sample_16": lambda: single(
        "GridSample", {"x": value("x", [1, 2, 4, 5]), "g": value("g", [1, 3, 3, 2])}, mode="bicubic", opset=16
    ),
    "dropout_11": lambda: single("Dropout", {"x": value("x", [2, 3])}, opset=11, ratio=0.3),
    "reduce_mean_f16": lambda: single("ReduceMean", {"x": value("x", [2, 900], F16)}, axes=[1], opset=13),
    "reduce_l2_of_one": lambda: single("ReduceL2", {"x": value("x", [1, 1]), "a": i64(0)}, keepdims=1),
    "reduce_log_sum_exp_of_one": lambda: single("ReduceLogSumExp", {"x": value("x", [3, 1]), "a": i64(1)}, keepdims=0),
    "global_average_f16": lambda: single("GlobalAveragePool", {"x": value("x", [1, 2, 30, 30], F16)}),
    "average_pool_f16": lambda: single("AveragePool", {"x": value("x", [1, 2, 9, 9], F16)}, kernel_shape=[5, 5]),
    "resize_11_tf_nearest": lambda: resize(
        [1, 1, 4, 6], sizes=[1, 1, 7, 3], opset=11, coordinate_transformation_mode="tf_half_pixel_for_nn"
    ),
    "depth_to_space_crd_odd": lambda: single("DepthToSpace", {"x": value("x", [1, 18, 5, 7])}, blocksize=3, mode="CRD"),
    "depth_to_space_dcr_odd": lambda: single("DepthToSpace", {"x": value("x", [2, 12, 5, 3])}, blocksize=2, mode="DCR"),
    "space_to_depth": lambda: single("SpaceToDepth", {"x": value("x", [2, 3, 6, 9])}, blocksize=3),
    "slice_reversed": lambda: single(
        "Slice",
        {"x": value("x", [4, 5, 6]), "s": i64(-1, 4, 0), "e": i64(-9, 0, 6), "a": i64(0, 1, 2), "t": i64(-1, -2, 3)},
    ),
    "slice_reversed_to_the_end": lambda: single(
        "Slice", {"x": value("x", [4, 7]), "s": i64(-2), "e": i64(-(1 << 62)), "a": i64(-1), "t": i64(-3)}
    ),
    "reverse_sequence": lambda: single(
        "ReverseSequence", {"x": value("x", [3, 6, 2]), "n": i64(6, 1, 4)}, batch_axis=0, time_axis=1
    ),
    "pad_reflect_negative": lambda: single(
        "Pad", {"x": value("x", [2, 5, 6]), "p": i64(0, 3, -1, 0, 4, 2)}, mode="reflect"
    ),
    "pad_edge": lambda: single("Pad", {"x": value("x", [2, 5]), "p": i64(1, 0, 2, 7)}, mode="edge"),
    "pad_wrap_axes": lambda: single(
        "Pad", {"x": value("x", [2, 5]), "p": i64(4, 3), "v": None, "a": i64(-1)}, opset=19, mode="wrap"
    ),
    "cumsum_exclusive_reverse": lambda: single(
        "CumSum", {"x": value("x", [3, 13]), "a": np.asarray(-1)}, exclusive=1, reverse=1
    ),
    "cumsum_int": lambda: single("CumSum", {"x": value("x", [9, 2], I64), "a": np.asarray(0)}),
    "topk_middle_axis": lambda: single("TopK", {"x": value("x", [3, 17, 2]), "k": i64(5)}, outputs=2, axis=1),
    "topk_smallest_int": lambda: single(
        "TopK", {"x": value("x", [2, 30], I64), "k": i64(30)}, outputs=2, axis=-1, largest=0
    ),
    "scatter_nd_constant_last_wins_by_add": lambda: single(
        "ScatterND",
        {"x": value("x", [4, 3, 2]), "i": i64(1, 0, 3, 2, 1, 0).reshape(3, 2), "u": value("u", [3, 2])},
        reduction="add",
    ),
    "scatter_nd_slices": lambda: single(
        "ScatterND", {"x": value("x", [5, 2, 3]), "i": i64(4, -5).reshape(2, 1), "u": value("u", [2, 2, 3])}
    ),
    "scatter_elements_smaller_indices": lambda: single(
        "ScatterElements",
        {"x": value("x", [4, 5]), "i": i64(3, 0, 1, 1).reshape(2, 2), "u": value("u", [2, 2])},
        axis=1,
        reduction="add",
    ),
    "scatter_elements_computed": lambda: single(
        "ScatterElements", {"x": value("x", [3, 10]), "i": value("i", [3, 1], I64), "u": value("u", [3, 1])}, axis=1
    ),
    "average_pool_ceil": lambda: single(
        "AveragePool",
        {"x": value("x", [1, 2, 8, 9])},
        kernel_shape=[3, 2],
        strides=[2, 3],
        pads=[1, 0, 1, 0],
        ceil_mode=1,
    ),
    "average_pool_ceil_counting": lambda: single(
        "AveragePool",
        {"x": value("x", [1, 2, 9, 9])},
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 0, 0],
        ceil_mode=1,
        count_include_pad=1,
    ),
    "max_pool_ceil": lambda: single(
        "MaxPool", {"x": value("x", [1, 2, 10, 9])}, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1
    ),
    "conv_end_unread": lambda: conv([1, 2, 4, 5], (3, 2, 3, 3), strides=[2, 2]),
    "conv_end_unread_valid": lambda: conv([1, 2, 4, 9], (4, 1, 3, 2), strides=[2, 3], auto_pad="VALID", group=2),
    "conv_padding_unread": lambda: conv([1, 2, 2, 2], (3, 2, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]),
    "max_pool_end_unread": lambda: pool("MaxPool", [1, 2, 4, 9], kernel_shape=[3, 2], strides=[2, 2]),
    "average_pool_padding_unread": lambda: pool(
        "AveragePool", [1, 2, 2, 7], kernel_shape=[3, 3], strides=[3, 2], pads=[1, 0, 1, 0], count_include_pad=1
    ),
    "lp_pool": lambda: single("LpPool", {"x": value("x", [1, 2, 7, 7])}, kernel_shape=[3, 2], strides=[2, 2], p=3),
    "conv_transpose_groups": lambda: single(
        "ConvTranspose", {"x": value("x", [1, 6, 5, 4]), "w": f32(6, 2, 3, 3), "b": f32(6)}, group=3, strides=[2, 2]
    ),
    "conv_transpose_uneven": lambda: single(
        "ConvTranspose",
        {"x": value("x", [1, 2, 5, 4]), "w": f32(2, 3, 3, 3), "b": f32(3)},
        strides=[2, 3],
        pads=[1, 0, 2, 1],
        output_padding=[1, 2],
    ),
    "conv_transpose_same_lower": lambda: single(
        "ConvTranspose", {"x": value("x", [1, 2, 5]), "w": f32(2, 3, 4)}, strides=[3], auto_pad="SAME_LOWER"
    ),
    "resize_nearest_twice": lambda: resize(
        [1, 2, 3, 5],
        scales=[1, 1, 2, 2],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
    "resize_nearest_half_pixel": lambda: resize([1, 2, 3, 5], scales=[1, 1, 2.5, 0.6], mode="nearest"),
    "resize_linear_up": lambda: resize([1, 2, 3, 5], sizes=[1, 2, 7, 11], mode="linear"),
    "resize_linear_align": lambda: resize(
        [1, 1, 4, 4], sizes=[1, 1, 9, 3], mode="linear", coordinate_transformation_mode="align_corners"
    ),
    "resize_linear_pytorch_one": lambda: resize(
        [1, 1, 4, 4], sizes=[1, 1, 1, 8], mode="linear", coordinate_transformation_mode="pytorch_half_pixel"
    ),
    "resize_cubic": lambda: resize([1, 1, 6, 5], scales=[1, 1, 1.7, 2], mode="cubic", cubic_coeff_a=-0.5),
    "resize_cubic_outside": lambda: resize([1, 1, 6, 5], scales=[1, 1, 0.8, 2], mode="cubic", exclude_outside=1),
    "resize_antialias": lambda: resize([1, 1, 24, 13], sizes=[1, 1, 4, 5], mode="linear", antialias=1),
    "quantize_dequantize": lambda: single(
        "QuantizeLinear",
        {"x": value("x", [2, 3, 4]), "s": np.float32([0.1, 0.5, 2]), "z": np.uint8([3, 128, 255])},
        axis=1,
    ),
    "dequantize_last_axis": lambda: single(
        "DequantizeLinear",
        {"x": value("x", [2, 3], U8), "s": np.float32([0.1, 0.5, 2]), "z": np.uint8([3, 1, 9])},
        axis=-1,
    ),
    "matmul_integer": lambda: single(
        "MatMulInteger",
        {"a": value("a", [4, 3], U8), "b": value("b", [3, 2], U8), "za": np.uint8(3), "zb": np.uint8(200)},
    ),
    "conv_integer": lambda: single(
        "ConvInteger",
        {"x": value("x", [1, 2, 5, 5], U8), "w": value("w", [3, 2, 3, 3], U8), "zx": np.uint8(7)},
        pads=[1, 1, 1, 1],
    ),
    "qlinear_matmul": lambda: single(
        "QLinearMatMul",
        {
            "a": value("a", [4, 3], U8),
            "as": np.float32(0.1),
            "az": np.uint8(3),
            "b": value("b", [3, 2], U8),
            "bs": np.float32(0.2),
            "bz": np.uint8(5),
            "ys": np.float32(0.3),
            "yz": np.uint8(100),
        },
    ),
    "qlinear_conv_per_channel": lambda: single(
        "QLinearConv",
        {
            "x": value("x", [1, 2, 5, 5], U8),
            "xs": np.float32(0.1),
            "xz": np.uint8(3),
            "w": value("w", [3, 2, 3, 3], U8),
            "ws": np.float32([0.1, 0.2, 0.3]),
            "wz": np.uint8([0, 0, 0]),
            "ys": np.float32(0.9),
            "yz": np.uint8(20),
            "b": np.int32([100, -200, 3]),
        },
        strides=[2, 2],
    ),
    "rnn_both_ways": lambda: single(
        "RNN",
        {"x": value("x", [4, 2, 3]), "w": f32(2, 5, 3), "r": f32(2, 5, 5)},
        outputs=2,
        hidden_size=5,
        direction="bidirectional",
        activations=["Tanh", "Relu"],
    ),
    "compress": lambda: single("Compress", {"x": value("x", [3, 4]), "c": np.array([True, False, True])}, axis=1),
    "stft": lambda: single("STFT", {"x": value("x", [1, 20, 1]), "s": np.int64(3), "w": f32(8)}, opset=17),
    "lstm_both_ways": lambda: lstm("bidirectional", 2),
    "lstm_reverse_clipped": lambda: lstm("reverse", 1, clip=0.5),
    "lstm_input_forget": lambda: lstm("forward", 1, input_forget=1),
    "gru_both_ways": lambda: gru("bidirectional", 2),
    "gru_linear_before_reset": lambda: gru("reverse", 1, linear_before_reset=1),
    "dropout": lambda: single("Dropout", {"x": value("x", [2, 3])}, outputs=2),
    "matmul_vector": lambda: single("MatMul", {"a": value("a", [2, 3, 4]), "b": value("b", [4])}),
    "det_3": lambda: single("Det", {"x": value("x", [2, 3, 3])}),
    "einsum_scalar": lambda: single("Einsum", {"x": value("x", [])}, equation="->"),
    "lp_normalization": lambda: single("LpNormalization", {"x": value("x", [3, 4])}, axis=0, p=1),
    "grid_sample_reflection": lambda: single(
        "GridSample",
        {"x": value("x", [2, 3, 5, 6]), "g": value("g", [2, 4, 3, 2])},
        mode="linear",
        padding_mode="reflection",
        opset=20,
    ),
    "grid_sample_border": lambda: single(
        "GridSample",
        {"x": value("x", [1, 2, 4, 5]), "g": value("g", [1, 3, 3, 2])},
        mode="cubic",
        padding_mode="border",
        align_corners=1,
        opset=20,
    ),
    "col2im_uncovered": lambda: single(
        "Col2Im", {"x": value("x", [2, 12, 6]), "s": i64(6, 8), "b": i64(2, 2)}, strides=[3, 3], opset=18
    ),
    "dft_axis_0": lambda: single("DFT", {"x": value("x", [1, 6, 3, 1]), "n": None, "a": np.asarray(1)}, opset=20),
    "group_norm": lambda: single(
        "GroupNormalization", {"x": value("x", [2, 6, 4, 4]), "s": f32(6), "b": f32(6)}, num_groups=3, opset=21
    ),
    "mean_variance": lambda: single("MeanVarianceNormalization", {"x": value("x", [2, 3, 4, 4])}),
}
