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

// The copy has the file's exact size, so that AddressSanitizer sees reads past
// its end.
static bool replay_file(const char *path, size_t size) {
  FILE *file = fopen(path, "rb");
  uint8_t *data = malloc(size ? size : 1);
  bool ok = file && data && fread(data, 1, size, file) == size;
  if (ok)
    LLVMFuzzerTestOneInput(data, size);
  else
    perror(path);
  if (file)
    fclose(file);
  free(data);
  return ok;
}

static bool replay(const char *path, size_t *count) {
  struct stat info;
  if (stat(path, &info) != 0) {
    perror(path);
    return false;
  }
  if (!S_ISDIR(info.st_mode)) {
    ++*count;
    return replay_file(path, (size_t)info.st_size);
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
