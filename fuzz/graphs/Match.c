// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes against signatures.
#include "Pick.h"

#include <math.h>
#include <string.h>

void fuzz_pick_begin(fuzz_pick_t *p, fuzz_graph_t *g, const hd_task_t *task) {
  *p = (fuzz_pick_t){.g = g, .task = task, .rule = fuzz_rule_of(task->name)};
  for (int i = 0; i < FUZZ_MAX_NAMES; i++)
    p->sizes[i] = p->ranks[i] = -1;
}

static size_t pack_at(const fuzz_pick_t *p, const hd_pack_t *pack) {
  size_t i = 0;
  while (p->task->packs.data[i] != pack)
    i++;
  return i;
}

static size_t size_at(const fuzz_pick_t *p, const hd_size_t *size) {
  size_t i = 0;
  while (p->task->sizes.data[i] != size)
    i++;
  return i;
}

static size_t type_at(const fuzz_pick_t *p, const hd_type_var_t *var) {
  size_t i = 0;
  while (p->task->types.data[i] != var)
    i++;
  return i;
}

static int *rank_of(fuzz_pick_t *p, const hd_pack_t *pack) {
  return &p->ranks[pack_at(p, hd_pack_root(pack))];
}

unsigned fuzz_pick_rank(const fuzz_pick_t *p, const hd_pack_t *pack) {
  int rank = p->ranks[pack_at(p, hd_pack_root(pack))];
  return rank < 0 ? 0 : (unsigned)rank;
}

static bool is_name(const char *name, const char *text, size_t size) {
  return name && strlen(name) == size && strncmp(name, text, size) == 0;
}

bool fuzz_pick_lookup(void *argument, const char *name, size_t size,
                      unsigned axis, double *value) {
  const fuzz_pick_t *p = argument;
  const hd_task_t *task = p->task;
  for (size_t i = 0; i < task->inputs.size; i++)
    if (is_name(task->inputs.data[i]->name, name, size) && p->counts[i]) {
      if (axis >= p->counts[i] && task->inputs.data[i]->pack)
        return false;
      *value = p->numbers[i][task->inputs.data[i]->pack ? axis : 0];
      return true;
    }
  for (size_t i = 0; i < task->sizes.size; i++)
    if (is_name(task->sizes.data[i]->name, name, size) && p->sizes[i] >= 0) {
      *value = (double)p->sizes[i];
      return true;
    }
  for (size_t i = 0; i < task->packs.size; i++) {
    const hd_pack_t *pack = task->packs.data[i];
    if (!is_name(pack->name, name, size) || !p->bound[i] ||
        axis >= fuzz_pick_rank(p, pack))
      continue;
    *value = (double)p->packs[i][axis];
    return true;
  }
  return false;
}

// --- Types ---

static hd_scalar_t type_of(const fuzz_pick_t *p, const hd_task_type_t *type) {
  if (!type->var)
    return type->scalar;
  if (type->var->accumulates) {
    hd_scalar_t of = p->types[type_at(p, type->var->accumulates)];
    return of == HD_VOID ? HD_VOID : hd_scalar_accumulator(of);
  }
  hd_scalar_t known = p->types[type_at(p, type->var)];
  hd_task_type_t first = {HD_VOID, type->var->either[0]};
  return known == HD_VOID && first.var ? type_of(p, &first) : known;
}

static bool match_type(fuzz_pick_t *p, const hd_task_type_t *type,
                       hd_scalar_t scalar) {
  hd_scalar_t known = type_of(p, type);
  if (known != HD_VOID)
    return known == scalar;
  if (!hd_task_type_is_free(*type) || !(type->var->scalars >> scalar & 1))
    return false;
  p->types[type_at(p, type->var)] = scalar;
  return true;
}

hd_scalar_t fuzz_pick_type(fuzz_pick_t *p, const hd_task_type_t *type) {
  hd_scalar_t known = type_of(p, type);
  if (known != HD_VOID)
    return known;
  if (type->var->either[0])
    return fuzz_pick_type(p, &(hd_task_type_t){HD_VOID, type->var->either[0]});
  const hd_type_var_t *var =
      type->var->accumulates ? type->var->accumulates : type->var;
  p->types[type_at(p, var)] = fuzz_type(p->g, var->scalars);
  return type_of(p, type);
}

// --- Ranks ---

