// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/LibraryIndex.h"

#include "Support/Embedded.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Of a kind. What is embedded is known when the compiler is built, so the
// tables take no memory that could be refused; unittests/IR/LibraryTest.c
// fails where they are full.
enum { MOST_ITEMS = 1024, MOST_TEXT = 1 << 15 };

typedef struct shelf {
  size_t size;
  hd_library_item_t items[MOST_ITEMS];
  uint16_t by_name[MOST_ITEMS]; // Numbers of items, in order of their names.
} shelf_t;

static shelf_t shelves[HD_NUM_SHELVES];
static char names[MOST_TEXT];
static size_t names_size;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
  const char *folder, *word;
} places[HD_NUM_SHELVES] = {{"IR/library/", "fn "},
                            {"Graph/operators/", "task "},
                            {"Graph/rewrites/", "rewrite "}};

// Where the next line that begins with the word starts, from at on; its end
// else.
static const char *next_item(const char *at, const char *end, const char *word,
                             uint32_t *line) {
  size_t size = strlen(word);
  while (at < end) {
    if ((size_t)(end - at) > size && memcmp(at, word, size) == 0)
      return at;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    if (!newline)
      return end;
    at = newline + 1;
    (*line)++;
  }
  return end;
}

static const char *keep_name(const char *name, size_t size) {
  assert(names_size + size < MOST_TEXT);
  char *kept = memcpy(names + names_size, name, size);
  names_size += size + 1; // A zero ends it.
  return kept;
}

static void index_file(shelf_t *shelf, const char *word,
                       const hd_embedded_t *file) {
  const char *end = file->text + file->size;
  uint32_t line = 1;
  const char *at = next_item(file->text, end, word, &line);
  while (at < end) {
    const char *name = at + strlen(word);
    size_t name_size = strcspn(name, "([ \n");
    assert(shelf->size < MOST_ITEMS);
    hd_library_item_t *item = &shelf->items[shelf->size];
    shelf->by_name[shelf->size] = (uint16_t)shelf->size;
    shelf->size++;
    *item = (hd_library_item_t){.name = keep_name(name, name_size),
                                .file = file->name,
                                .text = at,
                                .first_line = line,
                                .is_generic = name[name_size] == '['};
    line++;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    at = newline ? next_item(newline + 1, end, word, &line) : end;
    item->size = (size_t)(at - item->text);
  }
}

static int compare(const void *a, const void *b, void *items) {
  uint16_t i = *(const uint16_t *)a, j = *(const uint16_t *)b;
  const hd_library_item_t *of = items;
  int order = strcmp(of[i].name, of[j].name);
  return order ? order : i - j;
}

static void make_index(void) {
  for (int k = 0; k < HD_NUM_SHELVES; k++) {
    const char *folder = places[k].folder;
    shelf_t *shelf = &shelves[k];
    for (size_t i = 0; i < hd_embedded_count; i++)
      if (strncmp(hd_embedded_files[i].name, folder, strlen(folder)) == 0)
        index_file(shelf, places[k].word, &hd_embedded_files[i]);
    qsort_r(shelf->by_name, shelf->size, sizeof *shelf->by_name, compare,
            shelf->items);
  }
}

size_t hd_library_items(hd_shelf_t shelf, const hd_library_item_t **first) {
  pthread_once(&once, make_index);
  *first = shelves[shelf].items;
  return shelves[shelf].size;
}

size_t hd_library_find(hd_shelf_t kind, const char *name,
                       const uint16_t **numbers) {
  pthread_once(&once, make_index);
  const shelf_t *shelf = &shelves[kind];
  size_t low = 0, high = shelf->size;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (strcmp(shelf->items[shelf->by_name[middle]].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  size_t count = 0;
  while (low + count < shelf->size &&
         strcmp(shelf->items[shelf->by_name[low + count]].name, name) == 0)
    count++;
  *numbers = shelf->by_name + low;
  return count;
}
