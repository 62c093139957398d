// Layouts of practice are proved injective by reasoning: the tensors are too large to enumerate.
// RUN: smartmem-opt %s --verify-roundtrip -o /dev/null
// RUN: smartmem-opt %s --mlir-print-local-scope | FileCheck %s

// CHECK-COUNT-20: func.func private
func.func private @permutation(tensor<64x3x224x224xf32, #smartmem.layout<(d0, d1, d2, d3) -> (d0, d2, d3, d1), buffer>>)
// A tail: 5 channels in texels of 4.
func.func private @tail(tensor<1x5x70x70xf32, #smartmem.layout<(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4), image2d>>)
// Rows merged into one dimension, split again elsewhere.
func.func private @merge_and_split(tensor<8x49x96xf32, #smartmem.layout<(d0, d1, d2) -> ((d0 * 49 + d1) floordiv 16, (d0 * 49 + d1) mod 16, d2), buffer>>)
// Three digits of one dimension, out of order.
func.func private @three_digits(tensor<100000xf32, #smartmem.layout<(d0) -> (d0 mod 4, d0 floordiv 12, (d0 floordiv 4) mod 3), buffer>>)
// Three channels in texels of 4: one lane of each is padding.
func.func private @three_channels(tensor<1x3x224x224xf32, #smartmem.layout<(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4), image2d>>)
// Both dimensions tiled.
func.func private @tiles(tensor<196x384xf32, #smartmem.layout<(d0, d1) -> (d0 floordiv 7, d1 floordiv 8, d0 mod 7, d1 mod 8), buffer>>)
// Rows rotated against bank conflicts; three at once are too many unknowns for integer programming.
func.func private @three_swizzles(tensor<64x64x64x64x64x64xf32, #smartmem.layout<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, (d0 + d3) mod 64, (d1 + d4) mod 64, (d2 + d5) mod 64), buffer>>)
// Quotients whose low digits do not carry, also too many unknowns.
func.func private @no_carry(tensor<64x4x2x64x4x2xf32, #smartmem.layout<(d0, d1, d2, d3, d4, d5) -> ((d0 * 8 + d1 * 2 + d2) floordiv 8, d1, d2, (d3 * 8 + d4 * 2 + d5) floordiv 8, d4, d5), buffer>>)
// One rotated row.
func.func private @swizzle(tensor<640x32xf32, #smartmem.layout<(d0, d1) -> (d0, (d0 + d1) mod 32), buffer>>)
// Counted from the end.
func.func private @reversed(tensor<16000xf32, #smartmem.layout<(d0) -> (15999 - d0), buffer>>)
// One linear address with a row pitch.
func.func private @pitch(tensor<300x49xf32, #smartmem.layout<(d0, d1) -> (d0 * 52 + d1), buffer>>)
// Division rounded up.
func.func private @ceil(tensor<16000xf32, #smartmem.layout<(d0) -> (d0 ceildiv 4, d0 mod 4), buffer>>)
// A dimension of extent 1 need not appear.
func.func private @unit(tensor<1x8000xf32, #smartmem.layout<(d0, d1) -> (d1), buffer>>)
// A scalar.
func.func private @scalar(tensor<f32, #smartmem.layout<() -> (0), buffer>>)
// No elements at all.
func.func private @empty(tensor<0x8xf32, #smartmem.layout<(d0, d1) -> (d1, d0), buffer>>)
// Far more elements than could be enumerated.
func.func private @huge(tensor<1048576x1048576xf16, #smartmem.layout<(d0, d1) -> (d1 floordiv 8, d0, d1 mod 8), buffer>>)
// No digits: sum and difference, two equations in two unknowns.
func.func private @rotated(tensor<5000x5000xf32, #smartmem.layout<(d0, d1) -> (d0 + d1, d0 - d1 + 4999), buffer>>)
// The same, one equation given twice.
func.func private @dependent(tensor<5000x5000xf32, #smartmem.layout<(d0, d1) -> (d0 + d1, d0 * 2 + d1 * 2, d0 - d1 + 4999), buffer>>)
// Sums of neighbours, each in four digits: four equations in four unknowns.
func.func private @mixed(tensor<256x256x256x256xi8, #smartmem.layout<(d0, d1, d2, d3) -> (
  (d0 * 3 + d1) floordiv 8, ((d0 * 3 + d1) floordiv 4) mod 2, ((d0 * 3 + d1) floordiv 2) mod 2, (d0 * 3 + d1) mod 2,
  (d1 * 3 + d2) floordiv 8, ((d1 * 3 + d2) floordiv 4) mod 2, ((d1 * 3 + d2) floordiv 2) mod 2, (d1 * 3 + d2) mod 2,
  (d2 * 3 + d3) floordiv 8, ((d2 * 3 + d3) floordiv 4) mod 2, ((d2 * 3 + d3) floordiv 2) mod 2, (d2 * 3 + d3) mod 2,
  (d3 * 3 + d0) floordiv 8, ((d3 * 3 + d0) floordiv 4) mod 2, ((d3 * 3 + d0) floordiv 2) mod 2, (d3 * 3 + d0) mod 2), buffer>>)
// 3 * d0 + 5 * d1 + 7 * d2 has many solutions, but not within these bounds: integer programming.
func.func private @within_bounds(tensor<5x3x100000xf32, #smartmem.layout<(d0, d1, d2) -> (d0 * 3 + d1 * 5 + d2 * 1000), buffer>>)
