// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels: loops over mappings, and what they mean. A mapping is a
// composition of spatial and repeat parts; each part has a digit of the worker
// (spatial) or of the turn (repeat), the first part the most significant one.
#include "KernelGenerator.h"

enum { MAX_PARTS = 3 };

typedef struct part {
  bool spatial, swapped; // swapped: order = [1, 0], axis 0 runs fastest.
  int dims[2];
} part_t;

typedef struct mapping {
  int num_parts, rank, workers, turns;
  int dims[2];
  part_t parts[MAX_PARTS];
} mapping_t;

static mapping_t random_mapping(hd_maker_t *m, bool may_spread) {
  mapping_t map = {.num_parts = hd_pick(m, 1, MAX_PARTS),
                   .rank = hd_pick(m, 1, 2),
                   .workers = 1,
                   .turns = 1,
                   .dims = {1, 1}};
  for (int i = 0; i < map.num_parts; i++) {
    part_t part = {.spatial = may_spread && hd_chance(m, 60), .dims = {1, 1}};
    for (int a = 0; a < map.rank; a++) {
      int dim = hd_pick(m, 1, part.spatial ? 4 : 2);
      if (map.dims[a] * dim <= 16 && (!part.spatial || map.workers * dim <= 64))
        part.dims[a] = dim;
      map.dims[a] *= part.dims[a];
      *(part.spatial ? &map.workers : &map.turns) *= part.dims[a];
    }
    part.swapped = map.rank == 2 && hd_chance(m, 25);
    map.parts[i] = part;
  }
  return map;
}

static const char *mapping_text(hd_maker_t *m, const mapping_t *map) {
  const char *text = "";
  for (int i = 0; i < map->num_parts; i++) {
    const part_t *part = &map->parts[i];
    text = hd_text(m, "%s%s%s(%d", text, i ? " * " : "",
                   part->spatial ? "spatial" : "repeat", part->dims[0]);
    if (map->rank == 2)
      text = hd_text(m, "%s, %d%s", text, part->dims[1],
                     part->swapped ? ", order = [1, 0]" : "");
    text = hd_text(m, "%s)", text);
  }
  return text;
}

// The index along an axis, as a sum over parts of digit * dims of later parts.
static const char *index_text(hd_maker_t *m, const mapping_t *map, int axis,
                              const char *worker, const char *turn) {
  const char *text = "0";
  int workers = map->workers, turns = map->turns, rest = map->dims[axis];
  for (int i = 0; i < map->num_parts; i++) {
    const part_t *part = &map->parts[i];
    int size = part->dims[0] * part->dims[1];
    int *left = part->spatial ? &workers : &turns;
    *left /= size;
    rest /= part->dims[axis];
    int inner = (axis == 0) != part->swapped ? part->dims[!axis] : 1;
    text = hd_text(m, "%s + %s / %d %% %d / %d %% %d * %d", text,
                   part->spatial ? worker : turn, *left, size, inner,
                   part->dims[axis], rest);
  }
  return text;
}

// Loops over registers: the mapping has one worker, its variables are counters.
static void add_axes(hd_maker_t *m, const mapping_t *map,
                     const char *const *axes, bool counter) {
  for (int a = 0; a < map->rank; a++) {
    hd_name_t name = {.text = axes[a],
                      .least = 0,
                      .greatest = map->dims[a] - 1,
                      .counter = counter};
    hd_vec_push(m->arena, &m->names, name);
  }
}

static const char *loop_body(hd_maker_t *m, const mapping_t *map,
                             const char *const *axes, bool counter,
                             bool takes_z, int depth) {
  size_t names = m->names.size, arrays = m->arrays.size;
  bool outer = m->in_loop;
  add_axes(m, map, axes, counter);
  m->in_loop = true;
  const char *text = hd_statements(m, hd_pick(m, 0, 3), depth - 1, false);
  m->in_loop = outer;
  if (takes_z)
    text = hd_text(m, "%sz[block, %s, %s] = %s\n", text, axes[0],
                   map->rank == 2 ? axes[1] : "3", hd_value(m, HD_K_I32, 2));
  text = hd_text(m, "%s%s", text, hd_observe(m, names, arrays));
  m->names.size = names;
  m->arrays.size = arrays;
  return text;
}

const char *hd_mapping_loop(hd_maker_t *m, int depth) {
  bool counter = hd_chance(m, 25), bounded = hd_chance(m, 50);
  mapping_t map = random_mapping(m, !counter);
  const char *axes[] = {hd_new_name(m, "p"), hd_new_name(m, "q")};
  const char *worker = hd_new_name(m, "w"), *turn = hd_new_name(m, "u");
  const char *limits[] = {hd_new_name(m, "b"), hd_new_name(m, "b")};
  const char *bounds[2], *given = hd_value(m, HD_K_I32, 1);
  for (int a = 0; a < 2; a++)
    bounds[a] =
        hd_text(m, "(%s & 15) + %d",
                hd_chance(m, 30) ? hd_effect(m, 1) : hd_value(m, HD_K_I32, 1),
                hd_pick(m, 0, 3));
  bool idle = hd_chance(m, 50) && map.workers > 1;
  bool takes_z = idle && m->loops == 0 && !m->z_is_taken;
  if (idle)
    given = "thread";
  else
    given = hd_text(m, "(%s & 1023) %% %d", given, map.workers);
  m->z_is_taken |= takes_z;
  const char *text = loop_body(m, &map, axes, counter, takes_z, depth);
  const char *order = hd_chance(m, 25) ? " unroll" : "";
  const char *names =
      map.rank == 2 ? hd_text(m, "%s, %s", axes[0], axes[1]) : axes[0];
  if (!m->reference) {
    const char *mapping = mapping_text(m, &map);
    if (idle)
      mapping = hd_text(m, "idle(%s, %d)", mapping, HD_RANDOM_THREADS);
    if (bounded)
      mapping =
          map.rank == 2
              ? hd_text(m, "within(%s, %s, %s)", mapping, bounds[0], bounds[1])
              : hd_text(m, "within(%s, %s)", mapping, bounds[0]);
    const char *on = map.workers > 1 ? hd_text(m, " on %s", given) : "";
    return hd_text(m, "for %s in %s%s%s {\n%s}\n", names, mapping, on, order,
                   text);
  }
  const char *head = map.workers > 1
                         ? hd_text(m, "let %s = %s\n", worker, given)
                         : hd_text(m, "let %s = 0\n", worker);
  const char *test = idle ? hd_text(m, "%s < %d", worker, map.workers) : "true";
  const char *lets = "";
  for (int a = 0; a < map.rank; a++) {
    lets = hd_text(m, "%slet %s = %s\n", lets, axes[a],
                   index_text(m, &map, a, worker, turn));
    if (!bounded)
      continue;
    head = hd_text(m, "%slet %s = %s\n", head, limits[a], bounds[a]);
    test = hd_text(m, "%s && %s < %s", test, axes[a], limits[a]);
  }
  return hd_text(m, "%sfor %s in 0..%d unroll {\n%sif %s {\n%s}\n}\n", head,
                 turn, map.turns, lets, test, text);
}
