// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass `bucket`: a graph as `expand` leaves it for the largest sizes, right
// for all below them, too, which it reads from an input.
//
//   graph main(x: f32[n, 8]) -> y { y = onnx13.Softmax(x) { axis = 0 } }
//   // --bucket=n=16
//   task seal_to(x: f32[16, 8], extents: i64[1]) -> y: f32[16, 8] {
//     y[p0: 16, p1: 8] = p0 < extents[0] ? x[p0, p1] : -inf
//   }
//   graph main(x: f32[16, 8], extents: i64[1]) -> y {
//     x_sealed: f32[16, 8] = seal_to(x, extents)
//     y: f32[16, 8] = softmax(x_sealed) { s = 0 }
//   }
//
// The first elements of each tensor that comes in or goes out are those of its
// true shape. Which number an element of `extents` is is found by comparing
// graphs (Fusion/Bucket/Bucket.h); a session does that, not who reads the text.

#include "Fusion/Bucket/BucketSizes.h"
#include "Fusion/Passes.h"

static bool fail(hd_module_t *module, hd_loc_t loc, const char *text) {
  return hd_error(&module->context->diags, loc, HD_E1002, "--bucket", text);
}

// The sizes that are given to the pass.
static bool read_sizes(hd_module_t *module, const hd_graph_t *graph,
                       const char *options, hd_bucket_sizes_t *sizes) {
  const char *name;
  size_t size;
  int64_t value;
  *sizes = (hd_bucket_sizes_t){0};
  while (hd_pass_option_next(&options, &name, &size, &value)) {
    if (sizes->count == HD_BUCKET_SIZES)
      return fail(module, graph->loc, "takes 7 sizes at most");
    if (value < 1)
      return fail(module, graph->loc, "takes bounds from 1 on");
    sizes->names[sizes->count] = hd_arena_strndup(&module->arena, name, size);
    sizes->values[sizes->count++] = value;
  }
  return true;
}

// Whether each name is a size of some graph.
static bool check_names(hd_module_t *module, const hd_graph_t *graph,
                        const hd_bucket_sizes_t *sizes) {
  for (size_t n = 0; n < sizes->count; n++) {
    bool known = false;
    for (size_t i = 0; i < module->items.size; i++)
      known |= module->items.data[i].kind == HD_ITEM_GRAPH &&
               hd_bucket_has_size(&module->arena, module->items.data[i].u.graph,
                                  sizes->names[n]);
    if (!known)
      return fail(module, graph->loc,
                  hd_arena_printf(&module->arena, "finds no size '%s'",
                                  sizes->names[n]));
  }
  return true;
}

static bool check_types(hd_module_t *module, const hd_graph_t *graph,
                        const hd_bucket_sizes_t *sizes) {
  hd_arena_t *arena = &module->arena;
  const char *missing;
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(arena, hd_tensor_type_t, graph->inputs.size + 1);
  if (hd_bucket_types(arena, graph, sizes, types, &missing))
    return true;
  return fail(module, graph->loc,
              missing ? hd_arena_printf(arena, "needs %s=N", missing)
                      : "takes inputs that are tensors of known type, rank and "
                        "sizes from 0 on");
}

bool hd_pass_bucket(hd_module_t *module, const hd_graph_t *graph,
                    const hd_pass_args_t *args, hd_item_t *version) {
  hd_bucket_sizes_t sizes;
  hd_bucket_refusal_t refusal;
  hd_expander_t *leader;
  const hd_inouts_t none = {0};
  if (!read_sizes(module, graph, args->options, &sizes) ||
      !check_names(module, graph, &sizes) ||
      !check_types(module, graph, &sizes))
    return false;
  const hd_bucket_t *bucket =
      hd_bucket_of(module, graph, &sizes, &none, &leader, &refusal);
  if (bucket) {
    version->u.graph = bucket->graph;
    return true;
  }
  if (!refusal.why)
    return false;
  return hd_error(
      &module->context->diags, refusal.node ? refusal.node->loc : graph->loc,
      HD_E1104, graph->name,
      refusal.node ? hd_arena_printf(&module->arena,
                                     "no bucket of sizes: node '%s' (%s): %s",
                                     hd_node_label(refusal.node),
                                     refusal.node->op, refusal.why)
                   : hd_arena_printf(&module->arena, "no bucket of sizes: %s",
                                     refusal.why));
}
