// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that the tools read: modules, parts of test files.
#ifndef HIDET_TOOLS_INPUT_H
#define HIDET_TOOLS_INPUT_H

#include "Tools/Options.h"
#include "Tools/Process.h"

// A part of a text; the whole of it where it is not split.
typedef struct hd_text_part {
  const char *text;
  size_t size;
  uint32_t first_line;
} hd_text_part_t;

// Cuts the text at the lines that start with "// -----"; calls visit for each
// part in order.
void hd_text_split(const char *text, size_t size,
                   void (*visit)(void *argument, const hd_text_part_t *part),
                   void *argument);

// True where name ends in suffix.
bool hd_has_suffix(const char *name, const char *suffix);

// Reads the file that the command line names (at most one; "-" without); of one
// named *.onnx the name alone. False and a diagnostic where it is a kind of
// file that is not supported.
bool hd_tools_read_input(hd_process_t *process, const hd_options_t *options,
                         const char **name, hd_buffer_t *text);

// Parses and verifies one part, or imports the ONNX model that the file is (the
// text must outlive the module). The modules named by the uses of the option
// `load` come first and become part of the module. *module (NULL: none) is to
// be destroyed by the caller in any case; false after errors. An option that
// writes where the module has constants is one (Outputs.h).
bool hd_tools_parse(hd_process_t *process, hd_options_t *options, int load,
                    const char *name, const hd_text_part_t *part,
                    hd_module_t **module);

// Whether entry asks for an instance of a function with compile-time parameters
// ("scale[B = 64]", or "scale" for the defaults). NULL asks for none.
bool hd_tools_wants_instance(const hd_module_t *module, const char *entry);
// Where it does, that is made, and *entry becomes its name. True where it does
// not; false after an error.
bool hd_tools_make_entry(hd_module_t *module, const char **entry);

// Parses "-" or a name for diagnostics.
const char *hd_input_name(const char *path);

#endif
