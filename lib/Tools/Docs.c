// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Docs.h"
#include "IR/Intrinsic.h"

#include <string.h>

const char hd_docs_notice[] =
    "<!-- Made by scripts/docs.sh from the tables; do not edit. -->\n\n";

// A | would end it.
void hd_docs_cell(hd_buffer_t *out, const char *text) {
  for (const char *c = text; *c; c++) {
    if (*c == '|' || *c == '<' || *c == '*' || *c == '_')
      hd_buffer_puts(out, "\\");
    hd_buffer_write(out, c, 1);
  }
}

// There | alone means something.
void hd_docs_code_cell(hd_buffer_t *out, const char *text) {
  hd_buffer_puts(out, "`");
  for (const char *c = text; *c; c++) {
    if (*c == '|')
      hd_buffer_puts(out, "\\");
    hd_buffer_write(out, c, 1);
  }
  hd_buffer_puts(out, "`");
}

void hd_docs_passes(const hd_pass_list_t *passes, hd_buffer_t *out) {
  hd_buffer_printf(out, "# Passes\n\n%s", hd_docs_notice);
  hd_buffer_puts(out, "Each is an option of `hidet-opt`; they run in the order "
                      "given. One that meets what it does not take says "
                      "which pass comes first (E0509).\n\n| pass | options | "
                      "level | what it does | after |\n"
                      "|---|---|---|---|---|\n");
  for (size_t i = 0; i < passes->size; i++) {
    const hd_pass_t *pass = passes->passes[i];
    hd_buffer_printf(out, "| `--%s` | ", pass->name);
    if (pass->options[0])
      hd_docs_code_cell(out, pass->options);
    hd_buffer_printf(out, " | %s | ", hd_pass_level_name(pass->level));
    hd_docs_cell(out, pass->summary);
    hd_pass_before_t before = hd_pass_before(pass);
    if (before.pass)
      hd_buffer_printf(out, " | `--%s`, of %s |\n", before.pass, before.what);
    else
      hd_buffer_puts(out, " | |\n");
  }
}

// The signatures and types stand in the table as they do in Intrinsics.def.
static const struct {
  const char *name, *types, *signature, *kind, *traits, *ptx;
  int target;
} rows[] = {
#define HD_INTRINSIC(id, name, types, signature, kind, traits, target, ptx,    \
                     sim)                                                      \
  {name, types, signature, #kind, traits, ptx, target},
#include "IR/Intrinsics.def"
#undef HD_INTRINSIC
};

static void target_cell(hd_buffer_t *out, int target) {
  if (target == 0)
    hd_buffer_puts(out, "any");
  else if (target > 120)
    hd_buffer_printf(out, "sm\\_%da", target / 10);
  else
    hd_buffer_printf(out, "sm\\_%d", target);
}

