//===- PythonPass.cpp - passes written in another language ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PythonPass.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include <memory>

using namespace mlir;
using namespace mlir::smartmem;

namespace {

/// What a context needs before it runs such a pass, done when the pass manager shows it
/// the pass's dependencies: the last moment before it counts as running threads.
struct PrepareContext : DialectExtensionBase {
  explicit PrepareContext(std::shared_ptr<const PassDescription> description)
      : DialectExtensionBase({StringRef("builtin")}), description(std::move(description)) {}

  void apply(MLIRContext *context, MutableArrayRef<Dialect *>) const override {
    // There is one interpreter lock: worker threads would wait for the thread that waits
    // for them.
    context->disableMultithreading();
    // By name, as the pass manager does it, which wants a TypeID that we do not have.
    for (const std::string &name : description->dependentDialects)
      if (!context->getOrLoadDialect(name))
        emitError(UnknownLoc::get(context)) << description->argument << " needs the dialect '"
                                            << name << "', which is not registered";
  }
  std::unique_ptr<DialectExtensionBase> clone() const override {
    return std::make_unique<PrepareContext>(description);
  }

  std::shared_ptr<const PassDescription> description;
};

class PythonPass : public Pass {
public:
  PythonPass(TypeID id, std::shared_ptr<const PassDescription> pass)
      : Pass(id, getAnchor(*pass)), description(std::move(pass)) {
    addOptions();
  }
  PythonPass(const PythonPass &other) : Pass(other), description(other.description) {
    addOptions();
  }

  StringRef getName() const override { return description->name; }
  StringRef getArgument() const override { return description->argument; }
  StringRef getDescription() const override { return description->summary; }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.addExtension(getTypeID(), std::make_unique<PrepareContext>(description));
  }

  LogicalResult
  initializeOptions(StringRef text,
                    function_ref<LogicalResult(const Twine &)> errorHandler) override {
    auto named = [&](const Twine &message) {
      return errorHandler(Twine(getArgument()) + ": " + StringRef(message.str()).rtrim());
    };
    auto withChoices = [&](const Twine &message) {
      std::string legal;
      for (const PassOption &option : description->options)
        legal += (legal.empty() ? "" : ", ") + option.name;
      std::string text = message.str();
      StringRef problem = StringRef(text).rtrim();
      problem.consume_front("<Pass-Options-Parser>: ");
      return named(problem + (legal.empty() ? Twine("; it has no options")
                                            : "; its options are " + Twine(legal)));
    };
    if (failed(Pass::initializeOptions(text, withChoices)))
      return failure();
    std::string problem = description->checkOptions(getOptionValues());
    return problem.empty() ? success() : named(problem);
  }

protected:
  LogicalResult initialize(MLIRContext *context) override {
    if (!context->isMultithreadingEnabled())
      return success();
    return emitError(UnknownLoc::get(context))
           << getArgument() << " cannot run in threads: call context.enable_multithreading(False)";
  }

  bool canScheduleOn(RegisteredOperationName name) const override {
    return !getOpName() || name.getStringRef() == *getOpName();
  }

  void runOnOperation() override {
    PassFailure problem;
    if (description->run(getOptionValues(), wrap(getOperation()), problem))
      return;
    // Only a particular operation is shown in full: the anchor may be a whole model.
    if (problem.op.ptr)
      unwrap(problem.op)->emitOpError() << problem.message;
    else
      emitError(getOperation()->getLoc()) << problem.message;
    signalPassFailure();
  }

  std::unique_ptr<Pass> clonePass() const override { return std::make_unique<PythonPass>(*this); }

private:
  static std::optional<StringRef> getAnchor(const PassDescription &description) {
    return description.anchor.empty() ? std::nullopt : std::optional<StringRef>(description.anchor);
  }

  void addOptions() {
    for (const PassOption &option : description->options) {
      llvm::cl::desc help(option.help);
      if (option.kind == PassOption::List) {
        lists.push_back(std::make_unique<ListOption<std::string>>(
            *this, option.name, help, llvm::cl::list_init<std::string>(option.defaultValue)));
      } else if (option.kind == PassOption::Flag) {
        flags.push_back(std::make_unique<Option<bool>>(
            *this, option.name, help, llvm::cl::init(option.defaultValue[0] == "true")));
      } else {
        scalars.push_back(std::make_unique<Option<std::string>>(
            *this, option.name, help, llvm::cl::init(option.defaultValue[0])));
      }
    }
  }

  std::vector<PassOptionValue> getOptionValues() const {
    std::vector<PassOptionValue> values;
    for (auto &option : scalars)
      values.push_back({option->ArgStr.str(), {option->getValue()}});
    for (auto &option : flags)
      values.push_back({option->ArgStr.str(), {option->getValue() ? "true" : "false"}});
    for (auto &option : lists)
      values.push_back(
          {option->ArgStr.str(), std::vector<std::string>((**option).begin(), (**option).end())});
    return values;
  }

  std::shared_ptr<const PassDescription> description;
  // Held by pointer: the command line library keeps their addresses.
  std::vector<std::unique_ptr<Option<std::string>>> scalars;
  std::vector<std::unique_ptr<Option<bool>>> flags;
  std::vector<std::unique_ptr<ListOption<std::string>>> lists;
};

} // namespace

void smartmem::registerPythonPass(PassDescription description) {
  // Identifiers of passes live as long as the registry: the whole process.
  static TypeIDAllocator identifiers;
  TypeID id = identifiers.allocate();
  auto shared = std::make_shared<const PassDescription>(std::move(description));
  registerPass([id, shared] { return std::make_unique<PythonPass>(id, shared); });
}

bool smartmem::isPassRegistered(const std::string &argument) {
  return PassInfo::lookup(argument) || PassPipelineInfo::lookup(argument);
}

int smartmem::runOptMain(std::vector<std::string> arguments, MlirDialectRegistry dialects) {
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  return asMainReturnCode(MlirOptMain(
      static_cast<int>(arguments.size()), argv.data(),
      "smartmem-opt: mlir-opt with the smartmem dialect and passes\n", *unwrap(dialects)));
}
