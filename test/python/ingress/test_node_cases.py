"""The committed list of ONNX node cases is current, complete and without a wrong one."""

from __future__ import annotations

from collections import Counter

import node_cases
import operators_page
import pytest
import yaml

REPRESENTATIVE = (
    "test_attention_4d_causal", "test_averagepool_2d_ceil", "test_batchnorm_epsilon", "test_cast_FLOAT_to_FLOAT16",
    "test_clip", "test_concat_2d_axis_1", "test_conv_with_strides_and_asymmetric_padding", "test_convtranspose_group_2",
    "test_cumsum_2d_axis_1", "test_depthtospace_crd_mode_example", "test_einsum_batch_matmul", "test_erf",
    "test_expand_dim_changed", "test_gather_negative_indices", "test_gelu_tanh_1", "test_gemm_all_attributes",
    "test_gridsample_bicubic", "test_group_normalization_example", "test_hardswish", "test_instancenorm_example",
    "test_layer_normalization_4d_axis2", "test_lstm_with_peepholes", "test_matmul_4d", "test_maxpool_2d_ceil",
    "test_mod_mixed_sign_int64", "test_pow_types_float32_int64", "test_quantizelinear_axis",
    "test_reduce_log_sum_exp_negative_axes_keepdims_random", "test_reflect_pad", "test_resize_upsample_scales_cubic",
    "test_reversesequence_time", "test_scatternd_add", "test_slice_neg_steps", "test_softmax_axis_1",
    "test_split_variable_parts_2d_opset18", "test_stft", "test_top_k", "test_transpose_all_permutations_4",
    "test_where_example", "test_wrap_pad",
)  # fmt: skip
"""Run through IREE in every test run; `node_cases.py` runs all."""


@pytest.fixture(scope="module")
def cases() -> dict[str, node_cases.Case]:
    return {c.name: c for c in node_cases.load_cases()}


@pytest.fixture(scope="module")
def document() -> dict[str, dict[str, str]]:
    return dict(yaml.safe_load(node_cases.LIST.read_text()))


def test_every_case_is_listed(cases: dict[str, node_cases.Case], document: dict[str, dict[str, str]]) -> None:
    assert {c.name: node_cases.scope(c) for c in cases.values()} == {
        **{n: node_cases.scope(cases[n]) for n in document["cases"]},
        **document["out of scope"],
    }


def test_none_is_wrong_and_nine_in_ten_float_cases_pass(
    cases: dict[str, node_cases.Case], document: dict[str, dict[str, str]]
) -> None:
    statuses = {name: status.partition(":")[0] for name, status in document["cases"].items()}
    assert set(statuses.values()) == {"pass", "refused"}
    assert all(status == "pass" or len(status) > len("refused: ") for status in document["cases"].values())
    floats = Counter(status for name, status in statuses.items() if node_cases.scope(cases[name]) == "float")
    assert floats["pass"] >= 0.9 * floats.total()


def test_the_operators_page_is_current(cases: dict[str, node_cases.Case], document: dict[str, dict[str, str]]) -> None:
    assert operators_page.PAGE.read_text() == operators_page.page(document, cases.values())


def test_refusals_are_current(cases: dict[str, node_cases.Case], document: dict[str, dict[str, str]]) -> None:
    """Those that our own importer refuses; what torch-mlir refuses is seen by the whole run only."""
    listed = {n: s for n, s in document["cases"].items() if s.startswith("refused: ") and "torch-mlir" not in s}
    found = {}
    for name in listed:
        verdict = node_cases.import_case(cases[name])
        assert isinstance(verdict, node_cases.Verdict), f"{name} is not refused any more"
        found[name] = f"refused: {verdict.reason}"
    assert found == listed


@pytest.mark.slow
def test_representative_cases_pass_through_iree(
    cases: dict[str, node_cases.Case], document: dict[str, dict[str, str]]
) -> None:
    chosen = [cases[name] for name in REPRESENTATIVE]
    verdicts = node_cases.run_cases(chosen, log=False, cached=False)
    found = {name: v.status if v.status == "pass" else f"{v.status}: {v.reason}" for name, v in verdicts.items()}
    assert found == {name: document["cases"][name] for name in found}
