// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels: statements.
#include "KernelGenerator.h"

void hd_add_name(hd_maker_t *m, hd_name_t name) {
  hd_vec_push(m->arena, &m->names, name);
}

static const char *let(hd_maker_t *m) {
  hd_kind_t kind =
      (hd_kind_t)hd_pick(m, HD_K_I32, m->in_fn ? HD_K_BOOL : HD_K_X4);
  if (hd_chance(m, 40))
    kind = HD_K_I32;
  const char *value = hd_value(m, kind, hd_pick(m, 1, 3));
  hd_name_t name = {.text = hd_new_name(m, "v"),
                    .kind = kind,
                    .least = INT32_MIN,
                    .greatest = INT32_MAX};
  if (kind == HD_K_I32 && hd_chance(m, 30)) {
    value = hd_text(m, "(%s) & 15", value);
    name.least = 0, name.greatest = 15;
  }
  hd_add_name(m, name);
  return hd_text(m, "let %s = %s\n", name.text, value);
}

static const char *scalar(hd_maker_t *m) {
  hd_kind_t kind = hd_chance(m, 65)               ? HD_K_I32
                   : hd_chance(m, 60) || m->in_fn ? HD_K_F32
                                                  : HD_K_X4;
  hd_name_t name = {.text = hd_new_name(m, "r"),
                    .kind = kind,
                    .least = INT32_MIN,
                    .greatest = INT32_MAX,
                    .assignable = true};
  const char *value = hd_value(m, kind, 2);
  hd_add_name(m, name);
  return hd_text(m, "register %s: %s = %s\n", name.text, hd_kind_text(kind),
                 value);
}

const char *hd_array(hd_maker_t *m) {
  hd_array_t array = {hd_new_name(m, "t"), hd_chance(m, 60) ? 4 : 3};
  const char *value = hd_value(m, HD_K_I32, 1);
  hd_vec_push(m->arena, &m->arrays, array);
  return hd_text(m, "register %s: i32[%d] = %s\n", array.text, array.size,
                 value);
}

static const char *assign(hd_maker_t *m) {
  for (size_t i = m->names.size; i-- > 0;) {
    hd_name_t name = m->names.data[i];
    if (name.assignable && name.kind == HD_K_X4 && hd_chance(m, 40))
      return hd_text(m, "%s[%s] = %s\n", name.text, hd_constant_index(m, 4),
                     hd_value(m, HD_K_I32, 2));
    if (name.assignable && hd_chance(m, 50))
      return hd_text(m, "%s %s %s\n", name.text,
                     hd_chance(m, 50) ? "=" : "+=", hd_value(m, name.kind, 2));
  }
  if (!m->arrays.size)
    return "";
  hd_array_t a = m->arrays.data[hd_pick(m, 0, (int)m->arrays.size - 1)];
  if (hd_chance(m, 15))
    return hd_text(m, "%s = %s\n", a.text, hd_value(m, HD_K_I32, 2));
  return hd_text(m, "%s[%s] %s %s\n", a.text, hd_constant_index(m, a.size),
                 hd_chance(m, 60) ? "=" : "+=", hd_value(m, HD_K_I32, 3));
}

static const char *store(hd_maker_t *m) {
  switch (hd_pick(m, 0, 4)) {
  case 0:
    return hd_text(m, "g[block, thread, %s] = max(min(%s, 1000.0), -1000.0)\n",
                   hd_index(m, 8), hd_value(m, HD_K_F32, 3));
  case 1:
    return hd_text(m, "y[block, thread, %s * 4 +: 4] = %s\n", hd_index(m, 4),
                   hd_value(m, HD_K_X4, 1));
  case 2:
    for (size_t i = m->tiles.size; i-- > 0;) {
      hd_made_tile_t tile = m->tiles.data[i];
      if (tile.open)
        return hd_text(m, "%s[thread, %s] = %s\n", tile.text,
                       hd_index(m, tile.columns), hd_value(m, HD_K_I32, 2));
    }
    break;
  default:
    break;
  }
  return hd_text(m, "y[block, thread, %s] = %s\n", hd_index(m, 16),
                 hd_value(m, HD_K_I32, 3));
}

