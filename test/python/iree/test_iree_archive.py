"""`params.irpa` as IREE's own runtime reads it."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import iree.runtime as rt
import numpy as np
import numpy.typing as npt
import pytest

from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.iree.archive import write_archive
from smartmem_mlir.signature import MLIR_DTYPES, Parameter, TensorSpec

Array = npt.NDArray[np.generic]


def parameter(key: str, values: Array) -> Parameter:
    return Parameter(TensorSpec(key, values.shape, MLIR_DTYPES[values.dtype]), lambda: values)


def read_back(path: Path) -> dict[str, bytes]:
    index = rt.ParameterIndex()
    index.load(str(path), mmap=False)
    return {key: rt.parameter_index_entry_as_numpy_flat_ndarray(entry).tobytes() for key, entry in index.items()}


def test_iree_reads_every_type_shape_and_key(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, Array] = {
        "layers.0/attn/qkv.weight": rng.standard_normal((3, 5)).astype(np.float32),
        "f16": rng.standard_normal(7).astype(np.float16),
        "scalar": np.array(3.5, np.float64),
        "bool": np.array([True, False, True]),
        'a "quoted" key with ünïcode': np.arange(11, dtype=np.int64),
        "bytes": np.arange(65, dtype=np.uint8),
        "empty": np.zeros((0, 4), np.float32),
        "strided": rng.standard_normal((4, 6)).astype(np.float32)[:, ::2].T,
    }
    summary = write_archive(tmp_path / "p.irpa", {key: parameter(key, values) for key, values in arrays.items()})
    assert summary.tensors == len(arrays)
    assert summary.data_bytes == sum(values.nbytes for values in arrays.values())
    assert summary.file_bytes == (tmp_path / "p.irpa").stat().st_size
    stored = read_back(tmp_path / "p.irpa")
    assert stored == {key: values.tobytes() for key, values in arrays.items()}


def test_the_archive_is_what_irees_own_writer_makes(tmp_path: Path) -> None:
    values = np.arange(1000, dtype=np.float32)
    write_archive(tmp_path / "ours.irpa", {"w": parameter("w", values)})
    index = rt.ParameterIndex()
    index.add_buffer("w", values)
    index.create_archive_file(str(tmp_path / "theirs.irpa"))
    assert read_back(tmp_path / "ours.irpa") == read_back(tmp_path / "theirs.irpa")


def test_an_archive_without_weights_loads(tmp_path: Path) -> None:
    write_archive(tmp_path / "p.irpa", {})
    assert read_back(tmp_path / "p.irpa") == {}


@pytest.mark.parametrize("values", [np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float16)])
def test_values_that_do_not_fit_their_description_are_refused(tmp_path: Path, values: Array) -> None:
    wrong = Parameter(TensorSpec("w", (3, 2), "f32"), lambda: values)
    with pytest.raises(InvalidModelError, match="w: the weight has the values of a"):
        write_archive(tmp_path / "p.irpa", {"w": wrong})


def test_only_one_weight_is_in_memory_at_a_time(tmp_path: Path) -> None:
    # 16 weights of 16 MB: 256 MB in all must not pass through memory at once. Measured in a process of its own,
    # because the peak of this one has long been set by others.
    script = """
import sys
from pathlib import Path
import numpy as np
from smartmem_mlir.iree.archive import write_archive
from smartmem_mlir.signature import Parameter, TensorSpec
n = 4 << 20
def peak():
    # Not ru_maxrss, which a process inherits from the one that started it: a peak below that would not be seen.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
before = peak()
weights = {str(i): Parameter(TensorSpec(str(i), (n,), "f32"), lambda i=i: np.full(n, i, np.float32)) for i in range(16)}
write_archive(Path(sys.argv[1]), weights)
print(peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "p.irpa")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 64 * 1024  # kilobytes


def test_a_file_size_limit_is_an_os_error(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_archive(tmp_path / "p.irpa", {"w": parameter("w", np.zeros(1 << 16, np.float32))})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, former)
