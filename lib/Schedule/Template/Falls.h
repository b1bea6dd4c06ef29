// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Candidates that do not do after all. A head says before anything is read what
// a candidate needs and what it takes; its kernel, when it is read, lowered,
// made code of or loaded, may say otherwise. What is found then is kept, and
// the next choice for the same form counts with it.
#ifndef HIDET_SCHEDULE_TEMPLATE_FALLS_H
#define HIDET_SCHEDULE_TEMPLATE_FALLS_H

#include "IR/Module.h"
#include "Schedule/Template/Candidates.h"

typedef struct hd_fall {
  const char *key;  // hd_candidate_key()
  const char *name; // "my_product(BM = 8)"
  const char *why;  // A clause: "its kernel needs ...".
  double us;     // By which it takes longer than its head says; infinite: it is
                 // left out.
  bool is_users; // The template is none of the library's.
  bool is_new;   // Found since the list was read or written last.
  unsigned told; // The round, from 1, in which a warning said so; 0: none did.
} hd_fall_t;

// Of one device. One thread at a time.
typedef struct hd_falls {
  hd_arena_t *arena; // What is found lies there.
  hd_key_map_t known;
  HD_VEC(hd_fall_t *) list; // By when they were found.
  unsigned rounds;          // That have ended: hd_falls_begin().
} hd_falls_t;

// What the kernels of a candidate know of how they came to be (hd_func_t).
// Lies in the module's arena, as they do.
typedef struct hd_chosen {
  const char *key, *name;
  double us;        // What it is expected to take,
  double next_us;   // and the next candidate; infinite: there is none.
  double byte_us;   // More for each byte of local memory of a thread.
  bool is_users;    // The template is none of the library's.
  bool is_pinned;   // The text names it: it is taken, or an error.
  bool is_measured; // Somebody who measured does.
} hd_chosen_t;

// Whether an error speaks of what a candidate's values ask for, not of what is
// wrong with a text.
bool hd_code_falls(hd_diagnostic_code_t code);
// Why a machine has no room for a kernel, whatever is fused into it, or what
// its text asserts fails for its sizes, a clause; NULL: neither.
const char *hd_kernel_obstacle(hd_arena_t *arena, const hd_machine_t *machine,
                               const hd_func_t *kernel);
// The same of its shared memory as it stands.
const char *hd_kernel_too_large(hd_arena_t *arena, const hd_machine_t *machine,
                                const hd_func_t *kernel);

// "my_product(BM = 8)"
const char *hd_candidate_name(hd_arena_t *arena,
                              const hd_candidate_t *candidate);
// What is known by: the form, template and values; of a user's template the
// text that it stands in, too.
const char *hd_candidate_key(hd_context_t *context, hd_arena_t *arena,
                             const hd_form_t *form,
                             const hd_candidate_t *candidate);

// Microseconds by which a candidate takes longer for each byte of local memory
// that a thread has since registers do not suffice, as if it were stored once a
// tile and loaded once in each step, as what does not change in the loop over
// the steps is: L1 gives or takes 128 bytes a cycle. Code does not say more.
double hd_candidate_byte_us(const hd_machine_t *machine, const hd_form_t *form,
                            const hd_candidate_t *candidate);

// NULL where nothing is known, or falls is NULL.
hd_fall_t *hd_falls_find(const hd_falls_t *falls, const char *key);
// Enters or replaces one; the texts are copied. falls may be NULL: then it is
// the caller's alone, in its arena.
hd_fall_t *hd_falls_add(hd_falls_t *falls, hd_arena_t *arena,
                        const hd_fall_t *fall);
// A round of choices begins. again: what the last one said has been forgotten,
// and is to be said again.
void hd_falls_begin(hd_falls_t *falls, bool again);

// Enters what was found of what was chosen; us as hd_fall_t has it.
void hd_chosen_fall(const hd_chosen_t *chosen, hd_falls_t *falls,
                    hd_arena_t *arena, const char *why, double us);

// Microseconds that local memory of so many bytes a thread adds to what was
// chosen, where that is new, more than a fiftieth of the price, and makes the
// next candidate the one that is expected to be faster; else 0. (Prices are
// right to a tenth or so: less would be chance.)
double hd_chosen_spill(const hd_chosen_t *chosen, const hd_falls_t *falls,
                       int bytes);

// Counts with what is known: prices grow, and candidates that are left out are
// refused by name. Then they are no longer in order.
void hd_falls_apply(hd_context_t *context, hd_arena_t *arena,
                    const hd_form_t *form, hd_candidates_t *candidates,
                    hd_refusals_t *refused);

#endif