// Settles the ranks of an input's packs, given its own; -1: any that is small.
static bool settle_ranks(fuzz_pick_t *p, const hd_task_value_t *input,
                         int rank) {
  const hd_pack_t *open[4];
  int num_open = 0, times = 0, left = rank;
  for (uint32_t i = 0; i < input->rank; i++) {
    const hd_pack_t *pack = input->shape[i]->pack;
    if (!pack) {
      left--;
      continue;
    }
    if (!pack->name || num_open == 4)
      return false;
    pack = hd_pack_root(pack);
    bool listed = false;
    for (int k = 0; k < num_open; k++)
      listed |= open[k] == pack;
    if (*rank_of(p, pack) >= 0) {
      left -= *rank_of(p, pack);
      continue;
    }
    times++;
    if (!listed)
      open[num_open++] = pack;
  }
  if (rank < 0) {
    static const int usual[] = {0, 1, 1, 2, 2, 2, 2, 3};
    for (int i = 0; i < num_open; i++) {
      *rank_of(p, open[i]) = usual[fuzz_in(p->g, 0, 7)];
      p->said[pack_at(p, open[i])] = num_open > 1;
    }
    return true;
  }
  if (num_open == 0 || left < 0)
    return left == 0;
  if (num_open == 1) {
    *rank_of(p, open[0]) = left / times;
    return left % times == 0 && left / times <= FUZZ_MAX_AXES;
  }
  for (int i = 0; i < num_open; i++) {
    int part = i + 1 < num_open ? (int)fuzz_in(p->g, 0, left) : left;
    *rank_of(p, open[i]) = part;
    p->said[pack_at(p, open[i])] = true;
    left -= part;
  }
  return times == num_open;
}

// --- Shapes ---

// The size of an axis that a pack has to broadcast with, from the right; 1:
// any.
static int64_t broadcast_with(const fuzz_pick_t *p, const hd_pack_t *pack,
                              unsigned from_right) {
  for (size_t i = 0; i < p->task->packs.size; i++) {
    const hd_pack_t *b = p->task->packs.data[i];
    bool part = false;
    for (uint32_t k = 0; k < b->num_parts; k++)
      part |= b->parts[k] == pack;
    for (uint32_t k = 0; part && k < b->num_parts; k++) {
      const hd_pack_t *other = b->parts[k];
      unsigned rank = fuzz_pick_rank(p, other);
      size_t at = pack_at(p, other);
      if (other == pack || !p->bound[at] || from_right >= rank)
        continue;
      if (p->packs[at][rank - 1 - from_right] != 1)
        return p->packs[at][rank - 1 - from_right];
    }
  }
  return 1;
}

static bool match_pack(fuzz_pick_t *p, const hd_pack_t *pack,
                       const int64_t *shape) {
  unsigned rank = fuzz_pick_rank(p, pack);
  size_t at = pack_at(p, pack);
  for (unsigned i = 0; i < rank; i++) {
    int64_t other = broadcast_with(p, pack, rank - 1 - i);
    if (p->bound[at] ? p->packs[at][i] != shape[i]
                     : other != 1 && shape[i] != 1 && shape[i] != other)
      return false;
    p->packs[at][i] = shape[i];
  }
  p->bound[at] = true;
  return true;
}

// The axis of an input's tensor at which each axis of its shape lies; how they
// lie is drawn where it is not known.
static void place_axes(fuzz_pick_t *p, const hd_task_value_t *input,
                       unsigned rank, unsigned *places) {
  size_t by = 0;
  for (unsigned i = 0; i < rank; i++)
    places[i] = i;
  if (!input->by)
    return;
  while (p->task->inputs.data[by] != input->by)
    by++;
  bool is_drawn = p->counts[by] > 0;
  p->counts[by] = input->by->pack ? rank : 1;
  for (unsigned i = 0; !is_drawn && i < p->counts[by]; i++) {
    unsigned k = (unsigned)fuzz_in(p->g, 0, i);
    p->numbers[by][i] = p->numbers[by][k];
    p->numbers[by][k] = i;
  }
  if (!is_drawn && !input->by->pack)
    p->numbers[by][0] = fuzz_once_in(p->g, 3);
  for (unsigned i = 0; input->by->pack && i < rank; i++)
    places[i] = (unsigned)p->numbers[by][i];
  if (!input->by->pack && p->numbers[by][0] != 0) {
    places[rank - 1] = rank - 2;
    places[rank - 2] = rank - 1;
  }
}

