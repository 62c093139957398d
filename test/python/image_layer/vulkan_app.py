"""A Vulkan application without IREE: what the layer must also stand, and what IREE never does.

Storage buffers in host-visible memory, pooled or push descriptor sets, one kernel of image_kernels.py per pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import vulkan as vk
from image_kernels import Kernel
from image_programs import Array, assemble

SIZE = 1 << 16
"""Bytes of the application's one allocation; every test places its buffers in it."""


class App:
    """A device, an allocation of SIZE bytes and one buffer over all of it."""

    def __init__(self, scratch: Path, *, timeline: bool = True, buffer_flags: int = 0) -> None:
        self.scratch = scratch
        application = vk.VkApplicationInfo(apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
        self.instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=application), None)
        self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
        features = vk.VkPhysicalDeviceVulkan13Features(synchronization2=1)
        chain = vk.VkPhysicalDeviceVulkan12Features(pNext=features, timelineSemaphore=int(timeline))
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, queueCount=1, pQueuePriorities=[1.0])
        extensions = {e.extensionName for e in vk.vkEnumerateDeviceExtensionProperties(self.physical, None)}
        enabled = [name for name in ("VK_KHR_push_descriptor",) if name in extensions]
        self.device = vk.vkCreateDevice(
            self.physical,
            vk.VkDeviceCreateInfo(pNext=chain, pQueueCreateInfos=[queue], ppEnabledExtensionNames=enabled),
            None,
        )
        self.queue = vk.vkGetDeviceQueue(self.device, 0, 0)
        self.command_pool = vk.vkCreateCommandPool(
            self.device, vk.VkCommandPoolCreateInfo(flags=vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT), None
        )
        sizes = [vk.VkDescriptorPoolSize(type=vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, descriptorCount=256)]
        self.descriptor_pool = vk.vkCreateDescriptorPool(
            self.device, vk.VkDescriptorPoolCreateInfo(maxSets=64, pPoolSizes=sizes), None
        )
        self.memory = self._allocate()
        self.buffer = self.create_buffer(buffer_flags)
        self._owned: list[tuple[Any, Any]] = []

    def create_buffer(self, flags: int = 0) -> Any:
        """A buffer over the whole allocation."""
        usage = vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
        usage |= vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
        buffer = vk.vkCreateBuffer(self.device, vk.VkBufferCreateInfo(flags=flags, size=SIZE, usage=usage), None)
        vk.vkBindBufferMemory(self.device, buffer, self.memory, 0)
        return buffer

    def _allocate(self) -> Any:
        properties = vk.vkGetPhysicalDeviceMemoryProperties(self.physical)
        wanted = vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
        index = next(
            index
            for index in range(properties.memoryTypeCount)
            if properties.memoryTypes[index].propertyFlags & wanted == wanted
        )
        info = vk.VkMemoryAllocateInfo(allocationSize=SIZE, memoryTypeIndex=index)
        return vk.vkAllocateMemory(self.device, info, None)

    def write(self, offset: int, values: Array) -> None:
        """Puts an array into the memory."""
        data = vk.vkMapMemory(self.device, self.memory, 0, SIZE, 0)
        data[offset : offset + values.nbytes] = values.tobytes()
        vk.vkUnmapMemory(self.device, self.memory)

    def read(self, offset: int, like: Array) -> Array:
        """Takes an array out of the memory."""
        data = vk.vkMapMemory(self.device, self.memory, 0, SIZE, 0)
        values = np.frombuffer(bytes(data[offset : offset + like.nbytes]), like.dtype).reshape(like.shape)
        vk.vkUnmapMemory(self.device, self.memory)
        return values

    def pipeline(self, kernel: Kernel | str, *, bindings: int | None = None, type_: int | None = None) -> Pipeline:
        """A pipeline whose bindings are all storage buffers (or `type_`)."""
        path = self.scratch / "kernel.spv"
        if isinstance(kernel, str):
            assemble(kernel, path)
        else:
            assemble(kernel.assembly(), path)
            bindings = len(kernel.operands)
        assert bindings is not None
        type_ = vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER if type_ is None else type_
        return Pipeline(self, path.read_bytes(), bindings, type_)

    def command_buffer(self, *, level: int | None = None) -> Any:
        """A new command buffer, not begun."""
        info = vk.VkCommandBufferAllocateInfo(
            commandPool=self.command_pool,
            level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY if level is None else level,
            commandBufferCount=1,
        )
        return vk.vkAllocateCommandBuffers(self.device, info)[0]

    @contextmanager
    def recording(self, *, one_time: bool = False, command_buffer: Any = None) -> Iterator[Any]:
        """Begins and ends a command buffer."""
        command_buffer = command_buffer or self.command_buffer()
        flags = vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT if one_time else 0
        vk.vkBeginCommandBuffer(command_buffer, vk.VkCommandBufferBeginInfo(flags=flags))
        yield command_buffer
        vk.vkEndCommandBuffer(command_buffer)

    def submit(self, *command_buffers: Any) -> None:
        """Submits by vkQueueSubmit, which IREE does not use, and waits."""
        vk.vkQueueSubmit(self.queue, 1, vk.VkSubmitInfo(pCommandBuffers=list(command_buffers)), vk.VK_NULL_HANDLE)
        vk.vkQueueWaitIdle(self.queue)

    def barrier(self, command_buffer: Any) -> None:
        """What IREE puts between dependent commands."""
        every = vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | vk.VK_PIPELINE_STAGE_TRANSFER_BIT
        access = vk.VK_ACCESS_MEMORY_READ_BIT | vk.VK_ACCESS_MEMORY_WRITE_BIT
        memory = vk.VkMemoryBarrier(srcAccessMask=vk.VK_ACCESS_MEMORY_WRITE_BIT, dstAccessMask=access)
        vk.vkCmdPipelineBarrier(command_buffer, every, every, 0, 1, [memory], 0, None, 0, None)

    def close(self) -> None:
        """Destroys everything, in an order that the validation layer accepts."""
        vk.vkDeviceWaitIdle(self.device)
        for destroy, handle in reversed(self._owned):
            destroy(self.device, handle, None)
        vk.vkDestroyDescriptorPool(self.device, self.descriptor_pool, None)
        vk.vkDestroyCommandPool(self.device, self.command_pool, None)
        vk.vkDestroyBuffer(self.device, self.buffer, None)
        vk.vkFreeMemory(self.device, self.memory, None)
        vk.vkDestroyDevice(self.device, None)
        vk.vkDestroyInstance(self.instance, None)

    def own(self, destroy: Any, handle: Any) -> Any:
        """Has a handle destroyed by close()."""
        self._owned.append((destroy, handle))
        return handle


