// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Intrinsic.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct hd_row {
  const char *name, *types, *signature;
  hd_intrinsic_kind_t kind;
  int target;
  const char *ptx, *sim;
} hd_row_t;

static const hd_row_t rows[] = {
#define HD_INTRINSIC(id, name, types, signature, kind, target, ptx, sim)       \
  {name, types, signature, HD_INTRINSIC_##kind, target, ptx, sim},
#include "IR/Intrinsics.def"
#undef HD_INTRINSIC
};

static hd_intrinsic_info_t infos[HD_INTRINSIC_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The forms of a parameter by their prefix. VALUE, the empty one, is last.
static const struct {
  const char *prefix;
  hd_param_form_t form;
} forms[] = {
    {"#", HD_PARAM_CONST},          {"s:", HD_PARAM_SHARED},
    {"g:", HD_PARAM_GLOBAL},        {"m:", HD_PARAM_MEMORY},
    {"d:", HD_PARAM_MATRIX},        {"ri:", HD_PARAM_REGISTER_IN},
    {"ro:", HD_PARAM_REGISTER_OUT}, {"rw:", HD_PARAM_REGISTER_INOUT},
    {"", HD_PARAM_VALUE},
};

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

static hd_intrinsic_param_t parse_param(const char *text) {
  hd_intrinsic_param_t param = {0};
  for (unsigned i = 0; i < NUM_WORDS; i++)
    if (strcmp(text, words[i].word) == 0) {
      param.form = (hd_param_form_t)(HD_PARAM_ORDER + i);
      param.type = hd_type(HD_I32);
      return param;
    }
  size_t form = 0;
  while (strncmp(text, forms[form].prefix, strlen(forms[form].prefix)) != 0)
    form++;
  param.form = forms[form].form;
  text += strlen(forms[form].prefix);
  char type[16];
  param.any = strcmp(text, "any") == 0;
  if (strcmp(text, "n") == 0)
    text = "i32";
  const char *count = strstr(text, "xn"); // f32xn, f32xn/2
  snprintf(type, sizeof type, "%.*s",
           (int)(count ? (size_t)(count - text) : strlen(text)), text);
  if (count)
    param.divisor = count[2] ? (uint8_t)strtol(count + 3, NULL, 10) : 1;
  if (!param.any)
    parse_type(type, &param.generic, &param.type);
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
  if (strcmp(text, "#n") == 0)
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

static void parse_row(const hd_row_t *row, hd_intrinsic_info_t *info) {
  info->name = row->name;
  info->kind = row->kind;
  info->target = row->target;
  info->ptx = row->ptx;
  info->sim = row->sim;
  info->count = -1;
  if (strcmp(row->types, "-") != 0)
    split(row->types, strlen(row->types), '|', add_type, info);
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

hd_intrinsic_t hd_intrinsic_find(const char *name) {
  for (size_t i = 0; i < HD_INTRINSIC_COUNT; i++)
    if (strcmp(rows[i].name, name) == 0)
      return (hd_intrinsic_t)i;
  return HD_INTRINSIC_COUNT;
}

unsigned hd_intrinsic_elements(const hd_intrinsic_info_t *info,
                               const hd_expr_t *call, unsigned i) {
  const hd_intrinsic_param_t *param = &info->params[i];
  if (!param->divisor)
    return param->type.lanes;
  return (unsigned)call->operands[info->count]->u.i / param->divisor;
}

bool hd_intrinsic_range(const hd_intrinsic_info_t *info, unsigned i,
                        hd_operand_range_t *range) {
  // From the PTX manual.
  static const struct {
    const char *name;
    unsigned param;
    hd_operand_range_t range;
  } ranges[] = {
      {"cp_async", 2, {4, 16, 0}},         {"cp_async_zfill", 2, {4, 16, 0}},
      {"cp_async_wait", 0, {0, 1023, 1}},  {"bulk_wait", 0, {0, 1023, 1}},
      {"bulk_wait_read", 0, {0, 1023, 1}}, {"wgmma_wait", 0, {0, 7, 1}},
      {"wgmma_wait", 1, {8, 256, 8}},      {"setmaxnreg_inc", 0, {24, 256, 8}},
      {"setmaxnreg_dec", 0, {24, 256, 8}}};
  for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++)
    if (ranges[r].param == i && strcmp(ranges[r].name, info->name) == 0) {
      *range = ranges[r].range;
      return true;
    }
  return false;
}

bool hd_operand_range_has(const hd_operand_range_t *range, int64_t value) {
  bool fits = range->step ? value % range->step == 0 : !(value & (value - 1));
  return fits && value >= range->least && value <= range->most;
}

// What is not among these writes, so that a new row is not taken for harmless.
bool hd_intrinsic_writes(const hd_intrinsic_info_t *info, unsigned i) {
  static const char *const readers[] = {
      "atomic_load", "bulk_load",   "cp_async",    "cp_async_zfill",
      "load_cached", "prefetch_l1", "prefetch_l2",
  };
  hd_param_form_t form = info->params[i].form;
  if (info->params[i].type.scalar == HD_MAP)
    return i == 0; // Stores and sums name the map first.
  if (form != HD_PARAM_GLOBAL && form != HD_PARAM_MEMORY)
    return form == HD_PARAM_SHARED;
  for (size_t k = 0; k < sizeof readers / sizeof *readers; k++)
    if (!strcmp(info->name, readers[k]))
      return false;
  return true;
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

// From the PTX manual: what ld, st and cp.async have.
enum { OF_LOAD = 1, OF_STORE = 2, OF_COPY = 4, OF_OTHER = 8 };

static int use_of(const hd_intrinsic_info_t *info) {
  static const struct {
    const char *prefix;
    int use;
  } uses[] = {{"ld", OF_LOAD}, {"st", OF_STORE}, {"cp.async", OF_COPY}};
  for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
    if (strncmp(info->ptx, uses[i].prefix, strlen(uses[i].prefix)) == 0)
      return uses[i].use;
  return OF_OTHER;
}

static bool takes_cache(const hd_intrinsic_info_t *info, hd_cache_t cache) {
  static const int of[HD_CACHE_COUNT] = {
      [HD_CACHE_CA] = OF_LOAD | OF_STORE | OF_COPY, // A store's default.
      [HD_CACHE_CG] = OF_LOAD | OF_STORE | OF_COPY,
      [HD_CACHE_CS] = OF_LOAD | OF_STORE,
      [HD_CACHE_LU] = OF_LOAD,
      [HD_CACHE_CV] = OF_LOAD,
      [HD_CACHE_NC] = OF_LOAD,
      [HD_CACHE_WB] = OF_STORE,
      [HD_CACHE_WT] = OF_STORE,
      [HD_CACHE_EVICT_FIRST] = OF_LOAD | OF_STORE,
      [HD_CACHE_EVICT_LAST] = OF_LOAD | OF_STORE,
      [HD_CACHE_NO_ALLOCATE] = OF_LOAD | OF_STORE,
  };
  return of[cache] & use_of(info);
}

static bool takes_order(const hd_intrinsic_info_t *info, hd_order_t order) {
  if (strncmp(info->ptx, "fence", 5) == 0)
    return order != HD_RELAXED;
  int use = use_of(info);
  return order == HD_RELAXED || order == HD_SEQ_CST ||
         (use == OF_LOAD    ? order == HD_ACQUIRE
          : use == OF_STORE ? order == HD_RELEASE
                            : true);
}

bool hd_intrinsic_takes_name(const hd_intrinsic_info_t *info,
                             hd_param_form_t form, int value) {
  return form == HD_PARAM_CACHE   ? takes_cache(info, (hd_cache_t)value)
         : form == HD_PARAM_ORDER ? takes_order(info, (hd_order_t)value)
                                  : true;
}
