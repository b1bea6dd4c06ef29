// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the parser share (ParseExpr.c, ParseType.c, ParseStmt.c,
// Parser.c). A parse function that returns NULL or false has reported why.
#ifndef HIDET_IR_TEXT_PARSERSTATE_H
#define HIDET_IR_TEXT_PARSERSTATE_H

#include "IR/Generic.h"
#include "IR/Intrinsic.h"
#include "IR/Rewrite.h"
#include "IR/Text/Lexer.h"
#include "IR/Text/Parser.h"
#include "IR/Visible.h"
#include "Support/Map.h"

#include <string.h>

enum {
  HD_MAX_GENERIC_PARAMS = 64,
  // Sets of kinds of function.
  HD_KINDS_KERNEL = 1 << HD_FUNC_KERNEL,
  HD_KINDS_FN = 1 << HD_FUNC_FN,
  HD_KINDS_SCHEDULE = 1 << HD_FUNC_KERNEL | 1 << HD_FUNC_PLAN,
};

// What a name stands for while a part of the text is read: a compile-time
// parameter's value, or a constant of a block.
typedef struct hd_bound {
  hd_var_t var; // Its name and place alone.
  hd_const_t constant;
  bool is_type; // The constant is empty.
  hd_type_t type;
} hd_bound_t;

typedef HD_VEC(hd_func_size_t) hd_func_sizes_t;

typedef struct hd_parser {
  hd_module_t *module;
  hd_arena_t *arena;
  hd_diagnostics_t *diags;
  uint32_t source;
  const hd_token_t *tokens;
  size_t at;
  hd_visible_t visible;
  hd_stmt_list_t ahead;  // To stand before the statement that is being read.
  hd_ptr_map_t vectors;  // Register tensors that are vectors by name.
  const hd_func_t *func; // Whose body or header is being read.
  int depth;             // Of nested expressions and blocks.
  bool gave_up;          // It was too deep: what follows is not read.
  hd_visible_t bound;    // The variables are those of hd_bound_t.
  int nested;            // Instances that are being read around this; 0: none.
  hd_func_sizes_t
      *sizes; // Where new names in a shape go; NULL: there are none.
  const hd_visible_t *failed; // Names of items that were reported.
  hd_loc_t odd_block; // The '{' of the first block of the function that ends as
                      // nobody would indent it.
  bool probing;       // The values mean nothing: the syntax alone counts.
  unsigned silenced;  // Uses of names whose declaration was reported.
} hd_parser_t;

// A parsed expression. A bare number has no type yet: it takes the one that its
// surroundings ask for. e is NULL after an error.
typedef struct hd_parsed {
  const hd_expr_t *e;
  bool untyped;
} hd_parsed_t;

// Tokens.
static inline const hd_token_t *hd_peek(const hd_parser_t *p) {
  return &p->tokens[p->at];
}
const hd_token_t *hd_peek_ahead(const hd_parser_t *p, size_t ahead);
// Punctuation or a name.
static inline bool hd_at(const hd_parser_t *p, const char *text) {
  const hd_token_t *token = hd_peek(p);
  return token->text[0] == text[0] &&
         (token->kind == HD_TOKEN_NAME ||
          token->kind == HD_TOKEN_PUNCTUATION) &&
         strcmp(token->text, text) == 0;
}
bool hd_accept(hd_parser_t *p, const char *text);
bool hd_expect(hd_parser_t *p, const char *text);
// A name that may be declared: no reserved word. NULL otherwise.
const char *hd_expect_name(hd_parser_t *p, hd_loc_t *loc);
bool hd_expected(hd_parser_t *p, const char *what); // Reports; false.
hd_loc_t hd_here(const hd_parser_t *p);
// False, and reported, where nesting is too deep; else pair it with p->depth--.
bool hd_enter(hd_parser_t *p);

// Names.
const hd_var_t *hd_visible(const hd_parser_t *p, const char *name);
// Makes a variable visible; reports a name that is taken.
void hd_declare(hd_parser_t *p, const hd_var_t *var);
static inline const hd_bound_t *hd_find_bound(const hd_parser_t *p,
                                              const char *name) {
  return (const hd_bound_t *)hd_visible_find(&p->bound, name);
}
hd_bound_t *hd_bound_make(hd_parser_t *p, const char *name, hd_loc_t loc);
// Makes a name visible whose declaration was reported: uses of it are not.
// hd_declare_poison() reports a name that is taken besides.
void hd_declare_poison(hd_parser_t *p, const char *name, hd_loc_t loc);
void hd_poison(hd_parser_t *p, const char *name, hd_loc_t loc);
bool hd_is_poisoned(const hd_parser_t *p, const char *name);
const hd_const_t *hd_find_const(const hd_parser_t *p, const char *name);
// "; did you mean 'x'?" or "".
const char *hd_similar(hd_parser_t *p, const char *name);
// Whether an item of the name was reported: uses of it are not.
static inline bool hd_has_failed(const hd_parser_t *p, const char *name) {
  return p->failed && hd_visible_find(p->failed, name);
}
// Reports a name that is no value: what it is instead, or that nobody knows it.
void hd_report_unknown(hd_parser_t *p, const char *name, hd_loc_t loc);

