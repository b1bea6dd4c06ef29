// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names that values have, so that a new one gets another.
#ifndef HIDET_GRAPH_NAMES_H
#define HIDET_GRAPH_NAMES_H

#include "Support/Arena.h"

typedef struct hd_names hd_names_t; // NULL: none are taken.

// name itself, or name_1, ... where it is taken; that is taken from now on.
// The names and the result live in the arena, or as long as name.
const char *hd_name_unique(hd_arena_t *arena, hd_names_t **names,
                           const char *name);

#endif