static const char *print(hd_maker_t *m) {
  return hd_text(m, "printf(\"%%d %%d: %%x, %%g\\n\", block, thread, %s, %s)\n",
                 hd_chance(m, 40) ? hd_hazard(m) : hd_value(m, HD_K_I32, 2),
                 hd_value(m, HD_K_F32, 2));
}

static const char *effect(hd_maker_t *m) {
  static const char *const atomics[] = {"add", "min", "max", "xor"};
  switch (hd_pick(m, 0, 4)) {
  case 4:
    return print(m);
  case 0: // Each element has one kind: kinds do not commute with each other.
  {
    int which = hd_pick(m, 0, 3);
    return hd_text(m, "atomic_%s(h[%d + %s], %s)\n", atomics[which], 2 * which,
                   hd_index(m, 2), hd_value(m, HD_K_I32, 2));
  }
  case 1:
    return hd_text(m, "assert (%s & 7) < 8, \"always\"\n",
                   hd_value(m, HD_K_I32, 2));
  case 2:
    return hd_text(m, "put(y, %s, %s)\n", hd_value(m, HD_K_I32, 1),
                   hd_value(m, HD_K_I32, 1));
  default:
    for (size_t i = 0; i < m->arrays.size; i++)
      if (m->arrays.data[i].size == 4)
        return hd_text(m, "act(y, %s, %s)\n", m->arrays.data[i].text,
                       hd_value(m, HD_K_I32, 2));
    return "";
  }
}

// Effects where passes would rather see none: in values that are not used, in
// what is left empty, in conditions that are known.
static const char *hazard(hd_maker_t *m) {
  const char *name = hd_new_name(m, "h"), *value = hd_hazard(m);
  switch (hd_pick(m, 0, 6)) {
  case 0:
    return hd_text(m, "let %s = %s\n", name, value);
  case 1:
    return hd_text(m, "register %s: i32 = 0\n%s = %s\n", name, name, value);
  case 2:
    return hd_text(m, "register %s: i32[3] = %s\n", name, value);
  case 3:
    return hd_text(m, "for %s in 0..%s & 1 {\n}\n", name, value);
  case 4:
    return hd_text(m, "if %s > %d {\n}\n", value, hd_pick(m, 0, 9));
  case 5:
    return hd_text(m, "for %s in %s & 3..%d {\n%s}\n", name, value,
                   hd_pick(m, 0, 3), store(m));
  default:
    return hd_text(m, "y[block, thread, %s] = %s\n", hd_index(m, 16), value);
  }
}

// Stores what was declared since, or a difference in it would not be seen.
const char *hd_observe(hd_maker_t *m, size_t names, size_t arrays) {
  const char *text = "";
  for (size_t i = arrays; i < m->arrays.size; i++)
    for (int k = 0; k < m->arrays.data[i].size; k++)
      text = hd_text(m, "%sy[block, thread, %d] += %s[%d]\n", text,
                     hd_pick(m, 0, 15), m->arrays.data[i].text, k);
  for (size_t i = names; i < m->names.size; i++)
    if (m->names.data[i].kind == HD_K_I32 && hd_chance(m, 70))
      text = hd_text(m, "%sy[block, thread, %d] += %s\n", text,
                     hd_pick(m, 0, 15), m->names.data[i].text);
    else if (m->names.data[i].kind == HD_K_X4 && m->names.data[i].assignable)
      text =
          hd_text(m, "%sy[block, thread, %d] += %s[%d]\n", text,
                  hd_pick(m, 0, 15), m->names.data[i].text, hd_pick(m, 0, 3));
    else if (m->names.data[i].kind == HD_K_F32 && hd_chance(m, 70))
      text = hd_text(m,
                     "%sy[block, thread, %d] += i32(max(min(%s, 9999.0), "
                     "-9999.0) * 64.0)\n",
                     text, hd_pick(m, 0, 15), m->names.data[i].text);
  return text;
}

