// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A definition that sorts, by the kernels of templates/sort.hir:
//
//   index[i, j, k] = sort descending(r: n to j) x[i, r, k]
//
// Its other indices count the rows. What is computed of the result element by
// element, y[i, j, k] = x[i, index[i, j, k], k] mostly, is stored with it.
//
// Short rows, several to a block, are sorted there. Of long ones blocks select
// the first m of parts of a row, where these are few, and one sorts them; else
// they sort parts, which are merged two by two, the first m of each.
#include "IR/Text/Library.h"
#include "Schedule/Rules/Rules.h"
#include "Schedule/Template/Instance.h"
#include "Schedule/Terms/Affine.h"

enum {
  WARP = 32,
  TILE = 4096,           // Pairs that a block sorts, at most,
  LEAST_TILE = 1024,     // where blocks are few,
  ELEMENTS = 512,        // and, of small rows together, at most.
  MOST_THREADS = 512,    // Of a block that sorts.
  MOST_SORTED = 1 << 30, // Kernels count in i32.
  MOST_SELECTED = 1024,  // Places;
  FEW_SELECTED = 64,     // where all blocks that sort run at once.
  SELECTS = 128,         // Threads of a block that selects;
  TURN = 1024,           // wide elements at once, or twice as many narrow ones;
  VECTOR = 16,           // bytes of a load;
  LEAST_BOUND = 16,      // places whose bound groups find,
  MOST_GROUPS = 1024,    // of so many at most, else sorting does;
  LEAST_PART = 2048,     // elements that are worth a block,
  FEW_KEPT = 32,         // or twice as many where it keeps more,
  SELECTING = 4,         // until there are as many for each
  BLOCKS = 2,            // of so many for a multiprocessor,
  HOST_BLOCKS = 256,     // or for a host.
  MOST_USERS = 8,
};

// The kernels' parameters, in their order.
enum { X, KEY, AT, TO_KEY, TO_AT, Y, PARAMS };

// A definition that is stored where the index is.
typedef struct user {
  const hd_definition_t *d;
  const hd_term_t *term; // By the form's indices.
} user_t;

enum { ROW, COLUMN, PLACE, AXES };

typedef struct sort {
  hd_rules_t *rules;
  hd_arena_t *arena;
  const hd_definition_t *d;
  hd_axis_t axes[AXES];
  const hd_index_t *at[AXES]; // Numbers along them.
  hd_form_digits_t digits;
  hd_scalar_t from, key;                // What is loaded, what is compared.
  const hd_term_t *term;                // What is loaded.
  const hd_term_t *places[HD_MAX_RANK]; // Of the target.
  bool keeps;                           // The index itself is stored.
  int64_t blocks;                       // That run at once,
  int sm;                               // of what architecture.
  user_t users[MOST_USERS];
  unsigned num_users;
  hd_translator_t t; // Of the kernel at hand.
} sort_t;

// --- The form ---

// The type in which a value is loaded: one that keeps its order, of 32 or 64
// bits.
static hd_scalar_t loaded_type(hd_scalar_t type) {
  hd_type_t t = hd_type(type);
  if (hd_scalar_bits(type) == 64)
    return type;
  return hd_type_is_float(t)      ? HD_F32
         : hd_type_is_unsigned(t) ? HD_U32
                                  : HD_I32;
}

static void set_form(sort_t *s) {
  const hd_definition_t *d = s->d;
  unsigned own = d->num_indices - 1;
  hd_axis_t *axes = s->axes;
  for (unsigned i = 0; i < own; i++)
    if (d->indices[i] != d->along)
      axes[ROW].indices[axes[ROW].count++] = d->indices[i];
  axes[COLUMN] = (hd_axis_t){.count = 1, .indices = {d->indices[own]}};
  axes[PLACE] = (hd_axis_t){.count = 1, .indices = {d->along}};
  for (int i = 0; i < AXES; i++) {
    static const char *const names[AXES] = {"row", "column", "place"};
    axes[i].size = hd_flat_points(axes[i].indices, axes[i].count);
    s->at[i] = hd_flat_index_make(s->arena, names[i], axes[i].size);
  }
  s->digits = (hd_form_digits_t){
      .arena = s->arena, .count = AXES, .axes = axes, .places = s->at};
  s->from = loaded_type(d->term->type.scalar);
  s->key = hd_scalar_bits(s->from) == 64 ? HD_U64 : HD_U32;
  s->term = hd_form_put_digits(&s->digits, d->term);
  for (unsigned i = 0; i < own; i++)
    s->places[i] = hd_index_simplify(
        s->arena,
        hd_form_put_digits(&s->digits, hd_flat_index(s->arena, d->indices[i])));
}

