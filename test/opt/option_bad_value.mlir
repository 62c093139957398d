// RUN: not smartmem-opt %s '--smartmem-externalize-constants{min-elements=many}' 2>&1 | FileCheck %s --check-prefix=INT
// RUN: not smartmem-opt %s '--smartmem-externalize-constants{min-elements=0}' 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not smartmem-opt %s '--smartmem-externalize-constants{archive=a.zip}' 2>&1 | FileCheck %s --check-prefix=SUFFIX
// RUN: not smartmem-opt %s '--smartmem-print-cost{json=perhaps}' 2>&1 | FileCheck %s --check-prefix=FLAG

// INT: error: smartmem-externalize-constants: option 'min-elements' must be an integer, got 'many'
// RANGE: error: smartmem-externalize-constants: option 'min-elements' must be positive, got 0
// SUFFIX: error: smartmem-externalize-constants: option 'archive' must end in .npz, got 'a.zip'
// FLAG: 'perhaps' is invalid value for boolean argument! Try 0 or 1
// FLAG: smartmem-print-cost
func.func private @f()
