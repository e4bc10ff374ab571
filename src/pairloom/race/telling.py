"""What a race says while it learns."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("pairloom.race")


@contextmanager
def told(verbose: int) -> Iterator[None]:
    """Write the messages of races to stderr while the block runs; nothing for 0."""
    if not verbose:
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
