// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that a module keeps mapped. One that is cut short by another process
// while it is mapped ends this one (SIGBUS), as with every mapped file.
#include "IR/Module.h"
#include "Support/File.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Returns an errno, or 0.
static int map(int fd, hd_mapped_file_t *file) {
  struct stat status;
  if (fstat(fd, &status) < 0)
    return errno;
  if (S_ISDIR(status.st_mode))
    return EISDIR;
  file->size = (size_t)status.st_size;
  if (file->size == 0)
    return 0;
  void *data = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED)
    return errno;
  file->data = data;
  return 0;
}

static bool is_regular(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 &&
         (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

static bool read_whole(hd_diagnostics_t *diags, const char *path,
                       hd_mapped_file_t *file) {
  hd_buffer_t content = {0};
  if (!hd_file_read(diags, path, 0, &content))
    return false;
  file->data = (unsigned char *)content.data;
  file->size = content.size;
  file->on_heap = true;
  return true;
}

const hd_mapped_file_t *hd_module_map(hd_module_t *module, const char *path,
                                      int fd) {
  hd_diagnostics_t *diags = &module->context->diags;
  for (hd_mapped_file_t *file = module->files; file; file = file->next)
    if (strcmp(file->path, path) == 0) {
      if (fd >= 0)
        close(fd);
      return file;
    }
  // First, for it may unwind.
  hd_mapped_file_t *file = HD_ARENA_NEW(&module->arena, hd_mapped_file_t);
  file->path = hd_arena_strndup(&module->arena, path, strlen(path));
  bool standard = strcmp(path, "-") == 0;
  int error = 0;
  if (fd < 0 && !standard) {
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    error = fd < 0 ? errno : 0;
  }
  bool ok;
  if (!error && (standard || !is_regular(fd))) {
    ok = read_whole(diags, path, file);
  } else {
    error = error ? error : map(fd, file);
    ok = !error ||
         hd_error(diags, (hd_loc_t){0}, HD_E0801, path, strerror(error));
  }
  if (fd >= 0)
    close(fd);
  if (!ok)
    return NULL;
  file->next = module->files;
  module->files = file;
  return file;
}

void hd_module_unmap(hd_module_t *module) {
  for (hd_mapped_file_t *file = module->files; file; file = file->next) {
    if (file->on_heap)
      free(file->data);
    else if (file->data)
      munmap(file->data, file->size);
  }
  module->files = NULL;
}
