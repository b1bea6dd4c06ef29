// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --help and the man page, from a command's table.
#include "Tools/Options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { INDENT = 30, WIDTH = 79 };

// "-o FILE" or "--emit=hir|llvm", or both.
static void spell(const hd_option_t *option, char *out, size_t size) {
  bool value = option->type != HD_OPTION_FLAG && option->argument[0] != '\0';
  bool optional =
      option->type == HD_OPTION_MAYBE || option->type == HD_OPTION_BOOL;
  char letter[8] = "";
  if (option->letter)
    snprintf(letter, sizeof(letter), "-%c, ", option->letter);
  snprintf(out, size, "%s--%s%s%s%s%s", letter, option->name,
           value && optional ? "[" : "", value ? "=" : "",
           value ? option->argument : "", value && optional ? "]" : "");
}

// Words from column INDENT on, lines of at most WIDTH.
static void wrap(hd_buffer_t *out, size_t column, const char *text) {
  while (*text) {
    size_t length = strcspn(text, " ");
    bool first = column == INDENT;
    if (!first && column + 1 + length > WIDTH) {
      hd_buffer_printf(out, "\n%*s", INDENT, "");
      column = INDENT;
      first = true;
    }
    hd_buffer_printf(out, "%s%.*s", first ? "" : " ", (int)length, text);
    column += length + !first;
    text += length;
    text += strspn(text, " ");
  }
  hd_buffer_puts(out, "\n");
}

static void help_row(hd_buffer_t *out, const char *left, const char *text) {
  hd_buffer_printf(out, "  %-*s", INDENT - 2, left);
  if (strlen(left) + 3 > INDENT)
    hd_buffer_printf(out, "\n%*s", INDENT, "");
  wrap(out, INDENT, text);
}

static void help_heading(hd_buffer_t *out, const char *text) {
  hd_buffer_printf(out, "\n%s:\n", text);
}

typedef struct layout {
  void (*heading)(hd_buffer_t *out, const char *text);
  void (*row)(hd_buffer_t *out, const char *left, const char *text);
} layout_t;

// The options by their groups, then the passes.
static void list(const hd_command_t *command, const layout_t *layout,
                 hd_buffer_t *out) {
  const char *group = "";
  for (size_t i = 0; i < command->num_options; i++) {
    const hd_option_t *option = &command->options[i];
    if (!option->group[0])
      continue;
    if (strcmp(group, option->group) != 0)
      layout->heading(out, option->group);
    group = option->group;
    char left[128];
    spell(option, left, sizeof(left));
    layout->row(out, left, option->summary);
  }
  if (command->num_passes)
    layout->heading(out, "Passes");
  for (size_t i = 0; i < command->num_passes; i++) {
    char left[128];
    snprintf(left, sizeof(left), "--%s", command->passes[i]);
    layout->row(out, left, command->pass_summaries[i]);
  }
}

void hd_command_help(const hd_command_t *command, hd_buffer_t *out) {
  hd_buffer_printf(out, "usage: %s %s\n\n%s\n", command->name, command->usage,
                   command->summary);
  list(command, &(layout_t){help_heading, help_row}, out);
}

// Roff: a backslash and a hyphen are escaped, and no line starts with a dot.
static void roff(hd_buffer_t *out, const char *text) {
  for (const char *c = text; *c; c++) {
    if ((*c == '.' || *c == '\'') && (c == text || c[-1] == '\n'))
      hd_buffer_puts(out, "\\&");
    if (*c == '\\')
      hd_buffer_puts(out, "\\e");
    else if (*c == '-')
      hd_buffer_puts(out, "\\-");
    else
      hd_buffer_write(out, c, 1);
  }
}

static void man_row(hd_buffer_t *out, const char *left, const char *text) {
  hd_buffer_puts(out, ".TP\n.B ");
  roff(out, left);
  hd_buffer_puts(out, "\n");
  roff(out, text);
  hd_buffer_puts(out, "\n");
}

static void man_heading(hd_buffer_t *out, const char *text) {
  hd_buffer_puts(out, ".SH ");
  for (const char *c = text; *c; c++)
    hd_buffer_printf(out, "%c", toupper((unsigned char)*c));
  hd_buffer_puts(out, "\n");
}

static void man_exit_codes(hd_buffer_t *out) {
  static const struct {
    const char *code, *text;
  } rows[] = {
      {"0", "success"},
      {"1", "a result differs from what was expected"},
      {"2", "usage: also a missing input file, an input of the wrong shape or "
            "type, an output that cannot be written"},
      {"3", "the model, the IR or a data file is wrong or truncated"},
      {"4", "right, but not supported"},
      {"5", "a limit was hit: memory, time, a full disk"},
      {"6", "the device failed or lacks something"},
      {"70", "an internal error"},
      {"130", "interrupted"},
  };
  man_heading(out, "Exit status");
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    man_row(out, rows[i].code, rows[i].text);
}

void hd_command_man(const hd_command_t *command, hd_buffer_t *out) {
  char upper[64];
  size_t length = strlen(command->name);
  for (size_t i = 0; i <= length; i++)
    upper[i] = (char)toupper((unsigned char)command->name[i]);
  hd_buffer_printf(out, ".TH %s 1\n.SH NAME\n", upper);
  roff(out, command->name);
  hd_buffer_puts(out, " \\- ");
  roff(out, command->summary);
  hd_buffer_puts(out, "\n.SH SYNOPSIS\n.B ");
  roff(out, command->name);
  hd_buffer_puts(out, "\n");
  roff(out, command->usage);
  hd_buffer_puts(out, "\n.SH DESCRIPTION\n");
  roff(out, command->details);
  hd_buffer_puts(out, "\n");
  list(command, &(layout_t){man_heading, man_row}, out);
  man_exit_codes(out);
}
