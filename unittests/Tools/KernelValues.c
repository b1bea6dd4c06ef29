// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels: expressions.
#include "KernelGenerator.h"

int hd_pick(hd_maker_t *m, int least, int greatest) {
  return (int)random_in(&m->random, least, greatest);
}

const char *hd_new_name(hd_maker_t *m, const char *stem) {
  return hd_text(m, "%s_%u", stem, m->serial++);
}

const char *hd_kind_text(hd_kind_t kind) {
  static const char *const texts[] = {"i32", "i64", "f32", "bool", "i32x4"};
  return texts[kind];
}

// What the loop of a vector reads, side by side.
static const char *lane_access(hd_maker_t *m) {
  const char *start = m->start;
  if (hd_chance(m, 40))
    start = hd_text(m, "%d", 4 * hd_pick(m, 0, 2));
  if (hd_chance(m, 15))
    start = hd_text(m, "%d", hd_pick(m, 0, 8));
  switch (hd_pick(m, 0, 4)) {
  case 2:
    return hd_guarded(m, hd_text(m, "%s + %s", start, m->lane));
  case 0:
    return hd_text(m, "y[block, thread, %s + %s]", start, m->lane);
  case 1:
    return hd_text(m, "(x[%s, %s + %s] else %s)", hd_guess(m), start, m->lane,
                   hd_value(m, HD_K_I32, 1));
  default:
    return hd_text(m, "x[%s, %s + %s]", hd_row(m), start, m->lane);
  }
}

static const char *from_tile(hd_maker_t *m) {
  const hd_made_tile_t *tile =
      m->tiles.size ? &m->tiles.data[hd_pick(m, 0, (int)m->tiles.size - 1)]
                    : NULL;
  if (!tile)
    return NULL;
  const char *who = tile->open ? "thread" : hd_index(m, 64);
  const char *column = hd_index(m, tile->columns);
  if (hd_chance(m, 20))
    return hd_text(m, "get_%s(%s, %s, %s)", tile->text, tile->text, who,
                   column);
  if (hd_chance(m, 20) && !tile->open)
    return hd_text(m, "(%s[%s, %s] else %s)", tile->text, who, hd_guess(m),
                   hd_value(m, HD_K_I32, 1));
  return hd_text(m, "%s[%s, %s]", tile->text, who, column);
}

static const char *from_memory(hd_maker_t *m) {
  const char *text;
  switch (hd_pick(m, 0, 6)) {
  case 4:
    return hd_guarded(m, hd_index(m, 16));
  case 0:
    return hd_text(m, "y[block, thread, %s]", hd_index(m, 16));
  case 1:
    return hd_text(m, "(y[block, thread, %s] else %s)", hd_guess(m),
                   hd_value(m, HD_K_I32, 1));
  case 2:
    return hd_text(m, "(x[%s, %s] else %s)", hd_guess(m), hd_index(m, 18),
                   hd_value(m, HD_K_I32, 1));
  case 3:
    text = from_tile(m);
    if (text)
      return text;
    break;
  default:
    break;
  }
  return hd_text(m, "x[%s, %s]", hd_row(m), hd_index(m, 16));
}

static const char *from_table(hd_maker_t *m) {
  switch (hd_pick(m, 0, 3)) {
  case 0:
    return hd_text(m, "primes[%s]", hd_constant_index(m, 8));
  case 1:
    return hd_text(m, "i32(bytes[%s, %s])", hd_index(m, 4), hd_index(m, 3));
  case 2:
    return hd_text(m, "of(primes, %s)", hd_index(m, 8));
  default:
    return hd_text(m, "primes[%s]", hd_index(m, 8));
  }
}

static const char *from_array(hd_maker_t *m) {
  if (!m->arrays.size)
    return NULL;
  const hd_array_t *array =
      &m->arrays.data[hd_pick(m, 0, (int)m->arrays.size - 1)];
  return hd_text(m, "%s[%s]", array->text, hd_constant_index(m, array->size));
}

