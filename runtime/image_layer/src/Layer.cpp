//===- Layer.cpp - entry points for the loader ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hooks.h"
#include "Version.h"

#include <algorithm>
#include <cstring>

namespace smartmem::image_layer {
namespace {

/// The loader puts the same pointer, to its dispatch table, at the start of every dispatchable
/// handle of an instance or a device.
void *dispatchKey(void *dispatchable) { return *static_cast<void **>(dispatchable); }

std::shared_mutex registryMutex;
std::unordered_map<void *, std::unique_ptr<Instance>> instances;
std::unordered_map<void *, std::unique_ptr<Device>> devices;

Instance *findInstance(void *dispatchable) {
  std::shared_lock lock(registryMutex);
  auto found = instances.find(dispatchKey(dispatchable));
  return found == instances.end() ? nullptr : found->second.get();
}

/// Finds the loader's own structure of the given function in a pNext chain.
template <typename Info>
Info *findLoaderInfo(const void *chain, VkStructureType type, VkLayerFunction function) {
  for (auto at = static_cast<const VkBaseInStructure *>(chain); at; at = at->pNext) {
    auto info = reinterpret_cast<Info *>(const_cast<VkBaseInStructure *>(at));
    if (at->sType == type && info->function == function)
      return info;
  }
  return nullptr;
}

bool enablesTimelineSemaphores(const VkDeviceCreateInfo &info) {
  for (auto at = static_cast<const VkBaseInStructure *>(info.pNext); at; at = at->pNext) {
    if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
      return reinterpret_cast<const VkPhysicalDeviceVulkan12Features *>(at)->timelineSemaphore;
    if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES)
      return reinterpret_cast<const VkPhysicalDeviceTimelineSemaphoreFeatures *>(at)
          ->timelineSemaphore;
  }
  return false;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL getInstanceProcAddr(VkInstance handle, const char *name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL getDeviceProcAddr(VkDevice handle, const char *name);

//===----------------------------------------------------------------------===//
// Instances and devices
//===----------------------------------------------------------------------===//

VKAPI_ATTR VkResult VKAPI_CALL createInstance(const VkInstanceCreateInfo *info,
                                              const VkAllocationCallbacks *allocator,
                                              VkInstance *handle) {
  auto link = findLoaderInfo<VkLayerInstanceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO, VK_LAYER_LINK_INFO);
  if (!link || !link->u.pLayerInfo)
    return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  auto create = reinterpret_cast<PFN_vkCreateInstance>(next(nullptr, "vkCreateInstance"));
  VkResult result = create ? create(info, allocator, handle) : VK_ERROR_INITIALIZATION_FAILED;
  if (result != VK_SUCCESS)
    return result;
  auto instance = std::make_unique<Instance>();
  instance->handle = *handle;
  instance->table.load(*handle, next);
  std::unique_lock lock(registryMutex);
  instances[dispatchKey(*handle)] = std::move(instance);
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL destroyInstance(VkInstance handle,
                                           const VkAllocationCallbacks *allocator) {
  if (!handle)
    return;
  std::unique_ptr<Instance> instance;
  {
    std::unique_lock lock(registryMutex);
    auto found = instances.find(dispatchKey(handle));
    if (found == instances.end())
      return;
    instance = std::move(found->second);
    instances.erase(found);
  }
  instance->table.DestroyInstance(handle, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL createDevice(VkPhysicalDevice physicalDevice,
                                            const VkDeviceCreateInfo *info,
                                            const VkAllocationCallbacks *allocator,
                                            VkDevice *handle) {
  auto link = findLoaderInfo<VkLayerDeviceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO, VK_LAYER_LINK_INFO);
  auto callback = findLoaderInfo<VkLayerDeviceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO, VK_LOADER_DATA_CALLBACK);
  Instance *instance = findInstance(physicalDevice);
  if (!link || !link->u.pLayerInfo || !callback || !instance)
    return VK_ERROR_INITIALIZATION_FAILED;

  DeviceInfo device;
  if (Status status = Options::fromEnvironment(device.options); !status.ok())
    return report(status);
  setLogLevel(device.options.logLevel);
  instance->table.GetPhysicalDeviceProperties(physicalDevice, &device.properties);
  const VkPhysicalDeviceLimits &limits = device.properties.limits;
  device.limits = {limits.maxImageDimension2D, limits.maxImageDimension3D,
                   limits.maxImageArrayLayers, limits.maxTexelBufferElements,
                   std::max<VkDeviceSize>(limits.minTexelBufferOffsetAlignment, 1)};
  if (Status status = device.options.lowerLimits(device.limits); !status.ok())
    return report(status);

  PFN_vkGetInstanceProcAddr nextInstance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  PFN_vkGetDeviceProcAddr nextDevice = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  SetLoaderData setLoaderData = callback->u.pfnSetDeviceLoaderData;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  auto create =
      reinterpret_cast<PFN_vkCreateDevice>(nextInstance(instance->handle, "vkCreateDevice"));
  VkResult result =
      create ? create(physicalDevice, info, allocator, handle) : VK_ERROR_INITIALIZATION_FAILED;
  if (result != VK_SUCCESS)
    return result;

  device.device = *handle;
  device.physicalDevice = physicalDevice;
  device.instanceTable = &instance->table;
  device.table.load(*handle, nextDevice);
  device.hasTimelineSemaphores = enablesTimelineSemaphores(*info) &&
                                 device.table.GetSemaphoreCounterValue &&
                                 device.table.WaitSemaphores;
  instance->table.GetPhysicalDeviceMemoryProperties(physicalDevice, &device.memoryProperties);
  for (uint32_t index = 0; index < info->queueCreateInfoCount; ++index)
    device.queueFamilies.push_back(info->pQueueCreateInfos[index].queueFamilyIndex);
  std::sort(device.queueFamilies.begin(), device.queueFamilies.end());
  device.queueFamilies.erase(std::unique(device.queueFamilies.begin(), device.queueFamilies.end()),
                             device.queueFamilies.end());
  log(LogLevel::Info, format("version %u on %s", interfaceVersion, device.properties.deviceName));

  std::unique_lock lock(registryMutex);
  devices[dispatchKey(*handle)] = std::make_unique<Device>(std::move(device), setLoaderData);
  return VK_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Introspection
//===----------------------------------------------------------------------===//

VKAPI_ATTR VkResult VKAPI_CALL enumerateInstanceLayerProperties(uint32_t *count,
                                                                VkLayerProperties *properties) {
  if (!properties) {
    *count = 1;
    return VK_SUCCESS;
  }
  if (*count == 0)
    return VK_INCOMPLETE;
  *count = 1;
  *properties = {};
  strncpy(properties->layerName, layerName, sizeof(properties->layerName) - 1);
  strncpy(properties->description, layerDescription, sizeof(properties->description) - 1);
  properties->specVersion = VK_API_VERSION_1_3;
  properties->implementationVersion = interfaceVersion;
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL enumerateDeviceLayerProperties(VkPhysicalDevice, uint32_t *count,
                                                              VkLayerProperties *properties) {
  return enumerateInstanceLayerProperties(count, properties);
}

VKAPI_ATTR VkResult VKAPI_CALL enumerateInstanceExtensionProperties(const char *layer,
                                                                    uint32_t *count,
                                                                    VkExtensionProperties *) {
  if (!layer || strcmp(layer, layerName) != 0)
    return VK_ERROR_LAYER_NOT_PRESENT;
  *count = 0;
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL
enumerateDeviceExtensionProperties(VkPhysicalDevice physicalDevice, const char *layer,
                                   uint32_t *count, VkExtensionProperties *properties) {
  if (layer && strcmp(layer, layerName) == 0) {
    *count = 0;
    return VK_SUCCESS;
  }
  Instance *instance = findInstance(physicalDevice);
  if (!instance)
    return VK_ERROR_INITIALIZATION_FAILED;
  return instance->table.EnumerateDeviceExtensionProperties(physicalDevice, layer, count,
                                                            properties);
}

//===----------------------------------------------------------------------===//
// Lookup
//===----------------------------------------------------------------------===//

struct NamedFunction {
  const char *name;
  PFN_vkVoidFunction function;
};

template <typename Function> PFN_vkVoidFunction erase(Function *function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}

PFN_vkVoidFunction findDeviceHook(const char *name) {
#define SMARTMEM_ENTRY(name) {"vk" #name, erase(hooks::name)},
  static const NamedFunction table[] = {
      SMARTMEM_DEVICE_HOOKS(SMARTMEM_ENTRY){"vkGetDeviceProcAddr", erase(getDeviceProcAddr)},
      // The name without suffix, of Vulkan 1.4.
      {"vkCmdPushDescriptorSet", erase(hooks::CmdPushDescriptorSetKHR)},
  };
#undef SMARTMEM_ENTRY
  for (const NamedFunction &entry : table)
    if (strcmp(entry.name, name) == 0)
      return entry.function;
  return nullptr;
}

PFN_vkVoidFunction findInstanceHook(const char *name) {
  static const NamedFunction table[] = {
      {"vkGetInstanceProcAddr", erase(getInstanceProcAddr)},
      {"vkCreateInstance", erase(createInstance)},
      {"vkDestroyInstance", erase(destroyInstance)},
      {"vkCreateDevice", erase(createDevice)},
      {"vkEnumerateInstanceLayerProperties", erase(enumerateInstanceLayerProperties)},
      {"vkEnumerateInstanceExtensionProperties", erase(enumerateInstanceExtensionProperties)},
      {"vkEnumerateDeviceLayerProperties", erase(enumerateDeviceLayerProperties)},
      {"vkEnumerateDeviceExtensionProperties", erase(enumerateDeviceExtensionProperties)},
  };
  for (const NamedFunction &entry : table)
    if (strcmp(entry.name, name) == 0)
      return entry.function;
  return nullptr;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL getDeviceProcAddr(VkDevice handle, const char *name) {
  PFN_vkVoidFunction next = deviceOf(handle).table().GetDeviceProcAddr(handle, name);
  // A command that the device lacks stays lacking.
  PFN_vkVoidFunction hook = next ? findDeviceHook(name) : nullptr;
  return hook ? hook : next;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL getInstanceProcAddr(VkInstance handle, const char *name) {
  if (PFN_vkVoidFunction hook = findInstanceHook(name))
    return hook;
  Instance *instance = handle ? findInstance(handle) : nullptr;
  if (!instance)
    return nullptr;
  PFN_vkVoidFunction next = instance->table.GetInstanceProcAddr(handle, name);
  PFN_vkVoidFunction hook = next ? findDeviceHook(name) : nullptr;
  return hook ? hook : next;
}

} // namespace

Device &deviceOf(void *dispatchable) {
  std::shared_lock lock(registryMutex);
  return *devices.at(dispatchKey(dispatchable));
}

VKAPI_ATTR void VKAPI_CALL hooks::DestroyDevice(VkDevice handle,
                                                const VkAllocationCallbacks *allocator) {
  if (!handle)
    return;
  std::unique_ptr<Device> device;
  {
    std::unique_lock lock(registryMutex);
    auto found = devices.find(dispatchKey(handle));
    if (found == devices.end())
      return;
    device = std::move(found->second);
    devices.erase(found);
  }
  PFN_vkDestroyDevice next = device->table().DestroyDevice;
  device.reset();
  next(handle, allocator);
}

} // namespace smartmem::image_layer

/// The only symbol that the loader looks up (loader-layer interface version 2).
extern "C" __attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface) {
  if (interface->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT ||
      interface->loaderLayerInterfaceVersion < 2)
    return VK_ERROR_INITIALIZATION_FAILED;
  interface->loaderLayerInterfaceVersion = 2;
  interface->pfnGetInstanceProcAddr = smartmem::image_layer::getInstanceProcAddr;
  interface->pfnGetDeviceProcAddr = smartmem::image_layer::getDeviceProcAddr;
  interface->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
