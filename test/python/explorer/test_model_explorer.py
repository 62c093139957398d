"""What Model Explorer is shown of a module, by value; the adapter itself where Model Explorer is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_mlir.model_explorer.operations import read_functions

MODULE = """
#image = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, 0, d1 mod 4), image2d>
#turned = #smartmem.layout<(d0, d1) -> (d1, d0), buffer>
func.func @f(%x: tensor<8x4xf32> loc("input")) -> tensor<4x8xf32> {
  %v = smartmem.view %x at (d0, d1) -> (d1, d0) : (tensor<8x4xf32>) -> tensor<4x8xf32> loc("turn")
  %c = smartmem.convert_layout %v reason "why not" : tensor<4x8xf32> -> tensor<4x8xf32, #turned>
  %r = smartmem.group(%a = %c) : (tensor<4x8xf32, #turned>) -> tensor<4x8xf32> {
    %p = smartmem.convert_layout %a : tensor<4x8xf32, #turned> -> tensor<4x8xf32>
    %s = arith.addf %p, %p : tensor<4x8xf32> loc("sum")
    smartmem.yield %s : tensor<4x8xf32>
  }
  return %r : tensor<4x8xf32>
}
func.func private @declared(tensor<4x4xf32, #image>)
"""


def test_operations_of_a_function() -> None:
    functions = read_functions(MODULE)
    assert list(functions) == ["f"]
    names = [(each.name, each.within, each.operands) for each in functions["f"]]
    assert names == [
        ("argument", (), []),
        ("smartmem.view", (), [("0", 0)]),
        ("smartmem.convert_layout", (), [("1", 0)]),
        ("smartmem.convert_layout", ("group 3",), [("2", 0)]),
        ("arith.addf", ("group 3",), [("3", 0), ("3", 0)]),
        ("func.return", (), [("4", 0)]),
    ]
    assert [each.nodes for each in functions["f"]][:2] == [("input",), ("turn",)]
    converted = functions["f"][2]
    assert (converted.results[0].layout, converted.results[0].storage) == ("(d0, d1) -> (d1, d0)", "buffer")
    assert converted.attributes["reason"] == '"why not"'
    assert functions["f"][3].results[0].storage == ""


def test_flow_ir_of_iree() -> None:
    text = """
"builtin.module"() ({
  "util.func"() <{sym_name = "main", function_type = (tensor<4xf32>) -> tensor<4xf32>}> ({
  ^bb0(%x: tensor<4xf32>):
    %0 = "flow.dispatch"(%x) <{entry_points = [@a::@b]}> : (tensor<4xf32>) -> tensor<4xf32> loc(callsite("n" at "m"))
    "util.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""
    functions = read_functions(text)
    assert [(each.name, each.nodes) for each in functions["main"]] == [
        ("argument", ()),
        ("flow.dispatch", ("n",)),
        ("util.return", ()),
    ]


def test_what_does_not_parse() -> None:
    with pytest.raises(ValueError, match="does not parse in MLIR 22: "):
        read_functions("func.func @f( {")


def test_the_adapter(tmp_path: Path) -> None:
    pytest.importorskip("model_explorer", reason="needs the optional extra [explorer]")
    from model_explorer.extension_manager import ExtensionManager

    from smartmem_mlir.errors import InvalidModelError

    manager = ExtensionManager(["smartmem_mlir.model_explorer"])
    manager.load_extensions()
    path = tmp_path / "module.mlir"
    path.write_text(MODULE)
    command = {"cmdId": "convert", "extensionId": "smartmem_mlir", "modelPath": str(path), "settings": {}}
    (graph,) = manager.run_cmd(command)["graphs"]
    assert graph["id"] == "f"
    assert [node["label"] for node in graph["nodes"]][1] == "smartmem.view"
    (overlays,) = graph["tasksData"]["edgeOverlaysDataListLeftPane"]
    (overlay,) = overlays["overlays"]
    assert overlay["name"] == "buffer: (d0, d1) -> (d1, d0)"
    assert [(edge["sourceNodeId"], edge["targetNodeId"]) for edge in overlay["edges"]] == [("2", "3")]
    path.write_text("not a module")
    with pytest.raises(InvalidModelError, match=r"module\.mlir: the module does not parse"):
        manager.run_cmd(command)
