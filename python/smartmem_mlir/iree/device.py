"""From a device URI on the command line to a device of this machine."""

from __future__ import annotations

from smartmem_mlir.errors import DeviceError, OptionError
from smartmem_mlir.iree.assumptions import CpuAssumptions, VulkanAssumptions
from smartmem_mlir.iree.cpu import Cpu, this_cpu
from smartmem_mlir.iree.vulkan import VulkanDevice, vulkan_devices

CPU_DRIVERS = ("local-task", "local-sync")
_HOW_TO_NAME = "devices: cpu, local-task, local-sync, vulkan, vulkan://INDEX or vulkan://GPU-UUID"


def default_device(assumptions: CpuAssumptions | VulkanAssumptions) -> str:
    """The device that a module runs on when none is named."""
    return "local-task" if isinstance(assumptions, CpuAssumptions) else "vulkan"


def resolve_device(uri: str) -> tuple[str, Cpu | VulkanDevice]:
    """The device that a URI names, and the URI under which IREE knows it.

    Args:
        uri: `cpu`, `local-task`, `local-sync`, `vulkan` (the first device), `vulkan://1` or `vulkan://GPU-<uuid>`.

    Raises:
        OptionError: The URI is malformed.
        DeviceError: There is no such device.
    """
    if uri == "cpu":
        uri = CPU_DRIVERS[0]
    if uri in CPU_DRIVERS:
        return uri, this_cpu()
    driver, _, path = uri.partition("://")
    if driver != "vulkan":
        raise OptionError(f"unknown device '{uri}'", hint=_HOW_TO_NAME)
    device = _select(vulkan_devices(), path, uri)
    return f"vulkan://{device.iree_path}", device


def _select(devices: list[VulkanDevice], path: str, uri: str) -> VulkanDevice:
    if not devices:
        raise DeviceError(
            "there is no Vulkan device on this machine",
            hint="install a driver, such as mesa-vulkan-drivers, or check VK_DRIVER_FILES",
        )
    if not path:
        return devices[0]
    for device in devices:
        if path in (str(device.index), device.iree_path):
            return device
    known = ", ".join(f"vulkan://{device.index} ({device.name})" for device in devices)
    raise DeviceError(f"there is no Vulkan device '{uri}'", hint=f"devices: {known}")
