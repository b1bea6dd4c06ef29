// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linux promises more memory than it has. Before a large block is taken, its
// size is held against what the machine, or the container, says is left.
#include "Support/HostMemory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const hd_loc_t nowhere;

enum { ALIGN = 1024, LARGE = 64 << 20 };

// The first number of a file; false where there is none ("max").
static bool read_number(const char *path, unsigned long long *number) {
  FILE *file = fopen(path, "re");
  if (!file)
    return false;
  bool ok = fscanf(file, "%llu", number) == 1;
  fclose(file);
  return ok;
}

static size_t available(void) {
  size_t result = SIZE_MAX;
  char line[128];
  unsigned long long kib, limit, used;
  FILE *file = fopen("/proc/meminfo", "re");
  while (file && fgets(line, sizeof(line), file))
    if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
      result = (size_t)kib << 10;
  if (file)
    fclose(file);
  if (read_number("/sys/fs/cgroup/memory.max", &limit) &&
      read_number("/sys/fs/cgroup/memory.current", &used) &&
      limit - (used < limit ? used : limit) < result)
    result = (size_t)(limit - (used < limit ? used : limit));
  return result;
}

void *hd_host_memory_alloc(hd_diagnostics_t *diags, hd_budget_t *budget,
                           const char *name, size_t bytes) {
  size_t limit = budget ? budget->bytes_limit : 0;
  if (limit && (budget->bytes_used > limit || // It may have been lowered.
                bytes > limit - budget->bytes_used)) {
    hd_error(diags, nowhere, HD_E0901, (long long)limit);
    return NULL;
  }
  size_t rounded = bytes / ALIGN * ALIGN + ALIGN;
  bool fits = bytes < LARGE || bytes < available() - available() / 16;
  void *memory = fits ? aligned_alloc(ALIGN, rounded) : NULL;
  if (!memory) {
    char text[200];
    snprintf(text, sizeof(text), "out of memory: '%.100s' takes %zu bytes",
             name, bytes);
    hd_error(diags, nowhere, HD_E0904, text);
    return NULL;
  }
  memset(memory, 0, bytes ? bytes : 1);
  if (budget)
    budget->bytes_used += bytes;
  return memory;
}

void hd_host_memory_free(hd_budget_t *budget, void *memory, size_t bytes) {
  if (memory && budget)
    budget->bytes_used -= bytes;
  free(memory);
}

#ifdef __SANITIZE_ADDRESS__
enum { IS_SANITIZED = 1 };
#elif defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#elif defined(__has_feature)
enum {
  IS_SANITIZED =
      __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
};
#else
enum { IS_SANITIZED = 0 };
#endif

// A line of pages: all that are mapped, those in memory, those of files.
size_t hd_host_memory_held(void) {
  char line[128];
  int file = IS_SANITIZED ? -1 : open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  ssize_t size = read(file, line, sizeof(line) - 1);
  close(file);
  unsigned long resident, shared;
  line[size > 0 ? size : 0] = '\0';
  if (sscanf(line, "%*u %lu %lu", &resident, &shared) != 2 || shared > resident)
    return 0;
  return (resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}
