"""A compute shader: its interface, and the way from MLIR's generic operations to a SPIR-V binary.

A kernel's body is written with arith, math, scf and vector operations on i32, f32 and vectors of four f32, and with
SPIR-V operations where memory is touched. MLIR lowers the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import func
from mlir.passmanager import PassManager

from smartmem_mlir._smartmem import serialize_spirv
from smartmem_mlir.kernels.spirv.metadata import with_lines
from smartmem_mlir.kernels.spirv.storage import Binding

_LOWERING = (
    "builtin.module(canonicalize,cse,convert-math-to-spirv,convert-vector-to-spirv,convert-scf-to-spirv,"
    "canonicalize,cse)"
)
_SHARED = "shared"
_BUILT_INS = {
    "local_invocation_index": ("LocalInvocationIndex", "i32"),
    "workgroup_id": ("WorkgroupId", "vector<3xi32>"),
    "subgroup_id": ("SubgroupId", "i32"),
}
# Their loads and stores are ordered by the rules of Vulkan's memory model, and SPIR-V asks for it.
_COOPERATIVE = ("CooperativeMatrixKHR", "Float16", "GroupNonUniform", "VulkanMemoryModel")
_COOPERATIVE_EXTENSION = "SPV_KHR_cooperative_matrix"
_COOPERATIVE_VERSION = "1.6"
_VEC4 = "vector<4xf32>"


@dataclass(frozen=True)
class Interface:
    """What a shader is given.

    Args:
        name: Its entry point.
        bindings: How each tensor lies in memory, in the order of bindings.
        invocations: Threads of a workgroup, along one dimension.
        shared_vectors: Vectors of four f32 in workgroup memory.
        version: SPIR-V version, such as "1.3".
        cooperative: Whether it multiplies cooperative matrices.
    """

    name: str
    bindings: tuple[Binding, ...]
    invocations: int
    shared_vectors: int = 0
    version: str = "1.3"
    cooperative: bool = False

    @property
    def capabilities(self) -> list[str]:
        """SPIR-V capabilities that the shader declares."""
        needed = _COOPERATIVE if self.cooperative else ()
        return sorted({"Shader", *needed}.union(*(binding.capabilities for binding in self.bindings)))

    @property
    def inputs(self) -> list[str]:
        """Built-in variables that it reads."""
        return [name for name in _BUILT_INS if name != "subgroup_id" or self.cooperative]

    @property
    def variables(self) -> list[str]:
        """What its entry point lists: before SPIR-V 1.4 its inputs, since then all that it uses."""
        if not self.cooperative:
            return self.inputs
        return [*self.inputs, *(binding.name for binding in self.bindings), *([_SHARED] if self.shared_vectors else [])]


class Thread:
    """The invocation that runs a body: who it is, and what it shares with its workgroup."""

    def __init__(self, interface: Interface) -> None:
        self._cooperative = interface.cooperative
        self.local = self._load_builtin("local_invocation_index")
        workgroup = self._load_builtin("workgroup_id")
        self._workgroup = [
            _spirv("CompositeExtract", "i32", [workgroup], indices=ir.Attribute.parse(f"[{axis} : i32]"))
            for axis in range(2)
        ]
        self._shared: ir.Value | None = None
        if interface.shared_vectors:
            self._shared = _address(
                _SHARED, _pointer(f"!spirv.array<{interface.shared_vectors} x {_VEC4}>", "Workgroup")
            )

    @property
    def workgroup(self) -> tuple[ir.Value, ir.Value]:
        """Its workgroup's index along x and y."""
        return self._workgroup[0], self._workgroup[1]

    @property
    def subgroup(self) -> ir.Value:
        """The number of its subgroup in the workgroup; of a kernel with cooperative matrices."""
        return self._load_builtin("subgroup_id")

    def share(self, at: ir.Value, value: ir.Value) -> None:
        """Writes a vector to workgroup memory."""
        ir.Operation.create(
            "spirv.Store", operands=[self.shared_pointer(at), value], attributes=self._access("memory_access")
        )

    def shared(self, at: ir.Value) -> ir.Value:
        """A vector of workgroup memory."""
        return _spirv("Load", _VEC4, [self.shared_pointer(at)], **self._access("memory_access"))

    @property
    def shared_access(self) -> ir.Attribute:
        """How a kernel with cooperative matrices accesses what other threads see."""
        return ir.Attribute.parse("#spirv.memory_access<NonPrivatePointer>")

    def barrier(self) -> None:
        """Waits for the whole workgroup, and sees what it shared. All of its threads must come here."""
        scope = ir.Attribute.parse("#spirv.scope<Workgroup>")
        visible = "|MakeAvailable|MakeVisible" if self._cooperative else ""
        ir.Operation.create(
            "spirv.ControlBarrier",
            attributes={
                "execution_scope": scope,
                "memory_scope": scope,
                "memory_semantics": ir.Attribute.parse(
                    f"#spirv.memory_semantics<AcquireRelease|WorkgroupMemory{visible}>"
                ),
            },
        )

    def shared_pointer(self, at: ir.Value) -> ir.Value:
        """To a vector of workgroup memory."""
        assert self._shared is not None, "the interface has no workgroup memory"
        return _spirv("AccessChain", _pointer(_VEC4, "Workgroup"), [self._shared, at])

    def _access(self, name: str) -> dict[str, ir.Attribute]:
        return {name: self.shared_access} if self._cooperative else {}

    @staticmethod
    def _load_builtin(name: str) -> ir.Value:
        _, type_ = _BUILT_INS[name]
        return _spirv("Load", type_, [_address(name, _pointer(type_, "Input"))])


