// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Options.h"
#include "Runtime/Cache.h"
#include "Support/Suggest.h"
#include "Tools/Outputs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

typedef struct unit {
  const char *text;
  double factor;
} unit_t;

// A number from 0 with one of the units after it; the result fits int64_t.
static bool parse_with_unit(const char *text, const unit_t *units,
                            int64_t *result) {
  if (*text < '0' || *text > '9')
    return false;
  char *end;
  double value = strtod(text, &end);
  for (const unit_t *unit = units; unit->text; unit++) {
    if (strcmp(end, unit->text) != 0)
      continue;
    value = ceil(value * unit->factor);
    if (!(value < 9.0e18))
      return false;
    *result = (int64_t)value;
    return true;
  }
  return false;
}

bool hd_parse_duration(const char *text, int64_t *milliseconds) {
  static const unit_t units[] = {{"", 1e3},   {"ms", 1},     {"s", 1e3},
                                 {"m", 60e3}, {"h", 3600e3}, {0}};
  return parse_with_unit(text, units, milliseconds);
}

bool hd_parse_size(const char *text, int64_t *bytes) {
  static const unit_t units[] = {{"", 1},         {"k", 0x1p10},
                                 {"K", 0x1p10},   {"M", 0x1p20},
                                 {"G", 0x1p30},   {"T", 0x1p40},
                                 {"KiB", 0x1p10}, {"MiB", 0x1p20},
                                 {"GiB", 0x1p30}, {0}};
  return parse_with_unit(text, units, bytes);
}

bool hd_parse_cache_size(int64_t *bytes) {
  const char *text = getenv("HIDET_CACHE_SIZE");
  *bytes = HD_CACHE_BYTES;
  return !text || !*text || hd_parse_size(text, bytes);
}

static bool parse_count(const char *text, int64_t *count) {
  if (*text < '0' || *text > '9')
    return false;
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  *count = value;
  return *end == '\0' && errno == 0;
}

static bool parse_real(const char *text, double *real) {
  char *end;
  *real = strtod(text, &end);
  return end != text && *end == '\0' && *real >= 0 && isfinite(*real);
}

static bool parse_choice(const char *choices, const char *text,
                         int64_t *index) {
  size_t length = strlen(text);
  *index = 0;
  for (const char *c = choices;; c++, (*index)++) {
    size_t size = strcspn(c, "|");
    if (size == length && strncmp(c, text, size) == 0)
      return true;
    c += size;
    if (*c == '\0')
      return false;
  }
}

static bool is_text(const hd_option_t *option) {
  return option->type == HD_OPTION_TEXT || option->type == HD_OPTION_READS ||
         option->type == HD_OPTION_WRITES;
}

static bool parse_value(const hd_option_t *option, hd_option_use_t *use) {
  switch (option->type) {
  case HD_OPTION_FLAG:
    return use->value == NULL;
  case HD_OPTION_TEXT:
  case HD_OPTION_READS:
  case HD_OPTION_WRITES:
    return use->value && use->value[0];
  case HD_OPTION_MAYBE:
    return true;
  case HD_OPTION_COUNT:
    return use->value && parse_count(use->value, &use->number);
  case HD_OPTION_REAL:
    return use->value && parse_real(use->value, &use->real);
  case HD_OPTION_SIZE:
    return use->value && hd_parse_size(use->value, &use->number);
  case HD_OPTION_DURATION:
    return use->value && hd_parse_duration(use->value, &use->number);
  case HD_OPTION_BOOL:
    use->number = 1;
    return !use->value || parse_choice("0|1", use->value, &use->number);
  case HD_OPTION_CHOICE:
    return use->value &&
           parse_choice(option->argument, use->value, &use->number);
  }
  return false;
}

// What was wrong with a value, after "option '--name'".
static bool report_value(hd_diagnostics_t *diags, const hd_option_t *option,
                         const char *spelling, const char *value) {
  char text[256];
  if (option->type == HD_OPTION_FLAG)
    snprintf(text, sizeof(text), "takes no value, found '%s'", value);
  else if (!value || is_text(option))
    snprintf(text, sizeof(text), "needs a value: --%s=%s", option->name,
             option->argument);
  else if (option->type == HD_OPTION_CHOICE)
    snprintf(text, sizeof(text), "is one of %s, found '%s'", option->argument,
             value);
  else
    snprintf(text, sizeof(text), "needs %s%s, found '%s'",
             option->type == HD_OPTION_COUNT      ? "a whole number "
             : option->type == HD_OPTION_REAL     ? "a number "
             : option->type == HD_OPTION_SIZE     ? "a size such as 512M "
             : option->type == HD_OPTION_DURATION ? "a time such as 30s "
                                                  : "",
             option->type == HD_OPTION_BOOL ? "0 or 1" : "from 0", value);
  return hd_error(diags, nowhere, HD_E1002, spelling, text);
}

