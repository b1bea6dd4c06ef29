# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call of the library that did not succeed raises. The text is the
library's own: lines such as `file:line:col: error[E0201]: ...`."""

from __future__ import annotations


class HidetError(RuntimeError):
    """Every error of the library; `status` is that of include/hidet/Context.h."""

    status = 0


class UsageError(HidetError, ValueError):
    """An argument is wrong: an unknown name, a wrong shape."""

    status = 2


class InvalidError(HidetError, ValueError):
    """The program is wrong."""

    status = 3


class UnsupportedError(HidetError, NotImplementedError):
    """The program is right, but it cannot be done."""

    status = 4


class ResourceError(HidetError, MemoryError):
    """A limit was hit: memory, time."""

    status = 5


class DeviceError(HidetError):
    """The device failed, or lacks something."""

    status = 6


class InternalError(HidetError):
    """A fault of the compiler."""

    status = 70


KINDS = {
    kind.status: kind
    for kind in (
        UsageError,
        InvalidError,
        UnsupportedError,
        ResourceError,
        DeviceError,
        InternalError,
    )
}
