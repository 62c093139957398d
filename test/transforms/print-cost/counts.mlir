// One line for each function; bytes include the padding of a tail.
// RUN: smartmem-opt %s --smartmem-print-cost -o /dev/null 2>&1 | FileCheck %s
// RUN: smartmem-opt %s '--smartmem-print-cost{json}' -o /dev/null 2>&1 | FileCheck %s --check-prefix=JSON

// The conversion reads 3*5*4 bytes and writes 3*2*4*4; the group reads and writes 60 each.
// CHECK: @f: 1 conversions (156 bytes), 1 views (60 bytes), 1 groups (120 bytes), 1 parameters (8 bytes)
// CHECK: @nothing: 0 conversions (0 bytes), 0 views (0 bytes), 0 groups (0 bytes), 0 parameters (0 bytes)
// JSON: {"function": "f", "conversions": 1, "conversion_bytes": 156, "views": 1, "view_bytes": 60, "groups": 1, "group_bytes": 120, "parameters": 1, "parameter_bytes": 8}
#packed = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>
func.func @f(%a: tensor<3x5xf32>) -> tensor<5x3xf32> {
  %w = smartmem.parameter @w : tensor<4xf16>
  %c = smartmem.convert_layout %a : tensor<3x5xf32> -> tensor<3x5xf32, #packed>
  %v = smartmem.view %a at (d0, d1) -> (d1, d0) : (tensor<3x5xf32>) -> tensor<5x3xf32>
  %g = smartmem.group(%x = %v) : (tensor<5x3xf32>) -> tensor<5x3xf32> {
    %e = math.exp %x : tensor<5x3xf32>
    smartmem.yield %e : tensor<5x3xf32>
  }
  return %g : tensor<5x3xf32>
}
func.func @nothing() { return }
