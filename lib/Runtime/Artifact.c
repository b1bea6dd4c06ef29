// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The container: head, table of contents, sections.
#include "Runtime/Artifact.h"
#include "IR/Text/Parser.h"
#include "IR/Verify/Verifier.h"
#include "Support/File.h"
#include "Support/ThreadPool.h"
#include "TaskMapping/TaskMapping.h"
#include "hidet/Version.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 3, ALIGN = 256, PAGE = 4096, LARGE = 1 << 16, MANY = 1 << 24 };

typedef struct head {
  char magic[8];
  uint32_t format, num_sections;
  uint64_t size, contents; // Of the whole file; a hash of the table.
  uint32_t precision, zero;
  char version[48];
  uint64_t hash; // Of what is before it.
} head_t;

// No text begins with these bytes, and none survives what is done to text.
static const char magic[8] = "\x89HIDET\r\n";
static const hd_loc_t nowhere;

static uint64_t hash_head(const head_t *head) {
  return XXH3_64bits(head, offsetof(head_t, hash));
}

bool hd_artifact_is(const void *data, size_t size) {
  return size >= sizeof(magic) && memcmp(data, magic, sizeof(magic)) == 0;
}

bool hd_artifact_damaged(const hd_artifact_t *a, const char *why) {
  return hd_error(&a->module->context->diags, nowhere, HD_E0813, a->path, why);
}

// --- Reading ---

static bool read_head(hd_artifact_t *a, const hd_mapped_file_t *file,
                      head_t *head) {
  if (!hd_artifact_is(file->data, file->size))
    return hd_artifact_damaged(a, "it does not begin as one");
  if (file->size < sizeof(*head))
    return hd_artifact_damaged(a, "it ends within its head");
  memcpy(head, file->data, sizeof(*head));
  if (head->format != FORMAT) // Of another, no more is known.
    return hd_error(&a->module->context->diags, nowhere, HD_E0814, a->path,
                    head->format, FORMAT);
  if (head->hash != hash_head(head))
    return hd_artifact_damaged(a, "its head is damaged");
  if (head->size != file->size)
    return hd_artifact_damaged(a, file->size < head->size
                                      ? "it is truncated"
                                      : "something follows its end");
  if (head->num_sections > (file->size - sizeof(*head)) / sizeof(hd_section_t))
    return hd_artifact_damaged(a, "its table of contents does not fit");
  if (memchr(head->version, 0, sizeof(head->version)) == NULL)
    return hd_artifact_damaged(a, "its head is damaged");
  return true;
}

static bool read_contents(hd_artifact_t *a, const head_t *head) {
  size_t bytes = head->num_sections * sizeof(hd_section_t);
  uint64_t end = sizeof(*head) + bytes;
  hd_arena_t *arena = &a->module->arena;
  hd_section_t *sections =
      HD_ARENA_ARRAY(arena, hd_section_t, head->num_sections + 1);
  if (XXH3_64bits(a->data + sizeof(*head), bytes) != head->contents)
    return hd_artifact_damaged(a, "its table of contents is damaged");
  memcpy(sections, a->data + sizeof(*head), bytes);
  for (uint32_t i = 0; i < head->num_sections; i++) {
    const hd_section_t *s = &sections[i];
    if (s->kind >= HD_SECTION_KINDS || s->offset < end ||
        s->offset % ALIGN != 0 || s->offset > head->size ||
        s->size > head->size - s->offset)
      return hd_artifact_damaged(a, "its table of contents is wrong");
    end = s->offset + s->size;
  }
  a->sections = sections;
  a->num_sections = head->num_sections;
  a->checked = HD_ARENA_ARRAY(arena, bool, head->num_sections + 1);
  a->values = HD_ARENA_ARRAY(arena, const hd_value_t *, head->num_sections + 1);
  a->precision = head->precision;
  a->version = hd_arena_strndup(arena, head->version, sizeof(head->version));
  return true;
}

