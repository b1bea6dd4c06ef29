// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tune/Candidate.h"
#include "IR/Graph/Graph.h"
#include "IR/Text/Parser.h"
#include "IR/Verify/Verifier.h"

bool hd_tune_program_init(hd_tune_program_t *p, hd_device_t *device,
                          const char *text, size_t size) {
  hd_context_t *context = device->context;
  *p = (hd_tune_program_t){0};
  hd_graph_program_options_t options = {0};
  p->text = hd_module_parse(context, "candidate", text, size, 1);
  if (!p->text || !hd_module_verify(p->text))
    return false;
  p->graph = hd_module_find_graph(p->text, HD_TUNE_GRAPH);
  p->schedules = (hd_schedule_options_t){.module = p->text,
                                         .simulated = !device->ops->replay};
  hd_device_machine(device, &p->schedules.machine);
  p->made = hd_module_create(context);
  return p->graph && hd_graph_program_init(&p->program, device, p->made,
                                           p->graph, &p->schedules, &options);
}

void hd_tune_program_fini(hd_tune_program_t *p) {
  hd_program_fini(&p->program);
  hd_module_destroy(p->made);
  hd_module_destroy(p->text);
  *p = (hd_tune_program_t){0};
}

void hd_tune_take_error(hd_context_t *context, hd_buffer_t *text) {
  const hd_diagnostic_t *d = context->diags.first;
  while (d && d->severity != HD_ERROR)
    d = d->next;
  hd_buffer_puts(text, d ? d->message : "no reason was given");
  hd_diagnostics_clear(&context->diags);
}
