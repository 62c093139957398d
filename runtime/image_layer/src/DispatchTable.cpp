//===- DispatchTable.cpp - the next layer's functions -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DispatchTable.h"

namespace smartmem::image_layer {

void InstanceTable::load(VkInstance instance, PFN_vkGetInstanceProcAddr next) {
  GetInstanceProcAddr = next;
#define SMARTMEM_LOAD(name) name = reinterpret_cast<PFN_vk##name>(next(instance, "vk" #name));
  SMARTMEM_INSTANCE_FUNCTIONS(SMARTMEM_LOAD)
#undef SMARTMEM_LOAD
}

void DeviceTable::load(VkDevice device, PFN_vkGetDeviceProcAddr next) {
  GetDeviceProcAddr = next;
#define SMARTMEM_LOAD(name) name = reinterpret_cast<PFN_vk##name>(next(device, "vk" #name));
  SMARTMEM_DEVICE_FUNCTIONS(SMARTMEM_LOAD)
  SMARTMEM_OPTIONAL_DEVICE_FUNCTIONS(SMARTMEM_LOAD)
#undef SMARTMEM_LOAD
  // Vulkan 1.4 made push descriptors core and dropped the suffix; the signature is the same.
  if (!CmdPushDescriptorSetKHR)
    CmdPushDescriptorSetKHR =
        reinterpret_cast<PFN_vkCmdPushDescriptorSetKHR>(next(device, "vkCmdPushDescriptorSet"));
  if (!GetSemaphoreCounterValue)
    GetSemaphoreCounterValue = GetSemaphoreCounterValueKHR;
  if (!WaitSemaphores)
    WaitSemaphores = WaitSemaphoresKHR;
}

} // namespace smartmem::image_layer
