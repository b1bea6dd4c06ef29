// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the translation share.
#ifndef HIDET_SCHEDULE_TRANSLATE_TRANSLATESTATE_H
#define HIDET_SCHEDULE_TRANSLATE_TRANSLATESTATE_H

#include "Schedule/Translate/Translate.h"

// --- TranslateInt.c: integers of which something is known ---

// What may be anything of its type.
hd_worth_t hd_translate_any(const hd_expr_t *e);
hd_worth_t hd_translate_number(hd_translator_t *t, int64_t value);
hd_worth_t hd_translate_index(hd_translator_t *t, const hd_index_t *index);
// An operator whose operands are i64.
hd_worth_t hd_translate_integers(hd_translator_t *t, const hd_term_t *term);
hd_worth_t hd_translate_cast(hd_translator_t *t, const hd_term_t *term);
// An index of any integer type, as an i32 or i64.
hd_worth_t hd_translate_axis(hd_translator_t *t, const hd_term_t *term);
// Both in one type: i32 and i64 become i64.
void hd_translate_unify(hd_translator_t *t, hd_worth_t *a, hd_worth_t *b);

#endif