static const char *body(hd_maker_t *m, int count, int depth) {
  size_t names = m->names.size, arrays = m->arrays.size;
  const char *text = hd_statements(m, count, depth, false);
  if (!m->in_fn)
    text = hd_text(m, "%s%s", text, hd_observe(m, names, arrays));
  m->names.size = names;
  m->arrays.size = arrays;
  return text;
}

static const char *loop_body(hd_maker_t *m, int count, int depth) {
  bool outer = m->in_loop;
  m->in_loop = true;
  const char *text = body(m, count, depth);
  m->in_loop = outer;
  return text;
}

// Leaves a loop, or a turn of it; rarely with statements after it.
static const char *leave(hd_maker_t *m) {
  const char *word = hd_chance(m, 50) ? "break" : "continue";
  if (!m->in_loop || !hd_chance(m, 12))
    return "";
  if (hd_chance(m, 10))
    return hd_text(m, "%s\n", word);
  const char *condition = hd_value(m, HD_K_BOOL, 2);
  const char *before = m->in_fn || hd_chance(m, 50) ? "" : store(m);
  return hd_chance(m, 70)
             ? hd_text(m, "if %s {\n%s%s\n}\n", condition, before, word)
             : hd_text(m, "if %s {\n} else {\n%s%s\n}\n", condition, before,
                       word);
}

// Where all threads of a block do, so that no barrier after it misses one.
static const char *leave_kernel(hd_maker_t *m) {
  static const char *const whole[] = {"block == 1", "n > 30", "m < 6"};
  const char *condition = whole[hd_pick(m, 0, 2)];
  return hd_chance(m, 3) ? hd_text(m, "if %s {\nreturn\n}\n", condition) : "";
}

// Where a row of x is known to be one.
static const char *row_branch(hd_maker_t *m, int depth) {
  const char *outer = m->row, *name = hd_new_name(m, "row");
  const char *at = hd_index(m, 60);
  m->row = name;
  const char *then = body(m, hd_pick(m, 1, 3), depth - 1);
  m->row = outer;
  return hd_text(m, "let %s = %s\nif %s < n {\n%s}\n", name, at, name, then);
}

static const char *branch(hd_maker_t *m, int depth) {
  if (!m->in_fn && hd_chance(m, 40))
    return row_branch(m, depth);
  const char *condition = hd_value(m, HD_K_BOOL, 2);
  const char *then = body(m, hd_pick(m, 0, 3), depth - 1);
  if (hd_chance(m, 50))
    return hd_text(m, "if %s {\n%s}\n", condition, then);
  return hd_text(m, "if %s {\n%s} else {\n%s}\n", condition, then,
                 body(m, hd_pick(m, 0, 3), depth - 1));
}

// Its variable is a constant in each copy, so it may be the place of registers.
static const char *counted_loop(hd_maker_t *m, int depth) {
  static const char *const marks[] = {"", "", " unroll", " unroll(1)"};
  int first = hd_pick(m, 0, 2), trips = hd_pick(m, 1, 3);
  int step = hd_pick(m, 1, 2);
  size_t names = m->names.size;
  const char *mark = marks[hd_pick(m, 0, 3)];
  hd_name_t name = {.text = hd_new_name(m, "e"),
                    .least = first,
                    .greatest = first + (trips - 1) * step,
                    .counter = true};
  hd_add_name(m, name);
  const char *text =
      hd_text(m, "for %s in %d..%d%s%s {\n%s}\n", name.text, first,
              first + (trips - 1) * step + 1, step > 1 ? " step 2" : "",
              m->reference ? " unroll" : mark,
              loop_body(m, hd_pick(m, 1, 3), depth - 1));
  m->names.size = names;
  return text;
}

