"""Compiled code that only other compiled code calls: it becomes machine code with its callers, and not also by itself.

numba optimises every function and makes machine code of it before it links the function into its callers, where both are done again. Of ten
functions that call each other, the innermost would go through all of it ten times. A function that is compiled by `Part` is only lowered to
LLVM's language; the caller that Python calls, compiled by `Whole`, is optimised once, with all that it calls. No optimisation changes what
floating-point operations are done, in either way.

All of this is about numba's inside. If this numba's is another one, `AVAILABLE` is False, and functions are compiled as numba would.
"""

from __future__ import annotations

from typing import Any

try:
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, CompileResult

    AVAILABLE = all(
        hasattr(owner, name)
        for owner, names in {
            JITCodeLibrary: ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals", "_unserialize"),
            CompileResult: ("_find_referenced_environments",),
            CompileResultCacheImpl: ("rebuild",),
            FunctionCache: ("_impl_class",),
        }.items()
        for name in names
    )
except ImportError:
    AVAILABLE = False

if AVAILABLE:

    class _Nowhere:
        """Stands in for the engine that has machine code: there is none, so nothing in it has to be set."""

        def set_env(self, name: str, environment: Any) -> None:
            """Nothing to set."""

    class _Part(JITCodeLibrary):
        """Code that is only linked into other code."""

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

    class Part(Compiler):
        """For functions that only other compiled functions call."""

        def __init__(self, typingctx: Any, targetctx: Any, library: Any, *more: Any) -> None:
            library = _Part(targetctx.codegen(), "part")  # type: ignore[no-untyped-call]
            library.enable_object_caching()
            super().__init__(typingctx, targetctx, library, *more)  # type: ignore[no-untyped-call]

    class Whole(Compiler):
        """For functions that Python calls."""

        def compile_extra(self, func: Any) -> Any:
            """Compile; then tell the machine code where the constants of all its parts are, as numba does when it loads it from a cache."""
            result = super().compile_extra(func)  # type: ignore[no-untyped-call]
            for each in result._find_referenced_environments():
                result.library.codegen.set_env(each.env_name, each)
            return result

    class _PartCacheImpl(CompileResultCacheImpl):
        def rebuild(self, target_context: Any, payload: Any) -> Any:
            """Read it as a part, too. numba's lock on compiling is held."""
            codegen = target_context.codegen()
            codegen._library_class = _Part
            try:
                return super().rebuild(target_context, payload)  # type: ignore[no-untyped-call]
            finally:
                del codegen._library_class

    class PartCache(FunctionCache):
        """The cache on disk of such functions."""

        _impl_class = _PartCacheImpl
