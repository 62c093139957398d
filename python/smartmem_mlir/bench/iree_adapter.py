"""Adapter of IREE's runtime: runs a directory that `smartmem compile` wrote, or one variant of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Peer:
    """See :mod:`.peer_server`. An artifact is a directory with `model.vmfb`, `report.json` and, unless the model has
    no weights, `params.irpa`."""

    def version(self) -> str:
        """Version of IREE's runtime."""
        import iree.runtime  # noqa: F401 - its libraries count as the engine's, not the model's

        from smartmem_mlir.iree.toolchain import RUNTIME_PACKAGE, package_version

        return str(package_version(RUNTIME_PACKAGE))

    def load(self, artifact: Path, threads: int, device: str, signature: dict[str, Any]) -> str:
        """Load the module on the device, with as many worker threads as asked for."""
        import iree.runtime as rt

        from smartmem_mlir.iree.assumptions import refuse_other_device
        from smartmem_mlir.iree.device import default_device, resolve_device
        from smartmem_mlir.iree.runtime import LoadedModule
        from smartmem_mlir.report.directory import PARAMETERS, VMFB, read_directory

        rt.flags.parse_flags(f"--task_topology_group_count={threads}")
        report = read_directory(artifact)
        uri, found = resolve_device(default_device(report.assumptions))
        refuse_other_device(report.assumptions, found)
        parameters = artifact / PARAMETERS
        self._module = LoadedModule(
            artifact / VMFB,
            parameters if parameters.exists() else None,
            uri,
            [info.spec for info in report.inputs],
            [info.spec for info in report.outputs],
        )
        return uri

    def run(self, inputs: list[Any]) -> list[Any]:
        """One inference, host memory to host memory."""
        return self._module(inputs)
