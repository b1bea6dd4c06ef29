// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A main for a fuzz target without libFuzzer: gives it every file named, and
// every file of each folder named.

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    return false;
  }
  uint8_t *data = NULL;
  size_t size = 0, capacity = 0;
  for (size_t got = 1; got > 0; size += got) {
    if (size == capacity) {
      capacity = capacity ? 2 * capacity : 4096;
      data = realloc(data, capacity);
      if (!data)
        abort();
    }
    got = fread(data + size, 1, capacity - size, file);
  }
  fclose(file);
  // A copy of the exact size lets AddressSanitizer see reads past its end.
  uint8_t *exact = realloc(data, size ? size : 1);
  LLVMFuzzerTestOneInput(exact ? exact : data, size);
  free(exact ? exact : data);
  return true;
}

static bool replay(const char *path, size_t *count) {
  struct stat info;
  if (stat(path, &info) != 0) {
    perror(path);
    return false;
  }
  if (!S_ISDIR(info.st_mode)) {
    ++*count;
    return replay_file(path);
  }
  DIR *folder = opendir(path);
  if (!folder) {
    perror(path);
    return false;
  }
  bool ok = true;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (entry->d_name[0] == '.')
      continue;
    char child[4096];
    snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
    ok &= replay(child, count);
  }
  closedir(folder);
  return ok;
}

int main(int argc, char **argv) {
  size_t count = 0;
  bool ok = true;
  for (int i = 1; i < argc; i++)
    ok &= replay(argv[i], &count);
  printf("%zu inputs replayed\n", count);
  return ok && count > 0 ? 0 : 1;
}
