// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The machines that schedules are chosen for.
#include "Schedule/Template/Machine.h"
#include "CodeGen/CodeGen.h"
#include "UnitTest.h"

#include <math.h>

// A block has as much shared memory for choosing as for making code.
static void machines_are_targets(void **state) {
  (void)state;
  const hd_target_t *target;
  for (size_t i = 0; (target = hd_target_get(i)); i++) {
    hd_machine_t machine;
    if (target->arch != HD_ARCH_NVPTX)
      continue;
    assert_true(hd_machine_find(target->sm, &machine));
    assert_int_equal(machine.block_shared, target->max_shared_bytes);
  }
}

// What is kept of a plan is known by its machine: whatever differs between two,
// their texts do.
static void a_text_has_all_properties(void **state) {
  (void)state;
  hd_context_t context;
  hd_machine_t machine;
  hd_buffer_t text, other;
  hd_context_init(&context);
  assert_true(hd_machine_find(901, &machine));
  hd_buffer_init_local(&text, &context.budget);
  hd_machine_print(&machine, &text);
#define HD_MACHINE(type, field, t4, a100, rtx3090, rtx4090, h200, meaning)     \
  {                                                                            \
    hd_machine_t changed = machine;                                            \
    assert_true(machine.field > 0);                                            \
    changed.field++;                                                           \
    hd_buffer_init_local(&other, &context.budget);                             \
    hd_machine_print(&changed, &other);                                        \
    assert_string_not_equal(hd_buffer_text(&text), hd_buffer_text(&other));    \
    hd_buffer_fini(&other);                                                    \
  }
#define HD_ALIKE(type, field, value, meaning)                                  \
  HD_MACHINE(type, field, value, value, value, value, value, meaning)
#include "Schedule/Template/Machines.def"
#undef HD_MACHINE
#undef HD_ALIKE
  hd_buffer_fini(&text);
  hd_context_fini(&context);
}

// Dense f16 on tensor cores, TFLOP/s of the vendors' data sheets, at the clocks
// that those are for: T4 65 (1,590 MHz), A100 312 (1,410), RTX 3090 71 (1,695),
// RTX 4090 165.2 (2,520), H200 989.4 (1,830).
static void tensor_cores_are_the_vendors(void **state) {
  (void)state;
  static const struct {
    int sm;
    double mhz, tflops;
  } sheets[] = {{75, 1590, 65},
                {80, 1410, 312},
                {86, 1695, 71},
                {89, 2520, 165.2},
                {90, 1830, 989.4}};
  for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++) {
    hd_machine_t m;
    assert_true(hd_machine_find(sheets[i].sm, &m));
    double most =
        fmax(hd_machine_mma(&m, HD_F16), hd_machine_wgmma(&m, HD_F16));
    double tflops = 2e-6 * most * m.count * sheets[i].mhz;
    assert_true(fabs(tflops / sheets[i].tflops - 1) < 0.01);
  }
}

// An H100 has an H200's multiprocessors, and memory that carries 3,350 GB/s
// instead of 4,814.3: each of them gets so much less of it. Of half as many
// each gets twice as much.
static void memory_is_shared_out(void **state) {
  (void)state;
  hd_machine_t h200, m;
  assert_true(hd_machine_find(901, &h200));
  m = h200;
  hd_machine_fit(&m, h200.count, 0, 3350);
  double ratio = 3350 / h200.carried;
  assert_true(fabs(m.memory_bytes / h200.memory_bytes - ratio) < 1e-9);
  assert_true(fabs(m.gbs / h200.gbs - ratio) < 1e-9);
  m = h200;
  hd_machine_fit(&m, h200.count / 2, 0, 0);
  assert_true(fabs(m.memory_bytes / h200.memory_bytes - 2) < 1e-9);
  m = h200;
  hd_machine_fit(&m, 0, 0, 0);
  assert_true(m.memory_bytes == h200.memory_bytes);
}

HD_UNIT_TESTS(cmocka_unit_test(machines_are_targets),
              cmocka_unit_test(a_text_has_all_properties),
              cmocka_unit_test(tensor_cores_are_the_vendors),
              cmocka_unit_test(memory_is_shared_out))
