// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-run's inputs: from the command line to the device's memory.
#include "Graph/ONNX/Import.h"
#include "Runtime/Npy.h"
#include "Runtime/Saved.h"
#include "Runtime/Storage.h"
#include "Support/HostMemory.h"
#include "Support/Suggest.h"
#include "Tools/RunTool.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const hd_loc_t nowhere;

static bool usage(hd_run_t *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool usage(hd_run_t *run, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = hd_arena_vprintf(&run->arena, format, args);
  va_end(args);
  return hd_error(hd_run_diags(run), nowhere, HD_E1003, text);
}

// "NAME=rest": the rest, and the name's length; else the whole text and 0. A
// model's names may hold any character.
static const char *split_name(const hd_run_t *run, const char *text,
                              size_t *length) {
  for (uint32_t i = 0; i < run->num_params; i++) {
    *length = strlen(run->entry->params[i]->name);
    if (*length && text[*length] == '=' &&
        strncmp(text, run->entry->params[i]->name, *length) == 0)
      return text + *length + 1;
  }
  size_t n = 0;
  while (isalnum((unsigned char)text[n]) || text[n] == '_')
    n++;
  bool named = n > 0 && text[n] == '=' && !isdigit((unsigned char)text[0]);
  *length = named ? n : 0;
  return named ? text + n + 1 : text;
}

static bool wants(const hd_run_tensor_t *tensor, int option) {
  return option == RUN_INPUT ? hd_run_is_input(tensor)
                             : hd_run_is_output(tensor);
}

static const char **place(hd_run_tensor_t *tensor, int option) {
  return option == RUN_INPUT    ? &tensor->input
         : option == RUN_OUTPUT ? &tensor->output
                                : &tensor->expected;
}

// Whether a model's constant has that name, in its words or in the text's.
static bool is_constant(const hd_graph_t *graph, const char *name) {
  for (size_t i = 0; graph && i < graph->constants.size; i++) {
    const hd_value_t *value = graph->constants.data[i];
    if (strcmp(hd_value_label(value), name) == 0)
      return true;
  }
  return false;
}

// The parameter of that name; reports where there is none. A graph may give
// out its input, or one value twice: then it is one that the option is for, and
// that has no use of it yet.
static int find_param(hd_run_t *run, int option, const char *text,
                      size_t length) {
  const char *name = hd_arena_strndup(&run->arena, text, length);
  hd_suggestion_t near = {.wanted = name};
  int found = -1, best = -1;
  for (uint32_t i = 0; i < run->num_params; i++) {
    hd_run_tensor_t *tensor = &run->tensors[i];
    bool takes = option != RUN_SHAPE && wants(tensor, option);
    int rank = takes + (takes && !*place(tensor, option));
    hd_suggestion_add(&near, run->entry->params[i]->name);
    if (strcmp(run->entry->params[i]->name, name) == 0 && rank > best)
      found = (int)i, best = rank;
  }
  if (found >= 0)
    return found;
  const char *option_name = run->command.options[option].name;
  char suggestion[100];
  if (is_constant(run->graph, name))
    usage(run,
          "--%s: '%s' is a constant of '%s', which is not given from "
          "outside",
          option_name, name, run->entry->name);
  else
    usage(run, "--%s: '%s' has no parameter '%s'%s", option_name,
          run->entry->name, name,
          hd_suggestion_text(&near, "", suggestion, sizeof(suggestion)));
  return -1;
}

// The next parameter, in order, that an option without a name is for.
static int next_param(hd_run_t *run, int option) {
  for (uint32_t i = 0; i < run->num_params; i++)
    if (wants(&run->tensors[i], option) && !*place(&run->tensors[i], option))
      return (int)i;
  return -1;
}

// --input=n=128 or alpha=0.5 of a scalar parameter.
static bool bind_scalar(hd_run_t *run, const hd_var_t *var, const char *text) {
  char *end;
  if (hd_env_find(&run->env, var))
    return usage(run, "'%s' is given twice", var->name);
  if (hd_type_is_float(var->type)) {
    double value = strtod(text, &end);
    if (end == text || *end)
      return usage(run, "'%s' is a number of type %s, found '%s'", var->name,
                   hd_type_name(var->type), text);
    hd_env_add(&run->arena, &run->env, var, (hd_number_t){.f = value});
    return true;
  }
  errno = 0;
  long long value = strtoll(text, &end, 0);
  if (end == text || *end || errno)
    return usage(run, "'%s' is a number of type %s, found '%s'", var->name,
                 hd_type_name(var->type), text);
  return hd_bind_int(&run->process.context, &run->env, &run->arena, var, value);
}

static bool is_seed(const char *text) {
  char *end;
  errno = 0;
  strtoull(text, &end, 10);
  return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0;
}

static bool check_value(hd_run_t *run, int option, const char *name,
                        const char *value) {
  if (value[0] == '@' && value[1]) {
    if (hd_has_suffix(value, ".pb") && option == RUN_OUTPUT)
      return hd_error(hd_run_diags(run), nowhere, HD_E0810, value + 1,
                      "a tensor of ONNX");
    return true;
  }
  if (option != RUN_INPUT)
    return usage(run, "%s takes @FILE.npy, found '%s'", name, value);
  char *end;
  strtod(value, &end);
  bool number = end != value && *end == '\0';
  bool random = strncmp(value, "random", 6) == 0 &&
                (value[6] == '\0' || (value[6] == ':' && is_seed(value + 7)));
  return number || random || strcmp(value, "zeros") == 0 ||
         usage(run,
               "--input takes @FILE.npy, random[:SEED], zeros or a number, "
               "found '%s'",
               value);
}

// One use of --input, --output or --expected.
static bool take_use(hd_run_t *run, const hd_option_use_t *use) {
  const char *option = run->command.options[use->option].name;
  size_t length;
  const char *value = split_name(run, use->value, &length);
  int index = length ? find_param(run, use->option, use->value, length)
                     : next_param(run, use->option);
  if (index < 0)
    return length == 0 &&
           usage(run, "--%s=%s: '%s' has no more %s", option, use->value,
                 run->entry->name,
                 use->option == RUN_INPUT ? "inputs" : "outputs");
  const hd_var_t *var = run->entry->params[index];
  hd_run_tensor_t *tensor = &run->tensors[index];
  if (!var->tensor && use->option == RUN_INPUT)
    return bind_scalar(run, var, value);
  if (!wants(tensor, use->option))
    return usage(run, "--%s: '%s' is no %s of '%s'", option, var->name,
                 use->option == RUN_INPUT ? "input" : "output",
                 run->entry->name);
  if (*place(tensor, use->option))
    return usage(run, "--%s: '%s' is given twice", option, var->name);
  *place(tensor, use->option) = value;
  return check_value(run, use->option, option, value);
}

// "1x3x224"; false where it is none.
static bool parse_shape(const char *text, int64_t *shape, unsigned *rank) {
  *rank = 0;
  for (;;) {
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)*text) || *rank == HD_TENSOR_MAX_RANK)
      return false;
    shape[(*rank)++] = strtoll(text, &end, 10);
    if (errno || (*end != 'x' && *end != '\0'))
      return false;
    if (*end == '\0')
      return true;
    text = end + 1;
  }
}

