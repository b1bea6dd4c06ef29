// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Atomics and fences. On the host all are sequentially consistent, which every
// order allows; what a weaker order or a narrow scope fails to promise is the
// sanitizer's to find.
//   T(m:T, T, order, scope)     slots: result, address, site, value, order,
//   scope T(m:T, T, T, order, scope)  slots: ..., expected, new, order, scope
//   T(m:T, order, scope)        slots: result, address, site, order, scope
//   void(m:T, T, order, scope)  slots: address, site, value, order, scope
#include "Sim/Check.h"
#include "Sim/Functions.h"
#include "Support/Float.h"

#include <string.h>

typedef struct place {
  hd_sim_fiber_t *fiber;
  uintptr_t address;
  bool checked, allowed;
  unsigned order, scope;
} place_t;

static place_t begin(hd_sim_thread_t *thread, const uint64_t *slots,
                     const uint64_t *names, uint32_t bytes, unsigned touch) {
  place_t place = {.fiber = hd_sim_fiber(thread), .address = slots[0]};
  place.order = (unsigned)names[0];
  place.scope = (unsigned)names[1];
  place.allowed = place.address != 0;
  if (!hd_sim_sanitizer_of(place.fiber))
    return place;
  place.checked = true;
  place.allowed = hd_sim_touch(
      place.fiber, place.fiber, (const hd_sim_site_t *)(uintptr_t)slots[1],
      place.address, bytes, touch | HD_SIM_ATOMIC, place.scope);
  return place;
}

static void order_reads(const place_t *place) {
  if (place->checked)
    hd_sim_sync_acquire(place->fiber, place->address, place->order,
                        place->scope);
}

static void order_writes(const place_t *place, bool read_modify_write) {
  if (place->checked)
    hd_sim_sync_release(place->fiber, place->address, place->order,
                        place->scope, read_modify_write);
}

// A value changes while others spin on it.
static void note_change(const place_t *place, bool changed) {
  if (place->checked && changed)
    hd_sim_check_event(place->fiber);
}

// --- Values as the words that hold them ---

#define AS_WORD(type, word, value)                                             \
  static value decode_##type(word bits) {                                      \
    value result;                                                              \
    memcpy(&result, &bits, sizeof result);                                     \
    return result;                                                             \
  }                                                                            \
  static word encode_##type(value v) {                                         \
    word bits;                                                                 \
    memcpy(&bits, &v, sizeof bits);                                            \
    return bits;                                                               \
  }                                                                            \
  typedef word word_##type;                                                    \
  typedef value value_##type;
AS_WORD(i32, uint32_t, int32_t)
AS_WORD(u32, uint32_t, uint32_t)
AS_WORD(i64, uint64_t, int64_t)
AS_WORD(u64, uint64_t, uint64_t)
AS_WORD(f32, uint32_t, float)
AS_WORD(f64, uint64_t, double)
typedef uint16_t word_f16, word_bf16, word_i16, word_u16;
typedef uint32_t word_f16x2, word_bf16x2;
typedef uint8_t word_i8, word_u8;

static uint16_t add_halves_f16(uint16_t a, uint16_t b) {
  return hd_f16_from_f64((double)hd_f16_to_f32(a) + (double)hd_f16_to_f32(b));
}
static uint16_t add_halves_bf16(uint16_t a, uint16_t b) {
  return hd_sim_fma_bf16(a, 0x3f80, b); // One rounding.
}

#define COMBINE(operation, type, expression)                                   \
  static word_##type combine_##operation##_##type(word_##type x,               \
                                                  word_##type y) {             \
    value_##type a = decode_##type(x), b = decode_##type(y);                   \
    return encode_##type((value_##type)(expression));                          \
  }
#define COMBINE_INTEGERS(type, wide)                                           \
  COMBINE(add, type, (wide)a + (wide)b)                                        \
  COMBINE(min, type, a < b ? a : b)                                            \
  COMBINE(max, type, a > b ? a : b)                                            \
  COMBINE(and, type, a &b)                                                     \
  COMBINE(or, type, a | b)                                                     \
  COMBINE(xor, type, a ^ b)                                                    \
  COMBINE(exch, type, ((void)a, b))