class Pipeline:
    """A compute pipeline over storage buffers."""

    def __init__(self, app: App, code: bytes, bindings: int, type_: int) -> None:
        self.app = app
        layout_bindings = [
            vk.VkDescriptorSetLayoutBinding(
                binding=binding, descriptorType=type_, descriptorCount=1, stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT
            )
            for binding in range(bindings)
        ]
        device = app.device
        self.set_layout = app.own(
            vk.vkDestroyDescriptorSetLayout,
            vk.vkCreateDescriptorSetLayout(device, vk.VkDescriptorSetLayoutCreateInfo(pBindings=layout_bindings), None),
        )
        push = vk.VkPushConstantRange(stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT, offset=0, size=12)
        self.layout = app.own(
            vk.vkDestroyPipelineLayout,
            vk.vkCreatePipelineLayout(
                device,
                vk.VkPipelineLayoutCreateInfo(pSetLayouts=[self.set_layout], pPushConstantRanges=[push]),
                None,
            ),
        )
        module = vk.vkCreateShaderModule(device, vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code), None)
        stage = vk.VkPipelineShaderStageCreateInfo(stage=vk.VK_SHADER_STAGE_COMPUTE_BIT, module=module, pName="main")
        try:
            self.handle = app.own(
                vk.vkDestroyPipeline,
                vk.vkCreateComputePipelines(
                    device, None, 1, [vk.VkComputePipelineCreateInfo(stage=stage, layout=self.layout)], None
                )[0],
            )
        finally:
            vk.vkDestroyShaderModule(device, module, None)

    def bind(self, command_buffer: Any, ranges: Sequence[tuple[int, int]], buffer: Any = None) -> None:
        """Binds (offset, size) ranges of the application's buffer, or of another one."""
        app = self.app
        info = vk.VkDescriptorSetAllocateInfo(descriptorPool=app.descriptor_pool, pSetLayouts=[self.set_layout])
        (descriptor_set,) = vk.vkAllocateDescriptorSets(app.device, info)
        writes = [
            vk.VkWriteDescriptorSet(
                dstSet=descriptor_set,
                dstBinding=binding,
                descriptorCount=1,
                descriptorType=vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                pBufferInfo=[vk.VkDescriptorBufferInfo(buffer=buffer or app.buffer, offset=offset, range=size)],
            )
            for binding, (offset, size) in enumerate(ranges)
        ]
        vk.vkUpdateDescriptorSets(app.device, len(writes), writes, 0, None)
        vk.vkCmdBindDescriptorSets(
            command_buffer, vk.VK_PIPELINE_BIND_POINT_COMPUTE, self.layout, 0, 1, [descriptor_set], 0, None
        )

    def dispatch(
        self, command_buffer: Any, kernel: Kernel, ranges: Sequence[tuple[int, int]] | None, buffer: Any = None
    ) -> None:
        """Binds and dispatches, with a barrier after it; without ranges, what was bound before stays bound."""
        if ranges is not None:
            self.bind(command_buffer, ranges, buffer)
        vk.vkCmdBindPipeline(command_buffer, vk.VK_PIPELINE_BIND_POINT_COMPUTE, self.handle)
        vk.vkCmdDispatch(command_buffer, *kernel.workgroups)
        self.app.barrier(command_buffer)
