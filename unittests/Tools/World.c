// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "World.h"

#include <string.h>

void world_open(world_t *w, const char *device) {
  if (!w->context)
    w->context = hidet_context_create();
  assert_int_equal(hidet_device_open(w->context, device, &w->device), HIDET_OK);
}

void world_load(world_t *w, const char *text) {
  if (hidet_module_parse(w->context, "m", text, strlen(text), &w->module))
    fail_msg("%s", hidet_messages());
  assert_int_equal(hidet_model_create(w->module, NULL, &w->model), HIDET_OK);
  assert_int_equal(hidet_session_create(w->model, w->device, &w->session),
                   HIDET_OK);
}

void world_end(world_t *w) {
  hidet_session_destroy(w->session);
  hidet_model_destroy(w->model);
  hidet_module_destroy(w->module);
  hidet_device_close(w->device);
  hidet_context_destroy(w->context);
}