static bool take_shape(hd_run_t *run, const char *text) {
  size_t length;
  const char *value = split_name(run, text, &length);
  int64_t shape[HD_TENSOR_MAX_RANK];
  unsigned rank;
  if (!length || !parse_shape(value, shape, &rank))
    return usage(run, "--shape takes NAME=128 or NAME=1x3x224, found '%s'",
                 text);
  int index = find_param(run, RUN_SHAPE, text, length);
  if (index < 0)
    return false;
  const hd_var_t *var = run->entry->params[index];
  if (!var->tensor)
    return bind_scalar(run, var, value);
  hd_run_tensor_t *tensor = &run->tensors[index];
  if (tensor->has_shape)
    return usage(run, "--shape: '%s' is given twice", var->name);
  tensor->has_shape = true;
  tensor->rank = rank;
  memcpy(tensor->shape, shape, sizeof(shape));
  return hd_bind_shape(&run->process.context, &run->env, &run->arena, var,
                       shape, rank);
}

static bool take_options(hd_run_t *run) {
  bool ok = true;
  for (size_t i = 0; i < run->options.uses.size; i++) {
    const hd_option_use_t *use = &run->options.uses.data[i];
    if (use->option == RUN_SHAPE)
      ok &= take_shape(run, use->value);
    else if (use->option == RUN_INPUT || use->option == RUN_OUTPUT ||
             use->option == RUN_EXPECTED)
      ok &= take_use(run, use);
  }
  return ok;
}

