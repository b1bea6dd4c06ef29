// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Diagnostic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  hd_exit_t class;
  const char *format;
} table[] = {
#define HD_DIAGNOSTIC(code, class, format) {#code, HD_EXIT_##class, format},
#include "Support/Diagnostics.def"
#undef HD_DIAGNOSTIC
};

void hd_diagnostics_init(hd_diagnostics_t *diags) {
  *diags = (hd_diagnostics_t){.max_errors = 100};
  pthread_mutex_init(&diags->lock, NULL);
  hd_arena_init(&diags->arena, NULL);
}

void hd_diagnostics_fini(hd_diagnostics_t *diags) {
  free(diags->sources);
  hd_arena_fini(&diags->arena);
  pthread_mutex_destroy(&diags->lock);
}

// Runs a piece of work that takes of the arena. False where memory ran out.
static bool with_memory(hd_diagnostics_t *diags, void (*body)(void *),
                        void *argument) {
  hd_budget_t budget = {0};
  diags->arena.budget = &budget;
  hd_exhausted_t what = hd_budget_guard(&budget, body, argument);
  diags->arena.budget = NULL;
  return what == HD_EXHAUSTED_NOTHING;
}

static bool has_room(hd_diagnostics_t *diags) {
  if (diags->num_sources < diags->cap_sources)
    return true;
  uint32_t count = diags->cap_sources ? diags->cap_sources * 2 : 4;
  hd_source_t *sources = realloc(diags->sources, count * sizeof(*sources));
  if (!sources)
    return false;
  diags->sources = sources;
  diags->cap_sources = count;
  return true;
}

typedef struct adding {
  hd_diagnostics_t *diags;
  hd_source_t source;
} adding_t;

static void copy_source(void *argument) {
  adding_t *a = argument;
  hd_source_t *s = &a->source;
  s->name = hd_arena_strndup(&a->diags->arena, s->name, strlen(s->name));
  s->text = hd_arena_strndup(&a->diags->arena, s->text, s->size);
}

uint32_t hd_diagnostics_add_source(hd_diagnostics_t *diags, const char *name,
                                   const char *text, size_t size,
                                   uint32_t first_line) {
  adding_t a = {diags, {name, text, size, first_line}};
  uint32_t id = 0;
  pthread_mutex_lock(&diags->lock);
  if (has_room(diags) && with_memory(diags, copy_source, &a)) {
    diags->sources[diags->num_sources] = a.source;
    id = ++diags->num_sources;
  }
  pthread_mutex_unlock(&diags->lock);
  return id;
}

const char *hd_diagnostic_code_name(hd_diagnostic_code_t code) {
  return table[code].name;
}

hd_exit_t hd_diagnostic_exit(hd_diagnostic_code_t code) {
  return table[code].class;
}

// A message in the making: a text, or a format and what goes into it.
typedef struct telling {
  hd_diagnostics_t *diags;
  hd_diagnostic_t *made;
  const char *text, *format, *node;
  va_list *args;
} telling_t;

static void make_diagnostic(void *argument) {
  telling_t *t = argument;
  hd_arena_t *arena = &t->diags->arena;
  t->made = HD_ARENA_NEW(arena, hd_diagnostic_t);
  t->made->message = t->format
                         ? hd_arena_vprintf(arena, t->format, *t->args)
                         : hd_arena_strndup(arena, t->text, strlen(t->text));
  t->made->node =
      t->node ? hd_arena_strndup(arena, t->node, strlen(t->node)) : NULL;
}

// All run under the lock. Without memory nothing is told, but that errors are
// counted.
static void append_made(telling_t t, hd_severity_t severity,
                        hd_diagnostic_code_t code, hd_loc_t loc) {
  hd_diagnostics_t *diags = t.diags;
  if (!with_memory(diags, make_diagnostic, &t))
    return;
  *t.made = (hd_diagnostic_t){severity,        code, loc,
                              t.made->message, NULL, t.made->node};
  if (diags->last)
    diags->last->next = t.made;
  else
    diags->first = t.made;
  diags->last = t.made;
}

static void append(hd_diagnostics_t *diags, hd_severity_t severity,
                   hd_diagnostic_code_t code, hd_loc_t loc,
                   const char *message) {
  append_made((telling_t){.diags = diags, .text = message}, severity, code,
              loc);
}

