// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file is counted before it is written, so that the count is never below what
// is there: what was not written after all, or took another's place, is found
// out when the folder is looked through, before anything is removed.
#include "Runtime/CacheRoom.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FOLDERS = 256, NAME = 30, PAGE = 4096, STALE_S = 3600 };

// So many times another process's lock is waited for, a millisecond each; and
// how long what could not make room is not tried again.
enum { TRIES = 5, TRY_NS = 1000000, AGAIN_S = 60 };

// What the file `size` has.
typedef struct count {
  int64_t bytes, check; // ~bytes, or the file is damaged.
  int64_t failed;       // When no room could be made, in s; 0: there was some.
} count_t;

typedef struct file {
  int64_t ns; // When it was asked for last.
  int64_t bytes;
  unsigned char folder;
  char name[NAME + 1];
} file_t;

typedef struct files {
  file_t *data;
  size_t size, capacity;
  int64_t bytes; // All together.
} files_t;

static int64_t paged(int64_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

static bool add_file(files_t *files, const file_t *file) {
  if (files->size == files->capacity) {
    size_t capacity = files->capacity ? 2 * files->capacity : 1024;
    file_t *data = realloc(files->data, capacity * sizeof(*data));
    if (!data)
      return false;
    files->data = data;
    files->capacity = capacity;
  }
  files->data[files->size++] = *file;
  files->bytes += file->bytes;
  return true;
}

static bool is_entry(const char *name) {
  return strlen(name) == NAME && strspn(name, "0123456789abcdef") == NAME;
}

// What a process that was killed while it wrote has left, where the file system
// has no files without names (Support/File.c).
static bool is_stale(const char *name, const struct stat *status) {
  return strncmp(name, ".hidet-", 7) == 0 &&
         status->st_mtime < time(NULL) - STALE_S;
}

// A folder of entries, by the folder of the cache. A symbolic link in its place
// is none: what lies behind it is somebody else's. -1: there is none.
static int open_folder(int dir, unsigned folder) {
  char name[3];
  snprintf(name, sizeof(name), "%02x", folder % FOLDERS);
  return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool list_folder(int dir, unsigned folder, files_t *files) {
  int fd = open_folder(dir, folder);
  if (fd < 0)
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
  DIR *open = fdopendir(fd);
  if (!open) {
    close(fd);
    return false;
  }
  bool ok = true;
  for (const struct dirent *d; ok && (d = readdir(open));) {
    struct stat status;
    if (fstatat(dirfd(open), d->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    if (is_stale(d->d_name, &status))
      unlinkat(dirfd(open), d->d_name, 0);
    if (!is_entry(d->d_name))
      continue;
    file_t file = {.ns = (int64_t)status.st_mtim.tv_sec * 1000000000 +
                         status.st_mtim.tv_nsec,
                   .bytes = paged(status.st_size),
                   .folder = (unsigned char)folder};
    memcpy(file.name, d->d_name, sizeof(file.name));
    ok = add_file(files, &file);
  }
  closedir(open);
  return ok;
}

static int by_time(const void *left, const void *right) {
  const file_t *a = left, *b = right;
  return (a->ns > b->ns) - (a->ns < b->ns);
}

// Counts what is there; where it is more than `most`, removes the oldest until
// it is no more than `rest`. -1: it cannot be counted.
static int64_t look_through(const char *path, int64_t most, int64_t rest) {
  files_t files = {0};
  int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool ok = dir >= 0;
  for (unsigned i = 0; ok && i < FOLDERS; i++)
    ok = list_folder(dir, i, &files);
  if (ok && files.bytes > most && files.size) {
    qsort(files.data, files.size, sizeof(*files.data), by_time);
    for (size_t i = 0; i < files.size && files.bytes > rest; i++) {
      const file_t *file = &files.data[i];
      int folder = open_folder(dir, file->folder);
      if (folder >= 0 &&
          (unlinkat(folder, file->name, 0) == 0 || errno == ENOENT))
        files.bytes -= file->bytes;
      if (folder >= 0)
        close(folder);
    }
  }
  if (dir >= 0)
    close(dir);
  free(files.data);
  return ok ? files.bytes : -1;
}

// The file of the count, locked. Whoever forks has the lock in both processes
// until one of them says that it is over. -1: another has it, and keeps it.
static int lock_count(const char *dir) {
  char path[PATH_MAX];
  int length = snprintf(path, sizeof(path), "%s/size", dir);
  int fd = length < (int)sizeof(path)
               ? open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)
               : -1;
  for (int i = 0; fd >= 0 && i < TRIES; i++) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
      return fd;
    if (errno != EWOULDBLOCK && errno != EINTR)
      break;
    nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL);
  }
  if (fd >= 0)
    close(fd);
  return -1;
}

// Bytes below 0: nobody has counted yet, or nobody could.
static count_t read_count(int fd) {
  count_t count;
  bool ok = pread(fd, &count, sizeof(count), 0) == sizeof(count) &&
            count.bytes == ~count.check;
  return ok ? count : (count_t){.bytes = -1};
}

static bool write_count(int fd, int64_t bytes, int64_t failed) {
  count_t count = {bytes, ~bytes, failed};
  return pwrite(fd, &count, sizeof(count), 0) == sizeof(count);
}

void hd_cache_leave_room(int lock) {
  flock(lock, LOCK_UN);
  close(lock);
}

static bool has_room(int64_t count, int64_t most, int64_t bytes) {
  return count >= 0 && count <= most - bytes;
}

int hd_cache_make_room(const char *dir, int64_t most, int64_t bytes) {
  bytes = paged(bytes);
  if (bytes > most)
    return -1;
  int fd = lock_count(dir);
  if (fd < 0)
    return -1;
  count_t count = read_count(fd);
  int64_t now = time(NULL);
  bool waits = count.failed <= now && now - count.failed < AGAIN_S;
  if (!has_room(count.bytes, most, bytes) && !waits) {
    int64_t rest = most - most / 10 - bytes;
    count.bytes = look_through(dir, most - bytes, rest > 0 ? rest : 0);
    count.failed = has_room(count.bytes, most, bytes) ? 0 : now;
    if (count.failed)
      write_count(fd, count.bytes, count.failed);
  }
  if (has_room(count.bytes, most, bytes) &&
      write_count(fd, count.bytes + bytes, count.failed))
    return fd;
  hd_cache_leave_room(fd);
  return -1;
}
