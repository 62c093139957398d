"""The Vulkan devices of this machine: what matters to a module that wants to run on one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from smartmem_mlir.errors import DeviceError

_NO_LOADER = "apt install libvulkan1 and a driver, such as mesa-vulkan-drivers"
# VK_SUBGROUP_FEATURE_*_BIT -> SPIR-V capability.
_SUBGROUP_CAPABILITIES = {
    0x001: "GroupNonUniform",
    0x002: "GroupNonUniformVote",
    0x004: "GroupNonUniformArithmetic",
    0x008: "GroupNonUniformBallot",
    0x010: "GroupNonUniformShuffle",
    0x020: "GroupNonUniformShuffleRelative",
    0x040: "GroupNonUniformClustered",
    0x080: "GroupNonUniformQuad",
}
# Structure of features -> its member -> the SPIR-V capabilities that the member grants.
_FEATURES: dict[str, dict[str, tuple[str, ...]]] = {
    "VkPhysicalDevice16BitStorageFeatures": {
        "storageBuffer16BitAccess": ("StorageBuffer16BitAccess",),
        "uniformAndStorageBuffer16BitAccess": ("UniformAndStorageBuffer16BitAccess",),
        "storagePushConstant16": ("StoragePushConstant16",),
    },
    "VkPhysicalDevice8BitStorageFeatures": {
        "storageBuffer8BitAccess": ("StorageBuffer8BitAccess",),
        "uniformAndStorageBuffer8BitAccess": ("UniformAndStorageBuffer8BitAccess",),
        "storagePushConstant8": ("StoragePushConstant8",),
    },
    "VkPhysicalDeviceShaderFloat16Int8Features": {"shaderFloat16": ("Float16",), "shaderInt8": ("Int8",)},
    "VkPhysicalDeviceVariablePointersFeatures": {
        "variablePointersStorageBuffer": ("VariablePointersStorageBuffer",),
        "variablePointers": ("VariablePointers",),
    },
    "VkPhysicalDeviceVulkanMemoryModelFeatures": {
        "vulkanMemoryModel": ("VulkanMemoryModel",),
        "vulkanMemoryModelDeviceScope": ("VulkanMemoryModelDeviceScope",),
    },
    "VkPhysicalDeviceBufferDeviceAddressFeatures": {"bufferDeviceAddress": ("PhysicalStorageBufferAddresses",)},
    "VkPhysicalDeviceCooperativeMatrixFeaturesKHR": {"cooperativeMatrix": ("CooperativeMatrixKHR",)},
    "VkPhysicalDeviceShaderIntegerDotProductFeatures": {
        "shaderIntegerDotProduct": (
            "DotProduct",
            "DotProductInputAll",
            "DotProductInput4x8Bit",
            "DotProductInput4x8BitPacked",
        )
    },
}
_CORE_FEATURES: dict[str, tuple[str, ...]] = {
    "shaderFloat64": ("Float64",),
    "shaderInt64": ("Int64",),
    "shaderInt16": ("Int16",),
    "shaderStorageImageExtendedFormats": ("StorageImageExtendedFormats",),
    "shaderStorageImageReadWithoutFormat": ("StorageImageReadWithoutFormat",),
    "shaderStorageImageWriteWithoutFormat": ("StorageImageWriteWithoutFormat",),
}
_ALWAYS = frozenset({"Matrix", "Shader", "SampledBuffer", "ImageBuffer", "Image1D", "Sampled1D"})


@dataclass(frozen=True)
class VulkanDevice:
    """A physical device.

    Args:
        index: Position in the loader's enumeration.
        uuid: `deviceUUID` in hexadecimal.
        name: `deviceName`.
        driver: `driverName` and `driverInfo`.
        api_version: Vulkan version as (major, minor).
        subgroup_size: Size of every subgroup of a kernel that does not ask for another.
        capabilities: SPIR-V capabilities that kernels may declare.
        max_workgroup_size: Along x, y, z.
        max_workgroup_invocations: As a product.
        max_shared_memory_bytes: Workgroup memory.
        max_storage_buffers: Storage buffers bound to one kernel.
        max_storage_buffer_bytes: Size of one binding.
        matrices: Cooperative matrices of f16 whose product a subgroup adds to one of f32: rows, columns and terms.
    """

    index: int
    uuid: str
    name: str
    driver: str
    api_version: tuple[int, int]
    subgroup_size: int
    capabilities: frozenset[str]
    max_workgroup_size: tuple[int, int, int]
    max_workgroup_invocations: int
    max_shared_memory_bytes: int
    max_storage_buffers: int
    max_storage_buffer_bytes: int
    matrices: frozenset[tuple[int, int, int]] = frozenset()

    @property
    def iree_path(self) -> str:
        """The device as IREE's Vulkan driver addresses it."""
        return f"GPU-{self.uuid}"


