// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/Lexer.h"

#include "IR/Module.h"
#include "UnitTest.h"

#include <string.h>

typedef struct fixture {
  hd_diagnostics_t diags;
  hd_arena_t arena;
  hd_token_t *tokens;
  size_t count;
} fixture_t;

static void lex_bytes(fixture_t *f, const char *text, size_t size) {
  hd_diagnostics_init(&f->diags);
  hd_arena_init(&f->arena, NULL);
  uint32_t source = hd_diagnostics_add_source(&f->diags, "t", text, size, 1);
  f->tokens = hd_lex(&f->arena, &f->diags, source, text, size, &f->count);
  assert_int_equal(f->tokens[f->count - 1].kind, HD_TOKEN_END);
  assert_int_equal(f->tokens[f->count - 1].offset, size);
}

static void fini(fixture_t *f) {
  hd_arena_fini(&f->arena);
  hd_diagnostics_fini(&f->diags);
}

static void integers_have_their_value(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t value;
  } rows[] = {{"0", 0},
              {"007", 7},
              {"1_000_000", 1000000},
              {"0xff", 255},
              {"0xDEAD_beef", 0xdeadbeef},
              {"0x1e5", 0x1e5},
              {"18446744073709551615", UINT64_MAX},
              {"0xffffffffffffffff", UINT64_MAX}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    fixture_t f;
    lex_bytes(&f, rows[i].text, strlen(rows[i].text));
    assert_int_equal(f.count, 2);
    assert_int_equal(f.tokens[0].kind, HD_TOKEN_INT);
    assert_true(f.tokens[0].value == rows[i].value);
    assert_string_equal(f.tokens[0].text, rows[i].text);
    assert_int_equal(f.diags.num_errors, 0);
    fini(&f);
  }
}

static void floats_have_their_value(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double value;
  } rows[] = {{"1.5", 1.5},       {"1e3", 1000},   {"2.5E-3", 0.0025},
              {"1_0.2_5", 10.25}, {"0x1.8p3", 12}, {"0x1p-2", 0.25},
              {"1e-400", 0},      {"0.1", 0.1},    {"1e+2", 100}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    fixture_t f;
    lex_bytes(&f, rows[i].text, strlen(rows[i].text));
    assert_int_equal(f.count, 2);
    assert_int_equal(f.tokens[0].kind, HD_TOKEN_FLOAT);
    assert_true(f.tokens[0].number == rows[i].value);
    assert_int_equal(f.diags.num_errors, 0);
    fini(&f);
  }
}

static void a_range_is_no_float(void **state) {
  (void)state;
  fixture_t f;
  lex_bytes(&f, "0..4 1.x t.y", 12);
  static const char *const texts[] = {"0", "..", "4", "1", ".",
                                      "x", "t",  ".", "y"};
  assert_int_equal(f.count, 10);
  for (int i = 0; i < 9; i++)
    assert_string_equal(f.tokens[i].text, texts[i]);
  fini(&f);
}

static void bad_input_is_reported_once_each(void **state) {
  (void)state;
  static const struct {
    const char *text;
    hd_diagnostic_code_t code;
    unsigned column;
  } rows[] = {{"1abc", HD_E0108, 1},
              {"a 0x", HD_E0108, 3},
              {"1__0_", HD_E0108, 1},
              {"0x_1", HD_E0108, 1},
              {"1.0f", HD_E0108, 1},
              {"18446744073709551616", HD_E0103, 1},
              {"1e999", HD_E0103, 1},
              {"  $$$", HD_E0101, 3},
              {"\xc3\xa9\xc3\xa9", HD_E0101, 1},
              {"\"abc", HD_E0104, 1},
              {"\"a\nb", HD_E0104, 1},
              {"\"a\\q\"", HD_E0101, 4},
              {"\"a\\", HD_E0104, 1},
              {"\"a\\\nb", HD_E0104, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    fixture_t f;
    lex_bytes(&f, rows[i].text, strlen(rows[i].text));
    const char *name;
    uint32_t line, column;
    assert_int_equal(f.diags.num_errors, 1);
    assert_int_equal(f.diags.first->code, rows[i].code);
    hd_diagnostics_locate(&f.diags, f.diags.first->loc, &name, &line, &column);
    assert_int_equal(column, rows[i].column);
    fini(&f);
  }
}

static void strings_are_unescaped(void **state) {
  (void)state;
  fixture_t f;
  const char *text = "\"a\\n\\t\\\"\\\\ // b\" \"\"";
  lex_bytes(&f, text, strlen(text));
  assert_int_equal(f.count, 3);
  assert_string_equal(f.tokens[0].text, "a\n\t\"\\ // b");
  assert_string_equal(f.tokens[1].text, "");
  fini(&f);
}

static void lines_and_comments_are_kept_apart(void **state) {
  (void)state;
  fixture_t f;
  const char *text = "a // b\nc d // e";
  lex_bytes(&f, text, strlen(text));
  assert_int_equal(f.count, 4);
  assert_true(f.tokens[0].first_on_line);
  assert_true(f.tokens[1].first_on_line);
  assert_false(f.tokens[2].first_on_line);
  fini(&f);
}

static void the_longest_punctuation_is_taken(void **state) {
  (void)state;
  fixture_t f;
  const char *text = "a+=b<<=c&&&d..->@[+:";
  lex_bytes(&f, text, strlen(text));
  static const char *const texts[] = {"a", "+=", "b",  "<<", "=",  "c", "&&",
                                      "&", "d",  "..", "->", "@[", "+:"};
  assert_int_equal(f.count, 14);
  for (int i = 0; i < 13; i++)
    assert_string_equal(f.tokens[i].text, texts[i]);
  fini(&f);
}

HD_UNIT_TESTS(cmocka_unit_test(integers_have_their_value),
              cmocka_unit_test(floats_have_their_value),
              cmocka_unit_test(a_range_is_no_float),
              cmocka_unit_test(bad_input_is_reported_once_each),
              cmocka_unit_test(strings_are_unescaped),
              cmocka_unit_test(lines_and_comments_are_kept_apart),
              cmocka_unit_test(the_longest_punctuation_is_taken))