static const char *i32_leaf(hd_maker_t *m) {
  static const char *const usual[] = {"thread", "lane", "warp",
                                      "block",  "n",    "m"};
  static const int numbers[] = {0, 1, 2, 3, 5, 7, 16, 31, 64, 100, 1 << 20};
  const hd_name_t *name;
  const char *text = NULL;
  if (m->lane && hd_chance(m, 50))
    return lane_access(m);
  switch (hd_pick(m, 0, 9)) {
  case 0:
    return hd_text(m, "%d", numbers[hd_pick(m, 0, 10)]);
  case 1:
    return usual[hd_pick(m, 0, m->in_fn ? 3 : 5)];
  case 2:
  case 3:
    text = from_array(m);
    break;
  case 4:
  case 5:
    text = m->in_fn ? NULL : from_memory(m);
    break;
  case 7:
    if (hd_chance(m, 40))
      return m->in_fn ? hd_text(m, "primes[%s]", hd_index(m, 8))
                      : from_table(m);
    break;
  case 6:
    name = hd_find_name(m, HD_K_X4, INT64_MIN, INT64_MAX, false);
    text =
        name ? hd_text(m, "%s[%s]", name->text, hd_constant_index(m, 4)) : NULL;
    break;
  default:
    break;
  }
  if (text)
    return text;
  name = hd_find_name(m, HD_K_I32, INT64_MIN, INT64_MAX, false);
  return name ? name->text : hd_text(m, "%d", hd_pick(m, -4, 9));
}

// A call that writes something of the thread's own.
const char *hd_effect(hd_maker_t *m, int depth) {
  const char *v = hd_value(m, HD_K_I32, depth);
  for (size_t i = m->arrays.size; i-- > 0 && hd_chance(m, 70);)
    if (m->arrays.data[i].size == 4)
      return hd_text(m, "bump(%s, %s)", m->arrays.data[i].text, v);
  return hd_chance(m, 30)
             ? hd_text(m, "atomic_add(y[block, thread, %s], %s)",
                       hd_index(m, 16), v)
             : hd_text(m, "put(y, %s, %s)", v, hd_value(m, HD_K_I32, depth));
}

// What reads what such a call may write.
static const char *affected(hd_maker_t *m) {
  const char *text = hd_chance(m, 60) ? from_array(m) : NULL;
  return text ? text : hd_text(m, "y[block, thread, %s]", hd_index(m, 16));
}

const char *hd_hazard(hd_maker_t *m) {
  static const char *const operators[] = {"+", "-", "*", "^"};
  const char *a = hd_effect(m, 1), *b = affected(m);
  const char *truth = hd_value(m, HD_K_BOOL, 0);
  switch (hd_pick(m, 0, 8)) {
  case 0:
    return hd_text(m, "(%s %s pure(%s, 3))", a, operators[hd_pick(m, 0, 3)], b);
  case 1:
    return hd_text(m, "(%s %s %s)", b, operators[hd_pick(m, 0, 3)], a);
  case 2:
    return hd_text(m, "((%s > 3 || %s) ? 1 : %s)", a, truth, b);
  case 3:
    return hd_text(m, "((%s && %s > 3) ? 1 : %s)", truth, a, b);
  case 4:
    return hd_text(m, "(%s > 3 ? %s : %s)", a, b, b);
  case 5:
    return hd_text(m, "min(%s, %s)", a, hd_effect(m, 0));
  case 6:
    return hd_text(m, "(%s ? %s : %s)", truth, a, b);
  case 7:
    return hd_text(m, "(%s * 0 + %s)", a, b);
  default:
    return hd_text(m, "early(%s, pure(%s, %s))", a, b,
                   hd_value(m, HD_K_I32, 0));
  }
}

// A call of one of the functions that hd_functions() made.
static const char *i32_call(hd_maker_t *m, int depth) {
  const char *v = hd_value(m, HD_K_I32, depth);
  if (m->in_fn)
    return hd_text(m, "abs(%s)", v);
  int kind = hd_pick(m, 0, 9);
  if (kind < 3)
    return hd_text(m, "%s(%s, %s)",
                   kind == 0   ? "pure"
                   : kind == 1 ? "early"
                               : "search",
                   v, hd_value(m, HD_K_I32, depth));
  if (kind == 3)
    return hd_text(m, "look(x, %s)", v);
  const hd_array_t *array = NULL;
  for (size_t i = 0; i < m->arrays.size; i++)
    if (m->arrays.data[i].size == 4)
      array = &m->arrays.data[i];
  if (kind == 4 && array)
    return hd_text(m, "peek(%s, %s)", array->text, v);
  if (m->quiet)
    return hd_text(m, "pure(%s, 3)", v);
  if ((kind == 5 || kind > 7) && array)
    return hd_text(m, "bump(%s, %s)", array->text, v);
  if (kind == 6)
    return hd_text(m, "atomic_add(y[block, thread, %s], %s)", hd_index(m, 16),
                   v);
  return hd_text(m, "put(y, %s, %s)", v, hd_value(m, HD_K_I32, depth));
}

