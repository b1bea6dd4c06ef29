// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Tools/Options.h"
#include "Support/Suggest.h"
#include "UnitTest.h"

#include <stdio.h>
#include <string.h>

enum { FLAG, OUT, MAYBE, COUNT, REAL, SIZE, TIME, YES, KIND, HIDDEN };

static const hd_option_t table[] = {
    {"flag", 'f', HD_OPTION_FLAG, "", "General", "A flag"},
    {"output", 'o', HD_OPTION_TEXT, "FILE", "General", "Where to"},
    {"bench", 0, HD_OPTION_MAYBE, "N", "General", "Time it"},
    {"count", 'j', HD_OPTION_COUNT, "N", "Other", "How many"},
    {"real", 0, HD_OPTION_REAL, "X", "Other", "How much"},
    {"size", 0, HD_OPTION_SIZE, "SIZE", "Other", "How large"},
    {"time", 0, HD_OPTION_DURATION, "TIME", "Other", "How long"},
    {"yes", 0, HD_OPTION_BOOL, "0|1", "Other", "Whether"},
    {"emit", 0, HD_OPTION_CHOICE, "hir|llvm|ptx", "Other", "What"},
    {"secret", 0, HD_OPTION_FLAG, "", "", ""},
};
static const char *const passes[] = {"simplify", "lower"};
static const char *const summaries[] = {"Fold", "All of it"};
static const hd_command_t command = {
    .name = "tool",
    .usage = "[file]",
    .summary = "Does it.",
    .details = "It does it.",
    .options = table,
    .num_options = sizeof(table) / sizeof(table[0]),
    .passes = passes,
    .pass_summaries = summaries,
    .num_passes = 2,
};

typedef struct fixture {
  hd_diagnostics_t diags;
  hd_options_t options;
  bool ok;
} fixture_t;

static void parse_words(fixture_t *f, char **words, int count) {
  hd_diagnostics_init(&f->diags);
  f->ok = hd_options_parse(&f->options, &command, count, words, &f->diags);
}

#define PARSE(f, ...)                                                          \
  char *words[] = {(char[]){"tool"}, __VA_ARGS__};                             \
  fixture_t f;                                                                 \
  parse_words(&f, words, sizeof(words) / sizeof(words[0]))
#define W(text) ((char[]){text})

static void fini(fixture_t *f) {
  hd_options_fini(&f->options);
  hd_diagnostics_fini(&f->diags);
}

static void values_are_parsed(void **state) {
  (void)state;
  PARSE(f, W("--output=x"), W("--bench"), W("--count=12"), W("--real=1e-3"),
        W("--size=1.5k"), W("--time=2m"), W("--yes=0"), W("--emit=ptx"), W("a"),
        W("-"), W("--"), W("--flag"));
  assert_true(f.ok);
  assert_string_equal(hd_option_text(&f.options, OUT, ""), "x");
  assert_true(hd_option_given(&f.options, MAYBE));
  assert_string_equal(hd_option_text(&f.options, MAYBE, "none"), "none");
  assert_int_equal(hd_option_number(&f.options, COUNT, 0), 12);
  assert_true(hd_option_real(&f.options, REAL, 0) == 1e-3);
  assert_int_equal(hd_option_number(&f.options, SIZE, 0), 1536);
  assert_int_equal(hd_option_number(&f.options, TIME, 0), 120000);
  assert_int_equal(hd_option_number(&f.options, YES, 1), 0);
  assert_int_equal(hd_option_number(&f.options, KIND, 0), 2);
  assert_false(hd_option_given(&f.options, FLAG));
  assert_int_equal(f.options.files.size, 3);
  assert_string_equal(f.options.files.data[0], "a");
  assert_string_equal(f.options.files.data[1], "-");
  assert_string_equal(f.options.files.data[2], "--flag");
  fini(&f);
}

static void letters_take_the_next_word(void **state) {
  (void)state;
  PARSE(f, W("-o"), W("-"), W("-j4"), W("-f"), W("x"));
  assert_true(f.ok);
  assert_string_equal(hd_option_text(&f.options, OUT, ""), "-");
  assert_int_equal(hd_option_number(&f.options, COUNT, 0), 4);
  assert_true(hd_option_given(&f.options, FLAG));
  assert_int_equal(f.options.files.size, 1);
  fini(&f);
}

static void the_last_use_counts(void **state) {
  (void)state;
  PARSE(f, W("--count=1"), W("--count=2"));
  assert_int_equal(hd_option_number(&f.options, COUNT, 0), 2);
  assert_int_equal(f.options.uses.size, 2);
  fini(&f);
}