// --- What is made of the index ---

typedef struct reading {
  const sort_t *s;
  const hd_definition_t *d;
  bool fits;
} reading_t;

// Of the index, the element at hand alone is known.
static bool look_at_read(void *argument, const hd_term_t *term) {
  reading_t *r = argument;
  bool loads = hd_flat_is_load(term);
  r->fits &= !hd_flat_is_reduction(term);
  if (!loads || term->u.value != r->s->d->targets[0])
    return r->fits;
  for (uint32_t i = 0; i < term->u.value->rank; i++)
    r->fits &= hd_flat_range(r->d->indices[i]) == 1
                   ? hd_flat_is_int(term->operands[i], 0)
                   : term->operands[i]->kind == HD_TERM_INDEX &&
                         term->operands[i]->u.index == r->d->indices[i];
  return r->fits;
}

static bool reads_user(const sort_t *s, const hd_term_t *term) {
  for (unsigned i = 0; i < s->num_users; i++)
    if (hd_flat_reads(term, s->users[i].d->targets[0]))
      return true;
  return false;
}

// Whether a definition is computed where the index is stored.
static bool is_user(const sort_t *s, const hd_definition_t *d) {
  const hd_task_value_t *index = s->d->targets[0];
  if (d->kind != HD_DEFINE || d->num_targets != 1 ||
      d->num_indices != index->rank || s->num_users == MOST_USERS ||
      hd_scalar_bits(d->targets[0]->type.scalar) < 8 ||
      !hd_flat_reads(d->term, index) || reads_user(s, d->term))
    return false;
  for (uint32_t i = 0; i < d->num_indices; i++)
    if (hd_flat_range(d->indices[i]) != hd_flat_range(s->d->indices[i]))
      return false;
  reading_t r = {s, d, true};
  hd_flat_walk(d->term, look_at_read, &r);
  return r.fits;
}

typedef struct renaming {
  const sort_t *s;
  const hd_definition_t *d;
} renaming_t;

// For hd_flat_rewrite(): the sort's index for the user's.
static const hd_term_t *rename_index(void *argument, const hd_term_t *term) {
  const renaming_t *r = argument;
  for (uint32_t i = 0; i < r->d->num_indices; i++)
    if (term->kind == HD_TERM_INDEX && term->u.index == r->d->indices[i])
      return hd_flat_index(r->s->arena, r->s->d->indices[i]);
  return term;
}

static void find_users(sort_t *s, size_t first) {
  const hd_task_t *flat = s->rules->flat;
  const hd_task_value_t *index = s->d->targets[0];
  size_t i = first + 1;
  for (; i < flat->definitions.size; i++) {
    const hd_definition_t *d = flat->definitions.data[i];
    if (!is_user(s, d))
      break;
    renaming_t r = {s, d};
    const hd_term_t *term =
        hd_flat_rewrite(s->arena, d->term, rename_index, &r);
    s->users[s->num_users++] =
        (user_t){d, hd_form_put_digits(&s->digits, term)};
  }
  s->keeps = index->kind != HD_VALUE_LOCAL;
  for (; i < flat->definitions.size && !s->keeps; i++) {
    const hd_definition_t *d = flat->definitions.data[i];
    s->keeps = d->onto == index || hd_flat_reads(d->term, index);
    for (uint32_t k = 0; d->at && k < d->targets[0]->rank; k++)
      s->keeps |= hd_flat_reads(d->at[k], index);
  }
}