Body = Callable[[Thread], None]
"""Writes a shader at the insertion point."""


def assemble(interface: Interface, body: Body) -> bytes:
    """The SPIR-V binary of a shader.

    Args:
        interface: What it is given; every binding is bound to the function that `body` writes.
        body: Writes it.
    """
    with ir.Location.unknown():
        module = ir.Module.create()
        version = _COOPERATIVE_VERSION if interface.cooperative else interface.version
        extensions = [_COOPERATIVE_EXTENSION] if interface.cooperative else []
        triple = _triple(version, interface.capabilities, extensions)
        # MLIR asks for f16 arithmetic where values of that type are converted; SPIR-V asks for storage only.
        allowed = _triple(version, [*interface.capabilities, "Float16"], extensions)
        module.operation.attributes["spirv.target_env"] = ir.Attribute.parse(
            f"#spirv.target_env<{allowed}, #spirv.resource_limits<>>"
        )
        with ir.InsertionPoint(module.body):
            _variables(interface)
            function = func.FuncOp(interface.name, ir.FunctionType.get([], []))
            with ir.InsertionPoint(function.add_entry_block()):
                for binding in interface.bindings:
                    binding.bind()
                body(Thread(interface))
                func.ReturnOp([])
        PassManager.parse(_LOWERING).run(module.operation)
        return _with_metadata(serialize_spirv(_as_spirv_module(module, interface, triple)), interface)


def _triple(version: str, capabilities: Sequence[str], extensions: Sequence[str]) -> str:
    return f"#spirv.vce<v{version}, [{', '.join(capabilities)}], [{', '.join(extensions)}]>"


def _variables(interface: Interface) -> None:
    for name in interface.inputs:
        built_in, type_ = _BUILT_INS[name]
        _variable(name, _pointer(type_, "Input"), built_in=built_in)
    for number, binding in enumerate(interface.bindings):
        _variable(binding.name, ir.Type.parse(binding.pointer_type), binding=number)
    if interface.shared_vectors:
        _variable(_SHARED, _pointer(f"!spirv.array<{interface.shared_vectors} x {_VEC4}>", "Workgroup"))


def _variable(name: str, type_: ir.Type, built_in: str | None = None, binding: int | None = None) -> None:
    attributes: dict[str, ir.Attribute] = {"sym_name": ir.StringAttr.get(name), "type": ir.TypeAttr.get(type_)}
    if built_in is not None:
        attributes["built_in"] = ir.StringAttr.get(built_in)
    if binding is not None:
        i32 = ir.IntegerType.get_signless(32)
        attributes |= {"descriptor_set": ir.IntegerAttr.get(i32, 0), "binding": ir.IntegerAttr.get(i32, binding)}
    ir.Operation.create("spirv.GlobalVariable", attributes=attributes)


def _as_spirv_module(module: ir.Module, interface: Interface, triple: str) -> ir.Operation:
    """Moves the lowered operations into a `spirv.module` with an entry point."""
    name = ir.FlatSymbolRefAttr.get(interface.name)
    variables = [ir.FlatSymbolRefAttr.get(variable) for variable in interface.variables]
    memory = "Vulkan" if interface.cooperative else "GLSL450"
    contents = list(module.body.operations)
    with ir.InsertionPoint(module.body):
        made = ir.Operation.create(
            "spirv.module",
            attributes={
                "addressing_model": ir.Attribute.parse("#spirv.addressing_model<Logical>"),
                "memory_model": ir.Attribute.parse(f"#spirv.memory_model<{memory}>"),
                "vce_triple": ir.Attribute.parse(triple),
            },
            regions=1,
        )
    block = ir.Block.create_at_start(made.regions[0], [])
    for op in contents:
        block.append(op.operation)
    with ir.InsertionPoint(block):
        ir.Operation.create(
            "spirv.EntryPoint",
            attributes={
                "execution_model": ir.Attribute.parse("#spirv.execution_model<GLCompute>"),
                "fn": name,
                "interface": ir.ArrayAttr.get(variables),
            },
        )
        size = [ir.IntegerAttr.get(ir.IntegerType.get_signless(32), n) for n in (interface.invocations, 1, 1)]
        ir.Operation.create(
            "spirv.ExecutionMode",
            attributes={
                "fn": name,
                "execution_mode": ir.Attribute.parse("#spirv.execution_mode<LocalSize>"),
                "values": ir.ArrayAttr.get(size),
            },
        )
    made.verify()
    return made


def _with_metadata(binary: bytes, interface: Interface) -> bytes:
    """A shader that says which of its bindings are images."""
    lines = [line for number, binding in enumerate(interface.bindings) if (line := binding.metadata(number))]
    return with_lines(binary, [f"smartmem.kernel.v1 name={interface.name} exact", *lines]) if lines else binary


def _pointer(pointee: str, storage: str) -> ir.Type:
    return ir.Type.parse(f"!spirv.ptr<{pointee}, {storage}>")


def _address(name: str, type_: ir.Type) -> ir.Value:
    symbol = ir.FlatSymbolRefAttr.get(name)
    return ir.Operation.create("spirv.mlir.addressof", results=[type_], attributes={"variable": symbol}).results[0]


def _spirv(name: str, type_: str | ir.Type, operands: Sequence[ir.Value], **attributes: ir.Attribute) -> ir.Value:
    result = ir.Type.parse(type_) if isinstance(type_, str) else type_
    return ir.Operation.create(f"spirv.{name}", [result], list(operands), attributes).results[0]
