"""What the user sees while a command works: the current stage with its elapsed time, on stderr."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from typing_extensions import Self

WORTH_A_LINE_S = 2.0


class StageProgress:
    """Call it with the name of each stage as it starts; leave the `with` block when all is done.

    On a terminal the stage is shown with a running clock; elsewhere a stage that took more than two seconds leaves a
    line, and so does every stage if `verbose`.
    """

    def __init__(self, *, verbose: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._verbose = verbose
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID | None = None
        self._stage, self._since = "", 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_stage()
        self._progress.stop()

    def __call__(self, stage: str) -> None:
        self._end_stage()
        self._stage, self._since = stage, time.monotonic()
        self._task = self._progress.add_task(stage, total=None)

    def _end_stage(self) -> None:
        if self._task is None:
            return
        self._progress.remove_task(self._task)
        self._task = None
        seconds = time.monotonic() - self._since
        if self._verbose or (seconds > WORTH_A_LINE_S and not self._console.is_terminal):
            self._console.print(f"{self._stage}: {seconds:.1f} s", markup=False)
