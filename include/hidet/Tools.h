// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two command-line tools as functions. The executables call these and
// nothing else, so another program can offer the same commands.

#ifndef HIDET_TOOLS_H
#define HIDET_TOOLS_H

#include "hidet/Export.h"

HIDET_C_BEGIN

// Runs hidet-opt or hidet-run with main's arguments and returns the exit code.
// They read and write the process's standard streams; hidet-run also handles
// SIGINT while it runs. Call them from one thread at a time. argv
// NULL: exit code 2.
HIDET_API int hidet_opt_main(int argc, char **argv);
HIDET_API int hidet_run_main(int argc, char **argv);

HIDET_C_END

#endif
