// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the parser of tasks share (ParseTask.c:
// signatures, ParseDefinition.c, ParseTerm.c, TermTypes.c).
#ifndef HIDET_IR_TEXT_TASKPARSER_H
#define HIDET_IR_TEXT_TASKPARSER_H

#include "IR/Graph/Task.h"
#include "IR/Text/ParserState.h"

// by name, behind a shape.
typedef struct hd_task_order {
  hd_task_value_t *value;
  const char *name;
  hd_loc_t loc;
} hd_task_order_t;

typedef struct hd_task_parser {
  hd_parser_t *p;
  hd_task_t *task;
  HD_VEC(const hd_index_t *) indices;      // In scope, innermost last.
  HD_VEC(const hd_variable_t *) variables; // Of the monoid being read.
  HD_VEC(hd_task_value_t *) defaults;      // Attributes that have one.
  HD_VEC(hd_task_order_t) orders; // Whose attributes are not looked up yet.
  bool allows_const;              // Before the type of an input: of a rewrite.
} hd_task_parser_t;

// NULL or false: an error was reported.
const hd_term_t *hd_parse_term(hd_task_parser_t *t);
const hd_term_t *hd_parse_term_as(hd_task_parser_t *t, hd_task_type_t type);
// A bare number stays one: hd_term_coerce() gives it a type.
const hd_term_t *hd_parse_bare_term(hd_task_parser_t *t);
// size | ..term
const hd_term_t *hd_parse_axis(hd_task_parser_t *t);
// A type, or a variable, which is declared by its first use.
bool hd_parse_task_type(hd_task_parser_t *t, hd_task_type_t *type);
// ( index: range, ... [to at] ): the indices are in scope from then on.
bool hd_parse_ranges(hd_task_parser_t *t, hd_reduction_t *reduction,
                     bool is_scan);
const hd_monoid_t *hd_parse_monoid_name(hd_task_parser_t *t);

// --- ParseTask.c: what rewrites have as well ---

// name: type[shape] | name: type [over pack] [= constant]; the last input then.
bool hd_parse_task_input(hd_task_parser_t *t);
// type[shape] of a value of that name; binds: as an input of the signature,
// whose new names are bound there, else as an output.
const hd_task_value_t *hd_parse_task_result(hd_task_parser_t *t,
                                            const char *name, hd_loc_t loc,
                                            bool binds);
// One of those after 'where'.
bool hd_parse_task_condition(hd_task_parser_t *t);
// Finds the attributes that orders of axes name, when all have been read.
bool hd_settle_task_orders(hd_task_parser_t *t);
// Defaults get their types, when it is known what variables may be.
bool hd_settle_task_defaults(hd_task_parser_t *t);

// --- TermTypes.c ---

static const hd_task_type_t hd_index_type = {HD_I64, NULL};
static const hd_task_type_t hd_bool_type = {HD_BOOL, NULL};

bool hd_task_type_is_float(hd_task_type_t type);
// A node over the pack that an operand is over.
hd_term_t *hd_build_term(hd_task_parser_t *t, hd_term_kind_t kind,
                         hd_task_type_t type, hd_loc_t loc,
                         const hd_term_t *const *operands, unsigned count);
// An operator of two operands in one type.
const hd_term_t *hd_term_binary(hd_task_parser_t *t, hd_expr_kind_t op,
                                const hd_term_t *a, const hd_term_t *b,
                                hd_loc_t loc);
// Brings two operands to one type.
bool hd_term_unify(hd_task_parser_t *t, const hd_term_t **a,
                   const hd_term_t **b, hd_loc_t loc);
// permute(a, order)
const hd_term_t *hd_term_permute(hd_task_parser_t *t,
                                 const hd_term_t *const *args, unsigned count,
                                 hd_loc_t loc);
// A bare number without a neighbour becomes an i64 or an f32.
const hd_term_t *hd_term_settle(hd_task_parser_t *t, const hd_term_t *term);
// A bare number gets a type; NULL, and reported, where it cannot have it.
const hd_term_t *hd_term_coerce(hd_task_parser_t *t, const hd_term_t *term,
                                hd_task_type_t type);

// A definition, or the declaration of a monoid.
bool hd_parse_definition(hd_task_parser_t *t);

// A name that the task does not know yet; NULL, and reported, otherwise.
const char *hd_task_new_name(hd_task_parser_t *t, hd_loc_t *loc);
// Reports a name that the task has given already.
bool hd_task_declares(hd_task_parser_t *t, const char *name, hd_loc_t loc);
const hd_task_value_t *hd_task_find_value(const hd_task_t *task,
                                          const char *name);
const hd_pack_t *hd_task_find_pack(const hd_task_t *task, const char *name);
const hd_size_t *hd_task_find_size(const hd_task_t *task, const char *name);

#endif