static void passes_keep_their_order(void **state) {
  (void)state;
  PARSE(f, W("--lower"), W("--simplify=a=1,b"), W("--lower"));
  assert_true(f.ok);
  assert_int_equal(f.options.uses.size, 3);
  assert_int_equal(f.options.uses.data[0].pass, 1);
  assert_int_equal(f.options.uses.data[1].pass, 0);
  assert_string_equal(f.options.uses.data[1].value, "a=1,b");
  assert_int_equal(f.options.uses.data[2].pass, 1);
  fini(&f);
}

static void fails(const char *word, hd_diagnostic_code_t code,
                  const char *message) {
  char copy[64];
  strcpy(copy, word);
  PARSE(f, copy);
  assert_false(f.ok);
  assert_int_equal(f.diags.num_errors, 1);
  assert_int_equal(f.diags.first->code, code);
  assert_non_null(strstr(f.diags.first->message, message));
  fini(&f);
}

static void faults_are_told(void **state) {
  (void)state;
  fails("--flga", HD_E1001, "unknown option '--flga'; did you mean '--flag'?");
  fails("--simplfy", HD_E1001, "did you mean '--simplify'?");
  fails("--zzzzzzzz", HD_E1001, "unknown option '--zzzzzzzz'");
  fails("--secre", HD_E1001, "unknown option '--secre'");
  fails("-x", HD_E1001, "unknown option '-x'");
  fails("--flag=1", HD_E1002, "takes no value");
  fails("--output", HD_E1002, "needs a value: --output=FILE");
  fails("--output=", HD_E1002, "needs a value: --output=FILE");
  fails("-o", HD_E1002, "needs a value");
  fails("--count=x", HD_E1002, "whole number");
  fails("--count=-1", HD_E1002, "whole number");
  fails("--count=99999999999999999999", HD_E1002, "whole number");
  fails("--real=-1", HD_E1002, "number");
  fails("--real=", HD_E1002, "number");
  fails("--real=nan", HD_E1002, "number");
  fails("--size=1x", HD_E1002, "size");
  fails("--size=99999999T", HD_E1002, "size");
  fails("--time=s", HD_E1002, "time");
  fails("--yes=2", HD_E1002, "0 or 1");
  fails("--emit=hi", HD_E1002, "is one of hir|llvm|ptx, found 'hi'");
  fails("--emit=", HD_E1002, "is one of");
}

static void every_fault_is_told(void **state) {
  (void)state;
  PARSE(f, W("--a"), W("--count=x"), W("--tune"));
  assert_int_equal(f.diags.num_errors, 3);
  fini(&f);
}

static void help_and_man_name_every_option(void **state) {
  (void)state;
  hd_buffer_t help = {0}, man = {0};
  hd_command_help(&command, &help);
  hd_command_man(&command, &man);
  for (size_t i = 0; i < command.num_options; i++) {
    bool hidden = command.options[i].group[0] == '\0';
    char spelling[64];
    snprintf(spelling, sizeof(spelling), "--%s", command.options[i].name);
    assert_int_equal(strstr(help.data, spelling) == NULL, hidden);
    snprintf(spelling, sizeof(spelling), "\\-\\-%s", command.options[i].name);
    assert_int_equal(strstr(man.data, spelling) == NULL, hidden);
  }
  assert_non_null(strstr(help.data, "--simplify"));
  hd_buffer_fini(&help);
  hd_buffer_fini(&man);
}

static void the_nearest_name_is_found(void **state) {
  (void)state;
  hd_suggestion_t suggestion = {.wanted = "barier"};
  hd_suggestion_add(&suggestion, "carrier");
  hd_suggestion_add(&suggestion, "barrier");
  hd_suggestion_add(&suggestion, "block");
  assert_string_equal(suggestion.best, "barrier");
  suggestion = (hd_suggestion_t){.wanted = "ab"};
  hd_suggestion_add(&suggestion, "ba"); // A swap is one change.
  assert_string_equal(suggestion.best, "ba");
  suggestion = (hd_suggestion_t){.wanted = "abc"};
  hd_suggestion_add(&suggestion, "xyz");
  assert_null(suggestion.best);
}

HD_UNIT_TESTS(cmocka_unit_test(values_are_parsed),
              cmocka_unit_test(letters_take_the_next_word),
              cmocka_unit_test(the_last_use_counts),
              cmocka_unit_test(passes_keep_their_order),
              cmocka_unit_test(faults_are_told),
              cmocka_unit_test(every_fault_is_told),
              cmocka_unit_test(help_and_man_name_every_option),
              cmocka_unit_test(the_nearest_name_is_found))
