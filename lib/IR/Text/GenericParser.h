// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the parser of functions with compile-time parameters share
// (ParseGeneric.c: declarations and uses, Instantiate.c: instances).
#ifndef HIDET_IR_TEXT_GENERICPARSER_H
#define HIDET_IR_TEXT_GENERICPARSER_H

#include "IR/Text/ParserState.h"

// The values of a function's parameters, in their order; NULL: not given.
typedef struct hd_generic_values {
  hd_bound_t **data; // HD_MAX_GENERIC_PARAMS + 1 of them.
  size_t count;
} hd_generic_values_t;

// The value of a parameter, or of one of which nothing is known (NULL).
bool hd_generic_parse_value(hd_parser_t *p, const hd_generic_param_t *param,
                            hd_bound_t *bound);
// name[a = 1, T = f16]
const char *hd_generic_name(hd_parser_t *p, const char *name,
                            const hd_generic_values_t *values);
// Fills in the defaults of what is not given. *reader is then a parser of the
// function's tokens that knows the values.
bool hd_generic_bind(hd_parser_t *p, const hd_generic_t *generic,
                     hd_generic_values_t *values, hd_loc_t asked,
                     hd_parser_t *reader);
// The instance for the values: the one that is there, or a new one, the last
// item of the module.
hd_func_t *hd_generic_instance(hd_parser_t *p, hd_generic_t *generic,
                               hd_generic_values_t *values, hd_loc_t asked);

struct hd_template;

// Whether a template's kernel has the compile-time parameters that its form
// gives, and values for all others (CheckTemplate.c). loc: of its name in the
// head. False after an error (E0321).
bool hd_template_check(hd_parser_t *p, const struct hd_template *template,
                       const hd_generic_t *kernel, hd_loc_t loc);

#endif
