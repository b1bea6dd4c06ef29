# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What printf.hir prints, in any order of its threads."""
import sys

lines = []
for i in range(4):
    block, thread = divmod(i, 2)
    lines.append("block %d thread %i: %.3f %g%%" % (block, thread, 1.5, 1.5))
    lines.append("%u %x %#X %o %5d|%-5d|%05d|%+d"
                 % (255, 65534, 1 << 40, 9, i, i, i, i))
    lines.append("plain")
    lines.append("%d %d %e %f %g" % (1, -3, 0.1, 1, 2))
    if thread == 0:
        lines += ["trace %g" % 1.5, "%g" % 2.5]
with open(sys.argv[1]) as file:
    found = file.read().splitlines()
if sorted(found) != sorted(lines):
    sys.exit("found %s\nexpected %s" % (sorted(found), sorted(lines)))
