// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <hidet/Tools.h>
#include <hidet/Version.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  if (strcmp(hidet_version(), HIDET_VERSION_STRING) != 0) {
    fprintf(stderr, "library %s, headers %s\n", hidet_version(),
            HIDET_VERSION_STRING);
    return 1;
  }
  char name[] = "hidet-opt", option[] = "--version";
  char *arguments[] = {name, option, NULL};
  return hidet_opt_main(2, arguments);
}
