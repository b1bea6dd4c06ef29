// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No option of a tool writes to what the tool reads: the files that are named
// on its command line, and those that its model names. Files are the same where
// device and inode are; what is no regular file (a device, a pipe) may be both.
#ifndef HIDET_TOOLS_OUTPUTS_H
#define HIDET_TOOLS_OUTPUTS_H

#include "IR/Module.h"
#include "Tools/Options.h"

// Reports (E1002) each use of an option that writes to the file at path ("-":
// standard input), and takes it out of the options, so that nothing is written
// there whatever else happens. Whether there was none. A file that is not there
// yet counts: else what was just written would be read as what is expected.
bool hd_outputs_spare(hd_options_t *options, hd_diagnostics_t *diags,
                      const char *path);

// The same for all that the command line names to be read, and for two options
// that write to one file, of which the later one is taken out.
bool hd_outputs_check(hd_options_t *options, hd_diagnostics_t *diags);

// The same for the files in which constants of the module's graphs are, whether
// they have been read or will be.
bool hd_outputs_spare_constants(hd_options_t *options,
                                const hd_module_t *module);

#endif
