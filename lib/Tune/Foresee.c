// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What would be chosen for groups that are known by their keys, from what was
// measured, without their graphs: by it a plan is found that was made for just
// these choices. Where a choice is not among a group's candidates any more,
// another one is foreseen than comes; what comes is kept as what was foreseen,
// too (hd_model_compile()).
#include "Tune/TunerState.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct group {
  const char *key;
  unsigned uses;
} group_t;

typedef HD_VEC(group_t) groups_t;

// "KEY USES" a line, as hd_tuner_note_asked() has it.
static bool parse_groups(hd_tuner_t *t, const char *text, groups_t *groups) {
  while (*text) {
    size_t length = strcspn(text, " \n");
    char *end;
    if (text[length] != ' ')
      return false;
    group_t group = {hd_arena_strndup(&t->arena, text, length),
                     (unsigned)strtoul(text + length + 1, &end, 10)};
    if (*end != '\n')
      return false;
    hd_vec_push(&t->arena, groups, group);
    text = end + 1;
  }
  return true;
}

static const char *whole_of(hd_tuner_t *t, const groups_t *groups) {
  hd_tuned_t *tuned = HD_ARENA_ARRAY(&t->arena, hd_tuned_t, groups->size + 1);
  hd_tuned_t **each = HD_ARENA_ARRAY(&t->arena, hd_tuned_t *, groups->size + 1);
  for (size_t i = 0; i < groups->size; i++) {
    tuned[i] =
        (hd_tuned_t){.key = groups->data[i].key, .uses = groups->data[i].uses};
    each[i] = &tuned[i];
  }
  return hd_tuner_whole(t, each, groups->size);
}

static const char *choice_of(hd_tuner_t *t, const char *whole,
                             const char *key) {
  const hd_tuned_t *tuned = hd_tuner_find(t, key);
  hd_tuned_t foreseen = {.key = key};
  if (!tuned) {
    hd_tune_rows_t rows = {0};
    const char *measured = hd_tune_status_text(HD_TUNE_MEASURED);
    hd_tune_database_list(t->database, &t->arena, key, &rows);
    for (size_t i = 0; i < rows.size; i++) {
      const hd_tune_row_t *row = &rows.data[i];
      hd_tune_candidate_t c = {
          .choice = row->choice, .us = row->us, .status = HD_TUNE_MEASURED};
      if (strcmp(row->status, measured) == 0)
        hd_vec_push(&t->arena, &foreseen.candidates, c);
    }
    hd_tuner_find_best(t, whole, &foreseen);
    tuned = &foreseen;
  }
  return tuned->best ? tuned->best->choice : "";
}

static bool foresee(void *argument, const char *text, hd_buffer_t *out) {
  hd_tuner_t *t = argument;
  groups_t groups = {0};
  if (!parse_groups(t, text, &groups))
    return false;
  const char *whole = whole_of(t, &groups);
  for (size_t i = 0; i < groups.size; i++)
    hd_buffer_printf(out, "%s %s\n", groups.data[i].key,
                     choice_of(t, whole, groups.data[i].key));
  return !out->failed;
}

void hd_tuner_note_asked(hd_tuner_t *t, hd_tuned_t *const *tuned,
                         size_t count) {
  hd_buffer_t all = {0};
  for (size_t i = 0; i < count; i++)
    hd_buffer_printf(&all, "%s %u\n", tuned[i]->key, tuned[i]->uses);
  const char *text =
      hd_arena_strndup(&t->arena, hd_buffer_text(&all), all.size);
  hd_buffer_fini(&all);
  t->asked_others |= t->asked && strcmp(t->asked, text) != 0;
  t->asked = text;
}

static const char *asked(void *argument) {
  hd_tuner_t *t = argument;
  const char *text = t->asked_others ? NULL : t->asked ? t->asked : "";
  t->asked = NULL;
  t->asked_others = false;
  return text;
}

const hd_choosing_t *hd_tuner_choosing(const hd_tuner_t *tuner) {
  static const hd_choosing_t choosing = {asked, foresee};
  return tuner && !tuner->options.most ? &choosing : NULL;
}
