# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ATen's operators are in nodes of the language, by family. A function
gets the call (`call.Call`), what its row of the table says, and the operator's
arguments, all of them, in its schema's order; it gives the value, or a list of
them. `Unsupported` says what it cannot say."""
