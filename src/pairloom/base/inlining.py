"""How Numba compiles a function that Python calls, or that is inlined into compiled callers, in half the usual time."""

import gc
import logging
import time
from typing import Any

from numba.core import compiler, event, typing
from numba.core.codegen import CPUCodeLibrary
from numba.core.registry import CPUDispatcher

from pairloom.base.machine_code import FOLDER, MachineCode

logger = logging.getLogger("pairloom.compiling")
"""Without handlers, as by default, a logger writes warnings to stderr."""

QUIET_SECONDS = 0.5
"""Time spent on compiling in a process before it says what it is waiting for."""

ONCE = "pairloom: compiling for this machine, once (about 10 s); `pairloom warmup` does it beforehand"
EVERY_TIME = (
    "pairloom: compiling (about 10 s), again in every process, since no folder for machine code is writable: "
    "set NUMBA_CACHE_DIR to one"
)


class OurFlags(compiler.Flags):
    """The flags of all functions here, which are equal for Numba: it compiles a NumPy function once for equal flags.

    They differ only in the wrappers that are made. Comparing their values would take a tenth of the time.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OurFlags)

    def __hash__(self) -> int:
        return hash(OurFlags)


class InlinedLibrary(CPUCodeLibrary):
    """Code that runs only as a part of its callers: optimised, but without machine code."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class Inlining(CPUDispatcher):
    """A function that Python can call, and that is compiled separately for its compiled callers.

    For these, Numba by itself would also make what only Python and C use: wrappers, machine code, a file. And it would
    inline the function into these wrappers.
    """

    def __init__(self, function: Any, options: dict[str, Any], kept: bool) -> None:
        """``kept``: whether machine code is kept on disk."""
        own = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True}
        super().__init__(function, {}, {**options, **own})
        self._inlined: dict[tuple[Any, ...], Any] = {}
        self._kept = kept
        self._compiler._customize_flags = OurFlags

    def compile(self, sig: Any) -> Any:
        """Compile the function for a call from Python, or load it."""
        if self._kept:  # only now: to open hundreds of caches would slow down the import
            self._cache, self._kept = MachineCode(self.py_func), False
        collecting = gc.isenabled()
        gc.disable()  # to search the compiler's many objects again and again would take a tenth of the time
        try:
            return super().compile(sig)
        finally:
            if collecting:
                gc.enable()

    def get_call_template(self, args: Any, kws: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Return how compiled callers call the function with these types, for Numba."""
        pysig, args = self._compiler.fold_argument_types(args, kws)
        if args not in self._inlined:
            self._inlined[args] = self._compile_inlined(args)
        signatures = [made.signature for made in self._inlined.values()]
        name = self.py_func.__name__
        return typing.make_concrete_template(name, key=name, signatures=signatures), pysig, args, {}

    def get_overload(self, args: Any) -> Any:
        """Return the key of the code that ``get_call_template`` made, for Numba."""
        return self._inlined[tuple(args)].fndesc

    def _compile_inlined(self, args: tuple[Any, ...]) -> Any:
        flags = OurFlags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.forceinline = flags.no_compile = flags.no_cpython_wrapper = True
        library = InlinedLibrary(self.targetctx.codegen(), self.py_func.__qualname__)
        made = compiler.compile_extra(
            self.typingctx, self.targetctx, self.py_func, args, None, flags, {}, library=library
        )
        self.targetctx.insert_user_function(made.fndesc, made.fndesc, [library])
        return made


class Waiting(event.Listener):
    """Says once in a process that it is compiling, when that takes long."""

    def __init__(self) -> None:
        self._message, self._start, self._spent = EVERY_TIME if FOLDER is None else ONCE, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        if isinstance(event.data["dispatcher"], Inlining):
            self._start = time.perf_counter()
            if self._message and self._spent > QUIET_SECONDS:
                logger.warning(self._message)
                self._message = ""

    def on_end(self, event: Any) -> None:
        if isinstance(event.data["dispatcher"], Inlining):
            self._spent += time.perf_counter() - self._start


event.register("numba:compile", Waiting())
