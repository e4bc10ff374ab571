"""A call in a separate process, and its peak memory.

Each fit runs in a forked child, so that no fit reuses memory that an earlier one has left behind. After a fork, pages
of the parent (the rows, the imported packages) are already resident in the child, and all growth is new. The peak is
the highest resident memory of the child (VmHWM) minus what was resident before the call, both without file pages
(RssFile): a child maps those of the libraries again, one by one, as it uses them.
"""

import ctypes
import gc
import multiprocessing
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def apart(call: Callable[..., Any], *args: Any) -> Any:
    """Run ``call`` in a forked child, or in this process if it cannot fork, and return its result."""
    if "fork" not in multiprocessing.get_all_start_methods() or not STATUS.exists():
        return call(*args)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(theirs, call, args))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: "multi-threaded". The children use one.
        child.start()
    theirs.close()
    try:
        done, found = ours.recv()
    except EOFError:
        child.join()
        raise RuntimeError(f"the process that learned ended with code {child.exitcode}, out of memory?") from None
    child.join()
    if not done:
        raise RuntimeError(f"the process that learned failed:\n{found}")
    return found


def _send(pipe: Connection, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        pipe.send((True, call(*args)))
    except Exception:
        pipe.send((False, traceback.format_exc()))


class Peak:
    """``Peak()`` marks the state before; ``bytes()`` is the largest growth of memory since.

    None where the kernel does not report it.
    """

    def __init__(self) -> None:
        gc.collect()
        _give_back()
        if CLEAR.exists():
            CLEAR.write_text("5")  # resets the peak to what is resident now
        self.before = _kilobytes()

    def bytes(self) -> int | None:
        after = _kilobytes()
        if not CLEAR.exists() or not {"VmHWM", "VmRSS", "RssFile"} <= after.keys():
            return None
        grown = (after["VmHWM"] - after["RssFile"]) - (self.before["VmRSS"] - self.before["RssFile"])
        return max(0, grown) * 1024


def _give_back() -> None:
    """Release free memory to the kernel: a fit that reused it would seem to need less."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _kilobytes() -> dict[str, int]:
    """Return the resident memory of this process, now and at its peak, in total and of files."""
    if not STATUS.exists():
        return {}
    pairs = [line.split(":") for line in STATUS.read_text().splitlines() if line.startswith(("Vm", "Rss"))]
    return {name: int(value.split()[0]) for name, value in pairs}
