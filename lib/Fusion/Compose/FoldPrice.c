// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What norms and the products around them are expected to take, folded and not.
#include "Fusion/Compose/FoldState.h"
#include "Fusion/Fuse.h"
#include "IR/Text/Library.h"
#include "Schedule/Template/Candidates.h"
#include "Schedule/Template/Machine.h"

const hd_candidates_t *hd_fold_candidates(hd_folder_t *f, const hd_node_t *node,
                                          hd_form_kind_t kind) {
  static const hd_candidates_t none;
  const hd_flattened_t *flattened = hd_fusion_flatten(f->fusion, node);
  if (!flattened)
    return &none;
  hd_candidates_t *candidates = hd_ptr_map_find(&f->prices, flattened);
  if (!candidates) {
    candidates = HD_ARENA_NEW(f->arena, hd_candidates_t);
    if (!hd_task_candidates(f->module->context, f->arena, flattened->flat, 0, 0,
                            candidates))
      candidates->size = 0;
    hd_ptr_map_set(f->arena, &f->prices, flattened, candidates);
  }
  return candidates->size && candidates->data[0].template->form == kind
             ? candidates
             : &none;
}

double hd_fold_price(hd_folder_t *f, const hd_node_t *node,
                     hd_form_kind_t kind) {
  const hd_candidates_t *candidates = hd_fold_candidates(f, node, kind);
  return candidates->size ? candidates->data[0].us : 0;
}

static const hd_value_t *probe_value(hd_folder_t *f, hd_scalar_t type,
                                     const int64_t *shape, unsigned rank,
                                     const hd_node_t *product) {
  return hd_value_make(f->arena, "probe", type, shape, rank, product->loc);
}

// Of a product of rows in parts, behind x: what it knows of them, its matrix,
// what it adds.
static void probe_parts(hd_folder_t *f, const hd_norm_t *norm,
                        const hd_node_t *product, const hd_value_t **inputs) {
  bool centred = norm->bias;
  hd_tensor_type_t rows = hd_scheduled_type(product->inputs[0]);
  hd_tensor_type_t matrix = hd_scheduled_type(product->inputs[1]);
  const hd_attribute_t *tb = hd_node_attribute(product, "tb");
  bool turned = tb && tb->u.i;
  int64_t parts = rows.shape[rows.rank - 1] / norm->part;
  rows.shape[rows.rank - 1] = parts;
  inputs[1] = inputs[2] =
      probe_value(f, HD_F32, rows.shape, rows.rank, product);
  matrix.shape[turned] += centred ? parts : 0;
  inputs[centred ? 3 : 2] =
      probe_value(f, matrix.type, matrix.shape, 2, product);
  inputs[4] = probe_value(f, HD_F32, &matrix.shape[!turned], 1, product);
}

const char *hd_fold_product(const hd_norm_t *norm, bool asked) {
  static const char *const tasks[2][2] = {{"rms_matmul", "scaled_matmul"},
                                          {"norm_matmul", "centred_matmul"}};
  return asked && norm->part && !norm->bias
             ? "scaled_matmul_inverse"
             : tasks[norm->bias != NULL][norm->part != 0];
}

const hd_node_t *hd_fold_probe(hd_folder_t *f, const hd_norm_t *norm,
                               const hd_node_t *product) {
  bool centred = norm->bias;
  const char *op = hd_fold_product(norm, false);
  hd_tensor_type_t result = hd_scheduled_type(product->outputs[0]);
  const hd_value_t **inputs = HD_ARENA_ARRAY(f->arena, const hd_value_t *, 5);
  const hd_value_t **outputs = HD_ARENA_ARRAY(f->arena, const hd_value_t *, 3);
  const hd_attribute_t **attributes =
      HD_ARENA_ARRAY(f->arena, const hd_attribute_t *, 3);
  hd_attribute_t *epsilon = HD_ARENA_NEW(f->arena, hd_attribute_t);
  *epsilon = (hd_attribute_t){
      .name = "epsilon", .kind = HD_ATTRIBUTE_FLOAT, .u.f = norm->epsilon};
  hd_node_t *node = HD_ARENA_NEW(f->arena, hd_node_t);
  *node = (hd_node_t){.op = op,
                      .task = hd_library_task(f->module->context, op),
                      .loc = product->loc,
                      .num_inputs = (centred ? 4u : 2u) + (norm->part != 0),
                      .inputs = inputs,
                      .num_outputs = centred ? 3 : 2 - (norm->part != 0),
                      .outputs = outputs,
                      .attributes = attributes};
  inputs[0] = product->inputs[0];
  inputs[1] = product->inputs[1];
  inputs[2] = inputs[3] =
      probe_value(f, HD_F32, &result.shape[result.rank - 1], 1, product);
  if (norm->part)
    probe_parts(f, norm, product, inputs);
  outputs[0] = product->outputs[0];
  const char *const kept[] = {"tb", "R"};
  for (int i = 0; i < 2; i++) {
    const hd_attribute_t *a = hd_node_attribute(product, kept[i]);
    if (a)
      attributes[node->num_attributes++] = a;
  }
  attributes[node->num_attributes++] = epsilon;
  return node;
}

double hd_fold_price_norm(hd_folder_t *f, const hd_norm_t *norm) {
  const hd_machine_t *machine = &f->module->context->schedules->machine;
  double bits = (double)hd_scalar_bits(norm->x->type) +
                (double)hd_scalar_bits(norm->node->outputs[0]->type);
  return machine->launch + machine->chained_cycles / machine->mhz +
         (double)hd_fold_count(norm->x) * bits / 8 / machine->gbs * 1e-3;
}
