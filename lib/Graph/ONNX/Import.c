// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a file to a module:
//
//   Wire.c      bytes, walked within bounds      -> protobuf-c's messages
//   Graphs.c    GraphProto                       -> hd_graph_t
//   Nodes.c     NodeProto, Attributes.c          -> hd_node_t
//   Functions.c nodes that call functions        -> the function's nodes
//   Tensors.c   TensorProto, External.c          -> constants
//   Names.c     names                            -> identifiers
#include "Graph/ONNX/State.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NEWEST_IR = 13 }; // Of onnx 1.22.0.

// Names in messages are cut: one may be as long as the file.
bool hd_import_fault(hd_onnx_import_t *im, hd_diagnostic_code_t code,
                     const char *what, const char *name, const char *format,
                     ...) {
  va_list args;
  va_start(args, format);
  const char *text = hd_arena_vprintf(im->scratch, format, args);
  va_end(args);
  return hd_error(im->diags, (hd_loc_t){0}, code,
                  hd_arena_printf(im->scratch, "%.500s '%.200s'", what, name),
                  text);
}

static bool no_model(hd_onnx_import_t *im, const char *why) {
  return hd_error(im->diags, (hd_loc_t){0}, HD_E1101, im->name, why);
}

static bool check_model(hd_onnx_import_t *im) {
  const HdOnnx__Model *model = im->model;
  if (!model->graph || !model->has_ir_version)
    return no_model(im,
                    model->graph ? "it says no version" : "it holds no graph");
  if (model->ir_version > NEWEST_IR)
    return hd_import_unsupported(
        im, "model", im->name,
        "its format has version %lld, and the newest one known here is %d",
        (long long)model->ir_version, NEWEST_IR);
  return true;
}

static bool import(hd_onnx_import_t *im, size_t size) {
  static const char lfs[] = "version https://git-lfs";
  if (size == 0)
    return no_model(im, "it is empty");
  if (size >= sizeof lfs && memcmp(im->bytes, lfs, sizeof lfs - 1) == 0)
    return no_model(im, "it is a pointer of Git LFS; fetch the file itself");
  hd_onnx_message_t message;
  if (!hd_onnx_unpack(im->context, im->scratch, im->name,
                      &hd_onnx__model__descriptor, im->bytes, size, &message))
    return false;
  im->model = (const HdOnnx__Model *)message.root;
  im->pieces = message.pieces;
  hd_onnx_scope_t scope = {0};
  if (!check_model(im) ||
      !hd_import_opsets(im, im->model->opset_import, im->model->n_opset_import,
                        &scope) ||
      !hd_import_add_functions(im))
    return false;
  hd_graph_t *graph = hd_import_graph(im, &scope, im->model->graph);
  if (!graph || im->failed)
    return false;
  hd_vec_push(im->arena, &im->module->items,
              (hd_item_t){HD_ITEM_GRAPH, .u.graph = graph});
  return true;
}

static void close_folder(void *argument) {
  hd_onnx_import_t *im = argument;
  if (im->folder_fd >= 0)
    close(im->folder_fd);
}

static bool import_model(hd_onnx_import_t *im, size_t size) {
  hd_arena_t scratch;
  hd_arena_init_local(&scratch, &im->context->budget);
  hd_cleanup_t cleanup;
  hd_budget_defer(&im->context->budget, &cleanup, close_folder, im);
  im->scratch = &scratch;
  im->diags = &im->context->diags;
  im->arena = &im->module->arena;
  im->folder_fd = -1;
  bool ok = import(im, size);
  hd_budget_clean(&im->context->budget, &cleanup);
  hd_arena_fini(&scratch);
  return ok;
}

static hd_module_t *finish(hd_module_t *module, bool ok) {
  if (ok)
    return module;
  hd_module_destroy(module);
  return NULL;
}

hd_module_t *hd_onnx_import_memory(hd_context_t *context, const char *name,
                                   const void *bytes, size_t size,
                                   const char *folder) {
  hd_module_t *module = hd_module_create(context);
  if (folder)
    module->folder = hd_arena_strndup(&module->arena, folder, strlen(folder));
  hd_onnx_import_t im = {.context = context,
                         .module = module,
                         .name = name,
                         .bytes = bytes,
                         .folder = folder};
  return finish(module, import_model(&im, size));
}

hd_module_t *hd_onnx_import(hd_context_t *context, const char *path) {
  hd_module_t *module = hd_module_create(context);
  const hd_mapped_file_t *file = hd_module_map(module, path, -1);
  if (!file)
    return finish(module, false);
  const char *slash = strrchr(file->path, '/');
  const char *base = slash ? slash + 1 : file->path;
  hd_module_set_folder(module, path);
  hd_onnx_import_t im = {.context = context,
                         .module = module,
                         .name = path,
                         .file = file->on_heap ? NULL : base,
                         .bytes = file->data,
                         .folder = module->folder};
  // The walk hops from tensor to tensor; what lies between is not read ahead.
  bool mapped = !file->on_heap && file->size > 0;
  if (mapped)
    madvise(file->data, file->size, MADV_RANDOM);
  bool ok = import_model(&im, file->size);
  if (mapped)
    madvise(file->data, file->size, MADV_NORMAL);
  return finish(module, ok);
}
