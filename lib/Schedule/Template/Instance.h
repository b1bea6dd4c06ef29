// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel of a candidate, before it knows its task.
#ifndef HIDET_SCHEDULE_TEMPLATE_INSTANCE_H
#define HIDET_SCHEDULE_TEMPLATE_INSTANCE_H

#include "Schedule/Access/Access.h"
#include "Schedule/Rules/Rules.h"
#include "Schedule/Template/Candidates.h"
#include "Schedule/Template/FormTensor.h"

// The instance of its template's kernel that a candidate asks for:
// tiles[T = f16, BM = 64, ...], where first is "T = f16": what the form gives.
// leaving: as hd_surroundings_t has it.
const char *hd_candidate_instance(hd_arena_t *arena,
                                  const hd_candidate_t *candidate,
                                  const char *first, unsigned leaving);

// The instance of the kernel that runs behind it, with those of its values that
// this one has parameters for. The template has one.
const char *hd_candidate_then(hd_arena_t *arena,
                              const hd_candidate_t *candidate,
                              const char *instance);

// An instance with a form's sizes for its first scalar parameters, and its
// functions put in place; no item of the module yet. NULL after an error, which
// stands in the template's text.
hd_func_t *hd_candidate_kernel(hd_module_t *module,
                               const hd_candidate_t *candidate,
                               const char *instance, const hd_form_t *form);

// The same of any kernel of a module with such parameters, by its name and
// their values: tiles[T = f16]. num_sizes: HD_FORM_AXES at most.
hd_func_t *hd_instance_kernel(hd_module_t *module, hd_module_t *home,
                              const char *instance, const int64_t *sizes,
                              size_t num_sizes);

// Leaves out the maps that a launch cannot make: rows of the result, whose
// elements are of that type, may be no multiples of 16 bytes.
void hd_candidate_keep_maps(hd_arena_t *arena, hd_func_t *kernel,
                            const hd_form_tensor_t *result, hd_scalar_t type);

// The tensor of a template that becomes a workspace of the task: a local value.
// NULL: its shape is not known.
const hd_form_tensor_t *hd_candidate_workspace(hd_rules_t *rules,
                                               const hd_var_t *param);

// Stores what a definition makes of an element of its form's result, by the
// translator that the tensor's places are bound in, with its builder.
void hd_form_result_store(const hd_form_result_t *result, hd_translator_t *t,
                          const hd_expr_t *value);

// The kernel, with its accesses replaced as hooks say, becomes an item of the
// module and the rules' next launch. tensors: what the kernel's parameters are,
// in their order; others are arguments of the translator.
void hd_candidate_launch(hd_rules_t *rules, const hd_translator_t *t,
                         hd_func_t *kernel, const hd_access_hook_t *hooks,
                         size_t num_hooks,
                         const hd_form_tensor_t *const *tensors);

// That of a kernel whose parameters are these tensors, num_inputs that it loads
// and then results: what is no tensor of the task is computed where it is
// loaded, and stored as the form's result says. count: HD_MAX_FORM_TENSORS at
// most.
void hd_candidate_join(hd_rules_t *rules, hd_func_t *kernel,
                       const hd_form_result_t *result,
                       const hd_form_tensor_t *const *tensors,
                       unsigned num_inputs, unsigned count);

// Remarks: which candidate is taken, and why templates have none.
void hd_candidates_explain(const hd_rules_t *rules, const hd_form_t *form,
                           const char *instance,
                           const hd_candidates_t *candidates,
                           const hd_refusals_t *refused);

#endif