static const char *plain_loop(hd_maker_t *m, int depth) {
  static const char *const marks[] = {"", "", " unroll(2)", " unroll(1)"};
  size_t names = m->names.size;
  bool known = hd_chance(m, 50);
  const char *first = known ? hd_text(m, "%d", hd_pick(m, 0, 3))
                            : hd_text(m, "(%s & 3)", hd_value(m, HD_K_I32, 1));
  const char *limit =
      known ? hd_text(m, "%d", hd_pick(m, 2, 5))
            : hd_text(m, "(%s & 3) + 1", hd_value(m, HD_K_I32, 1));
  hd_name_t name = {.text = hd_new_name(m, "i"), .least = 0, .greatest = 4};
  hd_add_name(m, name);
  const char *mark = marks[hd_pick(m, 0, 3)];
  const char *text = hd_text(m, "for %s in %s..%s%s%s {\n%s}\n", name.text,
                             first, limit, hd_chance(m, 25) ? " step 2" : "",
                             mark, loop_body(m, hd_pick(m, 1, 3), depth - 1));
  m->names.size = names;
  return text;
}

static const char *while_loop(hd_maker_t *m, int depth) {
  const char *left = hd_new_name(m, "left");
  const char *start = hd_value(m, HD_K_I32, 1);
  const char *condition = hd_value(m, HD_K_BOOL, 1);
  const char *turn = loop_body(m, hd_pick(m, 1, 2), depth - 1);
  const char *head = hd_text(m, "register %s: i32 = (%s) & 3\n", left, start);
  if (hd_chance(m, 50))
    return hd_text(m,
                   "%swhile true {\nif %s <= 0 || !(%s) {\nbreak\n}\n%s -= 1\n"
                   "%s}\n",
                   head, left, condition, left, turn);
  return hd_text(m, "%swhile %s > 0 && %s {\n%s -= 1\n%s}\n", head, left,
                 condition, left, turn);
}

// A loop of accesses side by side: what vectorize looks for.
static const char *vector_loop(hd_maker_t *m) {
  static const int widths[] = {2, 4, 4, 8};
  int width = widths[hd_pick(m, 0, 3)];
  const char *start = hd_chance(m, 75) ? hd_text(m, "%d", 4 * hd_pick(m, 0, 2))
                                       : hd_text(m, "%s * 4", hd_index(m, 2));
  size_t names = m->names.size;
  bool quiet = hd_chance(m, 85);
  hd_name_t name = {.text = hd_new_name(m, "e"),
                    .least = 0,
                    .greatest = width - 1,
                    .counter = true};
  bool moves = hd_chance(m, 20) && m->arrays.size; // With its own stores.
  m->quiet += quiet;
  m->lane = name.text;
  m->start =
      moves ? hd_text(m, "(%s[0] & 1) * 4", m->arrays.data[0].text) : start;
  hd_add_name(m, name);
  const char *text = "";
  if (hd_chance(m, 50)) {
    hd_name_t value = {hd_new_name(m, "v"), HD_K_I32, INT32_MIN,
                       INT32_MAX,           false,    false};
    text = hd_text(m, "let %s = %s\n", value.text, hd_value(m, HD_K_I32, 2));
    hd_add_name(m, value);
  }
  if (hd_chance(m, 25) && m->arrays.size)
    text = hd_text(m, "%s%s[%s] = %s\n", text, m->arrays.data[0].text,
                   hd_constant_index(m, m->arrays.data[0].size),
                   hd_value(m, HD_K_I32, 2));
  if (moves)
    text = hd_text(m, "%s%s[0] += %d\n", text, m->arrays.data[0].text,
                   hd_pick(m, 1, 3));
  if (hd_chance(m, 90))
    text = hd_text(m, "%sy[block, thread, %s + %s] = %s\n", text, start,
                   name.text, hd_value(m, HD_K_I32, 2));
  if (hd_chance(m, 25))
    text = hd_text(m, "%sg[block, thread, %s] = f32(i32(%s) & 511)\n", text,
                   name.text,
                   hd_chance(m, 50) ? hd_text(m, "y[block, thread, %s + %s]",
                                              start, name.text)
                                    : hd_value(m, HD_K_I32, 2));
  m->lane = NULL;
  m->quiet -= quiet;
  m->names.size = names;
  const char *mark = hd_chance(m, 50) ? " unroll" : "";
  return hd_text(m, "for %s in 0..%d%s {\n%s}\n", name.text, width,
                 m->reference ? " unroll" : mark, text);
}

