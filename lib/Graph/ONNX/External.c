// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// External data: elements in a file beneath the model's folder.
#include "Graph/ONNX/State.h"
#include "Support/Beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct external {
  const char *location;
  int64_t offset, length; // -1: not said.
} external_t;

static bool wrong(hd_onnx_import_t *im, const char *name, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));

static bool wrong(hd_onnx_import_t *im, const char *name, const char *format,
                  ...) {
  va_list args;
  va_start(args, format);
  const char *text = hd_arena_vprintf(im->scratch, format, args);
  va_end(args);
  return hd_error(im->diags, (hd_loc_t){0}, HD_E1102,
                  hd_arena_printf(im->scratch, "%.200s", name), text);
}

static bool read_number(hd_onnx_import_t *im, const char *name,
                        const HdOnnx__StringEntry *entry, int64_t *number) {
  char *end;
  errno = 0;
  long long value = entry->value ? strtoll(entry->value, &end, 10) : -1;
  if (!entry->value || end == entry->value || *end || errno || value < 0)
    return wrong(im, name, "the %s '%.40s' is no size", entry->key,
                 entry->value ? entry->value : "");
  *number = value;
  return true;
}

static bool read_entries(hd_onnx_import_t *im, const HdOnnx__Tensor *tensor,
                         const char *name, external_t *external) {
  *external = (external_t){NULL, 0, -1};
  for (size_t i = 0; i < tensor->n_external_data; i++) {
    const HdOnnx__StringEntry *entry = tensor->external_data[i];
    const char *key = entry->key ? entry->key : "";
    bool ok = true;
    if (strcmp(key, "location") == 0)
      external->location = entry->value;
    else if (strcmp(key, "offset") == 0)
      ok = read_number(im, name, entry, &external->offset);
    else if (strcmp(key, "length") == 0)
      ok = read_number(im, name, entry, &external->length);
    if (!ok)
      return false;
  }
  if (!external->location || !external->location[0])
    return wrong(im, name, "no file is named");
  if (strlen(external->location) >= PATH_MAX)
    return wrong(im, name, "the file's name is too long");
  return true;
}

static const hd_mapped_file_t *open_file(hd_onnx_import_t *im, const char *name,
                                         const char *location) {
  if (!im->folder) {
    wrong(im, name, "'%.200s': a model in memory has no folder", location);
    return NULL;
  }
  const char *path =
      hd_arena_printf(im->scratch, "%s/%s", im->folder, location);
  for (const hd_mapped_file_t *f = im->module->files; f; f = f->next)
    if (strcmp(f->path, path) == 0)
      return f;
  if (im->folder_fd < 0)
    im->folder_fd = open(im->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fd = im->folder_fd < 0 ? -1 : hd_beneath_open(im->folder_fd, location);
  if (fd < 0) {
    wrong(im, name, "'%.200s': %s", location, hd_beneath_text(errno));
    return NULL;
  }
  return hd_module_map(im->module, path, fd);
}

bool hd_import_external(hd_onnx_import_t *im, const HdOnnx__Tensor *tensor,
                        const char *name, int64_t bytes,
                        hd_constant_t *constant) {
  external_t external;
  if (!read_entries(im, tensor, name, &external))
    return false;
  if (external.length >= 0 && external.length != bytes)
    return wrong(im, name, "its length is %lld bytes, and its shape needs %lld",
                 (long long)external.length, (long long)bytes);
  const hd_mapped_file_t *file = open_file(im, name, external.location);
  if (!file)
    return false;
  if (external.offset > (int64_t)file->size ||
      bytes > (int64_t)file->size - external.offset)
    return wrong(im, name,
                 "'%.200s' ends at %zu bytes, and %lld from %lld on are needed",
                 external.location, file->size, (long long)bytes,
                 (long long)external.offset);
  constant->mapped =
      file->data ? file->data + external.offset : (const unsigned char *)"";
  constant->file =
      hd_arena_strndup(im->arena, external.location, strlen(external.location));
  constant->offset = external.offset;
  return true;
}
