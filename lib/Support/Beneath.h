// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that a model names: a model from a stranger may name no others than
// those in its own folder.
#ifndef HIDET_SUPPORT_BENEATH_H
#define HIDET_SUPPORT_BENEATH_H

// Opens a regular file for reading by a path below a folder (a descriptor):
// neither absolute, nor out of the folder by "..", nor through a symbolic link.
// -1, with errno set, on failure: EXDEV outside the folder, ELOOP a link,
// EISDIR no regular file. The caller closes it.
int hd_beneath_open(int folder, const char *path);
// What such an error means, for messages: "it is not there".
const char *hd_beneath_text(int error);

#endif
