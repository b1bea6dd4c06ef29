// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole files, read and written at once. "-" is standard input or output.
#ifndef HIDET_SUPPORT_FILE_H
#define HIDET_SUPPORT_FILE_H

#include "Support/Diagnostic.h"

typedef struct hd_file_part {
  const void *data;
  size_t size;
} hd_file_part_t;

// Reads a file to its end. A folder, a missing file and one of more than limit
// bytes (0: half of the machine's memory) are errors (E0801, E0904). On failure
// out is empty.
bool hd_file_read(hd_diagnostics_t *diags, const char *path, size_t limit,
                  hd_buffer_t *out);

// Writes the parts, one after another, as the file's whole content. The file
// appears, or takes the place of an old one, when all of it was written: a
// reader never sees a part, and nothing is left behind after a failure or when
// the process is killed (where the file system knows O_TMPFILE). What is not a
// regular file (a device, a pipe) is written to directly. Errors: E0802; E0807
// where the disk is full.
bool hd_file_write(hd_diagnostics_t *diags, const char *path,
                   const hd_file_part_t *parts, size_t num_parts);

static inline bool hd_file_write_buffer(hd_diagnostics_t *diags,
                                        const char *path,
                                        const hd_buffer_t *text) {
  hd_file_part_t part = {hd_buffer_text(text), text->size};
  return hd_file_write(diags, path, &part, 1);
}

// Makes a folder and those above it. Returns false and sets errno on failure.
bool hd_file_make_folders(const char *path);

#endif
