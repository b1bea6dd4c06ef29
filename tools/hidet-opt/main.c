// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "hidet/Tools.h"

int main(int argc, char **argv) { return hidet_opt_main(argc, argv); }
