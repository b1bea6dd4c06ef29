// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels: indices, in bounds or guarded.
#include "KernelGenerator.h"

const hd_name_t *hd_find_name(hd_maker_t *m, hd_kind_t kind, int64_t least,
                              int64_t greatest, bool counter) {
  size_t size = m->names.size, from = size ? (size_t)hd_pick(m, 0, 999) : 0;
  for (size_t i = 0; i < size; i++) {
    const hd_name_t *name = &m->names.data[(from + i) % size];
    if (name->kind == kind && name->least >= least &&
        name->greatest <= greatest && (name->counter || !counter))
      return name;
  }
  return NULL;
}

const char *hd_constant_index(hd_maker_t *m, int size) {
  const hd_name_t *name = hd_find_name(m, HD_K_I32, 0, size - 1, true);
  if (!name || hd_chance(m, 25))
    return hd_text(m, "%d", hd_pick(m, 0, size - 1));
  int room = size - 1 - (int)name->greatest;
  switch (hd_pick(m, 0, 3)) {
  case 0:
    return hd_text(m, "(%s + %d)", name->text, hd_pick(m, 0, room));
  case 1:
    return hd_text(m, "(%d - %s)", size - 1, name->text);
  case 2:
    return hd_text(m, "(%s * %d %% %d)", name->text, hd_pick(m, 1, 5), size);
  default:
    return name->text;
  }
}

static const char *any_index(hd_maker_t *m, int size) {
  const hd_name_t *a = hd_find_name(m, HD_K_I32, 0, size - 1, false);
  const hd_name_t *b = hd_find_name(m, HD_K_I32, 0, 1000, false);
  switch (hd_pick(m, 0, 6)) {
  case 0:
    return hd_text(m, "%d", hd_pick(m, 0, size - 1));
  case 1:
    return hd_text(m, "(%s / %d %% %d)", b ? b->text : "thread",
                   hd_pick(m, 1, 4), size);
  case 2:
    return hd_text(m, "((%s * %d + %s) %% %d)", b ? b->text : "thread",
                   hd_pick(m, 1, 9), a ? a->text : "3", size);
  case 3:
    if ((size & (size - 1)) == 0)
      return hd_text(m, "(%s & %d)", hd_value(m, HD_K_I32, 2), size - 1);
    return hd_text(m, "((%s & 255) %% %d)", hd_value(m, HD_K_I32, 1), size);
  case 4:
    if (a && a->greatest * 2 < size)
      return hd_text(m, "(%s * 2 + %d)", a->text, hd_pick(m, 0, 1));
    return hd_text(m, "(thread %% %d)", size);
  default:
    return a ? a->text : hd_text(m, "(lane %% %d)", size);
  }
}

const char *hd_index(hd_maker_t *m, int size) {
  m->quiet++;
  const char *text = any_index(m, size);
  m->quiet--;
  return text;
}

const char *hd_guess(hd_maker_t *m) { // An index that may be outside.
  m->quiet++;
  const char *text = hd_chance(m, 50) ? hd_text(m, "(%s - %d)", hd_index(m, 20),
                                                hd_pick(m, 0, 4))
                                      : hd_value(m, HD_K_I32, 1);
  m->quiet--;
  return text;
}

const char *hd_guarded(hd_maker_t *m, const char *column) {
  const char *at = hd_index(m, 60), *other = hd_value(m, HD_K_I32, 1);
  switch (hd_pick(m, 0, 2)) {
  case 0:
    return hd_text(m, "(%s < n ? x[%s, %s] : %s)", at, at, column, other);
  case 1:
    return hd_text(m, "(%s >= n ? %s : x[%s, %s])", at, other, at, column);
  default:
    return hd_text(m, "(%s < n && x[%s, %s] > %d ? 7 : %s)", at, at, column,
                   hd_pick(m, 0, 50), other);
  }
}

const char *hd_row(hd_maker_t *m) { // Of x, which has n of them.
  if (m->row && hd_chance(m, 60))
    return m->row;
  return hd_text(m, "(%s %% n)", hd_index(m, hd_chance(m, 50) ? 40 : 4));
}