static void append_copy(hd_diagnostics_t *diags, const hd_diagnostic_t *d) {
  append_made((telling_t){.diags = diags, .text = d->message, .node = d->node},
              d->severity, d->code, d->loc);
}

static void append_format(hd_diagnostics_t *diags, hd_severity_t severity,
                          hd_diagnostic_code_t code, hd_loc_t loc,
                          const char *format, va_list args) {
  va_list own;
  va_copy(own, args);
  append_made((telling_t){.diags = diags, .format = format, .args = &own},
              severity, code, loc);
  va_end(own);
}

static void report(hd_diagnostics_t *diags, hd_severity_t severity,
                   hd_loc_t loc, const char *format, va_list args) {
  pthread_mutex_lock(&diags->lock);
  if (!diags->max_errors || diags->num_errors <= diags->max_errors) {
    hd_diagnostic_code_t code = diags->last ? diags->last->code : HD_E0101;
    append_format(diags, severity, code, loc, format, args);
  }
  pthread_mutex_unlock(&diags->lock);
}

bool hd_verror(hd_diagnostics_t *diags, hd_loc_t loc, hd_diagnostic_code_t code,
               va_list args) {
  pthread_mutex_lock(&diags->lock);
  if (diags->num_errors++ == 0)
    diags->exit_class = table[code].class;
  if (!diags->max_errors || diags->num_errors <= diags->max_errors) {
    append_format(diags, HD_ERROR, code, loc, table[code].format, args);
  } else if (diags->num_errors == diags->max_errors + 1) {
    append(diags, HD_ERROR, HD_E0106, loc, table[HD_E0106].format);
  }
  pthread_mutex_unlock(&diags->lock);
  return false;
}

bool hd_error_exhausted(hd_diagnostics_t *diags, const hd_budget_t *budget,
                        hd_exhausted_t what, int64_t milliseconds) {
  const hd_loc_t nowhere = {0};
  switch (what) {
  case HD_EXHAUSTED_NOTHING:
    return true;
  case HD_EXHAUSTED_MEMORY:
    return budget->bytes_limit
               ? hd_error(diags, nowhere, HD_E0901,
                          (long long)budget->bytes_limit)
               : hd_error(diags, nowhere, HD_E0904, "out of memory");
  case HD_EXHAUSTED_TIME:
    return hd_error(diags, nowhere, HD_E0902, (long long)milliseconds);
  case HD_EXHAUSTED_DEPTH:
    return hd_error(diags, nowhere, HD_E0904, "the program nests too deeply");
  case HD_EXHAUSTED_INTERRUPT:
    return hd_error(diags, nowhere, HD_E0903);
  }
  return false;
}

void hd_diagnostics_take(hd_diagnostics_t *to, const hd_diagnostics_t *from) {
  pthread_mutex_lock(&to->lock);
  for (const hd_diagnostic_t *d = from->first; d; d = d->next)
    append_copy(to, d);
  if (!to->num_errors)
    to->exit_class = from->exit_class;
  to->num_errors += from->num_errors;
  pthread_mutex_unlock(&to->lock);
}

void hd_diagnostics_see_sources(hd_diagnostics_t *diags,
                                const hd_diagnostics_t *from) {
  pthread_mutex_lock(&diags->lock);
  if (from->num_sources > diags->cap_sources) {
    hd_source_t *sources =
        realloc(diags->sources, from->num_sources * sizeof(*sources));
    if (sources) {
      diags->sources = sources;
      diags->cap_sources = from->num_sources;
    }
  }
  if (from->num_sources <= diags->cap_sources && from->num_sources)
    memcpy(diags->sources, from->sources,
           from->num_sources * sizeof(*diags->sources));
  if (from->num_sources <= diags->cap_sources)
    diags->num_sources = from->num_sources;
  pthread_mutex_unlock(&diags->lock);
}

hd_diagnostics_mark_t hd_diagnostics_mark(hd_diagnostics_t *diags) {
  pthread_mutex_lock(&diags->lock);
  hd_diagnostics_mark_t mark = {diags->last, diags->num_errors,
                                diags->exit_class};
  pthread_mutex_unlock(&diags->lock);
  return mark;
}

