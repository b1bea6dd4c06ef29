// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-run's outputs: saved, printed, compared, or summed up.
#include "Graph/ONNX/Import.h"
#include "Runtime/Npy.h"
#include "Runtime/Storage.h"
#include "Support/File.h"
#include "Support/HostMemory.h"
#include "Tools/RunTool.h"

#include <math.h>
#include <stdio.h>

static const hd_loc_t nowhere;

// The output takes the place of the input, where the tensor is both.
static bool fetch(hd_run_t *run, hd_run_tensor_t *t) {
  hd_context_t *context = &run->process.context;
  hd_host_tensor_fini(&t->host);
  if (!hd_host_tensor_init(&t->host, &context->diags, &context->budget,
                           t->param->name, (hd_scalar_t)t->param->type.scalar,
                           t->shape, t->rank))
    return false;
  if (hd_storage_is_plain(t->param->tensor))
    return run->device->ops->download(run->device, t->host.data,
                                      t->slot.address, t->host.bytes);
  unsigned char *storage = hd_host_memory_alloc(
      &context->diags, &context->budget, t->param->name, t->slot.bytes);
  if (!storage)
    return false;
  bool ok = run->device->ops->download(run->device, storage, t->slot.address,
                                       t->slot.bytes) &&
            hd_storage_unpack(&run->env, &run->arena, t->param->tensor, storage,
                              t->slot.bytes, &t->host);
  hd_host_memory_free(&context->budget, storage, t->slot.bytes);
  return ok;
}

static void type_text(const hd_run_tensor_t *t, hd_buffer_t *out) {
  char shape[400];
  hd_buffer_printf(out, "%s: %s%s", t->param->name,
                   hd_scalar_name(t->host.type),
                   hd_shape_text(t->shape, t->rank, shape, sizeof(shape)));
}

// min, max and mean leave NaN out and count it.
static void summarize(const hd_run_tensor_t *t, hd_buffer_t *out) {
  double least = INFINITY, greatest = -INFINITY, sum = 0;
  int64_t nans = 0;
  for (int64_t i = 0; i < t->host.count; i++) {
    double value = hd_host_tensor_get(&t->host, i);
    nans += isnan(value);
    least = fmin(least, value);
    greatest = fmax(greatest, value);
    sum += isnan(value) ? 0 : value;
  }
  int64_t numbers = t->host.count - nans;
  type_text(t, out);
  if (numbers)
    hd_buffer_printf(out, " min %.6g max %.6g mean %.6g", least, greatest,
                     sum / (double)numbers);
  if (nans)
    hd_buffer_printf(out, " NaN %lld of %lld", (long long)nans,
                     (long long)t->host.count);
  hd_buffer_puts(out, "\n");
}

// Nested brackets, the last axis on a line.
static void print_elements(const hd_run_tensor_t *t, hd_buffer_t *out) {
  type_text(t, out);
  hd_buffer_puts(out, " =\n");
  for (int64_t i = 0; i < t->host.count; i++) {
    int64_t inner = 1;
    unsigned opened = 0, closed = 0;
    for (unsigned axis = t->rank; axis-- > 0;) {
      inner *= t->shape[axis];
      opened += i % inner == 0;
      closed += (i + 1) % inner == 0;
    }
    if (opened || t->rank == 0)
      hd_buffer_printf(out, "%*s", (int)(1 + t->rank - opened), "");
    for (unsigned k = 0; k < opened; k++)
      hd_buffer_puts(out, "[");
    hd_host_tensor_print_element(&t->host, i, out);
    for (unsigned k = 0; k < closed; k++)
      hd_buffer_puts(out, "]");
    hd_buffer_puts(out, closed || t->rank == 0 ? "\n" : ", ");
  }
}

static bool is_float(const hd_host_tensor_t *t) {
  return hd_scalar_class(t->type) == HD_CLASS_FLOAT;
}

hd_tolerance_t hd_run_tolerance(const hd_run_t *run) {
  return (hd_tolerance_t){hd_option_real(&run->options, RUN_RTOL, NAN),
                          hd_option_real(&run->options, RUN_ATOL, NAN)};
}

// One element. Integers are compared as integers where both are.
static void compare_element(hd_run_comparison_t *c, const hd_host_tensor_t *a,
                            const hd_host_tensor_t *b, int64_t i) {
  double x = hd_host_tensor_get(a, i), y = hd_host_tensor_get(b, i);
  bool same = x == y || (isnan(x) && isnan(y));
  if (!is_float(a) && !is_float(b))
    same = hd_host_tensor_get_int(a, i) == hd_host_tensor_get_int(b, i);
  if (same)
    return;
  double error = fabs(x - y), relative = error / fabs(y);
  if (!(error <= c->max_abs)) // NaN and infinity are the largest.
    c->max_abs = isnan(error) ? INFINITY : error;
  if (y != 0 && !(relative <= c->max_rel))
    c->max_rel = isnan(relative) ? INFINITY : relative;
  if (hd_tolerance_holds(c->tolerance, x, y))
    return;
  if (c->mismatches++ == 0)
    c->first = i;
}

