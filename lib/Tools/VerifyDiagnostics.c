// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/VerifyDiagnostics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

typedef struct expectation {
  hd_severity_t severity;
  uint32_t line;    // Of the diagnostic; 0 for one without a place.
  uint32_t written; // Where the comment stands.
  const char *text;
  bool met;
} expectation_t;

typedef struct checker {
  hd_arena_t arena;
  hd_diagnostics_t *diags;
  const char *name;
  HD_VEC(expectation_t) expected;
  HD_VEC(const char *) faults;
} checker_t;

static const char *const severities[] = {"error", "warning", "remark", "note"};

// "@+1", "@-1", "@above", "@below", "@unknown", or nothing.
static const char *parse_place(const char *at, uint32_t line,
                               uint32_t *result) {
  *result = line;
  if (*at != '@')
    return at;
  at++;
  static const struct {
    const char *word;
    int offset;
  } words[] = {{"above", -1}, {"below", 1}, {"unknown", 0}};
  for (int i = 0; i < 3; i++) {
    size_t size = strlen(words[i].word);
    if (strncmp(at, words[i].word, size) == 0) {
      *result = i == 2 ? 0 : line + (uint32_t)words[i].offset;
      return at + size;
    }
  }
  char *end;
  *result = line + (uint32_t)strtol(at, &end, 10);
  return end;
}

// Reads the expectation that starts at `at`, which holds a whole line. NULL
// where it is malformed.
static const char *parse_one(checker_t *c, const char *at, uint32_t line) {
  expectation_t e = {.written = line};
  int severity = 0;
  while (severity < 4 &&
         strncmp(at, severities[severity], strlen(severities[severity])) != 0)
    severity++;
  if (severity == 4)
    return NULL;
  e.severity = (hd_severity_t)severity;
  at = parse_place(at + strlen(severities[severity]), line, &e.line);
  at += strspn(at, " ");
  const char *close = strncmp(at, "{{", 2) == 0 ? strstr(at + 2, "}}") : NULL;
  if (!close)
    return NULL;
  e.text = hd_arena_strndup(&c->arena, at + 2, (size_t)(close - at) - 2);
  hd_vec_push(&c->arena, &c->expected, e);
  return close + 2;
}

static void parse_line(checker_t *c, const char *text, uint32_t line) {
  static const char word[] = "expected-";
  for (const char *at = strstr(text, word); at; at = strstr(at, word)) {
    at += sizeof(word) - 1;
    const char *next = parse_one(c, at, line);
    if (!next)
      hd_vec_push(&c->arena, &c->faults,
                  hd_arena_printf(&c->arena, "%s:%u: malformed expectation",
                                  c->name, line));
    else
      at = next;
  }
}

static void parse_part(checker_t *c, const hd_text_part_t *part) {
  const char *end = part->text + part->size;
  uint32_t line = part->first_line;
  for (const char *at = part->text; at < end; line++) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    size_t size = (size_t)((newline ? newline : end) - at);
    parse_line(c, hd_arena_strndup(&c->arena, at, size), line);
    at += size + 1;
  }
}

static void match(checker_t *c, const hd_diagnostic_t *d) {
  const char *name;
  uint32_t line = 0, column;
  hd_diagnostics_locate(c->diags, d->loc, &name, &line, &column);
  const char *text =
      d->severity == HD_ERROR
          ? hd_arena_printf(&c->arena, "error[%s]: %s",
                            hd_diagnostic_code_name(d->code), d->message)
          : d->message;
  for (size_t i = 0; i < c->expected.size; i++) {
    expectation_t *e = &c->expected.data[i];
    if (!e->met && e->severity == d->severity && e->line == line &&
        strstr(text, e->text)) {
      e->met = true;
      return;
    }
  }
  hd_vec_push(&c->arena, &c->faults,
              hd_arena_printf(&c->arena, "%s:%u: unexpected %s: %s", c->name,
                              line, severities[d->severity], text));
}

bool hd_verify_diagnostics(hd_diagnostics_t *diags, const char *name,
                           const hd_text_part_t *part) {
  checker_t c = {.diags = diags, .name = name};
  hd_arena_init(&c.arena, NULL);
  parse_part(&c, part);
  for (const hd_diagnostic_t *d = diags->first; d; d = d->next)
    if (d->code == HD_E1006) // A fault of an earlier part.
      hd_vec_push(&c.arena, &c.faults, d->message);
    else
      match(&c, d);
  for (size_t i = 0; i < c.expected.size; i++) {
    const expectation_t *e = &c.expected.data[i];
    if (!e->met)
      hd_vec_push(
          &c.arena, &c.faults,
          hd_arena_printf(&c.arena, "%s:%u: expected %s did not come: %s", name,
                          e->written, severities[e->severity], e->text));
  }
  hd_diagnostics_clear(diags);
  for (size_t i = 0; i < c.faults.size; i++)
    hd_error(diags, nowhere, HD_E1006, c.faults.data[i]);
  bool ok = c.faults.size == 0;
  hd_arena_fini(&c.arena);
  return ok;
}