void hd_docs_intrinsics(hd_buffer_t *out) {
  hd_buffer_printf(out, "# Intrinsics\n\n%s", hd_docs_notice);
  hd_buffer_puts(
      out,
      "In a signature, `T` is each of the types; `#i32` a constant, "
      "`[8..256/8]` in what range, and a multiple of what (`*2`: a power of "
      "two); `s`, `g` and `m` a place in shared memory, in global memory, in "
      "either, `r` register elements from the reference on, and behind the "
      "letter `i`: that is read, `o`: written, `w`: both. `d:` is a matrix in "
      "shared memory that is read, from "
      "that place on (docs/IR.md says in which layouts); `f16x8` are 8 "
      "registers, `f32xn/2` half as many as the constant `#n` says; `map` a "
      "tensor map of the kernel's signature, `i:map` one whose tensor is read; "
      "`order`, `scope`, `cache`, `policy` and `major` a "
      "name, which may be left out: `relaxed`, `device`, `ca`, `evict_normal`, "
      "`k_major`. A *pure* one is a function of its values; a *thread* one has "
      "an effect, for one thread alone; every thread of the warp takes part in "
      "a *warp* one; a *block* one may wait for other threads, or for what is "
      "under way. Traits: a *load* or *store* is the access of its place, as "
      "any "
      "other but for the caches, a *prefetch* one for the caches alone; an "
      "*atomic* one is divided by no other; a "
      "*fence* orders accesses; a *copy* is done by a group of the thread's "
      "own, a *bulk* one by the copy engine, *im2col* by windows; what *polls* "
      "may give something else when another thread has done something; "
      "*awaits_launch* returns when the launch before has ended; a *shuffle* "
      "gives its first operand to another lane; to an *aligned* one all "
      "threads of a warp come at the same call; what is *whole* is ignored in "
      "machine code that a linker may add functions to, so such kernels are "
      "loaded as PTX. The target is the least one.\n\n"
      "| name | T | signature | kind | traits | target | PTX |\n"
      "|---|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    hd_buffer_printf(out, "| `%s` | ", rows[i].name);
    hd_docs_cell(out, strcmp(rows[i].types, "-") == 0 ? "" : rows[i].types);
    hd_buffer_puts(out, " | ");
    hd_docs_code_cell(out, rows[i].signature);
    hd_buffer_puts(out, " | ");
    for (const char *c = rows[i].kind; *c; c++)
      hd_buffer_printf(out, "%c", *c - 'A' + 'a');
    hd_buffer_puts(out, " | ");
    for (const char *c = rows[i].traits; *c && strcmp(rows[i].traits, "-"); c++)
      hd_buffer_printf(out, "%s%c", *c == '_' ? "\\" : "",
                       *c == '|' ? ' ' : *c);
    hd_buffer_puts(out, " | ");
    target_cell(out, rows[i].target);
    hd_buffer_puts(out, " | ");
    hd_docs_code_cell(out, rows[i].ptx);
    hd_buffer_puts(out, " |\n");
  }
}

void hd_docs_diagnostics(hd_buffer_t *out) {
  static const struct {
    const char *code, *class, *format;
  } table[] = {
#define HD_DIAGNOSTIC(code, class, format) {#code, #class, format},
#include "Support/Diagnostics.def"
#undef HD_DIAGNOSTIC
  };
  hd_buffer_printf(out, "# Diagnostics\n\n%s", hd_docs_notice);
  hd_buffer_puts(out, "| code | exit | message |\n|---|---|---|\n");
  for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
    hd_buffer_printf(out, "| %s | %d | ", table[i].code,
                     (int)hd_diagnostic_exit((hd_diagnostic_code_t)i));
    hd_docs_code_cell(out, table[i].format);
    hd_buffer_puts(out, " |\n");
  }
}

void hd_docs_keywords(hd_buffer_t *out) {
  static const struct {
    const char *word, *kind, *meaning;
  } table[] = {
#define HD_KEYWORD(word, kind, meaning) {word, kind, meaning},
#include "IR/Keywords.def"
#undef HD_KEYWORD
  };
  hd_buffer_printf(out, "# Keywords\n\n%s", hd_docs_notice);
  hd_buffer_puts(out,
                 "Words of the language ([IR.md](IR.md)) that cannot be "
                 "names. Of *launch* are values that the launch gives, "
                 "all `i32`.\n\n| word | kind | meaning |\n|---|---|---|\n");
  for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
    hd_buffer_printf(out, "| `%s` | %s | %s |\n", table[i].word, table[i].kind,
                     table[i].meaning);
  hd_buffer_puts(out, "\nNor can the names of types, which are these scalars "
                      "and, with a number of lanes behind them (`f32x4`), "
                      "vectors of them:");
  for (int i = 0; i < HD_SCALAR_COUNT; i++)
    hd_buffer_printf(out, "%s `%s`", i ? "," : "",
                     hd_scalar_name((hd_scalar_t)i));
  hd_buffer_puts(out, ".\n");
}

void hd_docs_options(const hd_command_t *command, hd_buffer_t *out) {
  hd_buffer_puts(out, "| option | meaning |\n|---|---|\n");
  for (size_t i = 0; i < command->num_options; i++) {
    const hd_option_t *option = &command->options[i];
    if (!option->group[0])
      continue;
    bool value = option->argument[0] != '\0';
    hd_buffer_printf(out, "| `--%s%s", option->name, value ? "=" : "");
    for (const char *c = option->argument; *c; c++)
      hd_buffer_printf(out, *c == '|' ? "\\|" : "%c", *c);
    hd_buffer_puts(out, "` | ");
    hd_docs_cell(out, option->summary);
    hd_buffer_puts(out, " |\n");
  }
}