def vulkan_devices() -> list[VulkanDevice]:
    """All devices that the loader finds; `VK_DRIVER_FILES` selects among drivers as for any Vulkan program.

    Raises:
        DeviceError: There is no Vulkan loader, it cannot make an instance, or the package `vulkan` is missing.
    """
    try:
        import vulkan as vk
    except ModuleNotFoundError as error:
        message = f"the Python package '{error.name}', which finds Vulkan devices, is not installed"
        raise DeviceError(message, hint="pip install vulkan cffi") from error
    except (ImportError, OSError) as error:
        raise DeviceError("there is no Vulkan loader on this machine", hint=_NO_LOADER) from error
    with _instance(vk) as instance:
        if instance is None:
            return []
        try:
            handles = list(vk.vkEnumeratePhysicalDevices(instance))
        except (vk.VkError, vk.VkException) as error:
            raise DeviceError(f"Vulkan cannot list its devices ({error})", hint=_NO_LOADER) from error
        return [_describe(vk, instance, index, handle) for index, handle in enumerate(handles)]


@contextmanager
def _instance(vk: Any) -> Iterator[Any]:
    """An instance, or None where no driver is installed."""
    application = vk.VkApplicationInfo(pApplicationName=b"smartmem", apiVersion=vk.VK_MAKE_VERSION(1, 1, 0))
    try:
        instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=application), None)
    except vk.VkErrorIncompatibleDriver:
        yield None
        return
    except (vk.VkError, vk.VkException) as error:
        raise DeviceError(f"Vulkan cannot start ({type(error).__name__})", hint=_NO_LOADER) from error
    try:
        yield instance
    finally:
        vk.vkDestroyInstance(instance, None)


def _describe(vk: Any, instance: Any, index: int, handle: Any) -> VulkanDevice:
    # What a driver does not know stays zero: the structures are allocated cleared.
    subgroup = vk.VkPhysicalDeviceSubgroupProperties()
    driver = vk.VkPhysicalDeviceDriverProperties(pNext=subgroup)
    identity = vk.VkPhysicalDeviceIDProperties(pNext=driver)
    properties2 = vk.VkPhysicalDeviceProperties2(pNext=identity)
    vk.vkGetPhysicalDeviceProperties2(handle, properties2)
    properties, limits = properties2.properties, properties2.properties.limits

    structures: dict[str, Any] = {}
    chain = None
    for name in _FEATURES:
        chain = structures[name] = getattr(vk, name)(pNext=chain)
    features2 = vk.VkPhysicalDeviceFeatures2(pNext=chain)
    vk.vkGetPhysicalDeviceFeatures2(handle, features2)

    capabilities = set(_ALWAYS)
    for member, granted in _CORE_FEATURES.items():
        capabilities.update(granted if getattr(features2.features, member) else ())
    for name, members in _FEATURES.items():
        for member, granted in members.items():
            capabilities.update(granted if getattr(structures[name], member) else ())
    if subgroup.supportedStages & vk.VK_SHADER_STAGE_COMPUTE_BIT:
        capabilities.update(name for bit, name in _SUBGROUP_CAPABILITIES.items() if subgroup.supportedOperations & bit)
    x, y, z = (int(limits.maxComputeWorkGroupSize[axis]) for axis in range(3))
    version = properties.apiVersion
    return VulkanDevice(
        index=index,
        uuid=bytes(identity.deviceUUID).hex(),
        name=_text(properties.deviceName),
        driver=f"{_text(driver.driverName)} {_text(driver.driverInfo)}".strip(),
        api_version=(version >> 22 & 0x7F, version >> 12 & 0x3FF),
        subgroup_size=int(subgroup.subgroupSize),
        capabilities=frozenset(capabilities),
        max_workgroup_size=(x, y, z),
        max_workgroup_invocations=int(limits.maxComputeWorkGroupInvocations),
        max_shared_memory_bytes=int(limits.maxComputeSharedMemorySize),
        max_storage_buffers=int(limits.maxPerStageDescriptorStorageBuffers),
        max_storage_buffer_bytes=int(limits.maxStorageBufferRange),
        matrices=_matrices(vk, instance, handle) if "CooperativeMatrixKHR" in capabilities else frozenset(),
    )


def _matrices(vk: Any, instance: Any, handle: Any) -> frozenset[tuple[int, int, int]]:
    list_properties = vk.vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")
    half, single = vk.VK_COMPONENT_TYPE_FLOAT16_KHR, vk.VK_COMPONENT_TYPE_FLOAT32_KHR
    wanted = (half, half, single, single, vk.VK_SCOPE_SUBGROUP_KHR)
    return frozenset(
        (int(each.MSize), int(each.NSize), int(each.KSize))
        for each in list_properties(handle)
        if (each.AType, each.BType, each.CType, each.ResultType, each.scope) == wanted
    )


def _text(characters: Any) -> str:
    """A NUL-terminated `char` array of a structure; the binding decodes some of them itself."""
    if isinstance(characters, str):
        return characters
    return b"".join(characters).split(b"\0", 1)[0].decode(errors="replace")


def vulkan_layers() -> set[str]:
    """Names of the installed Vulkan layers; empty without a loader."""
    try:
        import vulkan as vk
    except (ImportError, OSError):
        return set()
    return {_text(layer.layerName) for layer in vk.vkEnumerateInstanceLayerProperties()}
