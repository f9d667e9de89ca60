"""How kernels are compiled: the code of those that become part of others is not optimised on its own first.

A loop is made of some seventy small functions. Numba compiles each of them as if it were called from Python: it optimises
its code, makes machine code of it and a wrapper for C, and then inlines it into its callers and optimises all of it again.
Here only the outermost function is optimised and made executable. Numba also compiles a function once more for callers with
other options; here all options that matter are those of the function itself, and one copy serves all callers. If Numba's
internals are not as expected, its own way is taken, which is slower to compile and otherwise the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload

try:
    from numba.core import types
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.environment import lookup_environment
    from numba.core.typed_passes import NativeLowering
    from numba.core.typing.templates import infer, infer_global, make_overload_template
except ImportError:  # an unknown version of Numba
    OUTER: dict[str, Any] = {}
    INNER: dict[str, Any] = {}

    def stand_for(function: Callable[..., Any], chosen: Callable[..., Any], options: dict[str, Any]) -> None:
        """Let Numba compile what ``chosen`` returns for the types of a call in place of the call of a function."""
        overload(function, jit_options=options, strict=False)(chosen)  # type: ignore[arg-type]
else:

    class _WithoutEnvironments:
        """A code generator that sets no environment: the code of an inner function is not in memory."""

        def __init__(self, codegen: Any) -> None:
            self._codegen = codegen

        def __getattr__(self, name: str) -> Any:
            return getattr(self._codegen, name)

        def set_env(self, env_name: str, env: Any) -> None:
            """Leave it to the outermost function."""

    class _InnerLibrary(JITCodeLibrary):
        """The code of a function that only becomes part of others."""

        @property
        def codegen(self) -> Any:
            return _WithoutEnvironments(self._codegen)

        def get_pointer_to_function(self, name: str) -> int:
            return 0

        def _optimize_final_module(self) -> None:
            """Leave it to the outermost function, which all of this code becomes part of."""

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _InnerLowering(NativeLowering):
        """Lowers a function that only becomes part of others."""

        _name = "tiebreak_inner_lowering"

        def run_pass(self, state: Any) -> bool:
            if state.library is None:
                state.library = _InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
                state.library.enable_object_caching()
            return bool(super().run_pass(state))

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _OuterLowering(NativeLowering):
        """Lowers a function that Python calls, and sets the environments of all functions that became part of it."""

        _name = "tiebreak_outer_lowering"

        def run_pass(self, state: Any) -> bool:
            done = bool(super().run_pass(state))
            codegen = state.library.codegen
            for variable in state.library._final_module.global_variables:
                name = variable.name
                if name.startswith("_ZN08NumbaEnv") and codegen._engine.is_symbol_defined(name):
                    env = lookup_environment(name)
                    if env is not None:
                        codegen.set_env(name, env)
            return done

    def _pipeline(lowering: type) -> type:
        class Pipeline(CompilerBase):
            def define_pipelines(self) -> list[Any]:
                passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
                passes.passes = [(lowering if each is NativeLowering else each, why) for each, why in passes.passes]
                passes.finalize()
                return [passes]

        return Pipeline

    OUTER = {"pipeline_class": _pipeline(_OuterLowering)}
    INNER = {"pipeline_class": _pipeline(_InnerLowering), "no_cfunc_wrapper": True}

    def stand_for(function: Callable[..., Any], chosen: Callable[..., Any], options: dict[str, Any]) -> None:
        """Let Numba compile what ``chosen`` returns for the types of a call in place of the call of a function.

        As Numba's ``overload``, but what was compiled for a caller is used for all others, whatever their options: all that
        a function would inherit from its caller is among its own ``options``.
        """
        template: Any = make_overload_template(
            function, chosen, {"no_cpython_wrapper": True, "nopython": True, **options}, strict=False, inline="never"
        )
        template._get_impl = _compiled_once
        infer(template)
        infer_global(function, types.Function(template))

    def _compiled_once(template: Any, args: Any, keywords: Any) -> Any:
        key = template.context, tuple(args), tuple(keywords.items())
        return template._impl_cache.get(key) or template._build_impl(key, args, keywords)
