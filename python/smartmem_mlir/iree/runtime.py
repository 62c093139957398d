"""Running a module in this process with IREE's runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cache, partial
from pathlib import Path
from typing import Any

import iree.runtime as rt
import numpy as np
import numpy.typing as npt

from smartmem_mlir.errors import DeviceError, DeviceLostError, InvalidModelError, first_line
from smartmem_mlir.iree.archive import SCOPE
from smartmem_mlir.iree.buffer_pool import BufferPool
from smartmem_mlir.iree.host_view import is_host_memory, view_on_host
from smartmem_mlir.iree.image_layer import CANARIES, prove_layer
from smartmem_mlir.iree.open_devices import forget_device, open_device
from smartmem_mlir.iree.storage import transient_bytes
from smartmem_mlir.iree.toolchain import RUNTIME_PACKAGE, package_version
from smartmem_mlir.iree.vm_module import open_module
from smartmem_mlir.signature import TensorSpec

Array = npt.NDArray[np.generic]

_ENTRY = "main"
# Two races in IREE 3.13's Vulkan driver, seen on a busy machine: the semaphore that wakes its queue is signalled by two
# threads without a lock, now and then in the wrong order, on which Mesa's drivers lose the device (one load in 20); and
# memory is used before it is allocated. With a new device the next load is right.
_RACES = {
    "DATA_LOSS": "the driver lost",
    "transient buffer has no staged Vulkan backing": "IREE used memory before it was allocated on",
}
_LOADS = 4
_ELEMENT_TYPES = {
    "f64": rt.HalElementType.FLOAT_64,
    "f32": rt.HalElementType.FLOAT_32,
    "f16": rt.HalElementType.FLOAT_16,
    "i64": rt.HalElementType.SINT_64,
    "i32": rt.HalElementType.SINT_32,
    "i16": rt.HalElementType.SINT_16,
    "i8": rt.HalElementType.SINT_8,
    "ui8": rt.HalElementType.UINT_8,
    "i1": rt.HalElementType.BOOL_8,
}


class LoadedModule:
    """A module on a device, its weights loaded.

    Args:
        vmfb: The module.
        parameters: Its archive, or None for a module without weights.
        device_uri: Device as IREE names it.
        inputs: Arguments of the function, in order.
        outputs: Results of the function, in order.
        entry: The function that a call runs.

    Raises:
        DeviceError: The device cannot be opened, or the module does not load on it.
        DeviceLostError: The driver loses the device time and again.
        InvalidModelError: It has no such function.
    """

    def __init__(
        self,
        vmfb: Path,
        parameters: Path | None,
        device_uri: str,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        entry: str = _ENTRY,
    ) -> None:
        self._vmfb, self._parameters, self._device_uri = vmfb, parameters, device_uri
        self._load()
        self._enter(entry, inputs, outputs)

    def _load(self) -> None:
        for attempt in range(1, _LOADS + 1):
            try:
                return self._load_once()
            except DeviceLostError:
                if attempt == _LOADS:
                    raise

    def _load_once(self) -> None:
        self._device = open_device(self._device_uri)
        instance = rt.VmInstance()
        try:
            modules = [rt.create_hal_module(instance, self._device)]
            if self._parameters is not None:
                index = rt.ParameterIndex()
                index.load(str(self._parameters))
                modules.append(rt.create_io_parameters_module(instance, index.create_provider(scope=SCOPE)))
            self._module = open_module(instance, self._vmfb)
            # Loading runs the initializers: kernels are created and weights are uploaded here.
            self._context = rt.VmContext(instance, [*modules, self._module])
        except (RuntimeError, ValueError) as error:
            self._refuse_lost_device(error)
            version = package_version(RUNTIME_PACKAGE)
            raise DeviceError(
                f"IREE {version} cannot load the module on {self._device_uri}: {first_line(error)}",
                hint="compile it again with the installed version",
                file=self._vmfb,
            ) from error

    def _refuse_lost_device(self, error: Exception) -> None:
        """Nothing that was opened on a lost device works again: who comes next gets a new one."""
        what = next((what for text, what in _RACES.items() if text in str(error)), None)
        if what is None:
            return
        forget_device(self._device_uri, self._device)
        raise DeviceLostError(
            f"{what} {self._device_uri}: {first_line(error)}",
            hint="load the model again; if that does not help, look for what the driver logged",
            file=self._vmfb,
        ) from error

    def with_entry(self, entry: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> LoadedModule:
        """Another function of the same loaded module.

        Raises:
            InvalidModelError: It has no such function.
        """
        other = copy(self)
        other._enter(entry, inputs, outputs)
        return other

    def _enter(self, entry: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> None:
        self._inputs, self._outputs = tuple(inputs), tuple(outputs)
        self._entry_name = entry
        self._entry = self._module.lookup_function(entry)
        if self._entry is None:
            raise InvalidModelError(f"the module has no function '{entry}'", file=self._vmfb)
        transient = transient_bytes(self._entry.reflection)
        # Memory that a call passes, results first; none if the function has its own.
        sizes = () if transient is None else (*(spec.nbytes for spec in outputs), transient)
        self._pools = [BufferPool(self._device.allocator, size) for size in sizes]

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        """One inference.

        Args:
            inputs: Arrays of the shapes and types of the module's inputs, in order.

        Returns:
            The outputs, in host memory.

        Raises:
            DeviceError: The device failed.
            DeviceLostError: The driver lost it twice.
        """
        try:
            return self._call(inputs)
        except DeviceLostError:
            # A call changes nothing that the next one reads.
            self._load()
            self._enter(self._entry_name, self._inputs, self._outputs)
            return self._call(inputs)

    def _call(self, inputs: Sequence[Array]) -> list[Array]:
        arguments, results = rt.VmVariantList(len(inputs)), rt.VmVariantList(len(self._outputs))
        # Of the device that this call runs on: another thread's call may have opened a new one by the end of it.
        pools = self._pools
        try:
            for spec, values in zip(self._inputs, inputs, strict=True):
                arguments.push_ref(self._upload(values, spec))
            storage = [pool.take() for pool in pools]
            for buffer in storage:
                arguments.push_ref(buffer)
            self._context.invoke(self._entry, arguments, results)
            # Only now, and not after a failure, can nothing on the device still use the storage.
            free = [partial(pool.give_back, buffer) for pool, buffer in zip(pools, storage, strict=True)]
            if not is_host_memory(self._device_uri):
                outputs = [self._download(results, position, spec) for position, spec in enumerate(self._outputs)]
            elif pools:
                outputs = [_view(*result) for result in zip(storage, self._outputs, free, strict=False)]
                free = free[len(outputs) :]
            else:
                outputs = [_copy(results, position, spec) for position, spec in enumerate(self._outputs)]
        except RuntimeError as error:
            self._refuse_lost_device(error)
            raise DeviceError(f"the device failed: {first_line(error)}") from error
        for give_back in free:
            give_back()
        return outputs

    def _upload(self, values: Array, spec: TensorSpec) -> Any:
        # Booleans are bytes on the device.
        host = np.ascontiguousarray(values.view(np.int8) if spec.dtype == "i1" else values).reshape(spec.shape)
        return self._device.allocator.allocate_buffer_copy(
            memory_type=rt.MemoryType.DEVICE_LOCAL,
            allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
            device=self._device,
            buffer=host,
            element_type=_ELEMENT_TYPES[spec.dtype],
        )

    def _download(self, results: Any, position: int, spec: TensorSpec) -> Array:
        view = results.get_as_object(position, rt.HalBufferView)
        source = view.get_buffer()
        # Always by way of a staging buffer. DeviceArray.to_host() imports NumPy's memory as the target of the copy,
        # which Vulkan drivers on a CPU refuse unless it is aligned to a page.
        staging = self._device.allocator.allocate_buffer(
            memory_type=rt.MemoryType.HOST_LOCAL | rt.MemoryType.DEVICE_VISIBLE,
            allowed_usage=rt.BufferUsage.TRANSFER_TARGET | rt.BufferUsage.MAPPING_SCOPED,
            allocation_size=source.byte_length(),
        )
        semaphore = self._device.create_semaphore(0)
        self._device.queue_copy(
            source,
            staging,
            wait_semaphores=rt.HalFence.create_at(semaphore, 0),
            signal_semaphores=rt.HalFence.create_at(semaphore, 1),
        )
        rt.HalFence.create_at(semaphore, 1).wait()
        values = np.array(staging.map().asarray(tuple(view.shape), _storage_type(spec)), copy=True)
        return values.astype(np.bool_) if spec.dtype == "i1" else values


@cache
def prove_images(folder: Path, device_uri: str) -> None:
    """Makes sure that a device has the image layer, before a module with image kernels is loaded on it.

    Args:
        folder: A compiled model's directory.
        device_uri: Device as IREE names it.

    Raises:
        DeviceError: It does not have it.
    """
    texels = TensorSpec("texels", (4, 8, 4), "f32")

    def load_mirror() -> LoadedModule:
        return LoadedModule(folder / CANARIES["mirror"], None, device_uri, [texels], [texels], "mirror")

    version = TensorSpec("version", (1,), "i32")
    call = LoadedModule(folder / CANARIES["version"], None, device_uri, [], [version], "layer_version")
    prove_layer(call, load_mirror)


def _copy(results: Any, position: int, spec: TensorSpec) -> Array:
    """A result that the function allocated: it may share its memory with another result or with a weight."""
    buffer = results.get_as_object(position, rt.HalBufferView).get_buffer()
    return np.array(_view(buffer, spec, lambda: None), copy=True)


def _view(buffer: Any, spec: TensorSpec, release: Callable[[], None]) -> Array:
    values = view_on_host(buffer, spec.shape, _storage_type(spec), release)
    return values.astype(np.bool_) if spec.dtype == "i1" else values


def _storage_type(spec: TensorSpec) -> np.dtype[Any]:
    """Booleans are bytes on the device."""
    return np.dtype(np.int8) if spec.dtype == "i1" else spec.numpy_dtype
