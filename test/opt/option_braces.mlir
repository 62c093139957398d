// Options in braces after a flag, as in a pipeline; also of upstream passes.
// RUN: smartmem-opt %s '--smartmem-print-cost{json=true}' 2>&1 | FileCheck %s --check-prefixes=JSON
// RUN: smartmem-opt %s '--smartmem-print-cost{json}' 2>&1 | FileCheck %s --check-prefix=JSON
// RUN: smartmem-opt %s '--smartmem-print-cost{json=false}' 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: smartmem-opt %s '--canonicalize{test-convergence=true max-iterations=3}' --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=UPSTREAM

// JSON: {"function": "f", "conversions": 0,
// TEXT: @f: 0 conversions
// UPSTREAM: canonicalize{{.*}}max-iterations=3{{.*}}test-convergence=true
func.func @f() { return }
