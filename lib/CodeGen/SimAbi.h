// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What host code made by CodeGen and the simulator agree on.
//
// A kernel becomes one function, in one of two forms:
//   loop       void K(void *const *args, hd_sim_block_t *block)
//              runs every thread of a block, one after another. For kernels
//              without THREAD, WARP and BLOCK intrinsics, and not under
//              --sanitize.
//   coroutine  void *K(void *const *args, hd_sim_thread_t *thread)
//              runs one thread to its first suspension (or its end) and
//              returns the frame of an LLVM switch coroutine: the frame's first
//              word is the resume function, void(void *frame); it is NULL once
//              the thread has ended. Frames come from hd_sim_frame().
// args is as for cuLaunchKernel: args[i] points at the value of parameter i (a
// pointer for tensors). After the parameters come the kernel's tensor maps:
// args[num_params + i] is the address of map i, an object of the simulator's
// own; the operand `map` is that address.
//
// Intrinsics' operands travel in slots, 64 bits each: the result first (where
// there is one), then the parameters. A value takes one slot: its bits from bit
// 0 up, the rest zero (two slots where it has more than 64). A place (s:, g:,
// m:) takes two: its address, and its hd_sim_site_t, or NULL where not
// sanitizing. A register reference takes one: the address of its first element;
// elements lie as in memory; where the call tells how many there are (f32xn/2)
// it takes two: the second says which registers these are, tensor's number <<
// 32 | first element, so that products under way are known again. A matrix (d:)
// takes three: a place's two, and its descriptor with an address of 0
// (IR/Matrix.h). Names (as hd_order_t ...) and constants take one.
//   PURE    a plain C call with the values' own types (f16 and bf16 as
//           uint16_t, f8 as uint8_t; vectors as the integer of their bits);
//           over a vector T once for each lane
//   THREAD  void f(hd_sim_thread_t *thread, uint64_t *slots)
//   WARP    the thread sets request, function and slots and suspends. When all
//           live threads of its warp have asked for the same function, the
//           simulator calls void f(hd_sim_warp_t *warp) once and resumes them.
//   BLOCK   likewise suspends; the simulator calls bool f(hd_sim_thread_t *,
//           uint64_t *slots) until it returns true, then resumes the thread.
// Loops that wait for other threads (a while that holds an atomic or ordered
// access) suspend with HD_SIM_YIELD at their back edge.
#ifndef HIDET_CODEGEN_SIMABI_H
#define HIDET_CODEGEN_SIMABI_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hd_sim_request {
  HD_SIM_NONE,
  HD_SIM_WARP,
  HD_SIM_BLOCK,
  HD_SIM_YIELD,
} hd_sim_request_t;

// The heads of two of the simulator's objects; the emitter knows these fields
// by their offsets, the rest is the simulator's own.
typedef struct hd_sim_block {
  int32_t block[3]; // block.x, .y, .z
  int32_t grid_dim[3];
  int32_t block_dim[3];
  int32_t cluster, cluster_dim;
  int32_t stop; // Nonzero: loops leave, the launch is over (volatile).
  char *shared; // The block's shared memory, 1024-byte aligned.
} hd_sim_block_t;

typedef struct hd_sim_thread {
  hd_sim_block_t *block;
  int32_t thread[3]; // thread.x, .y, .z
  int32_t linear;
  uint32_t request;               // hd_sim_request_t, at a suspension.
  const struct hd_sim_site *site; // Of the request.
  void *function;                 // Of the request.
  uint64_t *slots;                // Of the request; in the coroutine's frame.
} hd_sim_thread_t;

// The slots of the threads of a warp that take part, in lane order; NULL for a
// lane that has ended or does not exist.
typedef struct hd_sim_warp {
  hd_sim_thread_t *threads[32];
  uint64_t *slots[32];
  bool wait; // Set by the function: it is called again later.
} hd_sim_warp_t;

typedef enum hd_sim_access {
  HD_SIM_LOAD,
  HD_SIM_STORE,
  HD_SIM_PLACE,   // The operand of an intrinsic; the intrinsic does the access.
  HD_SIM_ALIGNED, // The call of one that all threads of a warp do in one place.
} hd_sim_access_t;

// The values that a check may be given: indices and sizes of up to 16 axes.
enum { HD_SIM_CHECK_VALUES = 32 };

// The scope of a table, a constant of the code: its bounds are all there is to
// be checked.
enum { HD_SIM_CONSTANT = 16 };

// One access, assertion or call in the program's text; a constant in the code.
typedef struct hd_sim_site {
  uint32_t source, offset; // hd_loc_t
  // The tensor's name; the message of an assertion; or the intrinsic's name.
  const char *tensor;
  uint32_t access; // hd_sim_access_t
  uint32_t scope;  // hd_scope_t, or HD_SIM_CONSTANT
  uint32_t rank;
  uint32_t element_bits;
  uint32_t lanes;       // Elements accessed.
  uint32_t declaration; // The tensor's number: parameters first, then
                        // declarations in order.
} hd_sim_site_t;

// Called by emitted code; defined in lib/Runtime.
void *hd_sim_frame(hd_sim_thread_t *thread, uint64_t size, uint64_t align);

// Under --sanitize before each access: values holds the indices and then the
// sizes of the axes. False: the access must not be done; a load gives zero, and
// an intrinsic is called with 0 as the place's address (then it reports, if it
// uses the place at all).
bool hd_sim_check(hd_sim_thread_t *thread, const hd_sim_site_t *site,
                  const int64_t *values, const void *address);
// Under --sanitize of an access to registers: element `which` of those that it
// reads, from the first on, was never written. values: the first one's indices.
void hd_sim_unwritten(hd_sim_thread_t *thread, const hd_sim_site_t *site,
                      const int64_t *values, int64_t which);
// Under --sanitize: the index of an axis is no number of its type. values: the
// indices as they are, after wrapping; the last (of HD_SIM_CHECK_VALUES) is
// what that one would be.
void hd_sim_wrapped(hd_sim_thread_t *thread, const hd_sim_site_t *site,
                    const int64_t *values, int64_t axis);
// printf: a format of IR/Format.h and its values, as the bits of a long long or
// a double each.
void hd_sim_print(const char *format, const uint64_t *values);
// thread is NULL in the loop form.
void hd_sim_assert_failed(hd_sim_thread_t *thread, hd_sim_block_t *block,
                          const hd_sim_site_t *site);
void hd_sim_divided_by_zero(hd_sim_thread_t *thread, const hd_sim_site_t *site);

#endif