static bool report_mismatch(hd_run_t *run, const hd_run_tensor_t *t,
                            const hd_host_tensor_t *expected) {
  char index[400];
  hd_buffer_t found = {0}, wanted = {0};
  hd_host_tensor_print_element(&t->host, t->comparison.first, &found);
  hd_host_tensor_print_element(expected, t->comparison.first, &wanted);
  hd_error(hd_run_diags(run), nowhere, HD_E1004, t->param->name,
           (long long)t->comparison.mismatches, (long long)t->host.count,
           t->comparison.tolerance.absolute, t->comparison.tolerance.relative,
           t->comparison.max_abs, t->comparison.max_rel,
           hd_index_text(t->shape, t->rank, t->comparison.first, index,
                         sizeof(index)),
           hd_buffer_text(&found), hd_buffer_text(&wanted));
  hd_buffer_fini(&found);
  hd_buffer_fini(&wanted);
  return false;
}

// Floats may be expected in another float type (a reference of f32 or f64), and
// integers in another integer type.
static bool check_expected(hd_run_t *run, const hd_run_tensor_t *t,
                           const hd_host_tensor_t *expected) {
  char found[400], wanted[400];
  bool same_shape =
      expected->rank == t->rank &&
      memcmp(expected->shape, t->shape, t->rank * sizeof(*t->shape)) == 0;
  if (!same_shape)
    return hd_error(
        hd_run_diags(run), nowhere, HD_E0806, t->expected + 1,
        hd_shape_text(expected->shape, expected->rank, found, sizeof(found)),
        hd_shape_text(t->shape, t->rank, wanted, sizeof(wanted)));
  if (is_float(expected) != is_float(&t->host))
    return hd_error(hd_run_diags(run), nowhere, HD_E0805, t->expected + 1,
                    hd_scalar_name(expected->type),
                    hd_scalar_name(t->host.type));
  return true;
}

// Types that NumPy lacks are read as what they are expected to be.
static bool read_expected(hd_run_t *run, const hd_run_tensor_t *t,
                          hd_host_tensor_t *expected) {
  hd_context_t *context = &run->process.context;
  const char *path = t->expected + 1;
  if (hd_has_suffix(path, ".pb"))
    return hd_onnx_read_tensor(context, path, expected);
  if (!hd_npy_read(&context->diags, &context->budget, path, HD_VOID, expected))
    return false;
  hd_scalar_t type = t->host.type;
  bool raw = (type == HD_BF16 && expected->type == HD_U16) ||
             (is_float(&t->host) && hd_scalar_bits(type) <= 8 &&
              expected->type == HD_U8);
  if (raw)
    expected->type = type;
  return true;
}

static bool compare(hd_run_t *run, hd_run_tensor_t *t, hd_buffer_t *out) {
  hd_host_tensor_t expected;
  bool ok =
      read_expected(run, t, &expected) && check_expected(run, t, &expected);
  if (ok) {
    hd_run_comparison_t *c = &t->comparison;
    *c = (hd_run_comparison_t){.done = true, .first = -1};
    c->tolerance = hd_tolerance_for(hd_run_tolerance(run), &expected);
    for (int64_t i = 0; i < t->host.count; i++)
      compare_element(c, &t->host, &expected, i);
    type_text(t, out);
    hd_buffer_printf(out,
                     " largest error %.3g (absolute), %.3g (relative); %lld "
                     "of %lld differ\n",
                     c->max_abs, c->max_rel, (long long)c->mismatches,
                     (long long)t->host.count);
    if (c->mismatches)
      ok = report_mismatch(run, t, &expected);
  }
  hd_host_tensor_fini(&expected);
  return ok;
}

static bool report_output(hd_run_t *run, hd_run_tensor_t *t, hd_buffer_t *out) {
  bool print = hd_option_given(&run->options, RUN_PRINT);
  bool ok = true;
  if (t->output)
    ok = hd_npy_write(hd_run_diags(run), t->output + 1, &t->host);
  if (print)
    print_elements(t, out);
  if (t->expected)
    ok &= compare(run, t, out);
  if (!print && !t->output && !t->expected && !run->process.quiet)
    summarize(t, out);
  return ok;
}

bool hd_run_outputs(hd_run_t *run) {
  bool ok = true;
  hd_buffer_t text = {0};
  hd_times_t *times = &run->process.context.times;
  size_t part = hd_times_enter(times, "outputs");
  for (uint32_t i = 0; i < run->num_params; i++) {
    hd_run_tensor_t *t = &run->tensors[i];
    if (hd_run_is_output(t))
      ok &= (run->graph || fetch(run, t)) && report_output(run, t, &text);
  }
  if (text.size)
    ok &= hd_file_write_buffer(hd_run_diags(run), "-", &text);
  hd_buffer_fini(&text);
  hd_times_leave(times, part);
  return ok;
}
