# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a script's variables are: values with a name, or mutable ones."""

from __future__ import annotations

import ast
import re

from hidet.scripting.places import Source


class Names:
    """The local names of a script. `is_mutable` of one that is assigned more
    than once, or read elsewhere than below its assignment in the same block."""

    def __init__(self, source: Source, parameters: list[str]) -> None:
        self.source = source
        self.parameters = set(parameters)
        self.assigned: dict[str, list[tuple]] = {}
        self.read: dict[str, list[tuple]] = {}
        self.loops: set[str] = set()
        self.position = 0
        self.walk_block(source.tree.body, ())

    def is_local(self, name: str) -> bool:
        return (
            name in self.parameters
            or name in self.assigned
            or name in self.loops
        )

    def is_mutable(self, name: str) -> bool:
        writes = self.assigned.get(name, [])
        if len(writes) != 1 or name in self.loops:
            return bool(writes)
        at, block = writes[0]
        return not all(
            when > at and where[: len(block)] == block
            for when, where in self.read.get(name, [])
        )

    def walk_block(self, body: list[ast.stmt], block: tuple) -> None:
        for statement in body:
            self.walk(statement, block)

    def walk(self, node: ast.stmt, block: tuple) -> None:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            if node.value is not None:
                self.reads(node.value, block)
            targets = (
                node.targets if isinstance(node, ast.Assign) else [node.target]
            )
            for target in targets:
                if isinstance(node, ast.AugAssign):
                    self.reads(target, block)
                self.target(target, block)
        elif isinstance(node, (ast.For, ast.While, ast.If)):
            if isinstance(node, ast.For):
                self.reads(node.iter, block)
                for name in ast.walk(node.target):
                    if isinstance(name, ast.Name):
                        self.loops.add(name.id)
            else:
                self.reads(node.test, block)
            self.walk_block(node.body, (*block, (id(node), 0)))
            self.walk_block(node.orelse, (*block, (id(node), 1)))
        else:
            self.reads(node, block)

    def target(self, target: ast.expr, block: tuple) -> None:
        if isinstance(target, ast.Name):
            self.position += 1
            self.assigned.setdefault(target.id, []).append(
                (self.position, block)
            )
        elif isinstance(target, ast.Tuple):
            for element in target.elts:
                self.target(element, block)
        else:
            self.reads(target, block)

    def reads(self, node: ast.AST, block: tuple) -> None:
        self.position += 1
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                self.read.setdefault(inner.id, []).append(
                    (self.position, block)
                )


WORDS = set(
    """let shared register workspace for while if else assert return break
    continue printf launch in out inout on step unroll true false inf nan min max
    ceildiv bitcast layout align const kernel fn plan task graph rewrite template
    spatial repeat auto_map custom within idle thread lane warp warpgroup block
    block_dim grid_dim cluster cluster_dim device load yield rows through view
    void bool map mbarrier type""".split()
)
TYPE = re.compile(r"(f|bf|tf|i|u)\d\w*")


def spelled(name: str) -> str:
    """A name of Python's as one of the language, which has words of its own."""
    return name + "_" if name in WORDS or TYPE.fullmatch(name) else name