// Types and what goes with them.
bool hd_parse_type(hd_parser_t *p, hd_type_t *type);
// A type's name, or a compile-time parameter that stands for one.
bool hd_find_type(const hd_parser_t *p, const char *name, hd_type_t *type);
const hd_tensor_t *hd_parse_tensor(hd_parser_t *p, hd_scope_t scope);
const hd_mapping_t *hd_parse_mapping(hd_parser_t *p);
bool hd_at_mapping(const hd_parser_t *p); // And no expression.
// A tensor map's declaration, past the word 'map'.
const hd_var_t *hd_parse_map(hd_parser_t *p);

// Expressions.
hd_parsed_t hd_parse_value(hd_parser_t *p);
const hd_expr_t *hd_parse_expr(hd_parser_t *p); // Bare numbers default.
const hd_expr_t *hd_parse_as(hd_parser_t *p, hd_type_t type);
const hd_expr_t *hd_parse_index(hd_parser_t *p); // An integer; i32 by default.
bool hd_parse_constant(hd_parser_t *p, int64_t *value);
// Reports that e is no constant, or why it has no value; false.
bool hd_not_constant(hd_parser_t *p, const hd_expr_t *e);
// A type that was found, and what makes the other one of it.
const char *hd_conversion_text(hd_parser_t *p, hd_type_t found, hd_type_t to);
const hd_expr_t *hd_coerce(hd_parser_t *p, hd_parsed_t value, hd_type_t type);
const hd_expr_t *hd_default_type(hd_parser_t *p, hd_parsed_t value);
// Bare numbers, and whether every one of a tree fits i32.
hd_parsed_t hd_untyped_int(hd_parser_t *p, uint64_t value, hd_loc_t loc);
hd_parsed_t hd_untyped_float(hd_parser_t *p, double value, hd_loc_t loc);
bool hd_fits_i32(const hd_expr_t *e);
// The same expression at another place; an operator as messages quote it.
const hd_expr_t *hd_at_loc(hd_parser_t *p, const hd_expr_t *e, hd_loc_t loc);
const char *hd_operator_name(hd_parser_t *p, hd_expr_kind_t kind);
// Both operands in one type; the checks of the operator; NULL after errors.
hd_parsed_t hd_build_binary(hd_parser_t *p, hd_expr_kind_t kind, hd_parsed_t a,
                            hd_parsed_t b, hd_loc_t loc);
hd_parsed_t hd_build_unary(hd_parser_t *p, hd_expr_kind_t kind, hd_parsed_t a,
                           hd_loc_t loc);
// condition ? a : b
hd_parsed_t hd_build_select(hd_parser_t *p, hd_parsed_t condition,
                            hd_parsed_t a, hd_parsed_t b, hd_loc_t loc);
// Reports that a whole tensor is no value.
void hd_reject_tensor(hd_parser_t *p, const hd_expr_t *e);
// A table, past ':', becomes an item of the module; a local one, of the
// function that is being read, has another name there.
bool hd_parse_table(hd_parser_t *p, const char *name, hd_loc_t loc);
const hd_const_t *hd_parse_local_table(hd_parser_t *p, const char *name,
                                       hd_loc_t loc);
// name[...] or name@[...] from the bracket on (none for rank 0).
const hd_expr_t *hd_parse_access(hd_parser_t *p, const hd_var_t *var,
                                 hd_loc_t loc);
// At a name and '('. No variable can be called, so a name may be both.
bool hd_at_call(const hd_parser_t *p);
// name(...) from the parenthesis on.
hd_parsed_t hd_parse_call(hd_parser_t *p, const hd_token_t *name);

// Whether a call's tensors are what the function takes; reports the first one
// that is not.
bool hd_check_tensors(hd_parser_t *p, const hd_func_t *func,
                      const hd_expr_t *const *operands);
// Adds a function's signature to an error, at its declaration.
void hd_note_signature(hd_parser_t *p, const hd_func_t *func);
// Reports that no function of the name takes what is given, and lists those
// that there are.
void hd_report_no_call(hd_parser_t *p, const char *name, hd_loc_t loc,
                       const char *given);

// The infix operator at hand, where it binds at least so tightly.
bool hd_find_infix(hd_parser_t *p, int least, hd_expr_kind_t *kind);
// Whether an integer is a value of a type.
bool hd_int_fits(hd_type_t type, int64_t value);

