// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions (kernels, device functions, plans), modules and the context.
#ifndef HIDET_IR_MODULE_H
#define HIDET_IR_MODULE_H

#include "IR/Stmt.h"
#include "Support/Steps.h"
#include "Support/Times.h"
#include "Support/Vec.h"

typedef enum hd_func_kind {
  HD_FUNC_KERNEL, // runs on a grid of blocks
  HD_FUNC_FN,     // a device function; always inlined when code is made
  HD_FUNC_PLAN,   // runs kernels in order, with workspaces
} hd_func_kind_t;

// The launch of a kernel. Expressions are i32 over its scalar parameters and
// host builtins; NULL is 1.
typedef struct hd_launch {
  const hd_expr_t *grid[3];
  const hd_expr_t *block[3];   // Constants.
  const hd_expr_t *cluster[3]; // Constants.
  int32_t min_blocks; // Blocks an SM that registers must allow; 0: not said.
  int32_t
      max_blocks; // Of the launch, that an SM may have at once; 0: not said.
} hd_launch_t;

// A size that a fn does not take as an argument, but finds in the shape or the
// strides of one of its tensors: m of `in a: f32[m, 8]`.
typedef struct hd_func_size {
  const hd_var_t *var; // A PARAM, of an integer type, among none of params.
  uint32_t param;      // The number of the tensor among them.
  uint32_t place;      // Of the axis.
  bool is_stride;
} hd_func_size_t;

struct hd_func {
  hd_func_kind_t kind;
  const char *name;
  hd_loc_t loc;
  uint32_t num_params;
  const hd_var_t *const *params; // Scalars, then or among them tensors.
  hd_type_t result;              // FN; void where none.
  uint32_t num_sizes;            // FN; see IR/Call.h. By param, then shapes
  const hd_func_size_t *sizes;   // before strides.
  uint32_t num_maps;             // KERNEL. Arguments made by the launcher;
  const hd_var_t *const *maps;   // the code takes them after the parameters.
  hd_launch_t launch;            // KERNEL.
  bool has_body;                 // False only while being declared.
  hd_block_t body;
  // Of an instance: what it is one of, and who asked for it first; else NULL.
  const struct hd_generic *generic;
  hd_loc_t asked;
  // KERNEL, made by a template, or since no candidate of any was left: what was
  // known when it was chosen, which lives as long (Schedule/Template/Falls.h);
  // else NULL. No part of the text.
  const struct hd_chosen *chosen;
};

typedef struct hd_generic hd_generic_t;   // IR/Generic.h
typedef struct hd_task hd_task_t;         // IR/Task.h
typedef struct hd_graph hd_graph_t;       // IR/Graph.h
typedef struct hd_rewrite hd_rewrite_t;   // IR/RewriteRule.h
typedef struct hd_template hd_template_t; // IR/Template.h

typedef enum hd_item_kind {
  HD_ITEM_CONST,
  HD_ITEM_FUNC,
  HD_ITEM_GENERIC,
  HD_ITEM_TASK,
  HD_ITEM_GRAPH,
  HD_ITEM_REWRITE,
  HD_ITEM_TEMPLATE
} hd_item_kind_t;

// const name = value: an expression or a mapping. Uses are replaced by the
// value while parsing. const name: T[n] = [...]: a table.
typedef struct hd_const {
  const char *name;
  const hd_expr_t *value;
  const hd_mapping_t *mapping;
  const hd_var_t *table;
  bool untyped;  // A bare number: takes the type that its use asks for.
  bool is_local; // A table of a function's block, which text cannot name.
  hd_loc_t loc;
} hd_const_t;

typedef struct hd_item {
  hd_item_kind_t kind;
  union {
    const hd_const_t *constant;
    hd_func_t *func;
    hd_generic_t *generic;
    const hd_task_t *task;
    const hd_graph_t *graph;
    const hd_rewrite_t *rewrite;
    const hd_template_t *template;
  } u;
} hd_item_t;

typedef struct hd_context hd_context_t;

// A file in memory for as long as its module lives.
typedef struct hd_mapped_file {
  struct hd_mapped_file *next;
  const char *path;
  unsigned char *data; // Read alone.
  size_t size;
  bool on_heap; // Of what cannot be mapped: standard input, a pipe.
} hd_mapped_file_t;

