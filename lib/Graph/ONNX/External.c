// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// External data: elements in a file beside the model. The kernel itself keeps
// the path below the model's folder and free of links (openat2).
#include "Graph/ONNX/State.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

// Kernels before 5.6, and some sandboxes, lack openat2: then each part of the
// path is opened by itself.
static int open_by_parts(int folder, const char *location) {
  char path[PATH_MAX];
  strcpy(path, location);
  int at = dup(folder);
  char *rest = path;
  if (path[0] == '/') {
    close(at);
    errno = EXDEV;
    return -1;
  }
  for (char *part; at >= 0 && (part = strsep(&rest, "/"));) {
    if (!part[0] || strcmp(part, ".") == 0)
      continue;
    int flags = O_CLOEXEC | O_NOFOLLOW | O_RDONLY | O_NOCTTY | O_NONBLOCK;
    bool up = strcmp(part, "..") == 0;
    int next = up ? -1 : openat(at, part, flags | (rest ? O_DIRECTORY : 0));
    int error = up ? EXDEV : errno;
    close(at);
    errno = error;
    at = next;
  }
  return at;
}

static int open_beneath(int folder, const char *location) {
  struct open_how how = {
      .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
  };
  int fd = (int)syscall(SYS_openat2, folder, location, &how, sizeof how);
  return fd < 0 && errno == ENOSYS ? open_by_parts(folder, location) : fd;
}

static const char *explain(int error) {
  switch (error) {
  case EXDEV:
    return "it lies outside the model's folder, which is refused";
  case ELOOP:
    return "it is reached through a symbolic link, which is refused";
  case ENOENT:
    return "it is not there";
  default:
    return strerror(error);
  }
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
  int fd = im->folder_fd < 0 ? -1 : open_beneath(im->folder_fd, location);
  struct stat status;
  if (fd < 0) {
    wrong(im, name, "'%.200s': %s", location, explain(errno));
    return NULL;
  }
  if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    wrong(im, name, "'%.200s': it is no file", location);
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
  constant->file = file->path;
  constant->offset = external.offset;
  return true;
}
