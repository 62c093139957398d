# Cross-compiles to 64-bit Arm with Debian's compiler (package g++-aarch64-linux-gnu). The Vulkan headers are the same for
# every architecture, so those of the build machine are used.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