// Items may be pushed; what is there keeps its place and its name, until
// hd_module_reindex() says that it did not.
typedef struct hd_module {
  hd_context_t *context;
  struct hd_module *next, **link; // The context's list.
  hd_arena_t arena;               // Holds everything that the module points to.
  HD_VEC(hd_item_t) items;
  struct hd_item_index *index; // See hd_module_next().
  hd_mapped_file_t *files;     // See hd_module_map().
  const char *folder; // The files of constants lie beneath it; NULL: none do.
  // The file of a compiled model that it is of, see Runtime/Artifact.h; NULL:
  // of none.
  struct hd_artifact *artifact;
  // That it was forked of, whose files constants are in; NULL: of none.
  struct hd_module *source;
} hd_module_t;

// What a piece of work shares. One thread at a time; threads that compile side
// by side have a context each.
struct hd_context {
  hd_diagnostics_t diags;
  hd_budget_t budget;
  hd_steps_t steps; // Of what is compiled; zero: all are done.
  hd_times_t times; // Zero: none is kept.
  // Where set, is told how many of how many kernels are compiled, on any
  // thread; of one compilation on one at a time.
  void (*progress)(void *argument, size_t done, size_t total);
  void *progress_argument;
  hd_module_t *modules;       // All that live: none is lost when work unwinds.
  struct hd_library *library; // See IR/Library.h; made at first use.
  // Of the pass `rewrite`, see Graph/Rewrite.h; NULL: the defaults, no counts.
  const struct hd_rewrite_options *rewrites;
  struct hd_rewrite_stats *rewrite_stats;
  // Of the scheduler, see Schedule/Template/Machine.h; NULL: no GPU is meant.
  const struct hd_schedule_options *schedules;
};

void hd_context_init(hd_context_t *context);
// Destroys the modules that are left, too.
void hd_context_fini(hd_context_t *context);

hd_module_t *hd_module_create(hd_context_t *context);
// Another one with the same items, for what is made of them and ends before
// them: constants whose elements are in files are loaded by the first.
hd_module_t *hd_module_fork(hd_module_t *module);
void hd_module_destroy(hd_module_t *module);

// Maps a file until the module ends, each path once. fd: the file, opened; it
// is closed here. -1: opens the path ("-" is standard input). NULL after an
// error: E0801, E0904.
const hd_mapped_file_t *hd_module_map(hd_module_t *module, const char *path,
                                      int fd);
// The folder of the file at path, which the module comes from, is the one that
// constants' files lie in ("-": the current one).
void hd_module_set_folder(hd_module_t *module, const char *path);
void hd_module_unmap(hd_module_t *module); // All of them; destroying does it.

const char *hd_item_name(const hd_item_t *item);
hd_loc_t hd_item_loc(const hd_item_t *item);
// Has items been taken out or moved, names are looked up anew.
void hd_module_reindex(hd_module_t *module);
// name itself, or name_1, ... where the module has an item of that name.
const char *hd_module_fresh_name(hd_arena_t *arena, const hd_module_t *module,
                                 const char *name);
// The items of a name, oldest first, each in constant time. *cursor is 0 for
// the first; NULL after the last.
const hd_item_t *hd_module_next(const hd_module_t *module, const char *name,
                                size_t *cursor);
// NULL where there is none of that name. A kind of -1 is any.
const hd_func_t *hd_module_find(const hd_module_t *module, const char *name,
                                int kind);
const hd_task_t *hd_module_find_task(const hd_module_t *module,
                                     const char *name);
// name NULL: the last graph.
const hd_graph_t *hd_module_find_graph(const hd_module_t *module,
                                       const char *name);
// The function with another body; the same where that is its own.
const hd_func_t *hd_func_with_body(hd_arena_t *arena, const hd_func_t *func,
                                   hd_block_t body);
// The kernel or plan to run where none is named: the last one, plans first.
const hd_func_t *hd_module_entry(const hd_module_t *module);

// Threads a block; 0 where it is not a constant.
int64_t hd_func_block_threads(const hd_func_t *func);

// Bytes that the parameters of a kernel take in a launch, tensor maps among
// them; those that every target has room for.
enum { HD_LEAST_PARAM_BYTES = 4096 };
size_t hd_func_param_bytes(const hd_func_t *func);

// Puts a new version of a function in the place of the old one. A function is
// the one object that changes in place: calls and launches point at it and need
// no relinking. The versions share name, parameters' types and kind.
void hd_func_replace(hd_func_t *func, const hd_func_t *version);

#endif
