// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether objects say what they said: each of them counts, and none is asked
// for its version whose address is another, or which has none.
#include "UnitTest.h"

#include <hidet/Session.h>

enum { NUM = 3 };

typedef struct object {
  void *address; // NULL: it has none.
  int64_t version;
  int times_asked; // For the version.
} object_t;

static int32_t address_of(const void *object, void **result) {
  *result = ((const object_t *)object)->address;
  return *result ? 0 : 1;
}

static int64_t version_of(const void *object) {
  // Objects are the test's own, and no constants.
  object_t *own = (object_t *)(uintptr_t)object;
  own->times_asked++;
  return own->version;
}

static void sees_each_change(void **state) {
  (void)state;
  char memory[NUM + 1];
  object_t own[NUM];
  const void *objects[NUM];
  void *addresses[NUM];
  int64_t versions[NUM];
  for (int i = 0; i < NUM; i++) {
    own[i] = (object_t){&memory[i], 7 * i, 0};
    objects[i] = &own[i];
    addresses[i] = own[i].address;
    versions[i] = own[i].version;
  }
  hidet_sources_t sources = {objects,    NUM,       address_of,
                             version_of, addresses, versions};
  assert_int_equal(hidet_sources_unchanged(&sources), 1);
  for (int i = 0; i < NUM; i++) {
    own[i].version++;
    assert_int_equal(hidet_sources_unchanged(&sources), 0);
    own[i].version--;
    own[i].times_asked = 0;
    own[i].address = &memory[NUM];
    assert_int_equal(hidet_sources_unchanged(&sources), 0);
    own[i].address = NULL;
    assert_int_equal(hidet_sources_unchanged(&sources), 0);
    assert_int_equal(own[i].times_asked, 0);
    own[i].address = addresses[i];
    objects[i] = NULL;
    assert_int_equal(hidet_sources_unchanged(&sources), 0);
    assert_int_equal(own[i].times_asked, 0);
    objects[i] = &own[i];
  }
  // What one has more than another has less.
  own[0].version++, own[1].version--;
  assert_int_equal(hidet_sources_unchanged(&sources), 0);
  own[0].version--, own[1].version++;
  assert_int_equal(hidet_sources_unchanged(&sources), 1);
}

HD_UNIT_TESTS(cmocka_unit_test(sees_each_change))
