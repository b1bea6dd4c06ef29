// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the parser of calls share (ParseCall.c, ParseIntrinsic.c).
#ifndef HIDET_IR_TEXT_CALLPARSER_H
#define HIDET_IR_TEXT_CALLPARSER_H

#include "IR/Text/ParserState.h"

enum { HD_MAX_ARGS = 64 };

typedef struct hd_args {
  unsigned count;
  hd_parsed_t values[HD_MAX_ARGS];
  bool are_words[HD_MAX_ARGS]; // relaxed, device ...
} hd_args_t;

// Whether a value has a type, or a bare number takes it.
bool hd_may_become(hd_parsed_t value, hd_type_t type);

// --- ParseIntrinsic.c ---

// relaxed, device, ca ...: words that stand for themselves, where a row of the
// intrinsic expects one as argument number index. False: there is none.
bool hd_parse_intrinsic_word(hd_parser_t *p, const char *callee, unsigned index,
                             hd_parsed_t *value);
// Whether a row of the name takes the arguments; *result is the call then, or
// nothing after an error. *exists is set where there is a row at all.
bool hd_parse_intrinsic(hd_parser_t *p, const char *name, hd_loc_t loc,
                        const hd_args_t *args, bool *exists,
                        hd_parsed_t *result);

#endif