// --- Kernels ---

static void bind(sort_t *s, hd_builder_t *b, int second,
                 const hd_expr_t *const *at) {
  s->t.b = b;
  hd_translate_bind(&s->t, s->at[ROW], at[0]);
  hd_translate_bind(&s->t, s->at[second], at[1]);
}

static const hd_expr_t *on_load(void *argument, hd_builder_t *b,
                                const hd_expr_t *const *at) {
  sort_t *s = argument;
  bind(s, b, COLUMN, at);
  return hd_b_cast(b, s->from, hd_translate(&s->t, s->term));
}

static void store(sort_t *s, hd_builder_t *b, const hd_task_value_t *target,
                  const hd_expr_t *value) {
  const hd_expr_t *places[HD_MAX_RANK];
  for (uint32_t i = 0; i < target->rank; i++)
    places[i] = hd_translate_worth(&s->t, s->places[i]).e;
  hd_b_store(b, hd_translate_tensor(&s->t, target, HD_DIR_OUT), places,
             target->rank, value);
}

static void on_store(void *argument, hd_builder_t *b,
                     const hd_expr_t *const *at, const hd_expr_t *value) {
  sort_t *s = argument;
  const hd_task_value_t *index = s->d->targets[0];
  bind(s, b, PLACE, at);
  value = hd_b_let(b, "index", value);
  if (s->keeps)
    store(s, b, index, value);
  for (unsigned i = 0; i < s->num_users; i++) {
    hd_ptr_map_set(s->arena, &s->t.values, index, value);
    store(s, b, s->users[i].d->targets[0],
          hd_translate(&s->t, s->users[i].term));
  }
}

// One of the kernels, whose pairs come from and go to these tensors, [KEY, AT];
// NULL: it loads what is sorted, or stores what comes of it.
static void put_kernel(sort_t *s, const char *instance, const int64_t *sizes,
                       size_t num_sizes, const hd_task_value_t *const *from,
                       const hd_task_value_t *const *to) {
  hd_module_t *home = hd_library_templates(s->rules->module->context);
  hd_func_t *kernel = home ? hd_instance_kernel(s->rules->module, home,
                                                instance, sizes, num_sizes)
                           : NULL;
  if (!kernel) {
    s->rules->failed = true;
    return;
  }
  hd_form_tensor_t own[PARAMS] = {{0}};
  const hd_form_tensor_t *tensors[PARAMS];
  hd_access_hook_t hooks[PARAMS];
  size_t num_hooks = 0;
  for (int i = 0; i < 2; i++) {
    own[KEY + i].same = from ? from[i] : NULL;
    own[TO_KEY + i].same = to ? to[i] : NULL;
  }
  for (uint32_t i = 0; i < PARAMS; i++) {
    tensors[i] = &own[i];
    if (!own[i].same) // Else nothing accesses it, but for x and y.
      hooks[num_hooks++] =
          (hd_access_hook_t){.param = kernel->params[i],
                             .argument = s,
                             .load = i == X ? on_load : NULL,
                             .store = i == Y ? on_store : NULL};
  }
  s->t = (hd_translator_t){0};
  hd_candidate_launch(s->rules, &s->t, kernel, hooks, num_hooks, tensors);
}

static int64_t power_from(int64_t least, int64_t n) {
  while (least < n)
    least *= 2;
  return least;
}

static const char *types_of(const sort_t *s, bool first, bool last) {
  // Keys of pairs rise.
  return hd_arena_printf(
      s->arena, "S = %s, K = %s, DOWN = %s, FIRST = %s, LAST = %s",
      hd_scalar_name(first ? s->from : s->key), hd_scalar_name(s->key),
      first && s->d->descends ? "true" : "false", first ? "true" : "false",
      last ? "true" : "false");
}

