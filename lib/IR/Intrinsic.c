// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Intrinsic.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
  const char *name, *types, *signature;
  hd_intrinsic_kind_t kind;
  const char *traits;
  int target;
  const char *ptx, *sim;
} row_t;

static const row_t rows[] = {
#define HD_INTRINSIC(id, name, types, signature, kind, traits, target, ptx,    \
                     sim)                                                      \
  {name, types, signature, HD_INTRINSIC_##kind, traits, target, ptx, sim},
#include "IR/Intrinsics.def"
#undef HD_INTRINSIC
};

static hd_intrinsic_info_t infos[HD_INTRINSIC_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

// A place's prefix: the letter of its form, then i, o or w. VALUE, for maps,
// has no letter.
static const struct {
  char letter;
  hd_param_form_t form;
} forms[] = {{'s', HD_PARAM_SHARED},   {'g', HD_PARAM_GLOBAL},
             {'m', HD_PARAM_MEMORY},   {'d', HD_PARAM_MATRIX},
             {'r', HD_PARAM_REGISTER}, {0, HD_PARAM_VALUE}};

// In the order of hd_intrinsic_trait_t.
static const char *const traits[] = {
    "load",    "store",    "atomic", "fence",         "copy",
    "bulk",    "im2col",   "polls",  "awaits_launch", "shuffle",
    "aligned", "prefetch", "whole"};

static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel",
                                     "seq_cst"};
static const char *const scopes[] = {"warp", "block", "cluster", "device",
                                     "system"};
static const char *const caches[] = {
    "ca", "cg", "cs",          "lu",         "cv",         "nc",
    "wb", "wt", "evict_first", "evict_last", "no_allocate"};
static const char *const policies[] = {"evict_normal", "evict_first",
                                       "evict_last"};
static const char *const majors[] = {"k_major", "mn_major"};

// The forms whose operands are names, in the order of their enumerators.
static const struct {
  const char *word;
  const char *const *names;
  int count, otherwise; // The default.
} words[] = {{"order", orders, HD_ORDER_COUNT, HD_RELAXED},
             {"scope", scopes, HD_SYNC_COUNT, HD_SYNC_DEVICE},
             {"cache", caches, HD_CACHE_COUNT, HD_CACHE_CA},
             {"policy", policies, HD_POLICY_COUNT, HD_POLICY_NORMAL},
             {"major", majors, HD_MAJOR_COUNT, HD_MAJOR_K}};
enum { NUM_WORDS = sizeof words / sizeof words[0] };

// A type, "T", or "Tx8", whose lanes are told by type. The table is ours: a row
// that does not parse is a bug, which the assertion finds in any test.
static void parse_type(const char *text, bool *generic, hd_type_t *type) {
  *generic = text[0] == 'T';
  *type = hd_type(HD_VOID);
  if (*generic) {
    if (text[1] == 'x')
      type->lanes = (uint8_t)strtol(text + 2, NULL, 10);
    return;
  }
  bool ok = hd_type_parse(text, type);
  assert(ok && "Intrinsics.def: no such type");
  (void)ok;
}

// "sw:" and the like; returns what comes after it.
static const char *parse_prefix(hd_intrinsic_param_t *param, const char *text) {
  const char *colon = strchr(text, ':');
  param->form = text[0] == '#' ? HD_PARAM_CONST : HD_PARAM_VALUE;
  if (!colon)
    return text + (text[0] == '#');
  for (size_t i = 0; forms[i].letter && param->form == HD_PARAM_VALUE; i++)
    if (forms[i].letter == text[0])
      param->form = forms[i].form;
  param->reads = strchr("iwd", colon[-1]) != NULL;
  param->writes = strchr("ow", colon[-1]) != NULL;
  return colon + 1;
}

// "[8..32/8|48..256/16]"
static void parse_ranges(hd_intrinsic_param_t *param, const char *text) {
  char *end = NULL;
  for (; *text != ']'; text = end + (*end == '|')) {
    assert(param->num_ranges < 2 && "Intrinsics.def: ranges");
    hd_operand_range_t *range = &param->ranges[param->num_ranges++];
    range->least = strtol(text, &end, 10);
    range->most = strtol(end + 2, &end, 10);
    range->step = 1;
    if (*end == '/')
      range->step = strtol(end + 1, &end, 10);
    else if (*end == '*') { // By 2.
      range->step = 0;
      end += 2;
    }
  }
}

