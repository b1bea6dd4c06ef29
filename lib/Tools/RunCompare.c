// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-run --compare=f32: the error of a precision, layer by layer. The model
// is run twice on the same inputs, in f32 and in what --precision says; of each
// node of the model the last float that it computes is compared.
#include "Support/File.h"
#include "Tools/RunTool.h"

#include <math.h>
#include <string.h>

enum { NUM_MARKED = 5 }; // The worst ones.

// What the first run shows, in order; where the second one is among it.
typedef struct recorder {
  hd_run_t *run;
  hd_arena_t arena;
  HD_VEC(const hd_host_tensor_t *) first; // NULL: no floats.
  size_t next;
  bool differs; // The two went different ways.
} recorder_t;

static bool is_float(const hd_host_tensor_t *data) {
  return hd_scalar_class(data->type) == HD_CLASS_FLOAT;
}

static void keep(void *argument, const hd_node_t *node, uint32_t output,
                 const hd_host_tensor_t *data) {
  recorder_t *r = argument;
  const hd_host_tensor_t *kept = NULL;
  (void)node;
  (void)output;
  if (is_float(data)) {
    hd_host_tensor_t *copy =
        hd_host_tensor_make(&r->arena, data->type, data->shape, data->rank);
    memcpy(copy->data, data->data, data->bytes);
    kept = copy;
  }
  hd_vec_push(&r->arena, &r->first, kept);
}

static double error_of(const hd_host_tensor_t *data,
                       const hd_host_tensor_t *truth, double *largest) {
  double error = 0;
  *largest = 0;
  for (int64_t i = 0; i < truth->count; i++) {
    double x = hd_host_tensor_get(data, i), y = hd_host_tensor_get(truth, i);
    double off = fabs(x - y);
    if (isfinite(y) && fabs(y) > *largest)
      *largest = fabs(y);
    if (x == y || (isnan(x) && isnan(y)))
      continue;
    if (!(off <= error))
      error = isnan(off) ? INFINITY : off;
  }
  return error == 0 ? 0 : *largest > 0 ? error / *largest : INFINITY;
}

static bool same_shape(const hd_host_tensor_t *a, const hd_host_tensor_t *b) {
  return a->rank == b->rank &&
         memcmp(a->shape, b->shape, sizeof(int64_t) * a->rank) == 0;
}

static hd_run_layer_t *layer_of(hd_run_t *run, const char *label) {
  size_t count = run->layers.size;
  if (count == 0 || strcmp(run->layers.data[count - 1].label, label) != 0)
    hd_vec_push(&run->arena, &run->layers, (hd_run_layer_t){.label = label});
  return &run->layers.data[run->layers.size - 1];
}

// A row for each label: what its last task gives stands for it.
static void compare(void *argument, const hd_node_t *node, uint32_t output,
                    const hd_host_tensor_t *data) {
  recorder_t *r = argument;
  if (r->next == r->first.size)
    r->differs = true;
  if (r->differs)
    return;
  const hd_host_tensor_t *truth = r->first.data[r->next++];
  if (!truth)
    return;
  if (!is_float(data) || !same_shape(data, truth)) {
    r->differs = true;
    return;
  }
  hd_run_layer_t *layer =
      layer_of(r->run, node->label ? node->label
                                   : hd_value_label(node->outputs[output]));
  layer->op = node->op;
  layer->type = data->type;
  layer->error = error_of(data, truth, &layer->largest);
  layer->tasks++;
}

static bool run_once(recorder_t *r, const hd_host_tensor_t *inputs,
                     const hd_model_options_t *options) {
  hd_run_t *run = r->run;
  size_t count = run->graph->outputs.size;
  hd_host_tensor_t *outputs =
      HD_ARENA_ARRAY(&run->arena, hd_host_tensor_t, count + 1);
  hd_session_t *session =
      hd_session_create(run->module, run->graph, run->device, options);
  bool ok = hd_session_run(session, inputs, outputs);
  hd_session_destroy(session);
  for (size_t i = 0; i < count; i++)
    hd_host_tensor_fini(&outputs[i]);
  return ok;
}

static bool run_both(recorder_t *r, const hd_host_tensor_t *inputs) {
  hd_model_options_t options = hd_run_session_options(r->run);
  options.watch_argument = r;
  options.watch = keep;
  options.precision = HD_PRECISION_F32;
  if (!run_once(r, inputs, &options))
    return false;
  options.watch = compare;
  options.precision = hd_run_precision(r->run);
  return run_once(r, inputs, &options);
}

// Whether a layer is one of the worst; of equal ones the first come first.
static bool is_marked(const hd_run_t *run, size_t layer) {
  const hd_run_layer_t *layers = run->layers.data;
  size_t worse = 0;
  for (size_t i = 0; i < run->layers.size; i++)
    worse += layers[i].error > layers[layer].error ||
             (layers[i].error == layers[layer].error && i < layer);
  return layers[layer].error > 0 && worse < NUM_MARKED;
}

static bool print(hd_run_t *run) {
  hd_buffer_t text = {0};
  hd_buffer_printf(&text, "  %-10s %-10s %-6s %5s  %s\n", "error", "largest",
                   "type", "tasks", "node");
  for (size_t i = 0; i < run->layers.size; i++) {
    hd_run_layer_t *layer = &run->layers.data[i];
    layer->is_marked = is_marked(run, i);
    hd_buffer_printf(&text, "%c %-10.2e %-10.3g %-6s %5u  %s (%s)\n",
                     layer->is_marked ? '*' : ' ', layer->error, layer->largest,
                     hd_scalar_name(layer->type), layer->tasks, layer->label,
                     layer->op);
  }
  bool ok = hd_file_write_buffer(hd_run_diags(run), "-", &text);
  hd_buffer_fini(&text);
  return ok;
}

bool hd_run_compare(hd_run_t *run, const hd_host_tensor_t *inputs) {
  recorder_t r = {.run = run};
  hd_arena_init_local(&r.arena, &run->process.context.budget);
  bool ok = run_both(&r, inputs);
  hd_arena_fini(&r.arena);
  if (ok && (r.differs || r.next != r.first.size))
    return hd_error(hd_run_diags(run), (hd_loc_t){0, 0}, HD_E1104, run->name,
                    "it takes another way in the other precision, so its "
                    "layers cannot be compared");
  return ok && print(run);
}