// A file of --input: .npy, or a tensor of ONNX.
static bool read_file(hd_run_t *run, hd_run_tensor_t *t) {
  hd_context_t *context = &run->process.context;
  hd_scalar_t type = (hd_scalar_t)t->param->type.scalar;
  const char *path = t->input + 1;
  if (!hd_has_suffix(path, ".pb"))
    return hd_npy_read(&context->diags, &context->budget, path, type, &t->host);
  return hd_onnx_read_tensor(context, path, &t->host) &&
         (t->host.type == type ||
          hd_error(&context->diags, nowhere, HD_E0805, path,
                   hd_scalar_name(t->host.type), hd_scalar_name(type)));
}

// Files are read before shapes are settled, for they say what the sizes are.
static bool read_inputs(hd_run_t *run) {
  bool ok = true;
  hd_context_t *context = &run->process.context;
  for (uint32_t i = 0; i < run->num_params; i++) {
    hd_run_tensor_t *t = &run->tensors[i];
    if (!t->input || t->input[0] != '@')
      continue;
    ok &= read_file(run, t) &&
          hd_bind_shape(context, &run->env, &run->arena, t->param,
                        t->host.shape, t->host.rank);
  }
  return ok;
}

bool hd_run_is_open(const hd_run_t *run, uint32_t param) {
  const hd_var_t *var = run->entry->params[param];
  return !var->tensor && !hd_env_find(&run->env, var);
}

static bool check_sizes(hd_run_t *run) {
  bool ok = true;
  for (uint32_t i = 0; i < run->num_params; i++) {
    const hd_var_t *var = run->entry->params[i];
    if (!hd_run_is_open(run, i))
      continue;
    if (hd_type_is_float(var->type))
      ok = usage(run, "'%s' is not known: give it by --input=%s=NUMBER",
                 var->name, var->name);
    else
      ok = hd_error(hd_run_diags(run), nowhere, HD_E0808, var->name, var->name);
  }
  return ok;
}

static bool settle_shape(hd_run_t *run, hd_run_tensor_t *t) {
  hd_context_t *context = &run->process.context;
  if (t->has_shape &&
      !hd_bind_check(context, &run->env, t->param, t->shape, t->rank))
    return false;
  if (t->host.data &&
      !hd_bind_check(context, &run->env, t->param, t->host.shape, t->host.rank))
    return false;
  t->rank = t->param->tensor->rank;
  if (hd_storage_shape(&run->env, t->param->tensor, t->shape))
    return true;
  char text[200];
  hd_storage_shape_why(&run->env, t->param, text, sizeof text);
  return usage(run, "%s", text);
}

// Sizes that are left open are those that a compiled model's file is for.
static bool take_saved(hd_run_t *run) {
  hd_artifact_t *file = run->graph ? run->module->artifact : NULL;
  bool open = false, found = false;
  for (uint32_t i = 0; i < run->num_params; i++)
    open |= hd_run_is_open(run, i);
  if (!file || !open)
    return true;
  size_t count = run->graph->inputs.size;
  hd_env_t saved = {0};
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&run->arena, hd_tensor_type_t, count + 1);
  if (!hd_saved_find_types(&run->arena, file, run->graph, types, &found))
    return false;
  for (uint32_t i = 0, k = 0; found && i < run->num_params; i++)
    if (run->tensors[i].param && hd_run_is_input(&run->tensors[i])) {
      const hd_tensor_type_t *type = &types[k++];
      if (!hd_bind_shape(&run->process.context, &saved, &run->arena,
                         run->tensors[i].param, type->shape, type->rank))
        return false;
    }
  for (uint32_t i = 0; found && i < run->num_params; i++) {
    const hd_var_t *var = run->entry->params[i];
    const hd_number_t *size = hd_env_find(&saved, var);
    if (hd_run_is_open(run, i) && size)
      hd_env_add(&run->arena, &run->env, var, *size);
  }
  return true;
}