static hd_intrinsic_param_t parse_param(const char *text) {
  hd_intrinsic_param_t param = {0};
  for (unsigned i = 0; i < NUM_WORDS; i++)
    if (strcmp(text, words[i].word) == 0) {
      param.form = (hd_param_form_t)(HD_PARAM_ORDER + i);
      param.type = hd_type(HD_I32);
      return param;
    }
  text = parse_prefix(&param, text);
  const char *bracket = strchr(text, '[');
  const char *count = strstr(text, "xn"); // f32xn, f32xn/2
  if (bracket)
    parse_ranges(&param, bracket + 1);
  if (count)
    param.divisor = count[2] ? (uint8_t)strtol(count + 3, NULL, 10) : 1;
  char type[16];
  snprintf(type, sizeof type, "%.*s",
           (int)(count     ? (size_t)(count - text)
                 : bracket ? (size_t)(bracket - text)
                           : strlen(text)),
           text);
  param.any = strcmp(type, "any") == 0;
  if (!param.any)
    parse_type(strcmp(type, "n") ? type : "i32", &param.generic, &param.type);
  return param;
}

// Calls each(argument, piece) for the pieces of text between separators.
static void split(const char *text, size_t size, char separator,
                  void (*each)(hd_intrinsic_info_t *, const char *),
                  hd_intrinsic_info_t *info) {
  const char *end = text + size;
  while (text < end) {
    const char *stop = memchr(text, separator, (size_t)(end - text));
    size_t length = (size_t)((stop ? stop : end) - text);
    char piece[32];
    assert(length < sizeof piece);
    memcpy(piece, text, length);
    piece[length] = '\0';
    each(info, piece);
    text += length + 1;
  }
}

static void add_param(hd_intrinsic_info_t *info, const char *text) {
  assert(info->num_params < HD_INTRINSIC_MAX_PARAMS);
  hd_intrinsic_param_t param = parse_param(text);
  if (text[0] == '#' && text[1] == 'n')
    info->count = (int)info->num_params;
  info->params[info->num_params++] = param;
  if (!hd_param_is_name(param.form))
    info->num_required = info->num_params;
}

static void add_type(hd_intrinsic_info_t *info, const char *text) {
  assert(info->num_types < sizeof info->types / sizeof info->types[0]);
  bool generic;
  parse_type(text, &generic, &info->types[info->num_types++]);
}

static void add_trait(hd_intrinsic_info_t *info, const char *text) {
  unsigned i = 0, count = sizeof traits / sizeof traits[0];
  while (i < count && strcmp(text, traits[i]) != 0)
    i++;
  assert(i < count && "Intrinsics.def: no such trait");
  info->traits |= 1u << i;
}

static void parse_row(const row_t *row, hd_intrinsic_info_t *info) {
  info->name = row->name;
  info->signature = row->signature;
  info->type_names = row->types;
  info->kind = row->kind;
  info->target = row->target;
  info->ptx = row->ptx;
  info->sim = row->sim;
  info->count = -1;
  if (strcmp(row->types, "-") != 0)
    split(row->types, strlen(row->types), '|', add_type, info);
  if (strcmp(row->traits, "-") != 0)
    split(row->traits, strlen(row->traits), '|', add_trait, info);
  const char *open = strchr(row->signature, '(');
  const char *close = strchr(row->signature, ')');
  assert(open && close && "Intrinsics.def: signature");
  char result[16] = {0};
  assert(open - row->signature < 16);
  memcpy(result, row->signature, (size_t)(open - row->signature));
  parse_type(result, &info->result_generic, &info->result);
  split(open + 1, (size_t)(close - open - 1), ',', add_param, info);
}

static void parse_table(void) {
  for (size_t i = 0; i < HD_INTRINSIC_COUNT; i++)
    parse_row(&rows[i], &infos[i]);
}

const hd_intrinsic_info_t *hd_intrinsic_info(hd_intrinsic_t intrinsic) {
  pthread_once(&once, parse_table);
  return &infos[intrinsic];
}

// First rows of names, by open addressing: the parser asks of every call. More
// than twice as many places as rows.
enum { PLACES = 1024 };
static uint16_t places[PLACES]; // A row's number, from 1 on; 0: free.
static pthread_once_t places_once = PTHREAD_ONCE_INIT;

// Where the name is, or is to be put. FNV-1a.
static uint16_t *place_of(const char *name) {
  uint32_t hash = 2166136261u;
  for (const char *c = name; *c; c++)
    hash = (hash ^ (unsigned char)*c) * 16777619u;
  for (;; hash++) {
    uint16_t *place = &places[hash % PLACES];
    if (!*place || strcmp(rows[*place - 1].name, name) == 0)
      return place;
  }
}

static void fill_places(void) {
  static_assert(2 * HD_INTRINSIC_COUNT < PLACES, "the table is too small");
  for (size_t i = 0; i < HD_INTRINSIC_COUNT; i++) {
    uint16_t *place = place_of(rows[i].name);
    if (!*place)
      *place = (uint16_t)(i + 1);
  }
}

hd_intrinsic_t hd_intrinsic_find(const char *name) {
  pthread_once(&places_once, fill_places);
  uint16_t number = *place_of(name);
  return number ? (hd_intrinsic_t)(number - 1) : HD_INTRINSIC_COUNT;
}

