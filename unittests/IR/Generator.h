// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random valid modules, built by the constructors of lib/IR as passes build
// them: constants of every kind, names that clash, every row of every table.
#ifndef HIDET_UNITTESTS_IR_GENERATOR_H
#define HIDET_UNITTESTS_IR_GENERATOR_H

#include "IR/Graph/Graph.h"
#include "IR/Intrinsic.h"
#include "IR/Module.h"

enum {
  HD_GENERATED_LAYOUTS = HD_LAYOUT_LOCAL + 1,
  HD_GENERATED_MAPPINGS = HD_MAPPING_IDLE + 1
};

// How often each row was generated.
typedef struct hd_generated {
  unsigned exprs[HD_EXPR_COUNT], stmts[HD_STMT_COUNT];
  unsigned builtins[HD_BUILTIN_COUNT], scalars[HD_SCALAR_COUNT];
  unsigned intrinsics[HD_INTRINSIC_COUNT];
  unsigned layouts[HD_GENERATED_LAYOUTS], mappings[HD_GENERATED_MAPPINGS];
  unsigned funcs[HD_FUNC_PLAN + 1], consts, tables;
  unsigned points[HD_POINT_COUNT], staged;
  unsigned graphs, attributes[HD_ATTRIBUTE_KINDS];
  unsigned forms[HD_HOLDS_OPTIONAL + 1];
  unsigned nodes[3]; // Reshapes, tasks, operators of a standard.
  unsigned groups, anchors, schedules, views, rewrites, programmatic;
} hd_generated_t;

typedef struct hd_generator {
  uint64_t state; // The seed at first.
  hd_arena_t *arena;
  hd_module_t *module;
  hd_generated_t *counts;
  hd_func_t *func;
  HD_VEC(const hd_var_t *) vars; // Visible ones.
  const hd_var_t *table;
  bool in_launch, in_loop;
  bool in_signature; // Of a fn, whose tensors have sizes for it to find.
  HD_VEC(hd_func_size_t) sizes;
} hd_generator_t;

// A module that the verifier accepts. The caller owns it.
hd_module_t *hd_generate_module(hd_context_t *context, uint64_t seed,
                                hd_generated_t *counts);

// A graph of that name, pushed onto the module.
void hd_generate_graph(hd_generator_t *g, const char *name);
// Likewise a rewrite.
void hd_generate_rewrite(hd_generator_t *g, const char *name);
// Writes down everything about a graph but how its dimensions are called; expr
// does so with a size.
typedef bool (*hd_dump_expr_t)(void *argument, const hd_expr_t *e);
void hd_dump_graph(const hd_graph_t *graph, hd_buffer_t *out,
                   hd_dump_expr_t expr, void *argument);

// For GenerateExpr.c, GenerateTensor.c, GenerateHopper.c, GenerateStmt.c and
// Generator.c.
uint64_t hd_random(hd_generator_t *g);
unsigned hd_random_below(hd_generator_t *g, unsigned limit);
const char *hd_random_name(hd_generator_t *g);
hd_type_t hd_random_type(hd_generator_t *g);
const hd_expr_t *hd_generate_expr(hd_generator_t *g, hd_type_t type, int depth);
const hd_expr_t *hd_generate_intrinsic(hd_generator_t *g, hd_intrinsic_t row,
                                       int depth); // NULL: places are missing.
// An access of that kind and type; NULL where no visible tensor serves.
const hd_expr_t *hd_generate_access(hd_generator_t *g, hd_expr_kind_t kind,
                                    hd_type_t type, int scope, int depth);
const hd_tensor_t *hd_generate_tensor(hd_generator_t *g, hd_scope_t scope,
                                      hd_type_t element);
const hd_mapping_t *hd_generate_mapping(hd_generator_t *g, unsigned rank,
                                        int depth, bool constant);

hd_layout_item_t hd_generate_item(hd_generator_t *g, hd_layout_kind_t kind,
                                  const int64_t *values, unsigned count);
// A statement to be filled in, counted; a variable that is visible from now on.
hd_stmt_t *hd_generate_stmt(hd_generator_t *g, hd_stmt_kind_t kind);
const hd_var_t *hd_generate_var(hd_generator_t *g, hd_var_kind_t kind,
                                hd_type_t type);
// Any statement with blocks so deep at most; NULL: what it needs is missing.
const hd_stmt_t *hd_generate_statement(hd_generator_t *g, int depth);
// The declaration of a tensor that is visible from now on: as it is given, or a
// random one.
const hd_stmt_t *hd_generate_declaration(hd_generator_t *g,
                                         const hd_tensor_t *tensor);
const hd_stmt_t *hd_generate_declared(hd_generator_t *g, hd_scope_t scope,
                                      hd_type_t element);
// A call of a row with these operands, T being bound; it is counted.
const hd_expr_t *hd_generate_row(hd_generator_t *g, hd_intrinsic_t row,
                                 const hd_expr_t *const *operands,
                                 hd_type_t bound);
// A visible tensor map, whatever it describes; NULL: there is none.
const hd_expr_t *hd_generate_map_value(hd_generator_t *g);

// For GenerateHopper.c. Tensor maps of the kernel that is being made, and the
// tensors they describe, which are added to its parameters.
void hd_generate_maps(hd_generator_t *g);
// Whether a row takes what no tensor at random is: registers one after another,
// maps, matrices.
bool hd_is_prepared(const hd_intrinsic_info_t *info);
// A constant that the operand i of a row may be; NULL where it may be any
// value.
const hd_expr_t *hd_generate_in_range(hd_generator_t *g,
                                      const hd_intrinsic_info_t *info,
                                      unsigned i);
// A call of such a row. Declarations of what it needs are added to stmts. NULL:
// the kernel has no map that fits.
const hd_expr_t *hd_generate_prepared(hd_generator_t *g, hd_intrinsic_t row,
                                      const hd_stmt_t **stmts, size_t *size);

// Whether a tensor is among the first count arguments.
bool hd_is_given(const hd_expr_t *const *args, uint32_t count,
                 const hd_var_t *tensor);

#endif
