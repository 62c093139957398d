// Operations that a conversion may not pass, each for its own reason.
// RUN: smartmem-opt %s --smartmem-fold-layouts | FileCheck %s
// RUN: smartmem-opt %s -o %t.before
// RUN: smartmem-opt %s --smartmem-fold-layouts -o %t.after
// RUN: diff %t.before %t.after

#packed = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>
#turned = #smartmem.layout<(d0, d1) -> (d1, d0), buffer>
#id = affine_map<(d0, d1) -> (d0, d1)>
#swap = affine_map<(d0, d1) -> (d1, d0)>

// The other operand is not converted: a conversion would have to be added.
// CHECK-LABEL: func.func @one_operand
func.func @one_operand(%a: tensor<8x8xf32>, %b: tensor<8x8xf32, #packed>) -> tensor<8x8xf32, #packed> {
  %0 = smartmem.convert_layout %a : tensor<8x8xf32> -> tensor<8x8xf32, #packed>
  %1 = arith.addf %0, %b : tensor<8x8xf32, #packed>
  return %1 : tensor<8x8xf32, #packed>
}

// The operands come from different layouts.
// CHECK-LABEL: func.func @two_layouts
func.func @two_layouts(%a: tensor<8x8xf32>, %b: tensor<8x8xf32, #turned>) -> tensor<8x8xf32, #packed> {
  %0 = smartmem.convert_layout %a : tensor<8x8xf32> -> tensor<8x8xf32, #packed>
  %1 = smartmem.convert_layout %b : tensor<8x8xf32, #turned> -> tensor<8x8xf32, #packed>
  %2 = arith.addf %0, %1 : tensor<8x8xf32, #packed>
  return %2 : tensor<8x8xf32, #packed>
}

// The conversion has another user, which needs it.
// CHECK-LABEL: func.func @multiple_users
func.func @multiple_users(%a: tensor<8x8xf32>) -> (tensor<8x8xf32, #packed>, tensor<8x8xf32, #packed>) {
  %0 = smartmem.convert_layout %a : tensor<8x8xf32> -> tensor<8x8xf32, #packed>
  %1 = math.exp %0 : tensor<8x8xf32, #packed>
  return %0, %1 : tensor<8x8xf32, #packed>, tensor<8x8xf32, #packed>
}

// The other operand's conversion has another user.
// CHECK-LABEL: func.func @shared_operand
func.func @shared_operand(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> (tensor<8x8xf32, #packed>, tensor<8x8xf32, #packed>) {
  %0 = smartmem.convert_layout %a : tensor<8x8xf32> -> tensor<8x8xf32, #packed>
  %1 = smartmem.convert_layout %b : tensor<8x8xf32> -> tensor<8x8xf32, #packed>
  %2 = arith.addf %0, %1 : tensor<8x8xf32, #packed>
  return %0, %2 : tensor<8x8xf32, #packed>, tensor<8x8xf32, #packed>
}

// The operation changes the layout itself.
// CHECK-LABEL: func.func @converting_generic
func.func @converting_generic(%a: tensor<8x8xf32>) -> tensor<8x8xf32, #turned> {
  %0 = smartmem.convert_layout %a : tensor<8x8xf32> -> tensor<8x8xf32, #packed>
  %1 = tensor.empty() : tensor<8x8xf32, #turned>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<8x8xf32, #packed>) outs(%1 : tensor<8x8xf32, #turned>) {
  ^bb0(%x: f32, %y: f32):
    %t = math.tanh %x : f32
    linalg.yield %t : f32
  } -> tensor<8x8xf32, #turned>
  return %2 : tensor<8x8xf32, #turned>
}

// The result is wider than the operand: converting it moves more bytes.
// CHECK-LABEL: func.func @wider_result
func.func @wider_result(%a: tensor<8x8xf16>) -> tensor<8x8xf32, #packed> {
  %0 = smartmem.convert_layout %a : tensor<8x8xf16> -> tensor<8x8xf16, #packed>
  %1 = arith.extf %0 : tensor<8x8xf16, #packed> to tensor<8x8xf32, #packed>
  return %1 : tensor<8x8xf32, #packed>
}

// A transposing generic is not elementwise.
// CHECK-LABEL: func.func @transposing_generic
func.func @transposing_generic(%a: tensor<8x8xf32>) -> tensor<8x8xf32, #packed> {
  %0 = smartmem.convert_layout %a : tensor<8x8xf32> -> tensor<8x8xf32, #packed>
  %1 = tensor.empty() : tensor<8x8xf32, #packed>
  %2 = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<8x8xf32, #packed>) outs(%1 : tensor<8x8xf32, #packed>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<8x8xf32, #packed>
  return %2 : tensor<8x8xf32, #packed>
}

// Nor is a matmul.
// CHECK-LABEL: func.func @matmul
func.func @matmul(%a: tensor<8x8xf32>, %c: tensor<8x8xf32, #packed>) -> tensor<8x8xf32, #packed> {
  %0 = smartmem.convert_layout %a : tensor<8x8xf32> -> tensor<8x8xf32, #packed>
  %1 = linalg.matmul ins(%0, %0 : tensor<8x8xf32, #packed>, tensor<8x8xf32, #packed>) outs(%c : tensor<8x8xf32, #packed>) -> tensor<8x8xf32, #packed>
  return %1 : tensor<8x8xf32, #packed>
}
