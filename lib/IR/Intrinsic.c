// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Intrinsic.h"

#include <assert.h>
#include <pthread.h>
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
    {"#", HD_PARAM_CONST},
    {"s:", HD_PARAM_SHARED},
    {"g:", HD_PARAM_GLOBAL},
    {"m:", HD_PARAM_MEMORY},
    {"ri:", HD_PARAM_REGISTER_IN},
    {"ro:", HD_PARAM_REGISTER_OUT},
    {"rw:", HD_PARAM_REGISTER_INOUT},
    {"", HD_PARAM_VALUE},
};

static const struct {
  const char *word;
  hd_param_form_t form;
} words[] = {{"order", HD_PARAM_ORDER},
             {"scope", HD_PARAM_SCOPE},
             {"cache", HD_PARAM_CACHE}};

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
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp(text, words[i].word) == 0) {
      param.form = words[i].form;
      param.type = hd_type(HD_I32);
      return param;
    }
  size_t form = 0;
  while (strncmp(text, forms[form].prefix, strlen(forms[form].prefix)) != 0)
    form++;
  param.form = forms[form].form;
  text += strlen(forms[form].prefix);
  param.any = strcmp(text, "any") == 0;
  if (!param.any)
    parse_type(text, &param.generic, &param.type);
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
  info->params[info->num_params++] = param;
  if (param.form < HD_PARAM_ORDER)
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

static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel",
                                     "seq_cst"};
static const char *const scopes[] = {"warp", "block", "cluster", "device",
                                     "system"};
static const char *const caches[] = {
    "ca", "cg", "cs",          "lu",         "cv",         "nc",
    "wb", "wt", "evict_first", "evict_last", "no_allocate"};

static const char *const *names_of(hd_param_form_t form, int *count) {
  *count = form == HD_PARAM_ORDER   ? HD_ORDER_COUNT
           : form == HD_PARAM_SCOPE ? HD_SYNC_COUNT
                                    : HD_CACHE_COUNT;
  return form == HD_PARAM_ORDER   ? orders
         : form == HD_PARAM_SCOPE ? scopes
                                  : caches;
}

const char *hd_intrinsic_name_text(hd_param_form_t form, int value) {
  int count;
  const char *const *names = names_of(form, &count);
  return value >= 0 && value < count ? names[value] : "?";
}

int hd_intrinsic_name_find(hd_param_form_t form, const char *text) {
  int count;
  const char *const *names = names_of(form, &count);
  for (int i = 0; i < count; i++)
    if (strcmp(names[i], text) == 0)
      return i;
  return -1;
}
