// Layouts print as they are written, named at the top of the file.
// RUN: smartmem-opt %s | FileCheck %s
// RUN: smartmem-opt %s --verify-roundtrip -o /dev/null

// CHECK-DAG: #[[IMAGE:layout[0-9]*]] = #smartmem.layout<(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4), image2d>
// CHECK-DAG: #[[BUFFER:layout[0-9]*]] = #smartmem.layout<(d0, d1) -> (d1, d0), buffer>
// CHECK-DAG: #[[TEXEL:layout[0-9]*]] = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), texel_buffer>
// CHECK-DAG: #[[ARRAY:layout[0-9]*]] = #smartmem.layout<(d0, d1, d2, d3) -> (d1 floordiv 4, d2, d3, d1 mod 4), image2d_array>
// CHECK-DAG: #[[VOLUME:layout[0-9]*]] = #smartmem.layout<(d0, d1, d2, d3) -> (d1 floordiv 4, d2, d3, d1 mod 4), image3d>
#image = #smartmem.layout<(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4), image2d>
#buffer = #smartmem.layout<(d0, d1) -> (d1, d0), buffer>
#texel = #smartmem.layout<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4), texel_buffer>
#array = #smartmem.layout<(d0, d1, d2, d3) -> (d1 floordiv 4, d2, d3, d1 mod 4), image2d_array>
#volume = #smartmem.layout<(d0, d1, d2, d3) -> (d1 floordiv 4, d2, d3, d1 mod 4), image3d>

// CHECK: func.func private @image(tensor<2x6x7x9xf16, #[[IMAGE]]>)
func.func private @image(tensor<2x6x7x9xf16, #image>)
// CHECK: func.func private @buffer(tensor<3x5xi64, #[[BUFFER]]>)
func.func private @buffer(tensor<3x5xi64, #buffer>)
// CHECK: func.func private @texel(tensor<3x5xui8, #[[TEXEL]]>)
func.func private @texel(tensor<3x5xui8, #texel>)
// CHECK: func.func private @array(tensor<1x8x7x9xf32, #[[ARRAY]]>)
func.func private @array(tensor<1x8x7x9xf32, #array>)
// CHECK: func.func private @volume(tensor<1x8x7x9xf32, #[[VOLUME]]>)
func.func private @volume(tensor<1x8x7x9xf32, #volume>)
