// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-run --check: what of a model is not supported, or what would be run.
#include "Fusion/Fuse.h"
#include "IR/Text/Printer.h"
#include "Support/File.h"
#include "Tools/RunTool.h"

#include <string.h>

static int64_t constant_bytes(const hd_graph_t *graph) {
  int64_t total = 0;
  for (size_t i = 0; i < graph->constants.size; i++) {
    const hd_value_t *value = graph->constants.data[i];
    int64_t bits = hd_scalar_bits(value->type);
    for (int k = 0; k < value->rank; k++)
      bits *= value->shape[k]->u.i;
    total += (bits + 7) / 8;
  }
  return total;
}

static bool is_evaluated(const hd_run_t *run) {
  return strcmp(hd_option_text(&run->options, RUN_DEVICE, "auto"), "ref") == 0;
}

// The tasks that the sizes which are known lead to, and whether kernels can be
// made of them, which the evaluator needs not; a walk that needs a value stops
// there, since nothing is run.
static bool check_tasks(hd_run_t *run, size_t *tasks, const char **stop) {
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&run->arena, hd_tensor_type_t, run->num_params + 1);
  size_t count = 0;
  for (uint32_t i = 0; i < run->num_params; i++) {
    const hd_run_tensor_t *t = &run->tensors[i];
    if (!hd_run_is_input(t))
      continue;
    types[count] =
        (hd_tensor_type_t){(hd_scalar_t)t->param->type.scalar, t->rank, {0}};
    memcpy(types[count++].shape, t->shape, sizeof(t->shape));
  }
  hd_expander_t *x = hd_expander_create(run->module, &run->module->arena,
                                        run->graph, types, NULL);
  const hd_graph_t *segment;
  hd_expand_state_t state = hd_expander_run(x, &segment);
  if (state == HD_EXPAND_FAILED ||
      (!is_evaluated(run) && !hd_graph_check_tasks(run->module, segment)))
    return false;
  *tasks = segment->nodes.size;
  *stop = state == HD_EXPAND_MORE ? hd_expander_wanted(x)->name : NULL;
  return true;
}

// "  image: f32[batch, 1, 8, 8]", each input, with the sizes that are known.
static void print_inputs(hd_run_t *run, hd_buffer_t *out) {
  for (uint32_t i = 0; i < run->num_params; i++) {
    const hd_run_tensor_t *t = &run->tensors[i];
    if (!hd_run_is_input(t))
      continue;
    const hd_tensor_t *tensor = t->param->tensor;
    hd_buffer_printf(out, "  %s: %s[", t->param->name,
                     hd_type_name(tensor->element));
    for (uint32_t axis = 0; axis < tensor->rank; axis++) {
      int64_t number;
      hd_buffer_puts(out, axis ? ", " : "");
      if (hd_eval_int(&run->env, tensor->shape[axis], &number))
        hd_buffer_printf(out, "%lld", (long long)number);
      else
        hd_expr_print(tensor->shape[axis], out);
    }
    hd_buffer_puts(out, "]\n");
  }
}

// "  what depends on batch and seq ...", or nothing.
static void print_open(hd_run_t *run, hd_buffer_t *out) {
  const char *last = NULL;
  for (uint32_t i = 0; i < run->num_params; i++)
    if (hd_run_is_open(run, i)) {
      hd_buffer_printf(out, "%s%s",
                       last ? ", " : "  not checked: what depends on ",
                       run->entry->params[i]->name);
      last = run->entry->params[i]->name;
    }
  if (last)
    hd_buffer_printf(out, "; give sizes by --shape=%s=N\n", last);
}

static bool has_open_sizes(const hd_run_t *run) {
  bool open = false;
  for (uint32_t i = 0; i < run->num_params; i++)
    open |= hd_run_is_open(run, i);
  return open;
}

// Where sizes are open, tasks are not known, but every node is.
bool hd_run_check(hd_run_t *run) {
  const char *stop = NULL;
  size_t tasks = 0;
  if (!hd_artifact_leave(run->module) ||
      !hd_expander_check(run->module, run->graph) || !hd_run_take_sizes(run))
    return false;
  bool open = has_open_sizes(run);
  if (!open && (!hd_run_settle_sizes(run) || !check_tasks(run, &tasks, &stop)))
    return false;
  hd_buffer_t text = {0};
  hd_buffer_printf(&text, "%s: %zu nodes, all supported; ", run->name,
                   run->graph->nodes.size);
  if (!open)
    hd_buffer_printf(&text, "%zu tasks%s%s; ", tasks,
                     stop ? " up to what depends on the data of " : "",
                     stop ? stop : "");
  hd_buffer_printf(&text, "%.1f MB of weights\n",
                   (double)constant_bytes(run->graph) * 1e-6);
  print_inputs(run, &text);
  print_open(run, &text);
  bool ok = hd_file_write_buffer(hd_run_diags(run), "-", &text);
  hd_buffer_fini(&text);
  return ok;
}