const hd_section_t *hd_artifact_section(hd_artifact_t *a, int64_t number,
                                        hd_section_kind_t kind,
                                        const char **data) {
  if (number < 0 || number >= a->num_sections ||
      a->sections[number].kind != kind) {
    hd_artifact_damaged(a, "a section is not there");
    return NULL;
  }
  const hd_section_t *s = &a->sections[number];
  if (!a->checked[number] &&
      XXH3_64bits(a->data + s->offset, s->size) != s->hash) {
    hd_artifact_damaged(a, hd_arena_printf(&a->module->arena,
                                           "section %lld is damaged",
                                           (long long)number));
    return NULL;
  }
  a->checked[number] = true;
  if (data)
    *data = (const char *)a->data + s->offset;
  return s;
}

typedef struct look {
  hd_artifact_t *file;
  const char *numbers;
} look_t;

static void look_at(void *argument, unsigned piece, unsigned worker) {
  const look_t *look = argument;
  hd_artifact_t *a = look->file;
  int64_t number;
  (void)worker;
  memcpy(&number, look->numbers + piece * sizeof(number), sizeof(number));
  if (number < 0 || number >= a->num_sections)
    return;
  const hd_section_t *s = &a->sections[number];
  // Two may be at the same one: they find the same.
  if (XXH3_64bits(a->data + s->offset, s->size) == s->hash)
    __atomic_store_n(&a->checked[number], true, __ATOMIC_RELAXED);
}

void hd_artifact_look(hd_artifact_t *a, const char *numbers, size_t count) {
  look_t look = {a, numbers};
  if (a->sections[a->num_sections - 1].offset < MANY || count > UINT_MAX)
    return;
  hd_thread_pool_t *pool = hd_thread_pool_create(0);
  hd_thread_pool_run(pool, (unsigned)count, look_at, &look);
  hd_thread_pool_destroy(pool);
}

// The first section of a kind.
static const hd_section_t *
find_section(hd_artifact_t *a, hd_section_kind_t kind, const char **data) {
  uint32_t i = 0;
  while (i < a->num_sections && a->sections[i].kind != kind)
    i++;
  return hd_artifact_section(a, i, kind, data);
}

bool hd_artifact_check_weights(hd_artifact_t *a, uint64_t most) {
  for (uint32_t i = 0; a && i < a->num_sections; i++)
    if (a->sections[i].kind == HD_SECTION_WEIGHT &&
        a->sections[i].size <= most &&
        !hd_artifact_section(a, i, HD_SECTION_WEIGHT, NULL))
      return false;
  return true;
}

// What is printed of the module names the file, and where its section is there.
static bool name_place(void *artifact, const hd_value_t *value) {
  const hd_artifact_t *a = artifact;
  hd_constant_t *constant = value->constant;
  if (!constant->file || constant->file[0] != '#')
    return true;
  const char *slash = strrchr(a->path, '/');
  unsigned long number = strtoul(constant->file + 1, NULL, 10);
  constant->file = slash ? slash + 1 : a->path;
  constant->offset = (int64_t)a->sections[number].offset;
  return true;
}

bool hd_artifact_leave(hd_module_t *module) {
  hd_artifact_t *a = module->artifact;
  bool ok = !a || hd_artifact_check_weights(a, UINT64_MAX);
  for (size_t i = 0; a && ok && i < module->items.size; i++)
    if (module->items.data[i].kind == HD_ITEM_GRAPH)
      hd_graph_walk_constants(module->items.data[i].u.graph, name_place, a);
  module->artifact = NULL;
  return ok;
}

// A constant that the text has in a section is where that is mapped.
static bool bind_value(void *artifact, const hd_value_t *value) {
  hd_artifact_t *a = artifact;
  hd_constant_t *constant = value->constant;
  if (!constant->file || constant->file[0] != '#')
    return true;
  char *end;
  int64_t shape[HD_TENSOR_MAX_RANK], count, bytes;
  unsigned long number = strtoul(constant->file + 1, &end, 10);
  bool ok = !*end && number < a->num_sections && constant->offset == 0 &&
            a->sections[number].kind == HD_SECTION_WEIGHT &&
            hd_value_is_concrete(value) && value->rank <= HD_TENSOR_MAX_RANK;
  for (int i = 0; ok && i < value->rank; i++)
    ok = hd_expr_fold_int(value->shape[i], &shape[i]);
  ok = ok &&
       hd_packed_size(value->type, shape, (unsigned)value->rank, &count,
                      &bytes) &&
       (uint64_t)bytes == a->sections[number].size;
  if (!ok)
    return hd_artifact_damaged(a, "a constant has no section of its size");
  constant->mapped = a->data + a->sections[number].offset;
  a->values[number] = value;
  return true;
}

