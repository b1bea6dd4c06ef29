// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that embeds the library: it loads a model, compiles it for what its
// inputs say, runs it on tensors in a device's memory, and says how far it is.
//
//   export PKG_CONFIG_PATH=hidet/lib/pkgconfig     (where hidet/ was unpacked)
//   cc -std=c17 embed.c $(pkg-config --cflags --libs hidet) -o embed
//   ./embed model.onnx [auto|cuda|sim]
//
// Of each input and output it prints type and shape, of each output the sum of
// what comes for inputs of ones. Sizes that vary are 1.
#include <hidet/Session.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 }; // Inputs, or outputs.

static void require(hidet_status_t status, const char *what) {
  if (status == HIDET_OK)
    return;
  fprintf(stderr, "%s: status %d\n%s", what, (int)status, hidet_messages());
  exit((int)status);
}

// Called by the library, perhaps on a thread of its own.
static void watch(void *argument, const hidet_event_t *event) {
  (void)argument;
  if (event->kind == HIDET_EVENT_PROGRESS)
    fprintf(stderr, "\rcompiled %zu of %zu kernels%s", event->done,
            event->total, event->done == event->total ? "\n" : "");
}

static size_t count(const hidet_array_t *array) {
  size_t elements = 1;
  for (unsigned i = 0; i < array->rank; i++)
    elements *= (size_t)array->shape[i];
  return elements;
}

static void describe(const char *what, const char *name,
                     const hidet_array_t *array) {
  printf("%s %s: %s[", what, name, array->type);
  for (unsigned i = 0; i < array->rank; i++)
    printf("%s%lld", i ? ", " : "", (long long)array->shape[i]);
  printf("]");
}

// A tensor for an array, of which the array has the address from then on.
static hidet_tensor_t *place(hidet_device_t *device, hidet_array_t *array) {
  hidet_tensor_t *tensor;
  require(hidet_tensor_create(device, array->type, array->shape, array->rank,
                              &tensor),
          "a tensor");
  array->data = hidet_tensor_data(tensor);
  return tensor;
}

static hidet_array_t describe_input(const hidet_model_t *model, size_t i) {
  hidet_value_t value;
  hidet_model_input(model, i, &value);
  hidet_array_t array = {.type = value.type, .rank = (unsigned)value.rank};
  if (!value.type || strcmp(value.type, "f32") != 0 || value.rank < 0) {
    fprintf(stderr, "input %s is no f32 of a known rank\n", value.name);
    exit(2);
  }
  for (unsigned k = 0; k < array.rank; k++)
    array.shape[k] = value.shape[k] < 0 ? 1 : value.shape[k];
  describe("input", value.name, &array);
  printf("\n");
  return array;
}

static void write_ones(hidet_tensor_t *tensor, size_t elements) {
  float *ones = malloc(elements * sizeof(float) + 1);
  for (size_t i = 0; ones && i < elements; i++)
    ones[i] = 1;
  require(ones ? hidet_tensor_write(tensor, ones) : HIDET_RESOURCE, "an input");
  free(ones);
}

static void print_sum(hidet_tensor_t *tensor, const hidet_array_t *array) {
  float *values = malloc(hidet_tensor_size(tensor) + 1);
  double sum = 0;
  require(values ? hidet_tensor_read(tensor, values) : HIDET_RESOURCE,
          "an output");
  for (size_t i = 0; i < count(array) && strcmp(array->type, "f32") == 0; i++)
    sum += values[i];
  printf(", sum %g\n", sum);
  free(values);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: embed model.onnx [auto|cuda|sim]\n");
    return 2;
  }
  hidet_context_t *context = hidet_context_create();
  hidet_device_t *device;
  hidet_model_t *model;
  hidet_session_t *session;
  hidet_context_watch(context, watch, NULL);
  require(hidet_device_open(context, argc > 2 ? argv[2] : "auto", &device),
          "the device");
  require(hidet_model_load(context, argv[1], &model), argv[1]);
  require(hidet_session_create(model, device, &session), "a session");

  size_t num_inputs = hidet_model_num_inputs(model);
  size_t num_outputs = hidet_model_num_outputs(model);
  hidet_array_t inputs[MOST], outputs[MOST];
  hidet_tensor_t *in[MOST], *out[MOST];
  if (num_inputs > MOST || num_outputs > MOST)
    require(HIDET_UNSUPPORTED, "more than 16 inputs or outputs");
  for (size_t i = 0; i < num_inputs; i++) {
    inputs[i] = describe_input(model, i);
    in[i] = place(device, &inputs[i]);
    write_ones(in[i], count(&inputs[i]));
  }
  // Compiles; says what comes out.
  require(
      hidet_session_prepare(session, inputs, num_inputs, outputs, num_outputs),
      "compiling");
  for (size_t i = 0; i < num_outputs; i++)
    out[i] = place(device, &outputs[i]);
  require(hidet_session_enqueue(session, inputs, num_inputs, outputs,
                                num_outputs, NULL),
          "a run");
  require(hidet_session_wait(session), "its end");
  for (size_t i = 0; i < num_outputs; i++) {
    hidet_value_t value;
    hidet_model_output(model, i, &value);
    describe("output", value.name, &outputs[i]);
    print_sum(out[i], &outputs[i]);
    hidet_tensor_destroy(out[i]);
  }
  for (size_t i = 0; i < num_inputs; i++)
    hidet_tensor_destroy(in[i]);
  hidet_session_destroy(session);
  hidet_model_destroy(model);
  hidet_device_close(device);
  hidet_context_destroy(context);
  return 0;
}
