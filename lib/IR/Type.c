// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Type.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const hd_scalar_info_t hd_scalar_infos[HD_SCALAR_COUNT] = {
#define HD_SCALAR(name, text, bits, class, digits, most, least)                \
  {text, bits, HD_CLASS_##class, digits, most, least},
#include "IR/Scalars.def"
#undef HD_SCALAR
};

// The scalar whose name text begins with, the longest one; its length in size.
static hd_scalar_t find_prefix(const char *text, size_t *size) {
  hd_scalar_t best = HD_SCALAR_COUNT;
  *size = 0;
  for (int i = 0; i < HD_SCALAR_COUNT; i++) {
    const char *name = hd_scalar_infos[i].name;
    size_t length = 0;
    while (name[length] && name[length] == text[length])
      length++;
    if (!name[length] && length > *size) {
      best = (hd_scalar_t)i;
      *size = length;
    }
  }
  return best;
}

bool hd_type_parse(const char *text, hd_type_t *type) {
  size_t size;
  hd_scalar_t scalar = find_prefix(text, &size);
  if (scalar == HD_SCALAR_COUNT)
    return false;
  if (text[size] == '\0') {
    *type = hd_type(scalar);
    return true;
  }
  hd_scalar_class_t class = hd_scalar_class(scalar);
  if (text[size] != 'x' || class == HD_CLASS_VOID || class == HD_CLASS_OPAQUE)
    return false;
  const char *digits = text + size + 1;
  if (*digits < '1' || *digits > '9')
    return false;
  char *end;
  long lanes = strtol(digits, &end, 10);
  if (*end || lanes < 2 || lanes > HD_MAX_LANES)
    return false;
  *type = hd_type_vector(scalar, (unsigned)lanes);
  return true;
}

static char names[HD_SCALAR_COUNT][HD_MAX_LANES + 1][16];
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

static void make_names(void) {
  for (int i = 0; i < HD_SCALAR_COUNT; i++)
    for (int lanes = 0; lanes <= HD_MAX_LANES; lanes++)
      if (lanes <= 1)
        snprintf(names[i][lanes], sizeof names[i][lanes], "%s",
                 hd_scalar_infos[i].name);
      else
        snprintf(names[i][lanes], sizeof names[i][lanes], "%sx%d",
                 hd_scalar_infos[i].name, lanes);
}

const char *hd_type_name(hd_type_t type) {
  pthread_once(&names_once, make_names);
  return names[type.scalar][type.lanes <= HD_MAX_LANES ? type.lanes : 0];
}