// Pairs of the rows, so many of each.
static void make_pairs(sort_t *s, int64_t count,
                       const hd_task_value_t *pairs[2]) {
  int64_t shape[2] = {s->axes[ROW].size, count};
  pairs[0] = hd_flat_value_make(s->arena, "sorted_key", HD_VALUE_LOCAL, s->key,
                                shape, 2);
  pairs[1] = hd_flat_value_make(s->arena, "sorted_at", HD_VALUE_LOCAL, HD_I32,
                                shape, 2);
  for (int i = 0; i < 2; i++)
    hd_vec_push(s->arena, &s->rules->flat->locals, pairs[i]);
}

// Parts of so many pairs, each sorted by a block, several to a block where they
// are small; the first of each go on.
static void sort_parts(sort_t *s, int64_t n, int64_t tile, int64_t kept,
                       const hd_task_value_t *const *from,
                       const hd_task_value_t *const *to) {
  int64_t parts = (n + tile - 1) / tile;
  int64_t rows = power_from(1, s->axes[ROW].size * parts);
  if (rows * tile > ELEMENTS)
    rows = tile < ELEMENTS ? ELEMENTS / tile : 1;
  if (rows * tile < 2 * WARP)
    rows = 2 * WARP / tile;
  int64_t threads = rows * tile / 2;
  threads = threads > MOST_THREADS ? MOST_THREADS : threads;
  const char *instance = hd_arena_printf(
      s->arena,
      "sort_tiles_kernel[%s, TILE = %lld, ROWS = %lld, THREADS = %lld]",
      types_of(s, !from, !to), (long long)tile, (long long)rows,
      (long long)threads);
  int64_t sizes[] = {s->axes[ROW].size, n, parts, kept};
  put_kernel(s, instance, sizes, 4, from, to);
}

// Runs, of which the last may be shorter, are merged two by two, until there is
// one.
static void merge_runs(sort_t *s, int64_t runs, int64_t length, int64_t last,
                       const hd_task_value_t *from[2]) {
  int64_t m = s->axes[PLACE].size;
  while (runs > 1) {
    int64_t merged = (runs + 1) / 2, kept = 2 * length < m ? 2 * length : m;
    const hd_task_value_t *to[2];
    if (merged > 1)
      make_pairs(s, merged * kept, to);
    const char *instance = hd_arena_printf(s->arena, "sort_merge_kernel[%s]",
                                           types_of(s, false, merged == 1));
    int64_t sizes[] = {s->axes[ROW].size, runs, length, last, merged, kept};
    put_kernel(s, instance, sizes, 6, from, merged > 1 ? to : NULL);
    for (int i = 0; i < 2 && merged > 1; i++)
      from[i] = to[i];
    last += runs % 2 == 0 ? length : 0;
    last = last < kept ? last : kept;
    runs = merged;
    length = kept;
  }
}

static int64_t common_divisor(int64_t a, int64_t b) {
  return b ? common_divisor(b, a % b) : a;
}

// How a block selects the first m of what is loaded, or of pairs.
typedef struct selection {
  int64_t turn, lanes, ahead, groups, room;
} selection_t;

static selection_t choose_selection(const sort_t *s, int64_t n, int64_t m,
                                    bool first) {
  unsigned bits = hd_scalar_bits(first ? s->d->term->type.scalar : s->key);
  int64_t bytes = bits < 8 ? 1 : bits / 8;
  selection_t c = {.lanes = common_divisor(VECTOR / bytes, n),
                   .turn = s->key == HD_U64 ? TURN : 2 * TURN,
                   // Narrow ones wait to be converted; before sm_90 it spills.
                   .ahead = bytes >= 4 && s->sm >= 90,
                   .groups = 4 * power_from(LEAST_BOUND, m)};
  c.room = c.turn > c.groups ? c.turn + c.groups : 2 * c.groups;
  if (c.groups > MOST_GROUPS) {
    c.groups = 0;
    c.turn = TURN;
    c.room = power_from(2 * TURN, 2 * m + TURN);
  }
  c.lanes = common_divisor(c.turn / SELECTS, c.lanes);
  return c;
}

