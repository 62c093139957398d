"""One engine's process, seen from the harness: ask, wait no longer than allowed, kill everything it started."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

SERVER = Path(__file__).with_name("peer_server.py")
_STDERR_TAIL = 1500
_MAX_WORDS = 400
_TRACEBACK = "Traceback (most recent call last)"
_GRACE_SECONDS = 5.0

FailureKind = Literal["does not compile", "refused", "crashed", "timed out", "wrong backend", "not installed"]


class PeerError(Exception):
    """An engine did not do what it was asked; recorded as a result, never ends a campaign.

    Args:
        kind: `does not compile` (ours and plain IREE), `refused` (the engine raised an error), `crashed`, `timed out`,
            `wrong backend` or `not installed`.
        message: The engine's own words.
    """

    def __init__(self, kind: FailureKind, message: str) -> None:
        self.kind: FailureKind = kind
        self.message = message
        super().__init__(f"{kind}: {message}")


class PeerProcess:
    """An adapter running in its own interpreter, process group and scratch directory.

    Args:
        python: Interpreter of the engine's virtual environment.
        adapter: The adapter's file.
        workdir: Current directory of the process; its stderr goes to `stderr.txt` there.
        cpus: CPUs the process may use; their number is also what OpenMP and BLAS libraries are told.
        env: Variables to set beyond these.
    """

    def __init__(
        self, python: Path, adapter: Path, workdir: Path, cpus: Sequence[int], env: Mapping[str, str] | None = None
    ) -> None:
        self._stderr_path = workdir / "stderr.txt"
        workdir.mkdir(parents=True, exist_ok=True)
        threads = str(len(cpus))
        pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS", "RAYON_NUM_THREADS")
        with self._stderr_path.open("ab") as stderr:
            self._process = subprocess.Popen(
                [str(python), "-I", str(SERVER), "--adapter", str(adapter), "--cpus", ",".join(map(str, cpus))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=workdir,
                env={**os.environ, **dict.fromkeys(pools, threads), **(env or {})},
                start_new_session=True,
            )
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._pending = b""
        self._peak_rss: int | None = None

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id, also the id of the process group."""
        return self._process.pid

    def request(self, op: str, time_limit: float, **arguments: object) -> dict[str, Any]:
        """Send one request and return its reply.

        Args:
            op: The operation; see :mod:`.peer_server`.
            time_limit: Seconds of wall time after which the process and its children are killed.
            arguments: The operation's arguments, as JSON values.

        Raises:
            PeerError: The engine raised, crashed or took too long. After the latter two the process is gone.
        """
        message = json.dumps({"op": op, **arguments}).encode() + b"\n"
        said_before = self._stderr_path.stat().st_size
        try:
            self._stdin.write(message)
            self._stdin.flush()
        except (BrokenPipeError, ConnectionResetError):
            raise self._crash() from None
        reply: dict[str, Any] = json.loads(self._read_line(op, time.monotonic() + time_limit, time_limit))
        self._note_peak()
        if not reply.pop("ok"):
            said = self._engine_words(said_before)
            raise PeerError("refused", f"{reply['error']} ({said})" if said else reply["error"])
        return reply

    def pause(self) -> None:
        """Stop every thread of the process, so that an idle engine that spins takes no time from others.

        Returns once it has stopped, or died: the signal alone leaves it running for a moment on a busy machine.
        """
        self._signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Undo :meth:`pause`."""
        self._signal(signal.SIGCONT)

    def peak_rss(self) -> int | None:
        """Largest resident set so far in bytes; None where the system does not say (not Linux)."""
        self._note_peak()
        return self._peak_rss

    def close(self) -> None:
        """End the process and everything it started; a second call does nothing."""
        if self._process.returncode is not None:
            return
        self._note_peak()
        # SIGKILL at once: the process may be stopped, and nothing of its state is wanted.
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._stdout.close()

    def _engine_words(self, start: int) -> str:
        """The end of what an engine printed while it worked on a request, up to the traceback of our server."""
        printed = self._stderr_path.read_bytes()[start:].decode(errors="replace")
        return " ".join(printed.split(_TRACEBACK, 1)[0].split())[-_MAX_WORDS:]

    def _read_line(self, op: str, deadline: float, time_limit: float) -> bytes:
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                self.close()
                raise PeerError("timed out", f"`{op}` took more than {time_limit:g} s")
            data = os.read(self._stdout.fileno(), 1 << 16)
            if not data:
                raise self._crash()
            self._pending += data
        line, self._pending = self._pending.split(b"\n", 1)
        return line

    def _crash(self) -> PeerError:
        self._await_exit()
        self.close()
        code = self._process.returncode
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        tail = self._stderr_path.read_bytes()[-_STDERR_TAIL:].decode(errors="replace").strip()
        return PeerError("crashed", f"{how}; stderr ends: {tail}" if tail else how)

    def _await_exit(self) -> None:
        """Give a process that closed its pipe a moment to die by itself, unreaped: its group id stays ours."""
        deadline = time.monotonic() + _GRACE_SECONDS
        flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
        while os.waitid(os.P_PID, self._process.pid, flags) is None and time.monotonic() < deadline:
            time.sleep(0.01)

    def _note_peak(self) -> None:
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                self._peak_rss = int(line.split()[1]) * 1024

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
