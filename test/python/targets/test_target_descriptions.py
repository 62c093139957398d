"""Targets and pipelines: what is in the repository is valid, what is wrong is refused by the name of its field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from smartmem_mlir.errors import OptionError
from smartmem_mlir.iree.device_target import compile_flags, device_targets_attr
from smartmem_mlir.layouts.rates import Rates
from smartmem_mlir.targets import load_pipeline, load_target, target_names
from smartmem_mlir.targets.description import LayoutRates

GOOD_VULKAN: dict[str, Any] = {
    "name": "phone",
    "summary": "A phone.",
    "backend": "vulkan-spirv",
    "opt_level": "O0",
    "vulkan": {
        "spirv_version": "1.3",
        "compute": ["fp32", "int32"],
        "storage": ["b32"],
        "subgroup_sizes": [64],
        "max_workgroup_size": [128, 128, 64],
        "max_workgroup_invocations": 128,
        "max_shared_memory_bytes": 16384,
        "max_workgroup_count": [65535, 65535, 65535],
    },
}


def write(folder: Path, content: object) -> str:
    path = folder / "phone.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def edited(*path: str, value: object = None, drop: bool = False) -> dict[str, Any]:
    """GOOD_VULKAN with one field changed or dropped."""
    content: dict[str, Any] = yaml.safe_load(yaml.safe_dump(GOOD_VULKAN))
    section = content
    for key in path[:-1]:
        section = section[key]
    if drop:
        del section[path[-1]]
    else:
        section[path[-1]] = value
    return content


@pytest.mark.parametrize("name", target_names())
def test_every_target_of_the_repository_is_valid(name: str) -> None:
    target = load_target(name)
    assert target.name == name
    assert compile_flags(target)[0] == f"--iree-opt-level={target.opt_level}"


def test_rates_of_a_target_are_those_that_layouts_are_chosen_by() -> None:
    # The lanes follow from the CPU, everything else may be given.
    assert set(LayoutRates.model_fields) == set(Rates.__dataclass_fields__) - {"vector_lanes"}
    given = LayoutRates(stream_bytes_per_ns=3.0).model_dump(exclude_none=True)
    assert Rates.of(given) == replace(Rates(), stream_bytes_per_ns=3.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [("stream_bytes_per_ns", 0), ("kernel_launch_ns", -1), ("kernel_macs_per_ns", 1e9), ("cache_line_bytes", 48)],
)
def test_an_absurd_rate_is_refused_by_name(tmp_path: Path, field: str, value: float) -> None:
    with pytest.raises(OptionError, match=f"field 'rates.{field}'"):
        load_target(write(tmp_path, edited("rates", value={field: value})))


def test_an_option_of_a_pass_can_be_given_to_a_pipeline() -> None:
    text = load_pipeline("cpu").with_option("smartmem-select-layouts", "layouts", "paper").text()
    assert "smartmem-select-layouts{layouts=paper}" in text
    with pytest.raises(OptionError, match="pipeline 'cpu-eliminate' has no pass 'smartmem-select-layouts'"):
        load_pipeline("cpu-eliminate").with_option("smartmem-select-layouts", "layouts", "paper")


def test_the_pipelines_of_the_ablation_leave_out_and_add_nothing() -> None:
    whole = [spec.text() for spec in load_pipeline("cpu").passes]
    kernels = {
        "smartmem-share-borders",
        "smartmem-form-groups",
        "smartmem-lower-groups-to-cpu",
    }
    left_out = {"cpu-layouts": kernels, "cpu-eliminate": {*kernels, "smartmem-select-layouts"}}
    for name, missing in left_out.items():
        wanted = [text for text in whole if text.split("{")[0] not in missing]
        assert _once([spec.text() for spec in load_pipeline(name).passes]) == _once(wanted)


def _once(texts: list[str]) -> list[str]:
    """Without repetitions of what stands beside its like: left out passes bring them together."""
    return [text for before, text in zip([None, *texts], texts, strict=False) if text != before]


def test_the_targets_that_the_documentation_promises_exist() -> None:
    assert {"cpu", "cpu-arm64-android", "vulkan", "vulkan-f16", "adreno", "mali", "nvidia", "lavapipe"} <= set(
        target_names()
    )


def test_a_target_can_be_a_file(tmp_path: Path) -> None:
    target = load_target(write(tmp_path, GOOD_VULKAN))
    attribute = device_targets_attr(target)
    assert attribute is not None
    assert "subgroup = none, subgroup_size_choices = [64]" in attribute
    assert "max_workgroup_memory_bytes = 16384" in attribute


def test_the_portable_target_allows_no_subgroup_operations() -> None:
    vulkan = load_target("vulkan").vulkan
    assert vulkan is not None
    assert vulkan.subgroup_operations == ()


@pytest.mark.parametrize(
    ("name", "near"), [("vulcan", "vulkan"), ("adrno", "adreno"), ("cpu-arm64", "cpu-arm64-android")]
)
def test_an_unknown_target_names_near_matches(name: str, near: str) -> None:
    with pytest.raises(OptionError, match=rf"unknown target '{name}'.*did you mean.*{near}"):
        load_target(name)


def test_an_unknown_target_without_near_match_lists_all() -> None:
    with pytest.raises(OptionError, match=r"unknown target 'zzzz'; targets: adreno, adreno740, cpu, .*vulkan"):
        load_target("zzzz")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(OptionError, match=r"nowhere\.yaml: no such target description"):
        load_target("nowhere.yaml")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (edited("backend", drop=True), "field 'backend'"),
        (edited("backend", value="metal"), "field 'backend'"),
        (edited("opt_level", value="O9"), "field 'opt_level'"),
        (edited("name", value="Not A Name"), "field 'name'"),
        (edited("colour", value="red"), "field 'colour'"),
        (edited("iree_flags", value=["rm -rf"]), "field 'iree_flags.0'"),
        (edited("iree_flags", value=["--iree-x=a b"]), "field 'iree_flags.0'"),
        (edited("vulkan", drop=True), "needs the section 'vulkan'"),
        (edited("vulkan", "max_shared_memory_bytes", drop=True), "field 'vulkan.max_shared_memory_bytes'"),
        (edited("vulkan", "max_shared_memory_bytes", value=-1), "field 'vulkan.max_shared_memory_bytes'"),
        (edited("vulkan", "max_shared_memory_bytes", value=1 << 40), "field 'vulkan.max_shared_memory_bytes'"),
        (edited("vulkan", "max_shared_memory_bytes", value="16384"), "field 'vulkan.max_shared_memory_bytes'"),
        (edited("vulkan", "max_shared_memory_bytes", value=1.5), "field 'vulkan.max_shared_memory_bytes'"),
        (edited("vulkan", "subgroup_sizes", value=[]), "field 'vulkan.subgroup_sizes'"),
        (edited("vulkan", "subgroup_sizes", value=[12]), "12 is not a power of two"),
        (edited("vulkan", "subgroup_sizes", value=[64, 64]), "lists a size twice"),
        (edited("vulkan", "subgroup_sizes", value=[4096]), "field 'vulkan.subgroup_sizes.0'"),
        (edited("vulkan", "max_workgroup_size", value=[128, 128]), "field 'vulkan.max_workgroup_size"),
        (edited("vulkan", "max_workgroup_size", value=[0, 1, 1]), "field 'vulkan.max_workgroup_size.0'"),
        (edited("vulkan", "compute", value=["fp31"]), "field 'vulkan.compute.0'"),
        (edited("vulkan", "spirv_version", value="9.9"), "field 'vulkan.spirv_version'"),
        (edited("vulkan", "cooperative_matrices", value=16), "field 'vulkan.cooperative_matrices'"),
        (
            edited("vulkan", "cooperative_matrices", value={"rows": 16, "lanes": 16}),
            "field 'vulkan.cooperative_matrices.terms'",
        ),
        (
            edited("vulkan", "cooperative_matrices", value={"rows": 4, "lanes": 16, "terms": 16}),
            "field 'vulkan.cooperative_matrices.rows'",
        ),
        (edited("vulkan", "memory_rates", value={"buffer": 55}), "field 'vulkan.memory_rates.image'"),
        (edited("vulkan", "memory_rates", value={"buffer": 0, "image": 1}), "field 'vulkan.memory_rates.buffer'"),
        (edited("vulkan", "max_image_layers", value=0), "field 'vulkan.max_image_layers'"),
        (edited("vulkan", "max_texel_buffer_elements", value=1 << 32), "field 'vulkan.max_texel_buffer_elements'"),
        (edited("vulkan", "capabilities", value=['Shader">>']), "field 'vulkan.capabilities.0'"),
        ("- a\n- b\n", "expected a mapping"),
        ("", "expected a mapping"),
        ("name: [unclosed", "not valid YAML"),
        ("name: !!python/object/apply:os.system [id]", "not valid YAML"),
    ],
)
def test_a_bad_description_is_refused_by_field(tmp_path: Path, content: object, complaint: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(OptionError) as caught:
        load_target(path)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(path)


def test_several_subgroup_sizes_go_with_no_subgroup_operations_only(tmp_path: Path) -> None:
    content = edited("vulkan", "subgroup_sizes", value=[32, 64])
    assert load_target(write(tmp_path, content)).vulkan is not None
    content["vulkan"]["subgroup_operations"] = ["shuffle"]
    with pytest.raises(OptionError, match="subgroup_operations needs exactly one size"):
        load_target(write(tmp_path, content))


def test_cooperative_matrices_go_with_one_subgroup_size(tmp_path: Path) -> None:
    content = edited("vulkan", "cooperative_matrices", value={"rows": 16, "lanes": 8, "terms": 16})
    vulkan = load_target(write(tmp_path, content)).vulkan
    assert vulkan is not None
    assert vulkan.cooperative_matrices is not None
    assert vulkan.cooperative_matrices.model_dump() == {"rows": 16, "lanes": 8, "terms": 16}
    content["vulkan"]["subgroup_sizes"] = [32, 64]
    with pytest.raises(OptionError, match="cooperative_matrices needs exactly one size"):
        load_target(write(tmp_path, content))


@pytest.mark.parametrize("extents", [{"lanes": 10}, {"terms": 12}])
def test_cooperative_matrices_are_whole_vectors_and_blocks(tmp_path: Path, extents: dict[str, int]) -> None:
    content = edited("vulkan", "cooperative_matrices", value={"rows": 16, "lanes": 16, "terms": 16, **extents})
    with pytest.raises(OptionError, match=f"cooperative_matrices.{next(iter(extents))}"):
        load_target(write(tmp_path, content))


def test_a_foreign_triple_cannot_take_the_features_of_the_host(tmp_path: Path) -> None:
    content = {**GOOD_VULKAN, "backend": "llvm-cpu", "cpu": {"triple": "aarch64-none-linux", "cpu": "host"}}
    del content["vulkan"]
    with pytest.raises(OptionError, match="cpu 'host' needs triple 'host'"):
        load_target(write(tmp_path, content))


def test_pipelines_become_text(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: p\nsummary: s\npasses:\n- cse\n"
        "- {pass: canonicalize, anchor: func.func, options: {top-down: false, max-iterations: 3}}\n"
    )
    text = load_pipeline(str(path)).text()
    assert text == "builtin.module(cse,func.func(canonicalize{top-down=false max-iterations=3}))"


def test_the_baseline_has_no_passes() -> None:
    assert load_pipeline("baseline").text() == "builtin.module()"


@pytest.mark.parametrize(
    ("passes", "field"),
    [
        ("[{pas: cse}]", "passes.0.pass"),
        ("['a b']", "passes.0.pass"),
        ("[{pass: cse, options: {x: [1]}}]", "passes.0.options.x"),
        ("cse", "passes"),
    ],
)
def test_a_bad_pipeline_is_refused_by_field(tmp_path: Path, passes: str, field: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(f"name: p\nsummary: s\npasses: {passes}\n")
    with pytest.raises(OptionError, match=f"field '{field}"):
        load_pipeline(str(path))


def test_an_unknown_pipeline_lists_the_known() -> None:
    with pytest.raises(
        OptionError, match="unknown pipeline 'nope'; pipelines: baseline, cpu, cpu-eliminate, cpu-layouts, default, gpu"
    ):
        load_pipeline("nope")