static bool match_shape(fuzz_pick_t *p, const hd_task_value_t *input,
                        const hd_tensor_type_t *given) {
  unsigned axis = 0, places[HD_MAX_RANK];
  hd_tensor_type_t ordered = *given;
  const hd_tensor_type_t *type = &ordered;
  if (given->rank < input->rank && input->by && !input->by->pack)
    return false;
  place_axes(p, input, given->rank, places);
  for (unsigned i = 0; i < given->rank; i++)
    ordered.shape[i] = given->shape[places[i]];
  for (uint32_t i = 0; i < input->rank; i++) {
    const hd_term_t *term = input->shape[i];
    if (term->kind == HD_TERM_PACK) {
      if (!match_pack(p, term->u.pack, type->shape + axis))
        return false;
      axis += fuzz_pick_rank(p, term->u.pack);
    } else if (term->kind == HD_TERM_SIZE) {
      int64_t *size = &p->sizes[size_at(p, term->u.size)];
      if (*size >= 0 && *size != type->shape[axis])
        return false;
      *size = type->shape[axis++];
    } else if (term->kind != HD_TERM_CONST ||
               type->shape[axis++] != term->u.i) {
      return false;
    }
  }
  return axis == type->rank;
}

bool fuzz_pick_match(fuzz_pick_t *p, size_t i, const hd_tensor_type_t *type) {
  fuzz_pick_t before = *p;
  const hd_task_value_t *input = p->task->inputs.data[i];
  if (match_type(p, &input->type, type->type) &&
      settle_ranks(p, input, (int)type->rank) && match_shape(p, input, type))
    return true;
  *p = before;
  return false;
}

bool fuzz_pick_is_settled(const fuzz_pick_t *p, size_t i) {
  const hd_task_value_t *input = p->task->inputs.data[i];
  bool settled = type_of(p, &input->type) != HD_VOID;
  for (uint32_t k = 0; k < input->rank; k++) {
    const hd_term_t *term = input->shape[k];
    if (term->kind == HD_TERM_PACK)
      settled &= p->bound[pack_at(p, term->u.pack)];
    else if (term->kind == HD_TERM_SIZE)
      settled &= p->sizes[size_at(p, term->u.size)] >= 0;
  }
  return settled;
}

static int64_t draw_size(fuzz_pick_t *p, const char *name, unsigned axis) {
  const char *text = fuzz_rule_find(p->rule, name, '=');
  double low, high;
  if (!text)
    return fuzz_size(p->g);
  if (!fuzz_rule_range(text, &p->g->random, fuzz_pick_lookup, p, axis, &low,
                       &high))
    return fuzz_in(p->g, 1, 5);
  low = fmax(low, 0);
  return fuzz_in(p->g, (int64_t)low, (int64_t)fmax(low, high));
}

static void draw_pack(fuzz_pick_t *p, const hd_pack_t *pack) {
  unsigned rank = fuzz_pick_rank(p, pack);
  size_t at = pack_at(p, pack);
  for (unsigned i = 0; !p->bound[at] && i < rank; i++) {
    int64_t other = broadcast_with(p, pack, rank - 1 - i);
    p->packs[at][i] = other == 1              ? draw_size(p, pack->name, i)
                      : fuzz_once_in(p->g, 3) ? 1
                                              : other;
  }
  p->bound[at] = true;
}

bool fuzz_pick_complete(fuzz_pick_t *p, size_t i, hd_tensor_type_t *type) {
  const hd_task_value_t *input = p->task->inputs.data[i];
  *type = (hd_tensor_type_t){fuzz_pick_type(p, &input->type), 0, {0}};
  if (!settle_ranks(p, input, -1))
    return false;
  for (uint32_t k = 0; k < input->rank; k++) {
    const hd_term_t *term = input->shape[k];
    if (type->rank + 1 + FUZZ_MAX_AXES > HD_MAX_RANK)
      return false;
    if (term->kind == HD_TERM_PACK) {
      const hd_pack_t *pack = term->u.pack;
      draw_pack(p, pack);
      for (unsigned n = 0; n < fuzz_pick_rank(p, pack); n++)
        type->shape[type->rank++] = p->packs[pack_at(p, pack)][n];
    } else if (term->kind == HD_TERM_SIZE) {
      int64_t *size = &p->sizes[size_at(p, term->u.size)];
      if (*size < 0)
        *size = draw_size(p, term->u.size->name, 0);
      type->shape[type->rank++] = *size;
    } else if (term->kind == HD_TERM_CONST) {
      type->shape[type->rank++] = term->u.i;
    } else {
      return false;
    }
  }
  unsigned places[HD_MAX_RANK];
  const hd_tensor_type_t ordered = *type;
  place_axes(p, input, type->rank, places);
  for (unsigned n = 0; n < type->rank; n++)
    type->shape[places[n]] = ordered.shape[n];
  return fuzz_count(type) <= 20000;
}
