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

// What is known by: a candidate of a template for a form.
typedef struct hd_candidate_key {
  const char *form;     // hd_form_key()
  const char *template; // NULL: all candidates for the form.
  const char *name;     // "my_product(BM = 8)"; NULL: all of the template's.
  unsigned leaving;     // hd_form_t has it; 0: its kernel does not take it.
  bool is_users;        // The template is none of the library's.
} hd_candidate_key_t;

typedef struct hd_fall {
  hd_candidate_key_t of;
  const char *why;           // A clause: "its kernel needs ...".
  hd_diagnostic_code_t code; // The kind of reason.
  double us;    // By which it takes longer than its head says; infinite: it is
                // left out.
  bool is_told; // By a warning that is still there.
} hd_fall_t;

enum {
  // As many candidates of a template for a form are left out for one kind of
  // reason: then the template is.
  HD_FALLS_OF_TEMPLATE = 8,
  // As many rounds a compilation takes with all candidates: of a form of which
  // one is left out then, all are.
  HD_FALLS_ROUNDS = 64
};

// Of one compilation, and gone with it: what one finds does not change what
// another chooses. One thread at a time.
typedef struct hd_falls {
  hd_arena_t *arena; // What is found lies there.
  hd_key_map_t known;
  HD_VEC(hd_fall_t *) list; // By when they were found.
  unsigned rounds;          // Before this one.
} hd_falls_t;

// What the kernels of a candidate know of how they came to be (hd_func_t).
// Lies in the module's arena, as they do.
typedef struct hd_chosen {
  // name NULL: a rule made the kernel since no candidate for the form was left.
  hd_candidate_key_t of;
  double us;        // What it is expected to take,
  double next_us;   // and the next candidate; infinite: there is none.
  double byte_us;   // More for each byte of local memory of a thread.
  bool is_pinned;   // The text names it: it is taken, or an error.
  bool is_measured; // Somebody who measured does.
} hd_chosen_t;

// Whether an error speaks of what a candidate's values ask for, not of what is
// wrong with a text.
bool hd_code_falls(hd_diagnostic_code_t code);
// Why a machine has no room for a kernel, whatever is fused into it, or what
// its text asserts fails for its sizes, a clause, and the kind of reason; NULL:
// neither.
const char *hd_kernel_obstacle(hd_arena_t *arena, const hd_machine_t *machine,
                               const hd_func_t *kernel,
                               hd_diagnostic_code_t *code);
// The same of its shared memory as it stands (E0505).
const char *hd_kernel_too_large(hd_arena_t *arena, const hd_machine_t *machine,
                                const hd_func_t *kernel);

// All that a form gives of a kernel, and asks of its head.
const char *hd_form_key(hd_arena_t *arena, const hd_form_t *form);
// form_key: of the form, by that.
hd_candidate_key_t hd_candidate_key(hd_context_t *context, hd_arena_t *arena,
                                    const char *form_key, const hd_form_t *form,
                                    const hd_candidate_t *candidate);
// "my_product(BM = 8)", "my_product"
const char *hd_fall_name(const hd_fall_t *fall);

// Microseconds by which a candidate takes longer for each byte of local memory
// that a thread has since registers do not suffice, as if it were stored once a
// tile and loaded once in each step, as what does not change in the loop over
// the steps is: L1 gives or takes 128 bytes a cycle. Code does not say more.
double hd_candidate_byte_us(const hd_machine_t *machine, const hd_form_t *form,
                            const hd_candidate_t *candidate);

// What is known of exactly that; NULL where nothing is.
hd_fall_t *hd_falls_find(const hd_falls_t *falls,
                         const hd_candidate_key_t *key);
// The same; else what is known of all of its template's, else of the form's.
hd_fall_t *hd_falls_find_any(const hd_falls_t *falls,
                             const hd_candidate_key_t *key);
// Enters or replaces one; the texts are copied. Where that makes too many, the
// template is entered, too, or the form.
hd_fall_t *hd_falls_add(hd_falls_t *falls, const hd_fall_t *fall);
// Another round of choices begins: what this one said has been forgotten, and
// is to be said again.
void hd_falls_begin(hd_falls_t *falls);
// The first of what was left out for a form; NULL: nothing was.
const hd_fall_t *hd_falls_first(const hd_falls_t *falls, const char *form);

// Whether leaving out what a kernel was chosen by (NULL: nothing), where it
// does not do for such a reason, makes another choice.
bool hd_chosen_may_fall(const hd_chosen_t *chosen, const hd_falls_t *falls,
                        hd_diagnostic_code_t code);

// Microseconds that local memory of so many bytes a thread adds to what was
// chosen, where that is new, more than a fiftieth of the price, and makes the
// next candidate the one that is expected to be faster; else 0. (Prices are
// right to a tenth or so: less would be chance.)
double hd_chosen_spill(const hd_chosen_t *chosen, const hd_falls_t *falls,
                       int bytes);

// Counts with what is known, once for each candidate: prices grow, and
// candidates that are left out are refused by name. Then they are no longer in
// order. measured: what is known of exactly these alone counts.
void hd_falls_apply(const hd_falls_t *falls, hd_context_t *context,
                    hd_arena_t *arena, const hd_form_t *form, bool measured,
                    hd_candidates_t *candidates, hd_refusals_t *refused);

#endif
