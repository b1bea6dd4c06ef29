// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What code in a file was made for, and whether that is here.
#include "CodeGen/CodeGen.h"
#include "Runtime/Saved.h"
#include "Support/BuildId.h"

#include <string.h>

void hd_saved_describe(const hd_model_t *m, hd_buffer_t *out) {
  const hd_device_info_t *info = &m->device->info;
  char build[128];
  hd_buffer_printf(out, "build %s, %s; %s, %s, %s, %d multiprocessors, ",
                   hd_build_id(build, sizeof(build)) ? build : "unknown",
                   hd_codegen_version(), m->device->ops->kind, info->name,
                   info->target->name, info->sms);
  m->device->ops->describe(m->device, out);
  hd_buffer_printf(out, "; precision %s",
                   hd_precision_name(m->options.precision));
}

static void say_other(hd_model_t *m, const char *made_for, size_t size,
                      const char *here) {
  hd_remark(&hd_model_context(m)->diags, (hd_loc_t){0},
            "'%s' has code for these sizes, made for another place; it is "
            "made anew (there: %.*s; here: %s)",
            m->module->artifact->path, (int)(size < 400 ? size : 400), made_for,
            here);
}

bool hd_saved_is_here(hd_model_t *m, int64_t number, bool *ok) {
  const char *text;
  const hd_section_t *s = hd_artifact_section(m->module->artifact, number,
                                              HD_SECTION_MADE_FOR, &text);
  *ok = s != NULL;
  if (!s)
    return false;
  hd_buffer_t here = {0};
  hd_cleanup_t cleanup;
  hd_budget_t *budget = &hd_model_context(m)->budget;
  hd_budget_defer(budget, &cleanup, hd_buffer_end, &here);
  hd_saved_describe(m, &here);
  bool same = !here.failed && here.size == s->size &&
              memcmp(here.data, text, s->size) == 0 &&
              !strstr(here.data, "build unknown");
  if (!same)
    say_other(m, text, s->size, hd_buffer_text(&here));
  hd_budget_clean(budget, &cleanup);
  return same;
}
