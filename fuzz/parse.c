// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes are parsed or refused with a diagnostic. What parses is printed,
// and its print parses to the same print.

#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Prints a text's module; false where the text is refused.
static bool print_parsed(hd_context_t *context, const char *text, size_t size,
                         hd_buffer_t *out) {
  hd_module_t *module = hd_module_parse(context, "fuzz", text, size, 1);
  if (!module) {
    if (context->diags.num_errors == 0)
      abort(); // Refused, but nothing said.
    return false;
  }
  hd_module_print(module, out);
  hd_module_destroy(module);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hd_context_t context;
  hd_context_init(&context);
  hd_buffer_t once = {0}, twice = {0};
  if (print_parsed(&context, (const char *)data, size, &once)) {
    bool again =
        print_parsed(&context, hd_buffer_text(&once), once.size, &twice);
    if (!again || strcmp(hd_buffer_text(&once), hd_buffer_text(&twice)) != 0) {
      fprintf(stderr, "--- once\n%s--- twice\n%s", hd_buffer_text(&once),
              hd_buffer_text(&twice));
      abort();
    }
  }
  hd_buffer_t said = {0};
  hd_diagnostics_print(&context.diags, false, &said);
  hd_buffer_fini(&said);
  hd_buffer_fini(&twice);
  hd_buffer_fini(&once);
  hd_context_fini(&context);
  return 0;
}