// The first m of n pairs, or of what is loaded, of each row: by blocks that
// take parts of it, and then of what these leave.
static void select_first(sort_t *s) {
  int64_t n = s->axes[COLUMN].size, m = s->axes[PLACE].size;
  int64_t rows = s->axes[ROW].size;
  const hd_task_value_t *pairs[2], *const *from = NULL;
  while (n > TILE) {
    selection_t c = choose_selection(s, n, m, !from);
    int64_t parts = SELECTING * s->blocks / rows;
    int64_t most = n / (m > FEW_KEPT ? 2 * LEAST_PART : LEAST_PART);
    parts = parts > most ? most : parts > 1 ? parts : 1;
    int64_t turns = (n + parts * c.turn - 1) / (parts * c.turn);
    parts = (n + turns * c.turn - 1) / (turns * c.turn);
    const hd_task_value_t *to[2];
    if (parts > 1)
      make_pairs(s, parts * m, to);
    const char *instance = hd_arena_printf(
        s->arena,
        "sort_select_kernel[%s, ROOM = %lld, GROUPS = %lld, EACH = %lld, "
        "LANES = %lld, AHEAD = %lld, THREADS = %d]",
        types_of(s, !from, parts == 1), (long long)c.room, (long long)c.groups,
        (long long)c.turn / SELECTS, (long long)c.lanes, (long long)c.ahead,
        SELECTS);
    int64_t sizes[] = {rows, n, parts, turns, m};
    put_kernel(s, instance, sizes, 5, from, parts > 1 ? to : NULL);
    if (parts == 1)
      return;
    memcpy(pairs, to, sizeof(to));
    from = pairs;
    n = parts * m;
  }
  sort_parts(s, n, power_from(2, n), m, from, NULL);
}

// Parts that are small as long as all blocks run at once: sorting takes the
// square of a logarithm of one, merging a launch for each time that their
// number is halved.
static void sort_all(sort_t *s) {
  int64_t n = s->axes[COLUMN].size, m = s->axes[PLACE].size;
  int64_t tile = LEAST_TILE;
  while (tile < TILE && s->axes[ROW].size * ((n + tile - 1) / tile) > s->blocks)
    tile *= 2;
  int64_t parts = (n + tile - 1) / tile, kept = m < tile ? m : tile;
  const hd_task_value_t *pairs[2];
  make_pairs(s, parts * kept, pairs);
  sort_parts(s, n, tile, kept, NULL, pairs);
  int64_t last = n - (parts - 1) * tile;
  merge_runs(s, parts, kept, last < kept ? last : kept, pairs);
}

static void sort_rows(sort_t *s) {
  int64_t n = s->axes[COLUMN].size, m = s->axes[PLACE].size;
  int64_t parts = (n + LEAST_TILE - 1) / LEAST_TILE;
  bool few = s->axes[ROW].size * parts <= s->blocks;
  if (n <= (few ? 2 * LEAST_TILE : TILE))
    sort_parts(s, n, power_from(2, n), m, NULL, NULL);
  else if (n > TILE && m <= (few ? FEW_SELECTED : MOST_SELECTED))
    select_first(s);
  else
    sort_all(s);
}

size_t hd_rule_sort(hd_rules_t *rules, size_t first) {
  const hd_definition_t *d = rules->flat->definitions.data[first];
  if (d->kind != HD_SORT)
    return 0;
  sort_t *s = HD_ARENA_NEW(&rules->module->arena, sort_t);
  s->rules = rules;
  s->arena = &rules->module->arena;
  s->d = d;
  // Where no GPU is meant, threads of a host take the blocks' place.
  const hd_schedule_options_t *o = rules->module->context->schedules;
  s->sm = o ? o->machine.sm : 0;
  s->blocks = o && o->machine.count ? BLOCKS * o->machine.count : HOST_BLOCKS;
  set_form(s);
  for (int i = 0; i < AXES; i++)
    if (s->axes[i].size > MOST_SORTED) {
      rules->failed = !hd_error(
          &rules->module->context->diags, rules->loc, HD_E1104, rules->name,
          "a sort of more than 2^30 elements, or rows, is not supported");
      return 0;
    }
  find_users(s, first);
  sort_rows(s);
  return rules->failed ? 0 : 1 + s->num_users;
}
