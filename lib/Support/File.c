// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file is written without a name (O_TMPFILE) and linked when it is complete.
// linkat() replaces nothing, so over an existing file the link gets a name of
// its own first and is renamed. File systems without O_TMPFILE get a named
// temporary file, which is removed on failure.
#include "Support/File.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const hd_loc_t nowhere;

static bool is_standard(const char *path) { return strcmp(path, "-") == 0; }

// Returns an errno, or 0. EFBIG stands for more than limit bytes.
static int read_all(int fd, size_t limit, hd_buffer_t *out) {
  enum { CHUNK = 1 << 16 };
  char *chunk = malloc(CHUNK);
  if (!chunk)
    return ENOMEM;
  int error = 0;
  for (;;) {
    ssize_t size = read(fd, chunk, CHUNK);
    if (size < 0 && errno == EINTR)
      continue;
    if (size < 0)
      error = errno;
    if (size <= 0)
      break;
    if ((size_t)size > limit - out->size) {
      error = EFBIG;
      break;
    }
    hd_buffer_write(out, chunk, (size_t)size);
    if (out->failed) {
      error = ENOMEM;
      break;
    }
  }
  free(chunk);
  return error;
}

// Half of the machine's memory: what is larger cannot be used, and a device
// that never ends (/dev/zero) would bring the system's killer.
static size_t largest(void) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (size_t)pages / 2 * (size_t)size : SIZE_MAX;
}

bool hd_file_read(hd_diagnostics_t *diags, const char *path, size_t limit,
                  hd_buffer_t *out) {
  if (!limit || limit > largest())
    limit = largest();
  int fd = is_standard(path) ? dup(STDIN_FILENO)
                             : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0)
    return hd_error(diags, nowhere, HD_E0801, path, strerror(errno));
  int error = read_all(fd, limit, out);
  close(fd);
  if (!error)
    return true;
  hd_buffer_fini(out);
  if (error == EFBIG || error == ENOMEM) {
    char text[PATH_MAX + 80];
    if (error == EFBIG)
      snprintf(text, sizeof(text), "'%s' is larger than %zu bytes", path,
               limit);
    else
      snprintf(text, sizeof(text), "not enough memory to read '%s'", path);
    return hd_error(diags, nowhere, HD_E0904, text);
  }
  return hd_error(diags, nowhere, HD_E0801, path, strerror(error));
}

static int write_all(int fd, const hd_file_part_t *parts, size_t num_parts) {
  for (size_t i = 0; i < num_parts; i++) {
    const char *next = parts[i].data;
    size_t left = parts[i].size;
    while (left > 0) {
      ssize_t size = write(fd, next, left);
      if (size < 0 && errno == EINTR)
        continue;
      if (size < 0)
        return errno;
      next += size;
      left -= (size_t)size;
    }
  }
  return 0;
}

// Writes to what is already open and closes it.
static int write_and_close(int fd, const hd_file_part_t *parts,
                           size_t num_parts) {
  int error = write_all(fd, parts, num_parts);
  if (close(fd) < 0 && !error)
    error = errno;
  return error;
}

static int rename_over(const char *from, const char *to) {
  if (rename(from, to) == 0)
    return 0;
  int error = errno;
  unlink(from);
  return error;
}

// Gives a nameless file its name.
static int link_file(int fd, const char *folder, const char *path) {
  char self[40], name[PATH_MAX + 40];
  snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
  if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
    return 0;
  if (errno != EEXIST)
    return errno;
  for (unsigned i = 0; i < 1000; i++) {
    snprintf(name, sizeof(name), "%s/.hidet-%d-%u", folder, (int)getpid(), i);
    if (linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0)
      return rename_over(name, path);
    if (errno != EEXIST)
      return errno;
  }
  return EEXIST;
}

// Where files cannot be nameless. keep_mode: 0, or the mode of the file that
// is replaced.
static int write_named(const char *folder, const char *path, mode_t keep_mode,
                       const hd_file_part_t *parts, size_t num_parts) {
  char name[PATH_MAX + 40];
  int fd = -1;
  for (unsigned i = 0; fd < 0 && i < 1000; i++) {
    snprintf(name, sizeof(name), "%s/.hidet-%d-%u", folder, (int)getpid(), i);
    fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST)
      break;
  }
  if (fd < 0)
    return errno;
  if (keep_mode)
    fchmod(fd, keep_mode);
  int error = write_and_close(fd, parts, num_parts);
  if (error) {
    unlink(name);
    return error;
  }
  return rename_over(name, path);
}

static int write_regular(const char *path, mode_t keep_mode,
                         const hd_file_part_t *parts, size_t num_parts) {
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) : 0;
  if (length >= sizeof(folder))
    return ENAMETOOLONG;
  memcpy(folder, path, length);
  folder[length] = '\0';
  if (length == 0)
    strcpy(folder, slash ? "/" : ".");
  int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0)
    return errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL
               ? write_named(folder, path, keep_mode, parts, num_parts)
               : errno;
  if (keep_mode)
    fchmod(fd, keep_mode);
  int error = write_all(fd, parts, num_parts);
  if (!error)
    error = link_file(fd, folder, path);
  if (close(fd) < 0 && !error)
    error = errno;
  return error;
}

// Returns an errno, or 0.
static int write_path(const char *path, const hd_file_part_t *parts,
                      size_t num_parts) {
  if (is_standard(path)) {
    fflush(stdout);
    int fd = dup(STDOUT_FILENO);
    return fd < 0 ? errno : write_and_close(fd, parts, num_parts);
  }
  struct stat status;
  if (stat(path, &status) < 0)
    return errno == ENOENT ? write_regular(path, 0, parts, num_parts) : errno;
  if (!S_ISREG(status.st_mode)) {
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? errno : write_and_close(fd, parts, num_parts);
  }
  if (access(path, W_OK) < 0)
    return errno;
  // A symbolic link stays one: what it points to is replaced.
  char *real = realpath(path, NULL);
  if (!real)
    return errno;
  int error = write_regular(real, status.st_mode & 07777, parts, num_parts);
  free(real);
  return error;
}

bool hd_file_write(hd_diagnostics_t *diags, const char *path,
                   const hd_file_part_t *parts, size_t num_parts) {
  int error = write_path(path, parts, num_parts);
  if (!error)
    return true;
  bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  const char *name = is_standard(path) ? "<stdout>" : path;
  return hd_error(diags, nowhere, full ? HD_E0807 : HD_E0802, name,
                  strerror(error));
}

bool hd_file_make_folders(const char *path) {
  char partial[PATH_MAX];
  size_t length = strlen(path);
  if (length >= sizeof(partial)) {
    errno = ENAMETOOLONG;
    return false;
  }
  for (size_t i = 0; i <= length; i++) {
    partial[i] = '\0';
    bool end = path[i] == '/' || path[i] == '\0';
    if (end && i > 0 && mkdir(partial, 0777) < 0 && errno != EEXIST)
      return false;
    partial[i] = path[i];
  }
  return true;
}
