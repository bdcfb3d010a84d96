"""Compiled code that only other compiled code calls: it becomes machine code with its callers, and not also by itself.

numba optimises every function and makes machine code of it before it links the function into its callers, where both are done again. Of ten
functions that call each other, the innermost would go through all of it ten times. A function that is compiled by `Part` is only lowered to
LLVM's language; the caller that Python calls, compiled by `Whole`, is optimised once, with all that it calls. No optimisation changes what
floating-point operations are done, in either way.

All of this is about numba's inside. If this numba's is another one, `AVAILABLE` is False, and functions are compiled as numba would.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    from numba.core import targetconfig
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.codegen import CPUCodegen, JITCodeLibrary
    from numba.core.compiler import Compiler, CompileResult, Flags

    AVAILABLE = all(
        hasattr(owner, name)
        for owner, names in {
            JITCodeLibrary: ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals", "_unserialize"),
            CompileResult: ("_find_referenced_environments",),
            CompileResultCacheImpl: ("rebuild",),
            FunctionCache: ("_impl_class",),
            CPUCodegen: ("_function_pass_manager",),
            Flags: ("copy", "discard", "values"),
        }.items()
        for name in names
    )
except ImportError:
    AVAILABLE = False

if AVAILABLE:
    _HAS_LEVELS = list(inspect.signature(CPUCodegen._function_pass_manager).parameters) == ["self", "kwargs"]

    class _Nowhere:
        """Stands in for the engine that has machine code: there is none, so nothing in it has to be set."""

        def set_env(self, name: str, environment: Any) -> None:
            """Nothing to set."""

    class _Flags(Flags):
        """Compiler options that are compared quickly: numba does it at each call of one of its functions. They are not changed any more
        once they were compared."""

        __slots__ = ["_known"]

        def __hash__(self) -> int:
            return hash(tuple(sorted(self.values())))

        def __eq__(self, other: object) -> bool:
            return self is other or (isinstance(other, Flags) and self.values() == other.values())  # type: ignore[no-untyped-call]

        def values(self) -> Any:
            """All of them."""
            if not hasattr(self, "_known"):
                self._known = super().values()  # type: ignore[no-untyped-call]
            return self._known

    class _Part(JITCodeLibrary):
        """Code that is only linked into other code."""

        def _optimize_functions(self, ll_module: Any) -> None:
            """Quickly, where this numba lets itself be told so: it will all be done again when it is linked."""
            if not _HAS_LEVELS:
                super()._optimize_functions(ll_module)  # type: ignore[no-untyped-call]
                return
            ll_module.data_layout = self._codegen._data_layout
            for function in ll_module.functions:
                passes, builder = self._codegen._function_pass_manager(opt=1)  # type: ignore[no-untyped-call]
                passes.run(function, builder)

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
            self._finalized = True

        @property
        def codegen(self) -> _Nowhere:
            return _Nowhere()

        def get_pointer_to_function(self, name: str) -> int:
            """No machine code, no pointer."""
            self._ensure_finalized()  # type: ignore[no-untyped-call]
            return 0

        def serialize_using_object_code(self) -> tuple[str, str, bytes]:
            """What the cache on disk keeps."""
            self._ensure_finalized()  # type: ignore[no-untyped-call]
            return self.name, "bitcode", self._final_module.as_bitcode()

    @contextmanager
    def _only_parts(codegen: Any) -> Iterator[None]:
        """What is compiled or loaded now is a part. numba's lock on compiling is held."""
        before = codegen.__dict__.get("_library_class")
        codegen._library_class = _Part
        try:
            yield
        finally:
            if before is None:
                del codegen._library_class
            else:
                codegen._library_class = before

    class _Alike(Compiler):
        """What numba compiles for its own functions depends on how their callers are compiled; here it is the same for all callers."""

        def __init__(self, library_class: Any, typingctx: Any, targetctx: Any, *more: Any) -> None:
            library = library_class(targetctx.codegen(), type(self).__name__.lower())
            library.enable_object_caching()
            super().__init__(typingctx, targetctx, library, *more)  # type: ignore[no-untyped-call]
            self.state.flags = _Flags(self.state.flags)  # type: ignore[no-untyped-call]

        def compile_extra(self, func: Any) -> Any:
            """Compile; numba's own functions that are called are parts."""
            with _only_parts(self.state.targetctx.codegen()):
                return super().compile_extra(func)  # type: ignore[no-untyped-call]

        def define_pipelines(self) -> Any:
            """As numba does, and callees see the options that numba's functions have when they call each other."""
            flags = targetconfig.ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
            if flags is not None:
                flags.no_cpython_wrapper = True
                flags.discard("no_cfunc_wrapper")
                flags.discard("release_gil")
            return super().define_pipelines()  # type: ignore[no-untyped-call]

    class Part(_Alike):
        """For functions that only other compiled functions call."""

        def __init__(self, typingctx: Any, targetctx: Any, library: Any, *more: Any) -> None:
            super().__init__(_Part, typingctx, targetctx, *more)

    class Whole(_Alike):
        """For functions that Python calls."""

        def __init__(self, typingctx: Any, targetctx: Any, library: Any, *more: Any) -> None:
            super().__init__(JITCodeLibrary, typingctx, targetctx, *more)

        def compile_extra(self, func: Any) -> Any:
            """Compile; then tell the machine code where the constants of all its parts are, as numba does when it loads it from a cache."""
            result = super().compile_extra(func)
            for each in result._find_referenced_environments():
                result.library.codegen.set_env(each.env_name, each)
            return result

    class _PartCacheImpl(CompileResultCacheImpl):
        def rebuild(self, target_context: Any, payload: Any) -> Any:
            """Read it as a part, too."""
            with _only_parts(target_context.codegen()):
                return super().rebuild(target_context, payload)  # type: ignore[no-untyped-call]

    class PartCache(FunctionCache):
        """The cache on disk of such functions."""

        _impl_class = _PartCacheImpl
