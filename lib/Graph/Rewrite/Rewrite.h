// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewriting of graphs by rules (docs/IR.md, "Rewrites"): those of the library
// (lib/Graph/rewrites/*.hir) and those of the module. The graph is an expanded
// one: its nodes are tasks and reshapes, every size is a number.
#ifndef HIDET_GRAPH_REWRITE_REWRITE_H
#define HIDET_GRAPH_REWRITE_REWRITE_H

#include "Graph/Precision/Precision.h"
#include "IR/Graph/Graph.h"
#include "IR/Graph/RewriteRule.h"

typedef struct hd_rewrite_options {
  const char *const *disabled; // Rules or families that are left out, by name.
  size_t num_disabled;
  int64_t max_steps; // Only so many steps are done; below 0: all.
  bool explain;      // A remark for each step.
  // That the graph will be compiled for: constants are made for its operands.
  hd_precision_t precision;
} hd_rewrite_options_t;

static const hd_rewrite_options_t hd_rewrite_defaults = {.max_steps = -1};

typedef struct hd_rewrite_count {
  const char *name;
  int64_t count; // Of times that it was used.
} hd_rewrite_count_t;

typedef struct hd_rewrite_stats {
  hd_arena_t *arena;                // Of what follows; the caller's.
  HD_VEC(hd_rewrite_count_t) rules; // Of those used, in order of the rules.
  int64_t steps;
  size_t nodes_before, nodes_after;
} hd_rewrite_stats_t;

// Uses rules until none fits, shares equal nodes, computes small constants and
// leaves out what nobody uses. What the graph takes and gives keeps its names
// and types. *result is the graph itself where nothing changed, else lives in
// the module's arena. options NULL: the defaults; stats (added to) may be NULL.
//
// A rule of the module is proven first, on 20 instances (hd_rewrite_prove()).
// False after an error: a rule that is wrong (E1105), rules that do not end
// (E1106), a graph that is not expanded (E1104), constants that cannot be read.
bool hd_graph_rewrite(hd_module_t *module, const hd_graph_t *graph,
                      const hd_rewrite_options_t *options,
                      const hd_graph_t **result, hd_rewrite_stats_t *stats);

// The rules that hd_graph_rewrite() would use, a module's after the library's;
// module may be NULL. False after errors in the library's text.
typedef HD_VEC(const hd_rewrite_t *) hd_rewrites_t;
bool hd_rewrites_find(hd_context_t *context, const hd_module_t *module,
                      hd_arena_t *arena, hd_rewrites_t *rules);

// Evaluates both sides and compares them, for the differences that the rule
// says it makes: first on the edges of each type, then on random sizes, types,
// attributes and elements, drawn from the seed, until `wanted` random instances
// were valid. *valid takes how many there were. False where the sides differ
// (E1105, with the instance as a note) or where too few instances can be found
// (E1105).
bool hd_rewrite_prove(hd_context_t *context, const hd_rewrite_t *rule,
                      unsigned wanted, uint64_t seed, unsigned *valid);

#endif
