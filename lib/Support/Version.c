// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "hidet/Version.h"

const char *hidet_version(void) { return HIDET_VERSION_STRING; }
