//===- Passes.cpp - Python passes in MLIR's registry, and mlir-opt --------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extension.h"
#include "PythonPass.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlir::smartmem;

/// Option values as `dict[str, list[str]]`.
static nb::dict toDict(const std::vector<PassOptionValue> &options) {
  nb::dict dict;
  for (const PassOptionValue &option : options)
    dict[option.name.c_str()] = option.values;
  return dict;
}

using OptionTuple = std::tuple<std::string, std::string, std::string, std::vector<std::string>>;

static PassOption toOption(const OptionTuple &option) {
  auto &[kind, name, help, defaultValue] = option;
  if (kind == "list")
    return {PassOption::List, name, help, defaultValue};
  if (defaultValue.size() != 1)
    throw nb::value_error("a scalar option needs one default");
  return {kind == "flag" ? PassOption::Flag : PassOption::Scalar, name, help, defaultValue};
}

static void registerPass(const std::string &argument, const std::string &name,
                         const std::string &summary, const std::string &anchor,
                         const std::vector<OptionTuple> &options,
                         const std::vector<std::string> &dependentDialects, nb::callable check,
                         nb::callable run) {
  if (isPassRegistered(argument))
    throw nb::value_error(("a pass named '" + argument + "' is registered already").c_str());
  PassDescription description;
  description.argument = argument;
  description.name = name;
  description.summary = summary;
  description.anchor = anchor;
  for (const OptionTuple &option : options)
    description.options.push_back(toOption(option));
  description.dependentDialects = dependentDialects;
  // The registry lives until the process ends, when the interpreter is gone already:
  // the references to Python objects are given up, not released.
  nb::handle checkFn = check.release(), runFn = run.release();
  description.checkOptions = [checkFn](const std::vector<PassOptionValue> &values) -> std::string {
    nb::gil_scoped_acquire gil;
    try {
      return nb::cast<std::string>(checkFn(toDict(values)));
    } catch (const std::exception &error) {
      return error.what();
    }
  };
  description.run = [runFn](const std::vector<PassOptionValue> &values, MlirOperation op,
                            PassFailure &failure) -> bool {
    nb::gil_scoped_acquire gil;
    try {
      nb::object problem = runFn(toDict(values), op);
      if (problem.is_none())
        return true;
      auto [message, culprit] = nb::cast<std::tuple<std::string, nb::object>>(problem);
      failure.message = message;
      if (!culprit.is_none())
        failure.op = nb::cast<MlirOperation>(culprit);
    } catch (const std::exception &error) { // the callable itself is broken
      failure.message = error.what();
    }
    return false;
  };
  registerPythonPass(std::move(description));
}

void smartmem::python::bindPasses(nb::module_ &m) {
  m.def("register_pass", registerPass, nb::arg("argument"), nb::arg("name"), nb::arg("summary"),
        nb::arg("anchor"), nb::arg("options"), nb::arg("dependent_dialects"), nb::arg("check"),
        nb::arg("run"),
        "Registers a pass with MLIR.\n\n"
        "options: (kind, name, help, default) with kind scalar, flag or list.\n"
        "check(values) returns an error message or ''. run(values, op) returns None, or\n"
        "(message, operation or None) when the pass failed. Neither may raise.");
  m.def("is_pass_registered", isPassRegistered, nb::arg("argument"),
        "Whether MLIR knows a pass or pipeline of this name.");
  m.def(
      "opt_main",
      [](const std::vector<std::string> &arguments, MlirDialectRegistry dialects) {
        nb::gil_scoped_release release;
        return runOptMain(arguments, dialects);
      },
      nb::arg("arguments"), nb::arg("dialects"),
      "mlir-opt's main function; returns its exit code, or ends the process (--help, bad flags).");
}
