# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tables.hir computes."""
import numpy as np

a = np.array([i % 4 for i in range(64)], "i4")
third = np.float32(1) / np.float32(3)
weights = np.array([[0.5, 1, 1.5], [third, -2, np.inf]], "f4")
order = [2, 0, 3, 1]
small = [-8, 7, 0, 1, -1]
halves = np.array([0.1, 65504, -1.5, 6e-8], "f2").astype("f4")
acc = np.zeros(4)
for i in range(4):
    acc[order[i]] = i + 1
y = np.zeros((64, 8), "f4")
for t in range(64):
    i = a[t]
    y[t] = [
        weights[t % 2, t % 3],
        small[t % 5],
        [1, 0, 1][t % 3],
        halves[t % 4],
        [2, 1][t % 2],
        acc[order[0]] + weights[1, 1] + 1,
        weights[t % 2, t % 3] + (order[i] == 3),
        order[order[2]] + (weights[i, i] if i < 2 else 9),
    ]
np.save("a.npy", a)
np.save("y.npy", y)