static const char *i32_value(hd_maker_t *m, int depth) {
  static const char *const simple[] = {"+", "+", "-", "*", "&", "|", "^"};
  const char *a = hd_value(m, HD_K_I32, depth - 1);
  int kind = hd_pick(m, 0, 18);
  if (kind == 18 && !m->in_fn && m->arrays.size) // An order to be kept.
    return hd_text(m, "(%s %s pure(%s, %s))", i32_call(m, depth - 1),
                   simple[hd_pick(m, 0, 6)], from_array(m), a);
  if (kind == 0)
    return hd_text(m, "(%s / %d)", a, hd_pick(m, 1, 9));
  if (kind == 1)
    return hd_text(m, "(%s %% %d)", a, 1 << hd_pick(m, 0, 5));
  if (kind == 2)
    return hd_text(m, "(%s / ((%s & 7) + 1))", a,
                   hd_value(m, HD_K_I32, depth - 1));
  if (kind == 3)
    return hd_text(m, "(%s %s %d)", a, hd_chance(m, 50) ? "<<" : ">>",
                   hd_pick(m, 0, 12));
  if (kind == 4)
    return hd_text(m, "(%s ? %s : %s)", hd_value(m, HD_K_BOOL, depth - 1), a,
                   hd_value(m, HD_K_I32, depth - 1));
  if (kind == 5)
    return hd_text(m, "%s(%s, %s)", hd_chance(m, 50) ? "min" : "max", a,
                   hd_value(m, HD_K_I32, depth - 1));
  if (kind == 6)
    return hd_text(m, "i32(%s)", hd_value(m, HD_K_I64, depth - 1));
  if (kind == 7)
    return hd_text(m, "i32(%s)", hd_value(m, HD_K_F32, depth - 1));
  if (kind == 8)
    return hd_text(m, "i32(%s(i32(%s)))", hd_chance(m, 50) ? "u8" : "i16", a);
  if (kind == 9)
    return hd_text(m, "%s(%s)", hd_chance(m, 50) ? "popc" : "abs", a);
  if (kind == 10)
    return hd_text(m, "ceildiv(%s, %d)", a, hd_pick(m, 1, 9));
  if (kind == 11)
    return hd_text(m, "(%s%s)", hd_chance(m, 50) ? "-" : "~", a);
  if (kind < 15)
    return i32_call(m, depth - 1);
  return hd_text(m, "(%s %s %s)", a, simple[hd_pick(m, 0, 6)],
                 hd_value(m, HD_K_I32, depth - 1));
}

static const char *i64_value(hd_maker_t *m, int depth) {
  static const char *const simple[] = {"+", "-", "*", "^"};
  const hd_name_t *name =
      hd_find_name(m, HD_K_I64, INT64_MIN, INT64_MAX, false);
  if (depth <= 0 || hd_chance(m, 30))
    return name && hd_chance(m, 50)
               ? name->text
               : hd_text(m, "i64(%s)", hd_value(m, HD_K_I32, depth - 1));
  return hd_text(m, "(%s %s %s)", hd_value(m, HD_K_I64, depth - 1),
                 simple[hd_pick(m, 0, 3)], hd_value(m, HD_K_I64, depth - 1));
}

static const char *bool_value(hd_maker_t *m, int depth) {
  static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!="};
  const hd_name_t *name =
      hd_find_name(m, HD_K_BOOL, INT64_MIN, INT64_MAX, false);
  static const char *const settled[] = {"thread < 64", "lane >= 32",
                                        "block >= 0", "warp > 1"};
  if (name && hd_chance(m, 20))
    return name->text;
  if (hd_chance(m, 8)) // What passes can find out.
    return hd_text(m, "(%s)", settled[hd_pick(m, 0, 3)]);
  if (depth > 0 && hd_chance(m, 25))
    return hd_text(m, "(%s %s %s)", hd_value(m, HD_K_BOOL, depth - 1),
                   hd_chance(m, 50) ? "&&" : "||",
                   hd_value(m, HD_K_BOOL, depth - 1));
  if (hd_chance(m, 10))
    return hd_text(m, "(!%s)", hd_value(m, HD_K_BOOL, depth - 1));
  hd_kind_t kind = hd_chance(m, 80)   ? HD_K_I32
                   : hd_chance(m, 50) ? HD_K_F32
                                      : HD_K_I64;
  const char *b = hd_chance(m, 50) && kind == HD_K_I32
                      ? hd_text(m, "%d", hd_pick(m, 0, 70))
                      : hd_value(m, kind, depth - 1);
  return hd_text(m, "(%s %s %s)", hd_value(m, kind, depth - 1),
                 compare[hd_pick(m, 0, 5)], b);
}

