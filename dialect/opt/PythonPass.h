//===- PythonPass.h - passes written in another language --------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Puts passes whose code is in Python into MLIR's own registry, so that pipelines,
// mlir-opt's flags, nesting, instrumentation and reproducers treat them as any
// other pass. This header is plain C++ that compiles with and without RTTI: the
// implementation follows MLIR (no RTTI, no exceptions), the caller follows nanobind.
//
//===----------------------------------------------------------------------===//

#ifndef SMARTMEM_OPT_PYTHONPASS_H
#define SMARTMEM_OPT_PYTHONPASS_H

#include "mlir-c/IR.h"
#include <functional>
#include <string>
#include <vector>

namespace mlir::smartmem {

/// One option of a pass. Values travel as text; the pass's own language types them.
struct PassOption {
  enum Kind { Scalar, Flag, List } kind;
  std::string name, help;
  /// Default as text; for a list, its elements.
  std::vector<std::string> defaultValue;
};

/// The value of one option: one string, or any number of them for a list.
struct PassOptionValue {
  std::string name;
  std::vector<std::string> values;
};

/// What went wrong, and at which operation (null: the one that the pass runs on).
struct PassFailure {
  std::string message;
  MlirOperation op = {nullptr};
};

/// A pass. The functions are called with MLIR's state as it is, from any thread.
struct PassDescription {
  std::string argument, summary, name;
  /// Name of the operation that the pass runs on; empty for any.
  std::string anchor;
  std::vector<PassOption> options;
  std::vector<std::string> dependentDialects;

  /// Returns an error message for option values that the pass does not accept, or "".
  std::function<std::string(const std::vector<PassOptionValue> &)> checkOptions;
  /// Runs the pass; true on success.
  std::function<bool(const std::vector<PassOptionValue> &, MlirOperation, PassFailure &)> run;
};

/// Registers a pass for the life of the process. Its argument must be new.
void registerPythonPass(PassDescription description);

/// Whether a pass or pipeline of this argument is registered.
bool isPassRegistered(const std::string &argument);

/// mlir-opt's main function with these dialects; returns the exit code.
int runOptMain(std::vector<std::string> arguments, MlirDialectRegistry dialects);

} // namespace mlir::smartmem

#endif // SMARTMEM_OPT_PYTHONPASS_H
