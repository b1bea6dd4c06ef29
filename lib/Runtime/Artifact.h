// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file of a compiled model, data alone: a head, a table of contents with
// the size and a hash of each section, and sections, which are read where they
// are mapped and looked at when they are used:
//
//   ENTRY, GRAPH   the graph's name; the module's text, from which code for
//                  other sizes or another device is made
//   WEIGHT         a constant's elements, little-endian, packed below a byte;
//                  the text names it by the section's number: file("#12", 0)
//   and for each executable
//   TABLE          what belongs to it, in numbers (Saved.h)
//   MADE_FOR       what its code depends on: build, device, precision
//   PLAN           its plan, and the heads of the kernels, as text
//   NAMES          the kernels' symbols in their code
//   CODE           the code of one kernel after the other
//   DATA           what was computed of constants, as the device has it
//
// Whoever made the file is trusted with what its code does: text is parsed and
// verified and tables are checked, but code is run. What is damaged is refused
// (E0813). A file that is not trusted gives its text and its weights alone.
#ifndef HIDET_RUNTIME_ARTIFACT_H
#define HIDET_RUNTIME_ARTIFACT_H

#include "IR/Graph/Graph.h"
#include "IR/Module.h"

typedef enum hd_section_kind {
  HD_SECTION_ENTRY,
  HD_SECTION_GRAPH,
  HD_SECTION_WEIGHT,
  HD_SECTION_TABLE,
  HD_SECTION_MADE_FOR,
  HD_SECTION_PLAN,
  HD_SECTION_NAMES,
  HD_SECTION_CODE,
  HD_SECTION_DATA,
  HD_SECTION_KINDS
} hd_section_kind_t;

// As the file has it.
typedef struct hd_section {
  uint32_t kind, zero;
  uint64_t offset, size, hash;
} hd_section_t;

typedef struct hd_artifact {
  hd_module_t *module; // That it is in, and ends with.
  const char *path;
  const char *version; // Of the compiler that made it.
  const char *entry;   // The graph's name.
  uint32_t precision;  // hd_precision_t, of what it holds.
  const unsigned char *data;
  uint32_t num_sections;
  const hd_section_t *sections;
  bool *checked;             // One for each section: its hash is right.
  const hd_value_t **values; // For each WEIGHT its constant; else NULL.
} hd_artifact_t;

// --- Reading ---

// A new module with the file's graph, whose constants are where the file is
// mapped; its artifact is the file. NULL after an error: E0801; E0813 where it
// is none or damaged; E0814 of another format.
hd_module_t *hd_artifact_open(hd_context_t *context, const char *path);
// Whether a file begins as one.
bool hd_artifact_is(const void *data, size_t size);
// Section of that number, of that kind, checked; NULL after an error.
const hd_section_t *hd_artifact_section(hd_artifact_t *artifact, int64_t number,
                                        hd_section_kind_t kind,
                                        const char **data);
// Looks at many sections at once, on all cores, where they are large: those
// that are right need not be looked at again. numbers: i64, of any alignment;
// what is no section's is left to hd_artifact_section().
void hd_artifact_look(hd_artifact_t *artifact, const char *numbers,
                      size_t count);
// All weights of that many bytes at most are looked at: all of them before code
// is made of the text, small ones before it is expanded. NULL: there are none.
bool hd_artifact_check_weights(hd_artifact_t *artifact, uint64_t most);
// The module changes: its file has no more to do with it than its weights.
// False after an error.
bool hd_artifact_leave(hd_module_t *module);
// Reports E0813; returns false.
bool hd_artifact_damaged(const hd_artifact_t *artifact, const char *why);

// --- Writing ---

typedef struct hd_artifact_part {
  hd_section_kind_t kind;
  const void *data;
  size_t size;
} hd_artifact_part_t;

// Sections to be, in order; what they point to stays until they are written.
typedef HD_VEC(hd_artifact_part_t) hd_artifact_parts_t;

// Writes a whole file, or none. False after an error.
bool hd_artifact_write(hd_context_t *context, const char *path,
                       uint32_t precision, const hd_artifact_parts_t *parts);

#endif