static bool add_use(hd_options_t *options, int index, const char *spelling,
                    const char *value, hd_diagnostics_t *diags) {
  const hd_option_t *option = &options->command->options[index];
  hd_option_use_t use = {.option = index, .pass = -1, .value = value};
  if (!parse_value(option, &use))
    return report_value(diags, option, spelling, value);
  hd_vec_push(&options->arena, &options->uses, use);
  return true;
}

static bool report_unknown(const hd_command_t *command, const char *name,
                           const char *prefix, hd_diagnostics_t *diags) {
  hd_suggestion_t suggestion = {.wanted = name};
  for (size_t i = 0; i < command->num_options; i++)
    if (command->options[i].group[0])
      hd_suggestion_add(&suggestion, command->options[i].name);
  for (size_t i = 0; i < command->num_passes; i++)
    hd_suggestion_add(&suggestion, command->passes[i]);
  char text[128], spelling[128];
  snprintf(spelling, sizeof(spelling), "%s%s", prefix, name);
  return hd_error(diags, nowhere, HD_E1001, spelling,
                  hd_suggestion_text(&suggestion, "--", text, sizeof(text)));
}

// --name or --name=value; text starts after the dashes.
static bool parse_long(hd_options_t *options, const char *text,
                       hd_diagnostics_t *diags) {
  const hd_command_t *command = options->command;
  size_t length = strcspn(text, "=");
  const char *value = text[length] ? text + length + 1 : NULL;
  const char *name = hd_arena_strndup(&options->arena, text, length);
  const char *spelling = hd_arena_printf(&options->arena, "--%s", name);
  for (size_t i = 0; i < command->num_options; i++)
    if (strcmp(command->options[i].name, name) == 0)
      return add_use(options, (int)i, spelling, value, diags);
  for (size_t i = 0; i < command->num_passes; i++) {
    if (strcmp(command->passes[i], name) != 0)
      continue;
    hd_option_use_t use = {.option = -1, .pass = (int)i, .value = value};
    hd_vec_push(&options->arena, &options->uses, use);
    return true;
  }
  return report_unknown(command, name, "--", diags);
}

// -v, -oFILE, -o FILE. Takes the next argument where the option needs it.
static bool parse_letter(hd_options_t *options, char **argv, int argc, int *at,
                         hd_diagnostics_t *diags) {
  const hd_command_t *command = options->command;
  const char *text = argv[*at];
  for (size_t i = 0; i < command->num_options; i++) {
    const hd_option_t *option = &command->options[i];
    if (option->letter != text[1])
      continue;
    const char *spelling =
        hd_arena_printf(&options->arena, "-%c", option->letter);
    const char *value = text[2] ? text + 2 : NULL;
    if (!value && option->type != HD_OPTION_FLAG && *at + 1 < argc)
      value = argv[++*at];
    return add_use(options, (int)i, spelling, value, diags);
  }
  return report_unknown(command, text + 1, "-", diags);
}

bool hd_options_parse(hd_options_t *options, const hd_command_t *command,
                      int argc, char **argv, hd_diagnostics_t *diags) {
  *options = (hd_options_t){.command = command};
  hd_arena_init(&options->arena, NULL);
  bool ok = true, only_files = false;
  for (int i = 1; i < argc; i++) {
    const char *text = argv[i];
    if (only_files || text[0] != '-' || text[1] == '\0')
      hd_vec_push(&options->arena, &options->files, text);
    else if (strcmp(text, "--") == 0)
      only_files = true;
    else if (text[1] == '-')
      ok &= parse_long(options, text + 2, diags);
    else
      ok &= parse_letter(options, argv, argc, &i, diags);
  }
  return hd_outputs_check(options, diags) && ok;
}

void hd_options_fini(hd_options_t *options) { hd_arena_fini(&options->arena); }

const hd_option_use_t *hd_option_find(const hd_options_t *options, int option) {
  for (size_t i = options->uses.size; i-- > 0;)
    if (options->uses.data[i].option == option)
      return &options->uses.data[i];
  return NULL;
}

const char *hd_option_text(const hd_options_t *options, int option,
                           const char *otherwise) {
  const hd_option_use_t *use = hd_option_find(options, option);
  return use && use->value ? use->value : otherwise;
}

int64_t hd_option_number(const hd_options_t *options, int option,
                         int64_t otherwise) {
  const hd_option_use_t *use = hd_option_find(options, option);
  return use ? use->number : otherwise;
}

double hd_option_real(const hd_options_t *options, int option,
                      double otherwise) {
  const hd_option_use_t *use = hd_option_find(options, option);
  return use ? use->real : otherwise;
}
