// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --verify-diagnostics: comments in a file say which diagnostics it causes.
#ifndef HIDET_TOOLS_VERIFYDIAGNOSTICS_H
#define HIDET_TOOLS_VERIFYDIAGNOSTICS_H

#include "Tools/Input.h"

// Compares the diagnostics reported since the last clear with the comments of
// the part, `expected-error {{text}}` (also -warning, -remark, -note; @+1, @-2,
// @above, @below and @unknown say on which line). A diagnostic matches where
// its printed first line, "error[E0201]: message", holds the text. Clears the
// diagnostics; then reports, as errors of class MISMATCH (E1006), what was
// expected and did not come and what came and was not expected.
bool hd_verify_diagnostics(hd_diagnostics_t *diags, const char *name,
                           const hd_text_part_t *part);

#endif
