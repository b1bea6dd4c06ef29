// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tools' JSON reports share.
#ifndef HIDET_TOOLS_JSON_H
#define HIDET_TOOLS_JSON_H

#include "Support/Diagnostic.h"

#include <jansson.h>

// The array under the key `diagnostics`.
json_t *hd_json_diagnostics(const hd_diagnostics_t *diags);

// The report of a process that is ended while its work goes on, of which
// nothing can be asked: `version`, `exit` and these `diagnostics`.
json_t *hd_json_ended(const hd_diagnostics_t *diags, hd_exit_t exit_code);

// Writes the object, indented, and gives up the reference.
bool hd_json_write(hd_diagnostics_t *diags, const char *path, json_t *object);

#endif
