# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions by the overloads of ATen's operators that they are for."""

from __future__ import annotations

from collections.abc import Callable

import torch


class ByOverload(dict[torch._ops.OpOverload, Callable]):
    def of(self, *overloads: torch._ops.OpOverload) -> Callable:
        """A decorator: the function is for all of these."""

        def keep(function: Callable) -> Callable:
            self.update(dict.fromkeys(overloads, function))
            return function

        return keep
