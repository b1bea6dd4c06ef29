// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Map.h"
#include "UnitTest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 5000 };

static void an_empty_map_has_nothing(void **state) {
  (void)state;
  const hd_ptr_map_t pointers = {0};
  const hd_key_map_t names = {0};
  int key;
  assert_null(hd_ptr_map_get(&pointers, &key));
  assert_null(hd_ptr_map_get(&pointers, NULL));
  assert_null(hd_key_map_find_name(&names, "x"));
}

static void addresses_are_told_apart(void **state) {
  (void)state;
  static int keys[MANY], values[MANY];
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  hd_ptr_map_t map = {0};
  for (int i = 0; i < MANY; i += 2)
    hd_ptr_map_set(&arena, &map, &keys[i], &values[i]);
  for (int i = 0; i < MANY; i++)
    assert_ptr_equal(hd_ptr_map_find(&map, &keys[i]),
                     i % 2 ? NULL : &values[i]);
  assert_null(hd_ptr_map_get(&map, NULL));
  hd_arena_fini(&arena);
}

static void a_later_value_replaces_an_earlier(void **state) {
  (void)state;
  int key, first, second;
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  hd_ptr_map_t map = {0};
  hd_ptr_map_set(&arena, &map, &key, &first);
  hd_ptr_map_set(&arena, &map, &key, &second);
  assert_ptr_equal(hd_ptr_map_get(&map, &key), &second);
  hd_ptr_map_set(&arena, &map, &key, NULL);
  assert_null(hd_ptr_map_get(&map, &key));
  assert_int_equal(map.table.size, 1);
  hd_arena_fini(&arena);
}

// Equal text at another address is the same key; a prefix of it is another.
static void names_are_what_they_read(void **state) {
  (void)state;
  static int values[MANY];
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  hd_key_map_t map = {0};
  for (int i = 0; i < MANY; i++)
    hd_key_map_set_name(&arena, &map, hd_arena_printf(&arena, "x%d", i),
                        &values[i]);
  char name[16];
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "x%d", i);
    assert_ptr_equal(hd_key_map_find_name(&map, name), &values[i]);
  }
  assert_null(hd_key_map_find_name(&map, "x"));
  assert_null(hd_key_map_find_name(&map, ""));
  hd_key_map_set_name(&arena, &map, "", &values[7]);
  name[0] = '\0';
  assert_ptr_equal(hd_key_map_find_name(&map, name), &values[7]);
  hd_arena_fini(&arena);
}

static void structs_are_keys(void **state) {
  (void)state;
  typedef struct place {
    uint64_t block, cell;
  } place_t;
  static place_t places[MANY];
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  hd_key_map_t map = {0};
  for (uint64_t i = 0; i < MANY; i++) {
    places[i] = (place_t){i / 50, i % 50};
    hd_key_map_set(&arena, &map, &places[i], sizeof places[i], &places[i]);
  }
  for (uint64_t i = 0; i < MANY; i++) {
    const place_t swapped = {i % 50, i / 50};
    const place_t *found = hd_key_map_find(&map, &swapped, sizeof swapped);
    assert_ptr_equal(found, i / 50 < 50 ? &places[i % 50 * 50 + i / 50] : NULL);
  }
  hd_arena_fini(&arena);
}

static void a_map_grows_on_the_heap(void **state) {
  (void)state;
  static int keys[MANY];
  hd_ptr_map_t map = {0};
  size_t had = 0;
  for (int i = 0; i < MANY; i++) {
    if (hd_ptr_map_is_full(&map)) {
      size_t bytes = hd_ptr_map_growth(&map);
      if (had)
        assert_int_equal(bytes, 2 * had);
      had = bytes;
      free(hd_ptr_map_grow(&map, calloc(1, bytes)));
    }
    hd_ptr_map_set(NULL, &map, &keys[i], &keys[MANY - 1 - i]);
  }
  for (int i = 0; i < MANY; i++)
    assert_ptr_equal(hd_ptr_map_get(&map, &keys[i]), &keys[MANY - 1 - i]);
  free(map.table.entries);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_empty_map_has_nothing),
      cmocka_unit_test(addresses_are_told_apart),
      cmocka_unit_test(a_later_value_replaces_an_earlier),
      cmocka_unit_test(names_are_what_they_read),
      cmocka_unit_test(structs_are_keys),
      cmocka_unit_test(a_map_grows_on_the_heap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