static bool read_graphs(hd_artifact_t *a) {
  hd_module_t *module = a->module;
  const char *text, *entry;
  const hd_section_t *s = find_section(a, HD_SECTION_GRAPH, &text);
  const hd_section_t *name = find_section(a, HD_SECTION_ENTRY, &entry);
  if (!s || !name)
    return false;
  a->entry = hd_arena_strndup(&module->arena, entry, name->size);
  if (!hd_module_parse_into(module, a->path, text, s->size, 1) ||
      !hd_module_verify(module))
    return false;
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind == HD_ITEM_GRAPH &&
        !hd_graph_walk_constants(item->u.graph, bind_value, a))
      return false;
    if (item->kind == HD_ITEM_FUNC &&
        !hd_func_verify_mappings(module->context, item->u.func))
      return false;
  }
  return hd_module_find_graph(module, a->entry) ||
         hd_artifact_damaged(a, "its graph is not there");
}

hd_module_t *hd_artifact_open(hd_context_t *context, const char *path) {
  hd_module_t *module = hd_module_create(context);
  hd_artifact_t *a = HD_ARENA_NEW(&module->arena, hd_artifact_t);
  const hd_mapped_file_t *file = hd_module_map(module, path, -1);
  head_t head;
  *a = (hd_artifact_t){.module = module, .path = path};
  if (file) {
    a->path = file->path;
    a->data = file->data;
  }
  if (file && read_head(a, file, &head) && read_contents(a, &head) &&
      read_graphs(a)) {
    module->artifact = a;
    return module;
  }
  hd_module_destroy(module);
  return NULL;
}

// --- Writing ---

static uint64_t round_up(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

// Pages of what is large are mapped, and read, by themselves.
static uint64_t place(hd_section_t *sections, const hd_artifact_parts_t *parts,
                      uint64_t end) {
  for (size_t i = 0; i < parts->size; i++) {
    const hd_artifact_part_t *part = &parts->data[i];
    uint64_t offset = round_up(end, part->size >= LARGE ? PAGE : ALIGN);
    sections[i] = (hd_section_t){.kind = part->kind,
                                 .offset = offset,
                                 .size = part->size,
                                 .hash = XXH3_64bits(part->data, part->size)};
    end = offset + part->size;
  }
  return end;
}

bool hd_artifact_write(hd_context_t *context, const char *path,
                       uint32_t precision, const hd_artifact_parts_t *parts) {
  static const char zeros[PAGE];
  hd_arena_t scratch;
  hd_arena_init_local(&scratch, &context->budget);
  size_t bytes = parts->size * sizeof(hd_section_t);
  hd_section_t *sections =
      HD_ARENA_ARRAY(&scratch, hd_section_t, parts->size + 1);
  hd_file_part_t *out =
      HD_ARENA_ARRAY(&scratch, hd_file_part_t, 2 * parts->size + 2);
  head_t head = {.format = FORMAT,
                 .num_sections = (uint32_t)parts->size,
                 .precision = precision};
  memcpy(head.magic, magic, sizeof(magic));
  snprintf(head.version, sizeof(head.version), "%s", hidet_version());
  uint64_t end = sizeof(head) + bytes;
  head.size = place(sections, parts, end);
  head.contents = XXH3_64bits(sections, bytes);
  head.hash = hash_head(&head);
  size_t count = 0;
  out[count++] = (hd_file_part_t){&head, sizeof(head)};
  out[count++] = (hd_file_part_t){sections, bytes};
  for (size_t i = 0; i < parts->size; i++) {
    out[count++] = (hd_file_part_t){zeros, sections[i].offset - end};
    out[count++] = (hd_file_part_t){parts->data[i].data, parts->data[i].size};
    end = sections[i].offset + sections[i].size;
  }
  bool ok = hd_file_write(&context->diags, path, out, count);
  hd_arena_fini(&scratch);
  return ok;
}
