"""SPIR-V kernels for the image layer's tests, as assembly.

Every kernel computes, for each texel (x, y, z) of a `width x height x depth` tensor of 4-component texels,

    out[x, y, z] = scale * (in0[p] + in1[p] + ...) + bias        with p = (x, y, z), or its mirror image

where each operand is a buffer, an image or a texel buffer by choice. The mirrored address makes a wrong extent visible.
Buffers hold the texels in row-major order: index (z * height + y) * width + x.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Storage = Literal["buffer", "image", "sampled", "texel", "uniform_texel"]
Format = Literal["rgba32f", "rgba16f", "rgba32ui"]
Dim = Literal["2D", "2DArray", "3D"]


@dataclass(frozen=True)
class Operand:
    """How a kernel sees a tensor: `image` and `texel` are storage types, `sampled` and `uniform_texel` are fetched."""

    storage: Storage
    offset: str | None = None
    """Byte offset in the metadata (a literal or `pcN`), for a tensor inside a larger binding."""
    metadata: str | None = None
    """Replaces the metadata line; the empty string drops it."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of the family in the module's docstring; operand `i` is binding `i` of set 0, the output last."""

    inputs: tuple[Operand, ...]
    output: Operand
    width: int
    height: int
    depth: int = 1
    format: Format = "rgba32f"
    dim: Dim = "2D"
    scale: int = 1
    bias: int = 0
    mirror: bool = False
    extents_in_push_constants: bool = False
    """Width, height and depth are dwords 0, 1, 2 of the push constants."""
    name: str = "kernel"
    exact: bool = True
    extra_metadata: tuple[str, ...] = field(default=())

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Inputs, then the output."""
        return (*self.inputs, self.output)

    @property
    def workgroups(self) -> tuple[int, int, int]:
        """The grid, for workgroups of 8 x 8 x 1 threads."""
        return (-(-self.width // 8), -(-self.height // 8), self.depth)

    def extents(self) -> tuple[str, str, str]:
        """Extents as the metadata spells them."""
        if self.extents_in_push_constants:
            return ("pc0", "pc1", "pc2")
        return (str(self.width), str(self.height), str(self.depth))

    def metadata_lines(self) -> list[str]:
        """The OpModuleProcessed strings."""
        width, height, depth = self.extents()
        lines = [f"smartmem.kernel.v1 name={self.name}" + (" exact" if self.exact else "")]
        for binding, operand in enumerate(self.operands):
            if operand.storage == "buffer":
                continue
            line = f"smartmem.image.v1 set=0 binding={binding} fmt={self.format}"
            if operand.storage in ("image", "sampled"):
                line += f" w={width} h={height}" + ("" if self.dim == "2D" else f" d={depth}")
            elif operand.offset is not None:
                line += f" w={self.width * self.height * self.depth}"
            if operand.offset is not None:
                line += f" offset={operand.offset}"
            line = line if operand.metadata is None else operand.metadata
            if line:
                lines.append(line)
        return lines + list(self.extra_metadata)

    def assembly(self) -> str:
        """The module for `spirv-as --target-env spv1.3`."""
        return _Writer(self).write()


class _Writer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.is_float = kernel.format != "rgba32ui"
        self.is_half = kernel.format == "rgba16f"
        self.decorations: list[str] = []
        self.types: list[str] = []
        self.body: list[str] = []
        self.capabilities = ["Shader"]
        self.extension_count = 0

    def write(self) -> str:
        kernel = self.kernel
        # Registers of the kernel's arithmetic: 4 floats, or 4 unsigned integers.
        value, scalar = ("%v4float", "%float") if self.is_float else ("%v4uint", "%uint")
        for binding, operand in enumerate(kernel.operands):
            self._declare(binding, operand, is_output=binding == len(kernel.inputs))
        total = None
        for binding, operand in enumerate(kernel.inputs):
            loaded = self._load(binding, operand, value)
            if total is None:
                total = loaded
            else:
                add = "OpFAdd" if self.is_float else "OpIAdd"
                self.body.append(f"%sum{binding} = {add} {value} {total} {loaded}")
                total = f"%sum{binding}"
        literal = (lambda number: f"{number}.0") if self.is_float else str
        multiply, plus = ("OpFMul", "OpFAdd") if self.is_float else ("OpIMul", "OpIAdd")
        for name, number in (("scale", kernel.scale), ("bias", kernel.bias)):
            self.types.append(f"%{name}1 = OpConstant {scalar} {literal(number)}")
            self.types.append(f"%{name} = OpConstantComposite {value} " + " ".join([f"%{name}1"] * 4))
        self.body.append(f"%scaled = {multiply} {value} {total} %scale")
        self.body.append(f"%result = {plus} {value} %scaled %bias")
        self._store(len(kernel.inputs), kernel.output)
        return self._assemble()

    def _declare(self, binding: int, operand: Operand, *, is_output: bool) -> None:
        variable = f"%b{binding}"
        self.decorations += [
            f"OpDecorate {variable} DescriptorSet 0",
            f"OpDecorate {variable} Binding {binding}",
        ]
        if operand.storage in ("buffer", "image", "texel"):
            self.decorations.append(f"OpDecorate {variable} {'NonReadable' if is_output else 'NonWritable'}")
        if operand.storage == "buffer":
            # f16 texels are two dwords, so that no 16-bit feature is needed.
            element, stride = ("%v2uint", 8) if self.is_half else ("%v4float" if self.is_float else "%v4uint", 16)
            self.decorations += [
                f"OpDecorate %array{binding} ArrayStride {stride}",
                f"OpDecorate %block{binding} Block",
                f"OpMemberDecorate %block{binding} 0 Offset 0",
            ]
            self.types += [
                f"%array{binding} = OpTypeRuntimeArray {element}",
                f"%block{binding} = OpTypeStruct %array{binding}",
                f"%pointer{binding} = OpTypePointer StorageBuffer %block{binding}",
                f"%element{binding} = OpTypePointer StorageBuffer {element}",
                f"{variable} = OpVariable %pointer{binding} StorageBuffer",
            ]
            return
        is_storage = operand.storage in ("image", "texel")
        is_texel = operand.storage in ("texel", "uniform_texel")
        if is_texel:
            self.capabilities.append("ImageBuffer" if is_storage else "SampledBuffer")
        dim = "Buffer" if is_texel else self.kernel.dim.removesuffix("Array")
        arrayed = int(not is_texel and self.kernel.dim == "2DArray")
        spirv_format = {"rgba32f": "Rgba32f", "rgba16f": "Rgba16f", "rgba32ui": "Rgba32ui"}[self.kernel.format]
        sampled_type = "%float" if self.is_float else "%uint"
        self.types += [
            f"%type_{operand.storage} = OpTypeImage {sampled_type} {dim} 0 {arrayed} 0 "
            f"{2 if is_storage else 1} {spirv_format if is_storage else 'Unknown'}",
            f"%pointer{binding} = OpTypePointer UniformConstant %type_{operand.storage}",
            f"{variable} = OpVariable %pointer{binding} UniformConstant",
        ]

    def _load(self, binding: int, operand: Operand, value: str) -> str:
        result = f"%in{binding}"
        if operand.storage == "buffer":
            element = "%v2uint" if self.is_half else value
            self.body += [
                f"%address{binding} = OpAccessChain %element{binding} %b{binding} %uint_0 %read_index",
                f"{'%raw' + str(binding) if self.is_half else result} = OpLoad {element} %address{binding}",
            ]
            if self.is_half:
                self._convert_half(binding, result)
            return result
        coordinate = "%read_index" if "texel" in operand.storage else "%read_point"
        op = "OpImageRead" if operand.storage in ("image", "texel") else "OpImageFetch"
        # texelFetch names the level of detail for images that could have several.
        lod = " Lod %int_0" if operand.storage == "sampled" else ""
        self.body += [
            f"%handle{binding} = OpLoad %type_{operand.storage} %b{binding}",
            f"{result} = {op} {value} %handle{binding} {coordinate}{lod}",
        ]
        return result

    def _convert_half(self, binding: int, result: str) -> None:
        for half in (0, 1):
            self.body += [
                f"%word{binding}_{half} = OpCompositeExtract %uint %raw{binding} {half}",
                f"%pair{binding}_{half} = OpExtInst %v2float %glsl UnpackHalf2x16 %word{binding}_{half}",
            ]
        self.body.append(f"{result} = OpVectorShuffle %v4float %pair{binding}_0 %pair{binding}_1 0 1 2 3")

    def _store(self, binding: int, operand: Operand) -> None:
        if operand.storage == "buffer":
            stored = "%result"
            if self.is_half:
                for half, lanes in ((0, "0 1"), (1, "2 3")):
                    self.body += [
                        f"%out{half} = OpVectorShuffle %v2float %result %result {lanes}",
                        f"%packed{half} = OpExtInst %uint %glsl PackHalf2x16 %out{half}",
                    ]
                self.body.append("%packed = OpCompositeConstruct %v2uint %packed0 %packed1")
                stored = "%packed"
            self.body += [
                f"%target = OpAccessChain %element{binding} %b{binding} %uint_0 %index",
                f"OpStore %target {stored}",
            ]
            return
        coordinate = "%index" if "texel" in operand.storage else "%point"
        self.body += [
            f"%handle{binding} = OpLoad %type_{operand.storage} %b{binding}",
            f"OpImageWrite %handle{binding} {coordinate} %result",
        ]

    def _extents(self) -> tuple[list[str], list[str], list[str]]:
        """Declarations, decorations and loads of %width, %height and %depth."""
        names = ("width", "height", "depth")
        values = (self.kernel.width, self.kernel.height, self.kernel.depth)
        if not self.kernel.extents_in_push_constants:
            return [f"%{name} = OpConstant %uint {value}" for name, value in zip(names, values, strict=True)], [], []
        declarations = [
            "%push_block = OpTypeStruct %uint %uint %uint",
            "%push_pointer = OpTypePointer PushConstant %push_block",
            "%push_element = OpTypePointer PushConstant %uint",
            "%push = OpVariable %push_pointer PushConstant",
        ]
        decorations = ["OpDecorate %push_block Block"]
        loads = []
        for index, name in enumerate(names):
            decorations.append(f"OpMemberDecorate %push_block {index} Offset {4 * index}")
            loads += [
                f"%{name}_address = OpAccessChain %push_element %push %uint_{index}",
                f"%{name} = OpLoad %uint %{name}_address",
            ]
        return declarations, decorations, loads

    def _address(self) -> list[str]:
        lines = []
        for axis in range(3):
            lines.append(f"%id{axis} = OpCompositeExtract %uint %id {axis}")
        for axis, extent in enumerate(("width", "height", "depth")):
            lines.append(f"%inside{axis} = OpULessThan %bool %id{axis} %{extent}")
        lines += [
            "%inside01 = OpLogicalAnd %bool %inside0 %inside1",
            "%inside = OpLogicalAnd %bool %inside01 %inside2",
            "OpSelectionMerge %end None",
            "OpBranchConditional %inside %then %end",
            "%then = OpLabel",
        ]
        read = []
        for axis, extent in enumerate(("width", "height", "depth")):
            if not self.kernel.mirror:
                read.append(f"%id{axis}")
                continue
            lines += [
                f"%last{axis} = OpISub %uint %{extent} %uint_1",
                f"%mirrored{axis} = OpISub %uint %last{axis} %id{axis}",
            ]
            read.append(f"%mirrored{axis}")
        for prefix, (x, y, z) in (("", ("%id0", "%id1", "%id2")), ("read_", (read[0], read[1], read[2]))):
            components = f"{x} {y}" if self.kernel.dim == "2D" else f"{x} {y} {z}"
            rank = 2 if self.kernel.dim == "2D" else 3
            lines += [
                f"%{prefix}point = OpCompositeConstruct %v{rank}uint {components}",
                f"%{prefix}row0 = OpIMul %uint {z} %height",
                f"%{prefix}row = OpIAdd %uint %{prefix}row0 {y}",
                f"%{prefix}start = OpIMul %uint %{prefix}row %width",
                f"%{prefix}index = OpIAdd %uint %{prefix}start {x}",
            ]
        return lines

    def _assemble(self) -> str:
        declarations, decorations, loads = self._extents()
        lines = [f"OpCapability {capability}" for capability in dict.fromkeys(self.capabilities)]
        lines += [
            '%glsl = OpExtInstImport "GLSL.std.450"',
            "OpMemoryModel Logical GLSL450",
            'OpEntryPoint GLCompute %main "main" %gl_id',
            "OpExecutionMode %main LocalSize 8 8 1",
            *(f'OpModuleProcessed "{line}"' for line in self.kernel.metadata_lines()),
            "OpDecorate %gl_id BuiltIn GlobalInvocationId",
            *self.decorations,
            *decorations,
            "%void = OpTypeVoid",
            "%function = OpTypeFunction %void",
            "%bool = OpTypeBool",
            "%float = OpTypeFloat 32",
            "%v2float = OpTypeVector %float 2",
            "%v4float = OpTypeVector %float 4",
            "%int = OpTypeInt 32 1",
            "%uint = OpTypeInt 32 0",
            "%v2uint = OpTypeVector %uint 2",
            "%v3uint = OpTypeVector %uint 3",
            "%v4uint = OpTypeVector %uint 4",
            "%int_0 = OpConstant %int 0",
            "%uint_0 = OpConstant %uint 0",
            "%uint_1 = OpConstant %uint 1",
            "%uint_2 = OpConstant %uint 2",
            *declarations,
            *dict.fromkeys(self.types),
            "%id_pointer = OpTypePointer Input %v3uint",
            "%gl_id = OpVariable %id_pointer Input",
            "%main = OpFunction %void None %function",
            "%entry = OpLabel",
            "%id = OpLoad %v3uint %gl_id",
            *loads,
            *self._address(),
            *self.body,
            "OpBranch %end",
            "%end = OpLabel",
            "OpReturn",
            "OpFunctionEnd",
        ]
        return "\n".join(lines) + "\n"
