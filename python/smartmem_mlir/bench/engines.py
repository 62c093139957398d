"""Engines: ours and the rivals, all behind adapters."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from smartmem_mlir.errors import OptionError

Device = Literal["cpu", "vulkan"]

IREE_ADAPTER = Path(__file__).with_name("iree_adapter.py")


@dataclass(frozen=True)
class Engine:
    """How to run one engine.

    Args:
        name: Short name, the column of every table.
        title: Name for people.
        python: Interpreter of its virtual environment.
        adapter: Its adapter.
        backend: Regular expression that the backend it reports must match in full, by device; an engine that falls
            back silently fails this.
        converts: Whether its adapter converts the model, and so needs a copy of its own.
        setup: Command that makes its environment.
        env: Environment variables.
    """

    name: str
    title: str
    python: Path
    adapter: Path
    backend: Mapping[Device, str]
    converts: bool
    setup: str
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def installed(self) -> bool:
        """Whether its environment was made."""
        return self.python.exists()

    @property
    def sources(self) -> tuple[Path, ...]:
        """What a conversion depends on: the adapter, what adapters share, and the engine's pinned versions."""
        folder = self.adapter.parent
        beside = [*folder.joinpath("shared").glob("*.py"), *folder.glob(f"requirements/{self.name}.txt")]
        return (self.adapter, *sorted(beside))

    def accepts(self, device: Device, backend: str) -> bool:
        """Whether `backend` is what was asked for."""
        return re.fullmatch(self.backend[device], backend) is not None


def iree_engine(name: str, title: str) -> Engine:
    """IREE's runtime in our own environment, for plain IREE and for our modules."""
    backends: dict[Device, str] = {"cpu": "local-task", "vulkan": "vulkan.*"}
    return Engine(name, title, Path(sys.executable), IREE_ADAPTER, backends, converts=False, setup="make setup")


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    backend: Annotated[dict[Device, str], Field(min_length=1)]
    converts: bool = False


def peers_folder(given: Path | None) -> Path:
    """The folder with the rivals' adapters and `peers.yaml`.

    Args:
        given: The user's choice; None for the one in the checkout that this package is installed from.

    Raises:
        OptionError: There is none: an installed package does not bring them.
    """
    folder = given if given is not None else Path(__file__).resolve().parents[3] / "benchmarks" / "peers"
    if not (folder / "peers.yaml").is_file():
        raise OptionError(
            "no rivals' adapters here", hint="pass --peers-dir CHECKOUT/benchmarks/peers, or --peers none", file=folder
        )
    return folder


def load_peers(folder: Path, environments: Path | None = None) -> dict[str, Engine]:
    """The rivals by name.

    Args:
        folder: See :func:`peers_folder`.
        environments: Folder of the virtual environments; None for `.peers` in the checkout.

    Raises:
        OptionError: `peers.yaml` is not valid.
    """
    file = folder / "peers.yaml"
    environments = environments or folder.resolve().parents[1] / ".peers"
    try:
        entries = {name: _Entry.model_validate(entry) for name, entry in yaml.safe_load(file.read_text()).items()}
    except (yaml.YAMLError, ValidationError, AttributeError) as error:
        raise OptionError(f"not a valid list of rivals: {error}", file=file) from error
    return {
        name: Engine(
            name=name,
            title=entry.title,
            python=environments / name / "bin" / "python",
            adapter=folder / f"{name}.py",
            backend=entry.backend,
            converts=entry.converts,
            setup=f"benchmarks/peers/setup {name}",
        )
        for name, entry in entries.items()
    }


def choose_peers(names: Sequence[str], peers: Mapping[str, Engine], device: Device) -> list[Engine]:
    """The rivals that were asked for.

    Args:
        names: Names, or `all` for those that are installed and know the device.
        peers: All rivals.
        device: The device.

    Raises:
        OptionError: A name is unknown, or the rival does not run on the device.
    """
    if list(names) == ["all"]:
        return [peer for peer in peers.values() if peer.installed and device in peer.backend]
    chosen = []
    for name in names:
        if name not in peers:
            near = difflib.get_close_matches(name, peers, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise OptionError(f"unknown rival '{name}'", hint=f"{hint}rivals: {', '.join(peers)}, all or none")
        if device not in peers[name].backend:
            able = ", ".join(peer.name for peer in peers.values() if device in peer.backend)
            raise OptionError(f"{peers[name].title} has no adapter for {device}", hint=f"rivals for {device}: {able}")
        chosen.append(peers[name])
    return chosen