static bool may_be(const hd_intrinsic_info_t *info, hd_type_t type) {
  for (unsigned i = 0; i < info->num_types; i++)
    if (hd_type_equal(info->types[i], type))
      return true;
  return info->num_types == 0 && type.scalar == HD_VOID;
}

hd_intrinsic_t hd_intrinsic_overload(hd_intrinsic_t first, hd_type_t type,
                                     unsigned num_params) {
  for (hd_intrinsic_t row = first;
       row < HD_INTRINSIC_COUNT &&
       strcmp(rows[row].name, rows[first].name) == 0;
       row++) {
    const hd_intrinsic_info_t *info = hd_intrinsic_info(row);
    if (info->num_params == num_params && may_be(info, type))
      return row;
  }
  return HD_INTRINSIC_COUNT;
}

bool hd_expr_has_trait(const hd_expr_t *e, unsigned traits) {
  return e->kind == HD_EXPR_INTRINSIC && hd_intrinsic_of(e)->traits & traits;
}

unsigned hd_intrinsic_elements(const hd_intrinsic_info_t *info,
                               const hd_expr_t *call, unsigned i) {
  const hd_intrinsic_param_t *param = &info->params[i];
  if (!param->divisor)
    return param->type.lanes;
  return (unsigned)call->operands[info->count]->u.i / param->divisor;
}

bool hd_param_takes(const hd_intrinsic_param_t *param, int64_t value) {
  for (unsigned i = 0; i < param->num_ranges; i++) {
    const hd_operand_range_t *range = &param->ranges[i];
    bool fits = range->step ? value % range->step == 0 : !(value & (value - 1));
    if (fits && value >= range->least && value <= range->most)
      return true;
  }
  return param->num_ranges == 0;
}

int hd_intrinsic_names(hd_param_form_t form) {
  return hd_param_is_name(form) ? words[form - HD_PARAM_ORDER].count : 0;
}

const char *hd_intrinsic_name_text(hd_param_form_t form, int value) {
  return value >= 0 && value < hd_intrinsic_names(form)
             ? words[form - HD_PARAM_ORDER].names[value]
             : "?";
}

int hd_intrinsic_name_find(hd_param_form_t form, const char *text) {
  for (int i = 0; i < hd_intrinsic_names(form); i++)
    if (strcmp(words[form - HD_PARAM_ORDER].names[i], text) == 0)
      return i;
  return -1;
}

int hd_intrinsic_name_default(hd_param_form_t form) {
  return words[form - HD_PARAM_ORDER].otherwise;
}

// From the PTX manual: what ld, st and cp.async have. "ca" is a store's
// default.
static bool takes_cache(const hd_intrinsic_info_t *info, hd_cache_op_t cache) {
  enum { LOAD = HD_TRAIT_LOAD, STORE = HD_TRAIT_STORE, COPY = HD_TRAIT_COPY };
  static const unsigned of[HD_CACHE_COUNT] = {
      [HD_CACHE_CA] = LOAD | STORE | COPY,
      [HD_CACHE_CG] = LOAD | STORE | COPY,
      [HD_CACHE_CS] = LOAD | STORE,
      [HD_CACHE_LU] = LOAD,
      [HD_CACHE_CV] = LOAD,
      [HD_CACHE_NC] = LOAD,
      [HD_CACHE_WB] = STORE,
      [HD_CACHE_WT] = STORE,
      [HD_CACHE_EVICT_FIRST] = LOAD | STORE,
      [HD_CACHE_EVICT_LAST] = LOAD | STORE,
      [HD_CACHE_NO_ALLOCATE] = LOAD | STORE,
  };
  return of[cache] & info->traits;
}

// A load acquires, a store releases, what is both does either.
static bool takes_order(const hd_intrinsic_info_t *info, hd_order_t order) {
  if (info->traits & HD_TRAIT_FENCE)
    return order != HD_RELAXED;
  const hd_intrinsic_param_t *place = &info->params[0];
  bool needs_load = order == HD_ACQUIRE || order == HD_ACQ_REL;
  bool needs_store = order == HD_RELEASE || order == HD_ACQ_REL;
  return (place->reads || !needs_load) && (place->writes || !needs_store);
}

bool hd_intrinsic_takes_name(const hd_intrinsic_info_t *info,
                             hd_param_form_t form, int value) {
  return form == HD_PARAM_CACHE   ? takes_cache(info, (hd_cache_op_t)value)
         : form == HD_PARAM_ORDER ? takes_order(info, (hd_order_t)value)
                                  : true;
}

const hd_intrinsic_info_t *hd_intrinsic_of(const hd_expr_t *call) {
  return hd_intrinsic_info((hd_intrinsic_t)call->u.intrinsic);
}
