# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What exits.hir computes, statement by statement."""
import numpy as np

n = 50
a = np.array([(i * 7) % 41 - 6 for i in range(64)], dtype=np.int32)
a[40] = 60
y = np.zeros((8, 64), np.int32)
acc = [0] * 4
for task in range(16):
    i, j = divmod(task, 4)
    if i * 4 + j == 9:
        break
    if j == 1:
        continue
    acc[j] += i * 10
y[:4] = np.array(acc)[:, None]
total = 0
for x in a[:n]:
    if x < 0:
        continue
    if x > 50:
        break
    total += x
y[4] = total
for thread in range(64):
    found = [i for i in range(n) if a[i] == thread]
    y[5, thread] = found[0] if found else -1
y[6:] = 7
for thread in range(32):
    if thread != 3:
        y[6, thread] = 1
    y[7, thread] = min(9, thread)
np.save("a.npy", a)
np.save("y.npy", y)
