# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is of use beside."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable


def benchmark_func(
    run_func: Callable[[], object],
    warmup: int = 1,
    number: int = 5,
    repeat: int = 3,
    median: bool = True,
) -> float | list[float]:
    """Milliseconds of a call, GPUs' work included: the median of `repeat`
    measurements of `number` calls each, or all of them."""
    torch = sys.modules.get("torch")
    on_gpu = torch is not None and torch.cuda.is_available()

    def wait() -> None:
        if on_gpu:
            torch.cuda.synchronize()

    for _ in range(warmup):
        run_func()
    found = []
    for _ in range(repeat):
        wait()
        start = time.perf_counter()
        for _ in range(number):
            run_func()
        wait()
        found.append((time.perf_counter() - start) / number * 1000)
    return statistics.median(found) if median else found