// A task from its name on; it becomes an item of the module.
bool hd_parse_task(hd_parser_t *p);
// A rewrite from the parenthesis after its name on.
bool hd_parse_rewrite(hd_parser_t *p, hd_rewrite_t *rewrite);
// Of a rewrite with lists of operands, from its parenthesis on: keeps the text
// from a token up to another one; when all tasks are there, reads it.
void hd_rewrite_keep_text(hd_parser_t *p, hd_rewrite_t *rewrite, size_t first,
                          size_t limit);
bool hd_parse_rewrite_text(hd_parser_t *p, hd_rewrite_t *rewrite);
// Whether the parameters that begin here, of a task or a rewrite, have a list
// among them.
bool hd_at_listed_signature(const hd_parser_t *p);
// A template, past its name, which is set; adds the item.
bool hd_parse_template(hd_parser_t *p, hd_template_t *template);
// A graph from the parenthesis after its name on.
bool hd_parse_graph(hd_parser_t *p, hd_graph_t *graph);

// Functions, and those with compile-time parameters.
// From the '(' to the '{', which is left.
hd_func_t *hd_parse_signature(hd_parser_t *p, hd_func_kind_t kind,
                              const char *name, hd_loc_t loc);
void hd_parse_body(hd_parser_t *p, hd_func_t *func);
// Reports a function whose name is taken.
void hd_check_duplicate(hd_parser_t *p, const hd_func_t *func);
bool hd_at_item(const hd_parser_t *p);
// The text of tokens from number `first` on, before number `limit`.
const char *hd_text_of_tokens(hd_parser_t *p, size_t first, size_t limit);
// What reads tokens again that were kept of a module's text, with the memory
// and the diagnostics of p.
hd_parser_t hd_parser_again(const hd_parser_t *p, hd_module_t *module,
                            uint32_t source, const hd_token_t *tokens);
// At a line that begins an item, which nothing within one does.
bool hd_at_next_item(const hd_parser_t *p);
// The '}' of a block that begins at open; reports a block that does not end.
bool hd_close_block(hd_parser_t *p, hd_loc_t open);
// After an error in a bracket that is open was reported: to behind what closes
// it, before the next statement. False, and no further, where nothing does.
bool hd_skip_closed(hd_parser_t *p);
// Indices, and `else`, of what is no tensor for an error.
void hd_skip_access(hd_parser_t *p);
void hd_skip_braces(hd_parser_t *p); // To behind the '}' of the '{' at hand.
// From the '[' behind a name on; first: the token that the item begins with.
bool hd_parse_generic(hd_parser_t *p, hd_func_kind_t kind, size_t first,
                      const char *name, hd_loc_t loc);
// Of the generics from that item on, those with defaults become functions; of
// others the syntax is looked at.
void hd_parse_unasked(hd_parser_t *p, size_t first);
// [name = value, ...], or nothing, behind the name of a function of one of the
// kinds: the function, or the instance for these values, which is made where
// there is none yet.
const hd_func_t *hd_parse_func_name(hd_parser_t *p, const char *name,
                                    hd_loc_t loc, unsigned kinds);
// The same behind the name of an instance that is written out: its whole name.
const char *hd_parse_instance_name(hd_parser_t *p, const char *name);
bool hd_at_generic_call(const hd_parser_t *p); // At f[name
bool hd_is_generic_fn(const hd_parser_t *p, const char *name);

// What stands behind the '=' of a constant.
hd_const_t *hd_parse_const(hd_parser_t *p, const char *name, hd_loc_t loc);

// Statements.
hd_block_t hd_parse_block(hd_parser_t *p);
// ParseWhole.c: a vector that can be stored to, past its type; its value.
const hd_stmt_t *hd_parse_vector(hd_parser_t *p, const char *name,
                                 hd_type_t type, hd_loc_t loc);
bool hd_is_vector(const hd_parser_t *p, const hd_var_t *var);
const hd_expr_t *hd_vector_value(hd_parser_t *p, const hd_var_t *var,
                                 hd_loc_t loc);
// vector[index] of a VAR, where the index is no constant yet.
const hd_expr_t *hd_lane_at(hd_parser_t *p, const hd_expr_t *vector,
                            const hd_expr_t *index, hd_loc_t loc);
// Loops, views and launches, past their words.
const hd_stmt_t *hd_parse_for(hd_parser_t *p, hd_loc_t loc);
const hd_stmt_t *hd_parse_view(hd_parser_t *p, hd_loc_t loc);
const hd_stmt_t *hd_parse_launch(hd_parser_t *p, hd_loc_t loc);
// printf, past its name.
const hd_stmt_t *hd_parse_print(hd_parser_t *p, hd_loc_t loc);
// tensor = value for every element, past the tensor's name.
const hd_stmt_t *hd_parse_fill(hd_parser_t *p, const hd_var_t *var,
                               hd_loc_t loc);
// Whether a fusion point begins here: its word, which is no reserved one but
// `register`, before the name of a tensor that is stored to.
bool hd_at_point(const hd_parser_t *p);
const hd_stmt_t *hd_parse_point(hd_parser_t *p, hd_loc_t loc);

#endif