void hd_diagnostics_rewind(hd_diagnostics_t *diags,
                           hd_diagnostics_mark_t mark) {
  pthread_mutex_lock(&diags->lock);
  *(mark.last ? &mark.last->next : &diags->first) = NULL;
  diags->last = mark.last;
  diags->num_errors = mark.num_errors;
  diags->exit_class = mark.exit_class;
  pthread_mutex_unlock(&diags->lock);
}

// The first one since a mark.
static hd_diagnostic_t **since(hd_diagnostics_t *diags,
                               hd_diagnostics_mark_t mark) {
  return mark.last ? &mark.last->next : &diags->first;
}

typedef struct noting {
  hd_diagnostics_t *diags;
  hd_diagnostics_mark_t mark;
  hd_loc_t loc;
  const char *format, *node;
  va_list *args;
} noting_t;

static void note_each(void *argument) {
  const noting_t *n = argument;
  hd_diagnostics_t *diags = n->diags;
  hd_diagnostic_t *d = *since(diags, n->mark), *next;
  const char *text =
      d ? hd_arena_vprintf(&diags->arena, n->format, *n->args) : NULL;
  bool in_error = false;
  for (; d; d = next) {
    next = d->next;
    in_error = d->severity == HD_ERROR || (in_error && d->severity == HD_NOTE);
    if (!in_error || (next && next->severity == HD_NOTE))
      continue;
    hd_diagnostic_t *note = HD_ARENA_NEW(&diags->arena, hd_diagnostic_t);
    *note = (hd_diagnostic_t){HD_NOTE, d->code, n->loc, text, next, d->node};
    d->next = note;
    if (!next)
      diags->last = note;
  }
}

void hd_diagnostics_note_each(hd_diagnostics_t *diags,
                              hd_diagnostics_mark_t mark, hd_loc_t loc,
                              const char *format, ...) {
  va_list args;
  va_start(args, format);
  pthread_mutex_lock(&diags->lock);
  noting_t n = {diags, mark, loc, format, NULL, &args};
  with_memory(diags, note_each, &n);
  pthread_mutex_unlock(&diags->lock);
  va_end(args);
}

static void name_node(void *argument) {
  const noting_t *n = argument;
  hd_diagnostic_t *d = *since(n->diags, n->mark);
  const char *node =
      d ? hd_arena_strndup(&n->diags->arena, n->node, strlen(n->node)) : NULL;
  for (; d; d = d->next)
    d->node = d->node ? d->node : node;
}

void hd_diagnostics_name_node(hd_diagnostics_t *diags,
                              hd_diagnostics_mark_t mark, const char *node) {
  noting_t n = {.diags = diags, .mark = mark, .node = node};
  pthread_mutex_lock(&diags->lock);
  with_memory(diags, name_node, &n);
  pthread_mutex_unlock(&diags->lock);
}

const hd_diagnostic_t *hd_diagnostics_since(hd_diagnostics_t *diags,
                                            hd_diagnostics_mark_t mark) {
  pthread_mutex_lock(&diags->lock);
  const hd_diagnostic_t *first = *since(diags, mark);
  pthread_mutex_unlock(&diags->lock);
  return first;
}

void hd_diagnostics_sift(hd_diagnostics_t *diags, hd_diagnostics_mark_t mark,
                         bool (*keep)(hd_diagnostic_code_t)) {
  pthread_mutex_lock(&diags->lock);
  const hd_diagnostic_t *d = *since(diags, mark);
  pthread_mutex_unlock(&diags->lock);
  hd_diagnostics_rewind(diags, mark);
  pthread_mutex_lock(&diags->lock);
  for (bool kept = false; d;) {
    const hd_diagnostic_t *next = d->next; // Appending makes another of it.
    kept = d->severity == HD_ERROR ? keep(d->code)
                                   : kept && d->severity == HD_NOTE;
    if (kept)
      append_copy(diags, d);
    if (kept && d->severity == HD_ERROR && diags->num_errors++ == 0)
      diags->exit_class = table[d->code].class;
    d = next;
  }
  pthread_mutex_unlock(&diags->lock);
}

void hd_diagnostics_displace(hd_diagnostics_t *diags,
                             hd_diagnostics_mark_t mark) {
  pthread_mutex_lock(&diags->lock);
  for (hd_diagnostic_t *d = *since(diags, mark); d; d = d->next)
    d->loc = (hd_loc_t){0};
  pthread_mutex_unlock(&diags->lock);
}

bool hd_diagnostics_full(const hd_diagnostics_t *diags) {
  return diags->max_errors && diags->num_errors > diags->max_errors;
}

