// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs and outputs of a model that are one tensor, which its sessions have.
#include "Tools/ApiModel.h"
#include "Tools/InOut.h"

typedef struct call {
  hidet_context_t *context;
  hidet_model_t *model;
  const char *input, *output;
} call_t;

static void set_inout(void *argument) {
  call_t *call = argument;
  hidet_model_t *model = call->model;
  const char *why =
      model->placed ? "the model has sessions already"
                    : hd_inouts_add(&model->module->module->arena, model->graph,
                                    call->input, call->output, &model->inouts);
  if (why)
    hd_api_fail(call->context, why);
}

hidet_status_t hidet_model_set_inout(hidet_model_t *model, const char *input,
                                     const char *output) {
  if (!model || !input || !output)
    return hd_api_needs();
  call_t call = {.context = hd_api_world(model),
                 .model = model,
                 .input = input,
                 .output = output};
  return hd_api_call(call.context, set_inout, &call);
}
