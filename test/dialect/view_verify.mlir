// Each constraint of a view.
// RUN: smartmem-opt %s --split-input-file --verify-diagnostics

func.func @dynamic(%a: tensor<?xf32>) {
  // expected-error@+1 {{operand #0 must be variadic of statically shaped tensor of any type values, but got 'tensor<?xf32>'}}
  %0 = smartmem.view %a at (d0) -> (d0) : (tensor<?xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @too_large(%a: tensor<1xf32>) {
  // expected-error@+1 {{result size does not fit 63 bits}}
  %0 = smartmem.view %a at (d0, d1) -> (0) : (tensor<1xf32>) -> tensor<4294967296x4294967296xf32>
  return
}

// -----

func.func @piece_rank(%a: tensor<4xf32>) {
  // expected-error@+1 {{piece 0 has rank 1 but the result has rank 2}}
  %0 = smartmem.view %a pieces [[0 to 4] from 0 at (d0) -> (d0)] : (tensor<4xf32>) -> tensor<4x1xf32>
  return
}

// -----

func.func @box_outside(%a: tensor<8xf32>) {
  // expected-error@+1 {{piece 0 ends at 5 in dimension 0, beyond the result's extent 4}}
  %0 = smartmem.view %a pieces [[0 to 5] from 0 at (d0) -> (d0)] : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @overlap(%a: tensor<8xf32>) {
  // expected-error@+1 {{pieces overlap: #smartmem.piece<[0 to 3] from 0 at (d0) -> (d0)> and #smartmem.piece<[2 to 4] from 0 at (d0) -> (d0)>}}
  %0 = smartmem.view %a pieces [[2 to 4] from 0 at (d0) -> (d0), [0 to 3] from 0 at (d0) -> (d0)] : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

// Equal volume is not enough: two pieces overlap and a corner is left out.
func.func @overlap_second_dimension(%a: tensor<8x8xf32>) {
  // expected-error@+1 {{pieces overlap}}
  %0 = smartmem.view %a pieces [[0 to 2, 0 to 3] from 0 at (d0, d1) -> (d0, d1), [0 to 2, 2 to 3] from 0 at (d0, d1) -> (d0, d1)] : (tensor<8x8xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @gap(%a: tensor<8xf32>) {
  // expected-error@+1 {{pieces cover 3 of 4 elements}}
  %0 = smartmem.view %a pieces [[0 to 1] from 0 at (d0) -> (d0), [2 to 4] from 0 at (d0) -> (d0)] : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @no_such_source(%a: tensor<8xf32>) {
  // expected-error@+1 {{piece 0 reads source 1 but there are 1}}
  %0 = smartmem.view %a pieces [[0 to 4] from 1 at (d0) -> (d0)] : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @source_rank(%a: tensor<8x2xf32>) {
  // expected-error@+1 {{piece 0 maps to 1 dimensions but source 0 has rank 2}}
  %0 = smartmem.view %a at (d0) -> (d0) : (tensor<8x2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @beyond_source(%a: tensor<4xf32>) {
  // expected-error@+1 {{piece 0 reads index 4 of dimension 0 of source 0, whose extent is 4}}
  %0 = smartmem.view %a at (d0) -> (d0 + 1) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @before_source(%a: tensor<4xf32>) {
  // expected-error@+1 {{piece 0 reads index -1 of dimension 0 of source 0}}
  %0 = smartmem.view %a at (d0) -> (d0 - 1) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @source_type(%a: tensor<4xf16>) {
  // expected-error@+1 {{source 0 holds 'f16' but the result holds 'f32'}}
  %0 = smartmem.view %a at (d0) -> (d0) : (tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @fill_type() {
  // expected-error@+1 {{piece 0 fills with 0 : i32 but the result holds 'f32'}}
  %0 = smartmem.view pieces [[0 to 4] fill 0 : i32] : () -> tensor<4xf32>
  return
}

// -----

func.func @map_of_empty_result(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected 'pieces []' for an empty result}}
  %0 = smartmem.view %a at (d0) -> (d0) : (tensor<4xf32>) -> tensor<0xf32>
  return
}

// -----

func.func @no_result(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected one ranked tensor result}}
  smartmem.view %a at (d0) -> (d0) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @invalid_map(%a: tensor<4xf32>) {
  // expected-error@+1 {{piece map takes 2 dimensions but the box has 1}}
  %0 = smartmem.view %a at (d0, d1) -> (d0) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @no_pieces_keyword(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected 'pieces' or 'at'}}
  %0 = smartmem.view %a : (tensor<4xf32>) -> tensor<4xf32>
  return
}
