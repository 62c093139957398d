"""The generated bindings import `._ods_common`: hand them MLIR's."""

import sys

import mlir.dialects._ods_common as _common

sys.modules[__name__] = _common
