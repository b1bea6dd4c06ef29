// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Input.h"
#include "Graph/ONNX/Import.h"
#include "IR/Generic.h"
#include "IR/Text/Parser.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Artifact.h"
#include "Support/File.h"
#include "TaskMapping/TaskMapping.h"
#include "Tools/Outputs.h"

#include <stdint.h>
#include <string.h>

static const hd_loc_t nowhere;

void hd_text_split(const char *text, size_t size,
                   void (*visit)(void *argument, const hd_text_part_t *part),
                   void *argument) {
  static const char mark[] = "// -----";
  const char *end = text + size, *start = text;
  uint32_t line = 1, first_line = 1;
  for (const char *at = text; at < end; line++) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    const char *next = newline ? newline + 1 : end;
    if ((size_t)(next - at) >= sizeof(mark) - 1 &&
        memcmp(at, mark, sizeof(mark) - 1) == 0) {
      visit(argument,
            &(hd_text_part_t){start, (size_t)(at - start), first_line});
      start = next;
      first_line = line + 1;
    }
    at = next;
  }
  visit(argument, &(hd_text_part_t){start, (size_t)(end - start), first_line});
}

bool hd_has_suffix(const char *name, const char *suffix) {
  size_t length = strlen(name), size = strlen(suffix);
  return length >= size && strcmp(name + length - size, suffix) == 0;
}

const char *hd_input_name(const char *path) {
  return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

// Locations have 31 bits.
static size_t text_limit(const hd_process_t *process) {
  size_t limit = process->context.budget.bytes_limit;
  return limit && limit < INT32_MAX ? limit : INT32_MAX;
}

bool hd_tools_read_input(hd_process_t *process, const hd_options_t *options,
                         const char **name, hd_buffer_t *text) {
  hd_diagnostics_t *diags = &process->context.diags;
  if (options->files.size > 1)
    return hd_error(diags, nowhere, HD_E1003,
                    "more than one input file is given");
  const char *path = options->files.size ? options->files.data[0] : "-";
  *name = hd_input_name(path);
  if (hd_has_suffix(path, ".onnx") || hd_has_suffix(path, ".hidet"))
    return true; // It is mapped.
  return hd_file_read(diags, path, text_limit(process), text);
}

// Adds the items of a file that --load names.
static bool load(hd_process_t *process, const char *path, hd_module_t *module) {
  hd_buffer_t text = {0};
  hd_cleanup_t cleanup;
  hd_budget_t *budget = &process->context.budget;
  hd_budget_defer(budget, &cleanup, hd_buffer_end, &text);
  bool ok =
      hd_file_read(&process->context.diags, path, text_limit(process), &text) &&
      hd_module_parse_into(module, path, hd_buffer_text(&text), text.size, 1);
  hd_budget_clean(budget, &cleanup);
  return ok;
}

// What the parser cannot check: it knows nothing of the algebra of mappings.
static bool verify_mappings(hd_module_t *module) {
  bool ok = true;
  for (size_t i = 0; i < module->items.size; i++)
    if (module->items.data[i].kind == HD_ITEM_FUNC)
      ok &= hd_func_verify_mappings(module->context,
                                    module->items.data[i].u.func);
  return ok;
}

bool hd_tools_wants_instance(const hd_module_t *module, const char *entry) {
  size_t cursor = 0;
  const hd_item_t *item = entry ? hd_module_next(module, entry, &cursor) : NULL;
  return item ? item->kind == HD_ITEM_GENERIC : entry && strchr(entry, '[');
}

bool hd_tools_make_entry(hd_module_t *module, const char **entry) {
  if (!hd_tools_wants_instance(module, *entry))
    return true;
  const hd_func_t *func = hd_module_ask(module, "--entry", *entry);
  if (!func || !hd_func_verify_mappings(module->context, func))
    return false;
  *entry = func->name;
  return true;
}

// Whether it is a model under another name: an ONNX file begins with the number
// of its format (protobuf: field 1, a number), and no text does so.
static bool is_model(const hd_text_part_t *part) {
  return part->size > 0 && part->text[0] == 8;
}

static hd_module_t *refuse_stream(hd_context_t *context) {
  hd_error(&context->diags, nowhere, HD_E1003,
           "a compiled model is mapped: give the file's name");
  return NULL;
}

bool hd_tools_parse(hd_process_t *process, hd_options_t *options,
                    int load_option, const char *name,
                    const hd_text_part_t *part, hd_module_t **module) {
  hd_context_t *context = &process->context;
  hd_times_t *times = &context->times;
  bool is_stdin =
      options->files.size == 0 || strcmp(options->files.data[0], "-") == 0;
  bool is_saved =
      hd_has_suffix(name, ".hidet") || hd_artifact_is(part->text, part->size);
  bool is_onnx = hd_has_suffix(name, ".onnx") || is_model(part);
  size_t before = hd_times_enter(times, is_onnx ? "import" : "parse");
  if (is_saved)
    *module =
        is_stdin ? refuse_stream(context) : hd_artifact_open(context, name);
  else if (is_onnx)
    *module = is_stdin ? hd_onnx_import_memory(context, name, part->text,
                                               part->size, ".")
                       : hd_onnx_import(context, name);
  else
    *module = hd_module_create(context);
  bool ok = *module != NULL;
  for (size_t i = 0; *module && i < options->uses.size; i++)
    if (options->uses.data[i].option == load_option)
      ok &= load(process, options->uses.data[i].value, *module);
  if (ok && !is_onnx && !is_saved) {
    hd_module_set_folder(*module, name);
    ok = hd_module_parse_into(*module, name, part->text, part->size,
                              part->first_line);
  }
  ok = ok && hd_outputs_spare_constants(options, *module);
  hd_times_leave(times, before);
  if (is_saved) // It has been verified.
    return ok;
  hd_times_enter(times, "verify");
  ok = ok && hd_module_verify(*module) && verify_mappings(*module);
  hd_times_leave(times, before);
  return ok;
}
