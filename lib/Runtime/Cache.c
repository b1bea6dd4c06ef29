// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry is a file (CacheRoom.h says where): a head with the size of what
// follows, and a hash of that and the entry's key: another entry's file in its
// place is damaged.
#include "Runtime/Cache.h"
#include "Runtime/CacheRoom.h"
#include "Support/File.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct hd_cache {
  char *dir;
  int64_t bytes; // The most that entries hold.
};

typedef struct head {
  char magic[8];
  uint64_t size, hash;
} head_t;

static const char magic[8] = "HIDET\0\2";

char *hd_cache_default_dir(void) {
  static const struct {
    const char *variable, *below;
  } places[] = {{"HIDET_CACHE_DIR", ""},
                {"XDG_CACHE_HOME", "/hidet"},
                {"HOME", "/.cache/hidet"}};
  for (int i = 0; i < 3; i++) {
    const char *value = getenv(places[i].variable);
    char *dir;
    if (value && value[0] &&
        asprintf(&dir, "%s%s", value, places[i].below) >= 0)
      return dir;
  }
  return NULL;
}

// Whether files and folders can be made in a folder, which is found out by
// making one: access() does not ask the file system. Else errno says why not.
static bool may_grow(const char *folder) {
  int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd >= 0)
    return close(fd) == 0;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
    return false;
  char path[PATH_MAX];
  int length = snprintf(path, sizeof(path), "%s/.hidet-XXXXXX", folder);
  return length < (int)sizeof(path) && mkdtemp(path) && rmdir(path) == 0;
}

bool hd_cache_may_be(const char *dir) {
  struct stat status;
  char path[PATH_MAX];
  if (stat(dir, &status) == 0) {
    errno = ENOTDIR;
    return S_ISDIR(status.st_mode);
  }
  size_t length = strlen(dir);
  if (length >= sizeof(path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(path, dir, length + 1);
  while (*dir &&
         errno == ENOENT) { // The folder that the first missing one is made in.
    char *end = strrchr(path, '/');
    if (end)
      *end = 0;
    const char *parent = !end ? "." : *path ? path : "/";
    if (may_grow(parent))
      return true;
    if (!end || end == path)
      return false;
  }
  return false;
}

bool hd_cache_may_keep(const char *dir) {
  struct stat status;
  return hd_cache_may_be(dir) && (stat(dir, &status) < 0 || may_grow(dir));
}

hd_cache_t *hd_cache_open(const char *dir, int64_t bytes) {
  hd_cache_t *cache = calloc(1, sizeof(*cache));
  if (!cache)
    return NULL;
  *cache = (hd_cache_t){strdup(dir), bytes ? bytes : HD_CACHE_BYTES};
  if (cache->dir)
    return cache;
  free(cache);
  return NULL;
}

void hd_cache_close(hd_cache_t *cache) {
  if (!cache)
    return;
  free(cache->dir);
  free(cache);
}

hd_cache_key_t hd_cache_key(const char *salt, const void *data, size_t size) {
  XXH3_state_t *state = XXH3_createState();
  hd_cache_key_t key = {0, 0};
  if (!state)
    return key;
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, salt, strlen(salt) + 1);
  XXH3_128bits_update(state, data, size);
  XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  key.low = hash.low64;
  key.high = hash.high64;
  return key;
}

static uint64_t hash_of(hd_cache_key_t key, const void *data, size_t size) {
  return XXH3_64bits_withSeed(data, size, key.low ^ key.high);
}

// dir/ab/cdef...; false where the name is too long.
static bool path_of(const hd_cache_t *cache, hd_cache_key_t key, char *path,
                    size_t size, bool folder) {
  if (!cache || (key.low | key.high) == 0)
    return false;
  char name[33];
  snprintf(name, sizeof(name), "%016llx%016llx", (unsigned long long)key.high,
           (unsigned long long)key.low);
  int length =
      folder ? snprintf(path, size, "%s/%.2s", cache->dir, name)
             : snprintf(path, size, "%s/%.2s/%s", cache->dir, name, name + 2);
  return length > 0 && (size_t)length < size;
}

// The cache's own faults are nobody's business.
static bool read_quietly(const char *path, hd_buffer_t *text) {
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  bool ok = hd_file_read(&diags, path, 0, text);
  hd_diagnostics_fini(&diags);
  return ok;
}

// Symbolic links are none of ours (CacheRoom.h).
static bool is_own(const char *folder, const char *path) {
  struct stat status;
  return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) &&
         (lstat(path, &status) == 0 ? S_ISREG(status.st_mode)
                                    : errno == ENOENT);
}

bool hd_cache_get(const hd_cache_t *cache, hd_cache_key_t key,
                  hd_buffer_t *out) {
  char path[4096], folder[4096];
  hd_buffer_t text = {0};
  if (!path_of(cache, key, path, sizeof(path), false) ||
      !path_of(cache, key, folder, sizeof(folder), true) ||
      !is_own(folder, path) || !read_quietly(path, &text))
    return false;
  head_t head;
  bool ok = text.size >= sizeof(head);
  if (ok) {
    memcpy(&head, text.data, sizeof(head));
    const char *data = text.data + sizeof(head);
    size_t size = text.size - sizeof(head);
    ok = memcmp(head.magic, magic, sizeof(magic)) == 0 && head.size == size &&
         head.hash == hash_of(key, data, size);
    if (ok) {
      hd_buffer_write(out, data, size);
      utimensat(AT_FDCWD, path, NULL, 0);
    }
  }
  hd_buffer_fini(&text);
  return ok;
}

void hd_cache_put(const hd_cache_t *cache, hd_cache_key_t key,
                  const hd_buffer_t *entry) {
  char path[4096], folder[4096];
  if (!path_of(cache, key, path, sizeof(path), false) ||
      !path_of(cache, key, folder, sizeof(folder), true) ||
      !hd_file_make_folders(folder) || !is_own(folder, path))
    return;
  int lock = hd_cache_make_room(cache->dir, cache->bytes,
                                (int64_t)(sizeof(head_t) + entry->size));
  if (lock < 0)
    return;
  head_t head = {.size = entry->size,
                 .hash = hash_of(key, hd_buffer_text(entry), entry->size)};
  memcpy(head.magic, magic, sizeof(magic));
  hd_file_part_t parts[] = {{&head, sizeof(head)},
                            {hd_buffer_text(entry), entry->size}};
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  hd_file_write(&diags, path, parts, 2);
  hd_diagnostics_fini(&diags);
  hd_cache_leave_room(lock);
}