bool hd_error(hd_diagnostics_t *diags, hd_loc_t loc, hd_diagnostic_code_t code,
              ...) {
  va_list args;
  va_start(args, code);
  hd_verror(diags, loc, code, args);
  va_end(args);
  return false;
}

void hd_note(hd_diagnostics_t *diags, hd_loc_t loc, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(diags, HD_NOTE, loc, format, args);
  va_end(args);
}

void hd_remark(hd_diagnostics_t *diags, hd_loc_t loc, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(diags, HD_REMARK, loc, format, args);
  va_end(args);
}

void hd_warning(hd_diagnostics_t *diags, hd_loc_t loc, const char *format,
                ...) {
  va_list args;
  va_start(args, format);
  report(diags, HD_WARNING, loc, format, args);
  va_end(args);
}

bool hd_diagnostics_locate(const hd_diagnostics_t *diags, hd_loc_t loc,
                           const char **name, uint32_t *line,
                           uint32_t *column) {
  if (loc.source == 0 || loc.source > diags->num_sources)
    return false;
  const hd_source_t *source = &diags->sources[loc.source - 1];
  *name = source->name;
  *line = source->first_line;
  *column = 1;
  for (size_t i = 0; i < loc.offset && i < source->size; i++) {
    bool newline = source->text[i] == '\n';
    *line += newline;
    *column = newline ? 1 : *column + 1;
  }
  return true;
}

// A text of others', for a terminal: what would steer it becomes '?'.
static void print_safe(const char *text, size_t size, hd_buffer_t *out) {
  for (size_t i = 0; i < size; i++) {
    unsigned char c = (unsigned char)text[i];
    bool plain = (c >= ' ' && c != 0x7f) || c == '\t' || c == '\n';
    hd_buffer_write(out, plain ? &text[i] : "?", 1);
  }
}

static void print_line(const hd_diagnostics_t *diags, hd_loc_t loc,
                       uint32_t column, bool color, hd_buffer_t *out) {
  const hd_source_t *source = &diags->sources[loc.source - 1];
  const char *start = source->text + loc.offset - (column - 1);
  const char *end =
      memchr(start, '\n', (size_t)(source->text + source->size - start));
  size_t size = end ? (size_t)(end - start)
                    : (size_t)(source->text + source->size - start);
  if (size > 200) // A line nobody would read.
    return;
  print_safe(start, size, out);
  hd_buffer_puts(out, "\n");
  for (uint32_t i = 0; i + 1 < column; i++)
    hd_buffer_puts(out, start[i] == '\t' ? "\t" : " ");
  hd_buffer_puts(out, color ? "\033[32m^\033[0m\n" : "^\n");
}

void hd_diagnostic_print(const hd_diagnostics_t *diags,
                         const hd_diagnostic_t *diagnostic, bool color,
                         hd_buffer_t *out) {
  static const char *const names[] = {"error", "warning", "remark", "note"};
  static const char *const colors[] = {"31", "35", "34", "36"};
  const char *name = NULL;
  uint32_t line = 0, column = 0;
  bool located =
      hd_diagnostics_locate(diags, diagnostic->loc, &name, &line, &column);
  if (located)
    hd_buffer_printf(out, "%s:%u:%u: ", name, line, column);
  if (color)
    hd_buffer_printf(out, "\033[1;%sm", colors[diagnostic->severity]);
  hd_buffer_puts(out, names[diagnostic->severity]);
  if (diagnostic->severity == HD_ERROR)
    hd_buffer_printf(out, "[%s]", table[diagnostic->code].name);
  hd_buffer_puts(out, color ? ":\033[0m " : ": ");
  print_safe(diagnostic->message, strlen(diagnostic->message), out);
  hd_buffer_puts(out, "\n");
  if (located)
    print_line(diags, diagnostic->loc, column, color, out);
}

void hd_diagnostics_print(const hd_diagnostics_t *diags, bool color,
                          hd_buffer_t *out) {
  for (const hd_diagnostic_t *d = diags->first; d; d = d->next)
    hd_diagnostic_print(diags, d, color, out);
}

void hd_diagnostics_clear(hd_diagnostics_t *diags) {
  diags->first = diags->last = NULL;
  diags->num_errors = 0;
  diags->exit_class = HD_EXIT_OK;
}
