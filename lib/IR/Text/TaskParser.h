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

// A name that stands for several, x_1, x_2 and so on: a list of operands, or a
// size of each.
typedef struct hd_listed {
  const char *name;
  uint32_t list; // Its number.
  bool is_size;
} hd_listed_t;

// A term that is read for one operand of a list after the other.
typedef struct hd_pattern {
  size_t start;              // Its first token.
  bool is_call;              // It is one, and no more.
  uint32_t part;             // The number of the operand; 0: there is none.
  const hd_listed_t *listed; // The first such name in it; NULL: none yet.
  bool is_read;              // To its end, for this operand.
} hd_pattern_t;

typedef struct hd_task_parser {
  hd_parser_t *p;
  hd_task_t *task;
  HD_VEC(const hd_index_t *) indices;      // In scope, innermost last.
  HD_VEC(const hd_variable_t *) variables; // Of the monoid being read.
  HD_VEC(hd_task_value_t *) defaults;      // Attributes that have one.
  HD_VEC(hd_task_order_t) orders; // Whose attributes are not looked up yet.
  bool allows_const;              // Before the type of an input: of a rewrite.
  const uint32_t *counts;         // Of operands, of each list.
  uint32_t num_lists, max_lists;  // Read so far; that there may be.
  HD_VEC(hd_listed_t) listed;
  hd_pattern_t pattern;
} hd_task_parser_t;

// NULL or false: an error was reported.
const hd_term_t *hd_parse_term(hd_task_parser_t *t);
const hd_term_t *hd_parse_term_as(hd_task_parser_t *t, hd_task_type_t type);
// A bare number stays one: hd_term_coerce() gives it a type.
const hd_term_t *hd_parse_bare_term(hd_task_parser_t *t);
// size | ..term
const hd_term_t *hd_parse_axis(hd_task_parser_t *t);
// A term, or the first one of it, of a pattern that was begun.
const hd_term_t *hd_parse_infix_term(hd_task_parser_t *t);
const hd_term_t *hd_parse_primary_term(hd_task_parser_t *t);
const hd_term_t *hd_size_term(hd_task_parser_t *t, const hd_size_t *size);
// Axes with commas, up to a closing bracket; most: as many as there is room
// for.
bool hd_parse_terms(hd_task_parser_t *t, const char *close, unsigned most,
                    const hd_term_t **terms, unsigned *count);
// A call of a function of terms, from the parenthesis on (ParseFunction.c).
const hd_term_t *hd_parse_function(hd_task_parser_t *t, const char *name,
                                   hd_loc_t loc);
// A type, or a variable, which is declared by its first use.
bool hd_parse_task_type(hd_task_parser_t *t, hd_task_type_t *type);
// ( index: range, ... [to at] ): the indices are in scope from then on.
bool hd_parse_ranges(hd_task_parser_t *t, hd_reduction_t *reduction,
                     bool is_scan);

// --- ParseMonoid.c ---

// A builtin one, or one that the task has declared.
const hd_monoid_t *hd_parse_monoid_name(hd_task_parser_t *t);
// monoid name(v: T, ...)(w, ...) from (identity, ...) = (result, ...), from the
// name on; in_order: a fold.
bool hd_parse_monoid(hd_task_parser_t *t, hd_loc_t loc, bool in_order);

// --- ParseTask.c: what rewrites have as well ---

// name: type[shape] | name: type [over pack] [= constant]; the last input then.
bool hd_parse_task_input(hd_task_parser_t *t);
// The same behind the name.
bool hd_parse_task_input_type(hd_task_parser_t *t, const char *name,
                              hd_loc_t loc);
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

// --- ParseListed.c ---

const hd_listed_t *hd_find_listed(const hd_task_parser_t *t, const char *name);
// "x_2"
const char *hd_listed_part(const hd_task_parser_t *t, const char *name,
                           uint32_t part);
// Behind the name of a list and '...': its operands are inputs then.
bool hd_parse_listed_input(hd_task_parser_t *t, const char *name, hd_loc_t loc);
// At n... in the shape of such an operand: its own size is declared.
bool hd_bind_listed_size(hd_task_parser_t *t, const hd_term_t **axis);
// Whether the term, or the call, that begins here ends with '...': it is read
// as a pattern then, until t->pattern is what it was.
bool hd_begin_pattern(hd_task_parser_t *t, bool is_call);
// At '...': the pattern for the operands that are left, or nothing.
const hd_term_t *hd_parse_others(hd_task_parser_t *t);
bool hd_term_is_nothing(const hd_term_t *term);
// What a name is in the pattern that is being read: "x_2"; names that stand for
// one thing are what they were. NULL after an error.
const char *hd_listed_name(hd_task_parser_t *t, const char *name, hd_loc_t loc);
// before(n), count(x)
bool hd_at_listed_function(const hd_task_parser_t *t);
const hd_term_t *hd_parse_listed_function(hd_task_parser_t *t);

// --- ParseTask.c, TaskText.c ---

// A task from its parenthesis on, its lists of as many operands as counts says.
hd_task_t *hd_parse_task_rest(hd_parser_t *p, const char *name, hd_loc_t loc,
                              const uint32_t *counts, uint32_t num_lists);
// A task with a list of operands from there on, as an item of the module.
bool hd_parse_task_text(hd_parser_t *p, const char *name, hd_loc_t loc);

// A definition, or the declaration of a monoid.
bool hd_parse_definition(hd_task_parser_t *t);

// --- TaskNames.c ---

// A name that the task does not know yet; NULL, and reported, otherwise.
const char *hd_task_new_name(hd_task_parser_t *t, hd_loc_t *loc);
// Reports a name that the task has given already.
bool hd_task_declares(hd_task_parser_t *t, const char *name, hd_loc_t loc);

#endif
