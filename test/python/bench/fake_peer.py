"""An engine that misbehaves on demand. Its artifact is a JSON file: what to do, and where the right outputs are.

{"outputs": ["a.npy"], "fail_in": "run", "how": "crash", "after": 2}
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


class Peer:
    def __init__(self) -> None:
        self._plan: dict[str, Any] = {}
        self._runs = 0

    def version(self) -> str:
        return "0.1"

    def prepare(self, model: Path, workdir: Path, signature: dict[str, Any]) -> Path:
        plan = json.loads(model.read_text())
        model.write_text("overwritten")  # as one real converter does
        artifact = workdir / "converted.json"
        artifact.write_text(json.dumps(plan))
        self._plan = plan
        self._fail("prepare")
        return artifact

    def load(self, artifact: Path, threads: int, device: str, signature: dict[str, Any]) -> str:
        self._plan = json.loads(artifact.read_text())
        print("an engine prints", flush=True)
        os.write(1, b"and so does its C++ half\n")
        self._fail("load")
        if "pid" in self._plan:
            Path(self._plan["pid"]).write_text(str(os.getpid()))
        self._outputs = [np.load(path) for path in self._plan["outputs"]]
        return str(self._plan.get("backend", f"{device}, {len(os.sched_getaffinity(0))} cpus"))

    def run(self, inputs: list[Any]) -> list[Any]:
        self._runs += 1
        if "log" in self._plan:
            with Path(self._plan["log"]).open("a") as log:
                log.write(f"{self._plan['name']}\n")
        if "watch" in self._plan:
            pid, states = (Path(path) for path in self._plan["watch"])
            stat = Path(f"/proc/{pid.read_text()}/stat").read_text()
            states.write_text(states.read_text() + stat.rsplit(")", 1)[1].split()[0])
        self._fail("run")
        time.sleep(self._plan.get("seconds", 0.001))
        return self._outputs

    def _fail(self, operation: str) -> None:
        plan = self._plan
        if plan.get("fail_in") != operation or self._runs < plan.get("after", 0):
            return
        how = plan["how"]
        if how == "crash":
            print("the engine's last words", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        elif how == "exit":
            os._exit(3)
        elif how == "hang":
            child = subprocess.Popen(["sleep", "600"])
            Path(plan["child"]).write_text(str(child.pid))
            time.sleep(600)
        elif how == "raise":
            print("layer Foo not registered", file=sys.stderr, flush=True)
            raise RuntimeError("cannot load")
        elif how == "wrong":
            error = 1 if self._runs <= plan.get("until", self._runs) else 0
            self._outputs = [np.load(path) + error for path in plan["outputs"]]
