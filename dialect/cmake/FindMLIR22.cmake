# Finds MLIR 22, wherever it is, and defines
#   MLIR_TABLEGEN, MLIR_INCLUDE_DIRS, LLVM_DEFINITIONS   as find_package(MLIR) does
#   SMARTMEM_MLIR_LIBRARIES     what the dialect links to
#   SMARTMEM_PYTHON_BINDINGS    whether the Python extension can be built, and for it
#   SMARTMEM_PYTHON_LIBRARIES   what it links to: one copy of MLIR, the one that `mlir` loads
#   SMARTMEM_PYTHON_RPATH       where that is, relative to the installed package
#   SMARTMEM_OPT_LIBRARIES      mlir-opt's main function

option(SMARTMEM_ENABLE_PYTHON "Build the Python extension if MLIR has Python bindings" ON)

if(SMARTMEM_ENABLE_PYTHON)
  find_package(Python 3.10 COMPONENTS Interpreter Development.Module)
endif()

# The wheels xtc-mlir-* and xtc-llvm-* put everything below the packages mlir and llvm.
if(NOT MLIR_DIR)
  if(NOT Python_FOUND)
    message(FATAL_ERROR "set -DMLIR_DIR to an MLIR 22 install, or use a Python with the MLIR wheels")
  endif()
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c [=[
import importlib.util as u
print(*(u.find_spec(p).submodule_search_locations[0] for p in ("mlir", "llvm")), sep=";", end="")]=]
    OUTPUT_VARIABLE _roots RESULT_VARIABLE _failed)
  if(_failed)
    message(FATAL_ERROR "set -DMLIR_DIR to an MLIR 22 install, or pip install the build requirements of pyproject.toml")
  endif()
  list(GET _roots 0 _mlir_root)
  list(GET _roots 1 _llvm_root)
  set(MLIR_DIR "${_mlir_root}/lib/cmake/mlir")
  set(LLVM_DIR "${_llvm_root}/lib/cmake/llvm")
endif()

find_package(MLIR REQUIRED CONFIG)
if(NOT LLVM_PACKAGE_VERSION MATCHES "^22\\.")
  message(FATAL_ERROR "MLIR 22 is needed, ${MLIR_DIR} is ${LLVM_PACKAGE_VERSION}")
endif()
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION}: ${MLIR_DIR}")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")

find_program(MLIR_TABLEGEN mlir-tblgen REQUIRED
  HINTS "${MLIR_INSTALL_PREFIX}/bin" "${LLVM_TOOLS_BINARY_DIR}")

# The dylib where there is one, static libraries otherwise.
if(TARGET MLIR)
  set(SMARTMEM_MLIR_LIBRARIES MLIR)
else()
  set(SMARTMEM_MLIR_LIBRARIES MLIRIR MLIRAnalysis MLIRPresburger MLIRSupport)
endif()

set(SMARTMEM_PYTHON_BINDINGS OFF)
if(SMARTMEM_ENABLE_PYTHON AND Python_FOUND)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c [=[
import importlib.util as u
print(u.find_spec("mlir").submodule_search_locations[0], end="")]=]
    OUTPUT_VARIABLE _mlir_package RESULT_VARIABLE _failed ERROR_QUIET)
  if(NOT _failed AND EXISTS "${_mlir_package}/_mlir_libs/libMLIRPythonCAPI.so")
    set(SMARTMEM_PYTHON_BINDINGS ON)
  endif()
endif()

if(NOT SMARTMEM_PYTHON_BINDINGS)
  message(STATUS "No Python bindings of MLIR: building the dialect library only")
  return()
endif()

find_package(nanobind CONFIG QUIET)
if(NOT nanobind_FOUND)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_DIR OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  find_package(nanobind CONFIG REQUIRED)
endif()

set(SMARTMEM_PYTHON_LIBRARIES "${_mlir_package}/_mlir_libs/libMLIRPythonCAPI.so")
set(SMARTMEM_PYTHON_RPATH "$ORIGIN/../mlir/_mlir_libs")
# libMLIRPythonCAPI.so takes LLVM from a shared library in the wheels.
cmake_path(GET LLVM_LIBRARY_DIR PARENT_PATH _llvm_package)
if(EXISTS "${LLVM_LIBRARY_DIR}/libLLVM.so")
  list(APPEND SMARTMEM_PYTHON_LIBRARIES "${LLVM_LIBRARY_DIR}/libLLVM.so")
  list(APPEND SMARTMEM_PYTHON_RPATH "$ORIGIN/../llvm/lib")
endif()

# Static parts of mlir-opt that the shared library does not export. The last three must
# stand after it, so that only the members it lacks are taken: two copies of MLIR's
# registries or type ids in one process would not see each other.
foreach(name IN ITEMS MLIROptLib MLIRDebug MLIRObservers MLIRPluginsLib MLIRRemarkStreamer)
  list(APPEND SMARTMEM_OPT_LIBRARIES "${MLIR_INSTALL_PREFIX}/lib/lib${name}.a")
endforeach()
list(APPEND SMARTMEM_OPT_LIBRARIES ${SMARTMEM_PYTHON_LIBRARIES})
foreach(name IN ITEMS MLIRPass MLIRSupport MLIRIR)
  list(APPEND SMARTMEM_OPT_LIBRARIES "${MLIR_INSTALL_PREFIX}/lib/lib${name}.a")
endforeach()
