// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel itself keeps a path below a folder and free of links (openat2).
#include "Support/Beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Kernels before 5.6, and some sandboxes, lack openat2: then each part of the
// path is opened by itself.
static int open_by_parts(int folder, const char *location) {
  char path[PATH_MAX];
  if (location[0] == '/' || strlen(location) >= sizeof path) {
    errno = location[0] == '/' ? EXDEV : ENAMETOOLONG;
    return -1;
  }
  strcpy(path, location);
  int at = dup(folder);
  char *rest = path;
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

int hd_beneath_open(int folder, const char *path) {
  struct open_how how = {
      .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
  };
  int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
  if (fd < 0 && errno == ENOSYS)
    fd = open_by_parts(folder, path);
  struct stat status;
  if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))) {
    close(fd);
    errno = EISDIR;
    return -1;
  }
  return fd;
}

const char *hd_beneath_text(int error) {
  switch (error) {
  case EXDEV:
    return "it lies outside the model's folder, which is refused";
  case ELOOP:
    return "it is reached through a symbolic link, which is refused";
  case ENOENT:
    return "it is not there";
  case EISDIR:
    return "it is no file";
  default:
    return strerror(error);
  }
}
