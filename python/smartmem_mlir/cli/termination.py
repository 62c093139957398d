"""Signals that ask the program to end: it cleans up first, then dies of the signal as anybody would expect."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Their default action ends the process at once, with temporary folders and compilers left behind. SIGINT needs
nothing here: Python raises KeyboardInterrupt."""


class Terminated(BaseException):
    """Raised where the program happens to be when a signal arrives, so that every `finally` runs.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


@contextmanager
def clean_termination() -> Iterator[None]:
    """End by a signal only after the block has been left in good order. Only for the main thread."""
    # What is ignored stays ignored: nohup means it.
    handled = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]

    def raise_once(number: int, frame: FrameType | None) -> None:
        for each in handled:
            signal.signal(each, signal.SIG_IGN)  # an impatient second signal must not interrupt the cleaning
        raise Terminated(number)

    for number in handled:
        signal.signal(number, raise_once)
    try:
        yield
    except Terminated as ended:
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)
        raise
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
