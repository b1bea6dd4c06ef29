// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules: each makes the kernels for one definition of a flat task, or says
// that it is not for it. They are tried from the most special to the one that
// takes everything.
#ifndef HIDET_SCHEDULE_RULES_RULES_H
#define HIDET_SCHEDULE_RULES_RULES_H

#include "IR/Graph/Pin.h"
#include "Schedule/Translate/Translate.h"

// A launch among those that compute a task: which of its tensors a kernel's
// parameters are.
typedef struct hd_rule_launch {
  const hd_func_t *kernel;
  const hd_task_value_t *const *args; // kernel->num_params of them.
} hd_rule_launch_t;

typedef HD_VEC(hd_rule_launch_t) hd_rule_launches_t;

typedef struct hd_rules {
  hd_module_t *module; // Kernels go there.
  hd_task_t *flat;     // Rules may add local tensors.
  uint64_t computed;   // Of its inputs, as hd_surroundings_t has it,
  uint64_t gathered;   // likewise,
  unsigned leaving;    // and this, too,
  int64_t neighbours;  // and this.
  const char *name;    // Begins theirs.
  hd_loc_t loc;
  hd_rule_launches_t launches; // So far, in order.
  const hd_pin_t *pin; // What is to be chosen for products; NULL: the best.
  bool pinned;         // It could be.
  const char *why;     // Else.
  bool failed;         // An error was reported.
  bool asked_leaving;  // A kernel was made for it.
  // What the kernels of rules know of candidates that were left out (Falls.h);
  // NULL: none were, of the definition at hand.
  const struct hd_chosen *left;
} hd_rules_t;

// A kernel in the making.
typedef struct hd_kernel_draft {
  hd_rules_t *rules;
  hd_builder_t b;
  hd_translator_t t;
  hd_open_block_t block;
  const hd_expr_t *worker; // The number of the worker at hand.
  const hd_var_t *packed;  // The target, where hd_draft_bytes() made it.
} hd_kernel_draft_t;

void hd_draft_begin(hd_kernel_draft_t *draft, hd_rules_t *rules);
// Adds kernel and launch.
void hd_draft_finish(hd_kernel_draft_t *draft, const char *suffix,
                     const int64_t grid[3], int64_t threads);
// One axis of blocks; more than the hardware has along one go on.
void hd_draft_finish_linear(hd_kernel_draft_t *draft, const char *suffix,
                            int64_t blocks, int64_t threads);

// What a point of a domain is by its number, counted row-major: binds the
// indices. Those of one value alone are bound to 0.
void hd_draft_place(hd_kernel_draft_t *draft, const hd_expr_t *number,
                    const hd_index_t *const *indices, unsigned count);
// Stores to a definition's target number i at the indices as they are bound.
void hd_draft_store(hd_kernel_draft_t *draft, const hd_definition_t *d,
                    unsigned i, const hd_expr_t *value);
// The parameter for a tensor of elements below a byte, of one axis and filled
// up to whole bytes.
const hd_var_t *hd_draft_bytes(hd_kernel_draft_t *draft,
                               const hd_task_value_t *value,
                               hd_direction_t direction);
// The term of every target at the point at hand, stored.
void hd_draft_define(hd_kernel_draft_t *draft, const hd_definition_t *d);

// How many blocks of how many threads for so many workers.
typedef struct hd_grid {
  int64_t workers, blocks, threads;
  hd_scalar_t type; // That the numbers of workers fit.
} hd_grid_t;
hd_grid_t hd_grid_linear(int64_t workers, int64_t threads);
// Opens the block of what a worker does, whose number it returns.
const hd_expr_t *hd_draft_open_workers(hd_kernel_draft_t *draft,
                                       const hd_grid_t *grid,
                                       hd_open_block_t *block);
// Closes it and finishes the kernel.
void hd_draft_finish_workers(hd_kernel_draft_t *draft, const hd_grid_t *grid,
                             const char *suffix);

// A definition that is a function of one reduction.
typedef struct hd_reduced {
  const hd_definition_t *definition;
  const hd_term_t *reduction;
  const hd_variable_t *cell; // What stands for it in
  const hd_term_t *result;   // the definition's term; of several targets NULL,
                             // and the reduction itself.
} hd_reduced_t;
// False where there is none, or several, or it is evaluated in places alone.
bool hd_reduced_find(hd_arena_t *arena, const hd_definition_t *d,
                     hd_reduced_t *reduced);
// Whether threads can keep parts of a reduction side by side in shared memory:
// elements below a byte cannot be stored one by one.
bool hd_can_share(const hd_term_t *reduction);
// Stores what is made of the components' values.
void hd_draft_store_reduced(hd_kernel_draft_t *draft,
                            const hd_reduced_t *reduced,
                            const hd_expr_t *const *values);
// Whether what a term reads is contiguous along the last of some indices, those
// of one value alone left aside.
bool hd_reads_along(const hd_term_t *term, const hd_index_t *const *indices,
                    unsigned count);

// Several definitions over rows, from number first on, or one that reduces, as
// one kernel; returns how many, 0: none.
size_t hd_rule_rows(hd_rules_t *rules, size_t first);

// A definition that sorts, number first, and what is computed of its result
// element by element behind it; returns how many, 0: it does not, or an error
// was reported.
size_t hd_rule_sort(hd_rules_t *rules, size_t first);

// All definitions of a product of normalized rows as one kernel, by a template;
// returns how many, 0: they are no such product, or none answers.
size_t hd_rule_normed(hd_rules_t *rules);

// A product whose columns stand in pairs, and what is made of each
// (Schedule/Product/Pairs.h), as one kernel, by the best template for the
// machine.
bool hd_rule_pairs(hd_rules_t *rules);

// The first rule that takes a definition.
void hd_rules_apply(hd_rules_t *rules, const hd_definition_t *d);

// A thread for each element, or for a few neighbours. Takes every HD_DEFINE.
void hd_rule_pointwise(hd_rules_t *rules, const hd_definition_t *d);

// All of a task, two products with rows between them, by the best template for
// the machine.
bool hd_rule_attention(hd_rules_t *rules);

// Rows that are multiplied by a matrix each, which an index chooses of several,
// as all that the task does, by the best template for the machine.
bool hd_rule_grouped(hd_rules_t *rules);

// A sum of products, by the best template for the machine.
bool hd_rule_template(hd_rules_t *rules, const hd_definition_t *d);
// A product of a few rows as the task's only definition, by a template that is
// expected to take less than one for rows.
bool hd_rule_few(hd_rules_t *rules);

// A sum over windows of each channel, by the best template for the machine.
bool hd_rule_window(hd_rules_t *rules, const hd_definition_t *d);

// A sum of products, by tiles in shared memory.
bool hd_rule_contract(hd_rules_t *rules, const hd_definition_t *d);

// Several threads for each element.
bool hd_rule_reduce(hd_rules_t *rules, const hd_definition_t *d);

// A small reduction, a thread for several neighbours.
bool hd_rule_slide(hd_rules_t *rules, const hd_definition_t *d);

// A thread for each row along the axis of a scan.
bool hd_rule_scan(hd_rules_t *rules, const hd_definition_t *d);

// Every HD_SCATTER: what is not met first, then the values, in order where
// order matters.
void hd_rule_scatter(hd_rules_t *rules, const hd_definition_t *d);

#endif