COMBINE_INTEGERS(i32, uint32_t)
COMBINE_INTEGERS(u32, uint32_t)
COMBINE_INTEGERS(i64, uint64_t)
COMBINE_INTEGERS(u64, uint64_t)
COMBINE(add, f32, a + b)
COMBINE(add, f64, a + b)
COMBINE(exch, f32, ((void)a, b))
COMBINE(exch, f64, ((void)a, b))
static uint16_t combine_add_f16(uint16_t a, uint16_t b) {
  return add_halves_f16(a, b);
}
static uint16_t combine_add_bf16(uint16_t a, uint16_t b) {
  return add_halves_bf16(a, b);
}
static uint32_t combine_add_f16x2(uint32_t a, uint32_t b) {
  return add_halves_f16((uint16_t)a, (uint16_t)b) |
         (uint32_t)add_halves_f16((uint16_t)(a >> 16), (uint16_t)(b >> 16))
             << 16;
}
static uint32_t combine_add_bf16x2(uint32_t a, uint32_t b) {
  return add_halves_bf16((uint16_t)a, (uint16_t)b) |
         (uint32_t)add_halves_bf16((uint16_t)(a >> 16), (uint16_t)(b >> 16))
             << 16;
}

// --- The functions ---

#define UPDATE(operation, type)                                                \
  void hd_sim_atomic_##operation##_##type(hd_sim_thread_t *thread,             \
                                          uint64_t *slots) {                   \
    place_t place = begin(thread, &slots[1], &slots[4], sizeof(word_##type),   \
                          HD_SIM_READS | HD_SIM_WRITES);                       \
    slots[0] = 0;                                                              \
    if (!place.allowed)                                                        \
      return;                                                                  \
    word_##type *at = (word_##type *)place.address;                            \
    word_##type old = __atomic_load_n(at, __ATOMIC_SEQ_CST), new;              \
    do                                                                         \
      new = combine_##operation##_##type(old, (word_##type)slots[3]);          \
    while (!__atomic_compare_exchange_n(at, &old, new, true, __ATOMIC_SEQ_CST, \
                                        __ATOMIC_SEQ_CST));                    \
    slots[0] = old;                                                            \
    order_reads(&place);                                                       \
    order_writes(&place, true);                                                \
    note_change(&place, old != new);                                           \
  }

#define UPDATE_cas(type)                                                       \
  void hd_sim_atomic_cas_##type(hd_sim_thread_t *thread, uint64_t *slots) {    \
    place_t place = begin(thread, &slots[1], &slots[5], sizeof(word_##type),   \
                          HD_SIM_READS | HD_SIM_WRITES);                       \
    slots[0] = 0;                                                              \
    if (!place.allowed)                                                        \
      return;                                                                  \
    word_##type *at = (word_##type *)place.address;                            \
    word_##type old = (word_##type)slots[3], new = (word_##type)slots[4];      \
    bool swapped = __atomic_compare_exchange_n(                                \
        at, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);             \
    slots[0] = old;                                                            \
    order_reads(&place);                                                       \
    if (swapped)                                                               \
      order_writes(&place, true);                                              \
    note_change(&place, swapped &&old != new);                                 \
  }

#define UPDATE_load(type)                                                      \
  void hd_sim_atomic_load_##type(hd_sim_thread_t *thread, uint64_t *slots) {   \
    place_t place = begin(thread, &slots[1], &slots[3], sizeof(word_##type),   \
                          HD_SIM_READS);                                       \
    slots[0] = 0;                                                              \
    if (!place.allowed)                                                        \
      return;                                                                  \
    slots[0] =                                                                 \
        __atomic_load_n((const word_##type *)place.address, __ATOMIC_SEQ_CST); \
    order_reads(&place);                                                       \
  }

#define UPDATE_store(type)                                                     \
  void hd_sim_atomic_store_##type(hd_sim_thread_t *thread, uint64_t *slots) {  \
    place_t place = begin(thread, &slots[0], &slots[3], sizeof(word_##type),   \
                          HD_SIM_WRITES);                                      \
    if (!place.allowed)                                                        \
      return;                                                                  \
    order_writes(&place, false);                                               \
    word_##type new = (word_##type)slots[2];                                   \
    word_##type old = __atomic_exchange_n((word_##type *)place.address, new,   \
                                          __ATOMIC_SEQ_CST);                   \
    note_change(&place, old != new);                                           \
  }

#define UPDATE_add(type) UPDATE(add, type)
#define UPDATE_min(type) UPDATE(min, type)
#define UPDATE_max(type) UPDATE(max, type)
#define UPDATE_and(type) UPDATE(and, type)
#define UPDATE_or(type) UPDATE(or, type)
#define UPDATE_xor(type) UPDATE(xor, type)
#define UPDATE_exch(type) UPDATE(exch, type)
#define HD_SIM_ATOMIC_FUNCTION(operation, type) UPDATE_##operation(type)
#include "Sim/Atomics.def"

void hd_sim_fence(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (hd_sim_sanitizer_of(fiber))
    hd_sim_sync_fence(fiber, (unsigned)slots[0], (unsigned)slots[1]);
}
