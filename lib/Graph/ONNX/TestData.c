// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors, sequences and optionals in files of their own, as ONNX's test data
// has them.
#include "Graph/ONNX/State.h"
#include "Support/File.h"

#include <stdlib.h>
#include <string.h>

typedef struct reading {
  hd_onnx_import_t im;
  hd_onnx_data_t *data;
  size_t size;
} reading_t;

static bool reserve(reading_t *r, size_t count) {
  r->data->tensors = calloc(count + 1, sizeof *r->data->tensors);
  if (!r->data->tensors)
    hd_budget_exhausted(&r->im.context->budget, HD_EXHAUSTED_MEMORY);
  return true;
}

static bool add_tensor(reading_t *r, const HdOnnx__Tensor *proto) {
  hd_onnx_import_t *im = &r->im;
  const char *name = proto->name && proto->name[0] ? proto->name : im->name;
  hd_value_t *value = hd_import_constant(im, proto, "tensor", name);
  if (!value || im->failed)
    return false;
  const hd_host_tensor_t *read = hd_constant_load(im->module, value);
  hd_host_tensor_t *tensor = &r->data->tensors[r->data->count];
  if (!read || !hd_host_tensor_init(tensor, im->diags, &im->context->budget,
                                    name, read->type, read->shape, read->rank))
    return false;
  if (read->bytes)
    memcpy(tensor->data, read->data, read->bytes);
  r->data->count++;
  return true;
}

static bool add_sequence(reading_t *r, const HdOnnx__Sequence *proto) {
  enum { TENSORS = 1 };
  if (proto->elem_type > TENSORS)
    return hd_import_unsupported(&r->im, "sequence", r->im.name,
                                 "its elements are no tensors (kind %d)",
                                 (int)proto->elem_type);
  r->data->form = HD_HOLDS_SEQUENCE;
  reserve(r, proto->n_tensor_values);
  for (size_t i = 0; i < proto->n_tensor_values; i++)
    if (!add_tensor(r, proto->tensor_values[i]))
      return false;
  return true;
}

static bool add_optional(reading_t *r, const HdOnnx__Optional *proto) {
  enum { NOTHING = 0, TENSOR = 1, SEQUENCE = 3 };
  if (proto->sequence_value)
    return add_sequence(r, proto->sequence_value);
  if (proto->tensor_value) {
    reserve(r, 1);
    return add_tensor(r, proto->tensor_value);
  }
  int kind = proto->elem_type;
  if (kind != NOTHING && kind != TENSOR && kind != SEQUENCE)
    return hd_import_unsupported(
        &r->im, "optional", r->im.name,
        "it holds neither tensor nor sequence (kind %d)", kind);
  r->data->present = false;
  return true;
}

static bool read_value(reading_t *r) {
  static const ProtobufCMessageDescriptor *const types[] = {
      [HD_HOLDS_TENSOR] = &hd_onnx__tensor__descriptor,
      [HD_HOLDS_SEQUENCE] = &hd_onnx__sequence__descriptor,
      [HD_HOLDS_OPTIONAL] = &hd_onnx__optional__descriptor,
  };
  hd_onnx_import_t *im = &r->im;
  hd_value_form_t form = r->data->form;
  hd_onnx_message_t message;
  if (!hd_onnx_unpack(im->context, im->scratch, im->name, types[form],
                      im->bytes, r->size, &message))
    return false;
  im->pieces = message.pieces;
  const void *root = message.root;
  switch (form) {
  case HD_HOLDS_TENSOR:
    reserve(r, 1);
    return add_tensor(r, root);
  case HD_HOLDS_SEQUENCE:
    return add_sequence(r, root);
  case HD_HOLDS_OPTIONAL:
    return add_optional(r, root);
  }
  return false;
}

static void end_module(void *module) { hd_module_destroy(module); }

static void end_data(void *data) { hd_onnx_data_fini(data); }

// path: of a file, or NULL: bytes are its content.
static bool read_from(hd_context_t *context, const char *path, const char *name,
                      hd_file_part_t content, hd_value_form_t form,
                      hd_onnx_data_t *data) {
  *data = (hd_onnx_data_t){.form = form, .present = true};
  hd_module_t *module = hd_module_create(context);
  hd_cleanup_t module_end, data_end;
  hd_budget_defer(&context->budget, &module_end, end_module, module);
  hd_budget_defer(&context->budget, &data_end, end_data, data);
  const hd_mapped_file_t *file = path ? hd_module_map(module, path, -1) : NULL;
  if (file)
    content = (hd_file_part_t){file->data, file->size};
  bool ok = false;
  if (file || !path) {
    reading_t reading = {.im = {.context = context,
                                .diags = &context->diags,
                                .module = module,
                                .arena = &module->arena,
                                .scratch = &module->arena,
                                .name = name,
                                .bytes = content.data,
                                .folder_fd = -1},
                         .data = data,
                         .size = content.size};
    ok = read_value(&reading);
  }
  hd_budget_keep(&context->budget, &data_end);
  hd_budget_clean(&context->budget, &module_end);
  if (!ok)
    hd_onnx_data_fini(data);
  return ok;
}

bool hd_onnx_read_value(hd_context_t *context, const char *path,
                        hd_value_form_t form, hd_onnx_data_t *data) {
  return read_from(context, path, path, (hd_file_part_t){NULL, 0}, form, data);
}

bool hd_onnx_decode_value(hd_context_t *context, const char *name,
                          const void *bytes, size_t size, hd_value_form_t form,
                          hd_onnx_data_t *data) {
  return read_from(context, NULL, name, (hd_file_part_t){bytes, size}, form,
                   data);
}

void hd_onnx_data_fini(hd_onnx_data_t *data) {
  for (size_t i = 0; i < data->count; i++)
    hd_host_tensor_fini(&data->tensors[i]);
  free(data->tensors);
  *data = (hd_onnx_data_t){0};
}

bool hd_onnx_read_tensor(hd_context_t *context, const char *path,
                         hd_host_tensor_t *tensor) {
  hd_onnx_data_t data;
  *tensor = (hd_host_tensor_t){0};
  if (!hd_onnx_read_value(context, path, HD_HOLDS_TENSOR, &data))
    return false;
  *tensor = data.tensors[0];
  data.count = 0;
  hd_onnx_data_fini(&data);
  return true;
}
