// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-opt, not written yet: it knows its version and its usage.

#include "hidet/Tools.h"
#include "hidet/Version.h"

#include <stdio.h>
#include <string.h>

int hidet_opt_main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    printf("hidet-opt %s\n", hidet_version());
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--help") == 0) {
    printf("usage: hidet-opt [options] [file]\n");
    return 0;
  }
  fprintf(stderr, "hidet-opt: error: not implemented yet\n");
  return 4;
}
