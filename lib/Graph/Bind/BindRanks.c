// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many axes each pack has: attributes that have a pack's name say so; an
// input's rank does where all but one of its packs are known; the length of an
// attribute over a pack does where nothing else did.
#include "Graph/Bind/BindingState.h"

static bool set_rank(hd_binder_t *b, const hd_pack_t *pack, int64_t rank) {
  hd_extents_t *extents = &b->packs[hd_task_pack_at(b->task, pack)];
  if (rank < 0 || rank > HD_MAX_RANK)
    return hd_bind_fault(b, "pack '%s' cannot have %lld axes", pack->name,
                         (long long)rank);
  extents->rank = (unsigned)rank;
  return true;
}

// The named packs that a rank depends on: how often each stands in an input's
// shape; a broadcast has no equation, so its parts must be known.
static bool is_known(const hd_binder_t *b, const hd_pack_t *pack) {
  pack = hd_pack_root(pack);
  if (pack->name)
    return b->packs[hd_task_pack_at(b->task, pack)].rank != HD_UNBOUND_RANK;
  for (uint32_t i = 0; i < pack->num_parts; i++)
    if (!is_known(b, pack->parts[i]))
      return false;
  return true;
}

// Solves rank = known axes + times * (axes of the one unknown pack). progress
// is set where a pack became known. False: an error was reported.
static bool solve_input(hd_binder_t *b, size_t input, bool *progress) {
  const hd_task_value_t *value = b->task->inputs.data[input];
  const hd_pack_t *unknown = NULL;
  int64_t left = b->inputs[input].rank, times = 0;
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_pack_t *pack = value->shape[i]->pack;
    if (!pack) {
      left--;
    } else if (is_known(b, pack)) {
      left -= hd_binding_rank(b->binding, pack);
    } else if (!pack->name || (unknown && unknown != hd_pack_root(pack))) {
      return true; // Later, perhaps.
    } else {
      unknown = hd_pack_root(pack);
      times++;
    }
  }
  *progress = unknown != NULL;
  if (left < 0 || (unknown ? left % times : left) != 0)
    return hd_bind_fault(b, "input '%s' has rank %u, which does not fit",
                         value->name, b->inputs[input].rank);
  return !unknown || set_rank(b, unknown, left / times);
}

static bool solve_inputs(hd_binder_t *b) {
  bool again = true;
  while (again) {
    again = false;
    for (size_t i = 0; i < b->task->inputs.size; i++) {
      bool progress = false;
      if (b->task->inputs.data[i]->kind == HD_VALUE_INPUT &&
          !solve_input(b, i, &progress))
        return false;
      again |= progress;
    }
  }
  return true;
}

static bool named_ranks(hd_binder_t *b) {
  for (size_t i = 0; i < b->task->packs.size; i++) {
    const hd_pack_t *pack = b->task->packs.data[i];
    const hd_attribute_t *a = pack->name ? hd_bind_find(b, pack->name) : NULL;
    if (!a)
      continue;
    if (a->kind != HD_ATTRIBUTE_INT)
      return hd_bind_fault(b, "'%s' is the number of a pack's axes, an integer",
                           pack->name);
    const hd_pack_t *root = hd_pack_root(pack);
    if (is_known(b, root) && hd_binding_rank(b->binding, root) != a->u.i)
      return hd_bind_fault(b, "'%s' and '%s' have as many axes", pack->name,
                           root->name);
    if (!set_rank(b, root, a->u.i))
      return false;
  }
  return true;
}

// Packs that an attribute brings have its length; one not bound otherwise too.
static bool rank_by_length(hd_binder_t *b, bool brought, bool *progress) {
  *progress = false;
  for (size_t i = 0; i < b->task->inputs.size && !*progress; i++) {
    const hd_task_value_t *value = b->task->inputs.data[i];
    const hd_attribute_t *a = value->kind == HD_VALUE_ATTRIBUTE && value->pack
                                  ? hd_bind_find(b, value->name)
                                  : NULL;
    if (!a || is_known(b, value->pack) ||
        (brought && value->pack->attribute != value) ||
        (a->kind != HD_ATTRIBUTE_INTS && a->kind != HD_ATTRIBUTE_FLOATS))
      continue;
    *progress = true;
    if (a->count > HD_MAX_RANK)
      return hd_bind_fault(b, "attribute '%s' has %zu values", value->name,
                           a->count);
    if (!set_rank(b, hd_pack_root(value->pack), (int64_t)a->count))
      return false;
  }
  return true;
}

bool hd_bind_ranks(hd_binder_t *b) {
  bool progress = true;
  for (size_t i = 0; i < b->task->packs.size; i++)
    b->packs[i].rank = HD_UNBOUND_RANK;
  if (!named_ranks(b))
    return false;
  while (progress)
    if (!rank_by_length(b, true, &progress))
      return false;
  progress = true;
  while (progress)
    if (!solve_inputs(b) || !rank_by_length(b, false, &progress))
      return false;
  for (size_t i = 0; i < b->task->packs.size; i++) {
    const hd_pack_t *pack = b->task->packs.data[i];
    if (!is_known(b, pack))
      return hd_bind_fault(b,
                           "the inputs leave open how many axes pack '%s' has: "
                           "say so by an attribute '%s'",
                           pack->name, pack->name);
    b->packs[i].rank = hd_binding_rank(b->binding, pack);
  }
  return true;
}