static const char *f32_leaf(hd_maker_t *m) {
  const hd_name_t *name =
      hd_find_name(m, HD_K_F32, INT64_MIN, INT64_MAX, false);
  switch (hd_pick(m, m->in_fn ? 2 : 0, 4)) {
  case 0:
    return hd_text(m, "f[%s]", hd_index(m, 64));
  case 1:
    return hd_text(m, "(g[block, thread, %s] else %s)", hd_guess(m),
                   hd_value(m, HD_K_F32, 0));
  case 2:
    return hd_text(m, "%d.%d", hd_pick(m, -3, 3), hd_pick(m, 0, 9));
  default:
    return name ? name->text : hd_text(m, "f32(i32(%s) & 63)", i32_leaf(m));
  }
}

static const char *f32_value(hd_maker_t *m, int depth) {
  static const char *const simple[] = {"+", "-", "*"};
  static const char *const constants[] = {"1.0", "2.0", "-0.0",
                                          "0.0", "0.5", "3.0"};
  if (depth <= 0)
    return f32_leaf(m);
  const char *a = hd_value(m, HD_K_F32, depth - 1);
  switch (hd_pick(m, 0, 8)) {
  case 0:
    return hd_text(m, "(%s %s %s)", a, simple[hd_pick(m, 0, 2)],
                   constants[hd_pick(m, 0, 5)]);
  case 1:
    return hd_text(m, "(%s / %s)", a, constants[hd_pick(m, 0, 1)]);
  case 2:
    return hd_text(m, "fma(%s, %s, %s)", a, hd_value(m, HD_K_F32, 0),
                   hd_value(m, HD_K_F32, 0));
  case 3:
    return hd_text(m, "%s(%s, %s)", hd_chance(m, 50) ? "min" : "max", a,
                   hd_value(m, HD_K_F32, depth - 1));
  case 4:
    return hd_text(m, "f32(f16(max(min(%s, 999.0), -999.0)))", a);
  case 5:
    return hd_text(m, "(%s ? %s : %s)", hd_value(m, HD_K_BOOL, depth - 1), a,
                   hd_value(m, HD_K_F32, depth - 1));
  case 6:
    return m->in_fn ? hd_text(m, "abs(%s)", a) : hd_text(m, "smooth(%s)", a);
  default:
    return hd_text(m, "(%s %s %s)", a, simple[hd_pick(m, 0, 2)],
                   hd_value(m, HD_K_F32, depth - 1));
  }
}

const char *hd_value(hd_maker_t *m, hd_kind_t kind, int depth) {
  switch (kind) {
  case HD_K_I32:
    return depth <= 0 || hd_chance(m, 15) ? i32_leaf(m) : i32_value(m, depth);
  case HD_K_I64:
    return i64_value(m, depth);
  case HD_K_F32:
    return f32_value(m, depth);
  case HD_K_BOOL:
    return bool_value(m, depth);
  case HD_K_X4:
    break;
  }
  const hd_name_t *name = hd_find_name(m, HD_K_X4, INT64_MIN, INT64_MAX, false);
  if (name && hd_chance(m, 40))
    return hd_text(m, "(%s * %s)", name->text,
                   hd_text(m, "i32x4(%s)", hd_value(m, HD_K_I32, 1)));
  if (hd_chance(m, 40))
    return hd_text(m, "x[%s, %s * 4 +: 4]", hd_row(m), hd_index(m, 4));
  m->quiet++;
  const char *a = hd_value(m, HD_K_I32, 1), *b = hd_value(m, HD_K_I32, 1);
  const char *each = hd_text(m, "i32x4(%s, %s, %d, %s)", a, b, hd_pick(m, 0, 9),
                             hd_value(m, HD_K_I32, 0));
  if (hd_chance(m, 50))
    each = hd_text(m, "(x[%s, %s * 4 +: 4] else %s)", hd_guess(m),
                   hd_index(m, 6), each);
  m->quiet--;
  return each;
}
