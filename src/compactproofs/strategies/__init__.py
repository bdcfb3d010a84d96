"""Proof strategies: one file per idea, one table of all.

The package and the public function that lists the strategies share the name `compactproofs.strategies`. Whichever is imported first, both
work: a module may be given a class of its own (Python's data model, "Customizing module attribute access"), and ours is callable.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compactproofs.strategies.registry import StrategyInfo


class _CallablePackage(ModuleType):
    def __call__(self) -> "list[StrategyInfo]":
        from compactproofs.strategies.registry import strategies

        return strategies()


sys.modules[__name__].__class__ = _CallablePackage
