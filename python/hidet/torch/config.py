# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user may ask of the backend: by `dynamo_config`, for all that is
compiled from then on, or by torch.compile's `mode` and `options` for one model.
"""

from __future__ import annotations

import dataclasses
import itertools
import pathlib

from hidet.errors import UnsupportedError, UsageError


@dataclasses.dataclass
class Options:
    """What `DynamoConfig` sets; `options={...}` has the same names."""

    use_tensor_core: bool = False
    search_space: int = 0
    use_cuda_graph: bool = True
    use_fast_math: bool = False
    dump_graph_ir: str | None = None
    correctness_report: bool = False
    parallel_build: bool = True
    buckets: bool = False
    freeze: bool = True

    def changed(self, **values: object) -> Options:
        """With other values, which are looked at. UsageError: no such name, or
        no such value."""
        names = {field.name for field in dataclasses.fields(self)}
        for name in values:
            if name not in names:
                raise UsageError(
                    f"no option '{name}'; there are {', '.join(sorted(names))}"
                )
        made = dataclasses.replace(self, **values)
        if made.search_space not in (0, 1, 2):
            raise UsageError(
                f"search_space is 0, 1 or 2, not {made.search_space}"
            )
        if made.use_fast_math:
            raise UnsupportedError(
                "use_fast_math: results are what the operators say; nothing is "
                "approximated or reassociated behind a program's back"
            )
        return made

    def dump(self, text: str) -> None:
        """Writes a part's text to a new file of the folder, where one is set."""
        if not self.dump_graph_ir:
            return
        folder = pathlib.Path(self.dump_graph_ir)
        folder.mkdir(parents=True, exist_ok=True)
        for i in itertools.count():
            try:
                with open(folder / f"graph_{i}.hir", "x") as file:
                    file.write(text)
                return
            except FileExistsError:
                continue


class DynamoConfig:
    """Names of the original's, for what is compiled from now on."""

    def __init__(self) -> None:
        self.options = Options()

    def set(self, **values: object) -> DynamoConfig:
        self.options = self.options.changed(**values)
        return self

    def reset(self) -> DynamoConfig:
        """All as it is at the start."""
        self.options = Options()
        return self

    def use_tensor_core(self, flag: bool = True) -> DynamoConfig:
        """Products of f32 in tf32 on a GPU. Those of 16 bits run on tensor
        cores in any case."""
        return self.set(use_tensor_core=flag)

    def search_space(self, level: int) -> DynamoConfig:
        """0: schedules are chosen by what they are expected to take. 1, 2: by
        what was measured, where something was (docs/TUNING.md)."""
        return self.set(search_space=level)

    def use_cuda_graph(self, flag: bool = True) -> DynamoConfig:
        """A part is one CUDA graph in any case."""
        return self.set(use_cuda_graph=flag)

    def use_fast_math(self, flag: bool = True) -> DynamoConfig:
        """Refused: UnsupportedError where it is asked for."""
        return self.set(use_fast_math=flag)

    def dump_graph_ir(self, folder: str | None) -> DynamoConfig:
        """Writes the text of each part to a file of the folder."""
        return self.set(dump_graph_ir=folder)

    def correctness_report(self, flag: bool = True) -> DynamoConfig:
        """Says of each part, at its first call, how far its results are from
        PyTorch's own."""
        return self.set(correctness_report=flag)

    def parallel_build(self, flag: bool = True) -> DynamoConfig:
        """Kernels are compiled side by side in any case."""
        return self.set(parallel_build=flag)

    def freeze(self, flag: bool = True) -> DynamoConfig:
        """Parameters and buffers are constants, which are packed in advance. A
        change behind autograd's back is then not noticed."""
        return self.set(freeze=flag)

    def buckets(self, flag: bool = True) -> DynamoConfig:
        """Code for all values of a symbolic size up to each power of two, in
        the place of code for each value: for a size that seldom comes twice,
        such as the length of a cache that grows."""
        return self.set(buckets=flag)


dynamo_config = DynamoConfig()
# torch.compile's `mode`: what it is in options.
MODES = {
    None: {},
    "default": {},
    "reduce-overhead": {"use_cuda_graph": True},
    "max-autotune": {"search_space": 2},
    "max-autotune-no-cudagraphs": {"search_space": 2},
}


def settings(mode: str | None, options: dict | None) -> Options:
    """Those of a torch.compile."""
    if mode not in MODES:
        names = ", ".join(name for name in MODES if name)
        raise UsageError(f"no mode '{mode}'; there are {names}")
    return dynamo_config.options.changed(**MODES[mode], **(options or {}))
