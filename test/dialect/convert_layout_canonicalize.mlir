// RUN: smartmem-opt %s --canonicalize | FileCheck %s

// CHECK-DAG: #[[T:layout[0-9]*]] = #smartmem.layout<(d0, d1) -> (d1, d0), buffer>
// CHECK-DAG: #[[P:layout[0-9]*]] = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>
#t = #smartmem.layout<(d0, d1) -> (d1, d0), buffer>
#p = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), buffer>

// CHECK-LABEL: func.func @identity
// CHECK-SAME: %[[A:.*]]: tensor
func.func @identity(%a: tensor<4x8xf32, #t>) -> tensor<4x8xf32, #t> {
  // CHECK-NEXT: return %[[A]]
  %0 = smartmem.convert_layout %a reason "none" : tensor<4x8xf32, #t> -> tensor<4x8xf32, #t>
  return %0 : tensor<4x8xf32, #t>
}

// CHECK-LABEL: func.func @inverse_pair
// CHECK-SAME: %[[A:.*]]: tensor
func.func @inverse_pair(%a: tensor<4x8xf32, #t>) -> tensor<4x8xf32, #t> {
  // CHECK-NEXT: return %[[A]]
  %0 = smartmem.convert_layout %a : tensor<4x8xf32, #t> -> tensor<4x8xf32, #p>
  %1 = smartmem.convert_layout %0 : tensor<4x8xf32, #p> -> tensor<4x8xf32, #t>
  return %1 : tensor<4x8xf32, #t>
}

// CHECK-LABEL: func.func @long_way_back
// CHECK-SAME: %[[A:.*]]: tensor
func.func @long_way_back(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: return %[[A]]
  %0 = smartmem.convert_layout %a : tensor<4x8xf32> -> tensor<4x8xf32, #p>
  %1 = smartmem.convert_layout %0 : tensor<4x8xf32, #p> -> tensor<4x8xf32, #t>
  %2 = smartmem.convert_layout %1 : tensor<4x8xf32, #t> -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// The later reason stays.
// CHECK-LABEL: func.func @compose_later_reason
func.func @compose_later_reason(%a: tensor<4x8xf32>) -> tensor<4x8xf32, #t> {
  // CHECK-NEXT: smartmem.convert_layout %{{.*}} reason "second" : tensor<4x8xf32> -> tensor<4x8xf32, #[[T]]>
  // CHECK-NEXT: return
  %0 = smartmem.convert_layout %a reason "first" : tensor<4x8xf32> -> tensor<4x8xf32, #p>
  %1 = smartmem.convert_layout %0 reason "second" : tensor<4x8xf32, #p> -> tensor<4x8xf32, #t>
  return %1 : tensor<4x8xf32, #t>
}

// The earlier one where the later has none.
// CHECK-LABEL: func.func @compose_earlier_reason
func.func @compose_earlier_reason(%a: tensor<4x8xf32>) -> tensor<4x8xf32, #t> {
  // CHECK-NEXT: smartmem.convert_layout %{{.*}} reason "first" : tensor<4x8xf32> -> tensor<4x8xf32, #[[T]]>
  // CHECK-NEXT: return
  %0 = smartmem.convert_layout %a reason "first" : tensor<4x8xf32> -> tensor<4x8xf32, #p>
  %1 = smartmem.convert_layout %0 : tensor<4x8xf32, #p> -> tensor<4x8xf32, #t>
  return %1 : tensor<4x8xf32, #t>
}

// The first conversion stays for its other user.
// CHECK-LABEL: func.func @multiple_users
func.func @multiple_users(%a: tensor<4x8xf32>) -> (tensor<4x8xf32, #p>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[P1:.*]] = smartmem.convert_layout %[[A:.*]] : tensor<4x8xf32> -> tensor<4x8xf32, #[[P]]>
  // CHECK-NEXT: return %[[P1]], %[[A]]
  %0 = smartmem.convert_layout %a : tensor<4x8xf32> -> tensor<4x8xf32, #p>
  %1 = smartmem.convert_layout %0 : tensor<4x8xf32, #p> -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32, #p>, tensor<4x8xf32>
}
