// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Alternatives in the text of a rewrite (docs/IR.md, "Rewrites"):
//
//   either mul { z = mul(y, f) } or div { z = div(y, f) }
//
// A choice is made everywhere at once: where labels come again, what they name
// is taken or left out. Each way to choose is a rewrite of its own.
#ifndef HIDET_IR_TEXT_ALTERNATIVES_H
#define HIDET_IR_TEXT_ALTERNATIVES_H

#include "IR/Text/ParserState.h"

enum { HD_MAX_EITHERS = 8, HD_MAX_OPTIONS = 16 };

typedef struct hd_either {
  const char *labels[HD_MAX_OPTIONS];
  unsigned count;
} hd_either_t;

// label { tokens }
typedef struct hd_branch {
  size_t word;         // The token 'either' or 'or'.
  size_t first, limit; // Its tokens.
  unsigned choice, option;
  bool is_last; // Of those that are joined by 'or'.
} hd_branch_t;

typedef struct hd_alternatives {
  size_t first, limit; // The tokens of the rewrite, behind its name.
  hd_either_t choices[HD_MAX_EITHERS];
  unsigned num_choices;
  HD_VEC(hd_branch_t) branches;
  unsigned count; // Of the ways to choose; 1 where there is no choice.
} hd_alternatives_t;

// Looks from p->at, behind a rewrite's name, to its end. False: an error was
// reported. Text that is no rewrite has no choice.
bool hd_alternatives_read(hd_parser_t *p, hd_alternatives_t *a);
// The tokens of a way to choose, below a->count; an END behind them.
const hd_token_t *hd_alternatives_choose(const hd_parser_t *p,
                                         const hd_alternatives_t *a,
                                         unsigned way);
// name_label_label: of the choices in their order.
const char *hd_alternatives_name(const hd_parser_t *p,
                                 const hd_alternatives_t *a, unsigned way,
                                 const char *name);

#endif