// From threads that keep to their own rows to threads that read all, or back.
static const char *flip_tile(hd_maker_t *m) {
  if (m->tiles.size == 0)
    return "";
  hd_made_tile_t *t = &m->tiles.data[hd_pick(m, 0, (int)m->tiles.size - 1)];
  t->open = !t->open;
  return "barrier()\n";
}

// Values from other threads, where all of them come.
static const char *exchange(hd_maker_t *m) {
  if (hd_chance(m, 50)) {
    hd_name_t name = {
        .text = hd_new_name(m, "v"), .least = INT32_MIN, .greatest = INT32_MAX};
    const char *text = hd_text(m, "let %s = shfl_xor(%s, %d)\n", name.text,
                               hd_value(m, HD_K_I32, 2), 1 << hd_pick(m, 0, 4));
    hd_add_name(m, name);
    return text;
  }
  for (size_t i = 0; i < m->tiles.size; i++) {
    hd_made_tile_t t = m->tiles.data[i];
    if (!t.open)
      continue;
    const char *sum = hd_new_name(m, "r"), *turn = hd_new_name(m, "i");
    hd_name_t name = {.text = sum,
                      .least = INT32_MIN,
                      .greatest = INT32_MAX,
                      .assignable = true};
    hd_add_name(m, name);
    return hd_text(m,
                   "register %s: i32 = 0\nfor %s in 0..%d {\n%s[thread, %s] = "
                   "%s\nbarrier()\n%s += %s[%s, %s]\nbarrier()\n}\n",
                   sum, turn, hd_pick(m, 1, 3), t.text, hd_index(m, t.columns),
                   hd_value(m, HD_K_I32, 2), sum, t.text, hd_index(m, 64),
                   hd_index(m, t.columns));
  }
  return "";
}

static const char *statement(hd_maker_t *m, int depth, bool uniform) {
  int kind = hd_pick(m, 0, uniform ? 19 : 16);
  if (depth <= 0 && kind > 9 && kind < 15)
    kind = hd_pick(m, 0, 9);
  if (m->in_fn && (kind >= 5 && (kind < 10 || kind > 12)))
    kind = hd_pick(m, 0, 4);
  switch (kind) {
  case 0:
  case 1:
    return let(m);
  case 2:
    return scalar(m);
  case 3:
    return m->loops < 2 ? hd_array(m) : let(m);
  case 4:
    return assign(m);
  case 5:
    return hazard(m);
  case 6:
  case 7:
    return store(m);
  case 8:
  case 9:
    return effect(m);
  case 10:
    return branch(m, depth);
  case 11:
    return counted_loop(m, depth);
  case 12:
    return plain_loop(m, depth);
  case 13:
    return while_loop(m, depth);
  case 14:
    return hd_mapping_loop(m, depth);
  case 15:
  case 16:
    return vector_loop(m);
  case 17:
    return flip_tile(m);
  default:
    return exchange(m);
  }
}

const char *hd_statements(hd_maker_t *m, int count, int depth, bool uniform) {
  const char *text = "";
  m->loops += !uniform;
  for (int i = 0; i < count; i++)
    text = hd_text(m, "%s%s%s", text, statement(m, depth, uniform),
                   uniform ? leave_kernel(m) : leave(m));
  m->loops -= !uniform;
  return text;
}