bool hd_run_take_sizes(hd_run_t *run) {
  return take_options(run) && read_inputs(run) && take_saved(run);
}

bool hd_run_settle_sizes(hd_run_t *run) {
  bool ok = true;
  if (!check_sizes(run))
    return false;
  for (uint32_t i = 0; i < run->num_params; i++)
    if (run->tensors[i].param &&
        (!run->graph || hd_run_is_input(&run->tensors[i])))
      ok &= settle_shape(run, &run->tensors[i]);
  return ok;
}

bool hd_run_bind(hd_run_t *run) {
  return hd_run_take_sizes(run) && hd_run_settle_sizes(run);
}

// The input's elements, where they are not those of a file.
static bool make_input(hd_run_t *run, hd_run_tensor_t *t, uint32_t index) {
  if (t->host.data)
    return true;
  hd_context_t *context = &run->process.context;
  if (!hd_host_tensor_init(&t->host, &context->diags, &context->budget,
                           t->param->name, (hd_scalar_t)t->param->type.scalar,
                           t->shape, t->rank))
    return false;
  if (!t->input && !run->process.quiet)
    fprintf(stderr, "hidet-run: input '%s' is random (--input=%s=...)\n",
            t->param->name, t->param->name);
  if (!t->input || strncmp(t->input, "random", 6) == 0) {
    uint64_t seed =
        t->input && t->input[6] ? strtoull(t->input + 7, NULL, 10) : 0;
    hd_host_tensor_fill_random(&t->host, seed, index);
  } else if (strcmp(t->input, "zeros") != 0) {
    hd_host_tensor_fill(&t->host, strtod(t->input, NULL));
  }
  return true;
}

bool hd_run_make_inputs(hd_run_t *run) {
  bool ok = true;
  hd_times_t *times = &run->process.context.times;
  size_t part = hd_times_enter(times, "inputs");
  for (uint32_t i = 0; i < run->num_params; i++)
    if (hd_run_is_input(&run->tensors[i]))
      ok = ok && make_input(run, &run->tensors[i], i);
  hd_times_leave(times, part);
  return ok;
}

static bool upload(hd_run_t *run, hd_run_tensor_t *t, uint32_t index) {
  hd_context_t *context = &run->process.context;
  int64_t bytes;
  if (!hd_storage_bytes(&run->env, &run->arena, t->param->tensor, &bytes))
    return hd_error(&context->diags, nowhere, HD_E0309, t->param->name);
  t->slot = (hd_slot_t){.var = t->param, .bytes = (size_t)bytes};
  if (hd_run_is_input(t) && !make_input(run, t, index))
    return false;
  if (!run->device->ops->alloc(run->device, t->param->name, t->slot.bytes,
                               &t->slot.address))
    return false;
  if (!hd_run_is_input(t))
    return true;
  t->storage = hd_host_memory_alloc(&context->diags, &context->budget,
                                    t->param->name, t->slot.bytes);
  if (!t->storage)
    return false;
  if (!hd_storage_pack(&run->env, &run->arena, t->param->tensor, &t->host,
                       t->storage, t->slot.bytes))
    return usage(run, "the layout of '%s' sends an element outside its storage",
                 t->param->name);
  return run->device->ops->upload(run->device, t->slot.address, t->storage,
                                  t->slot.bytes);
}

bool hd_run_upload(hd_run_t *run) {
  bool ok = true;
  hd_times_t *times = &run->process.context.times;
  size_t part = hd_times_enter(times, "inputs");
  for (uint32_t i = 0; i < run->num_params; i++)
    if (run->tensors[i].param)
      ok = ok && upload(run, &run->tensors[i], i);
  hd_times_leave(times, part);
  return ok;
}
