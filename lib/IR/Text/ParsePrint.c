// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// printf("...", value, ...): the format settles the types of bare numbers, and
// which values it takes.
#include "IR/Format.h"
#include "IR/Text/ParserState.h"

// A bare number is of the type that holds it whole.
static const hd_expr_t *parse_value(hd_parser_t *p,
                                    const hd_conversion_t *conversion) {
  hd_parsed_t value = hd_parse_value(p);
  bool is_float = hd_conversion_is_float(conversion);
  const hd_expr_t *e = value.untyped && is_float
                           ? hd_coerce(p, value, hd_type(HD_F64))
                           : hd_default_type(p, value);
  if (!e ||
      (e->kind != HD_EXPR_TENSOR && hd_conversion_takes(conversion, e->type)))
    return e;
  hd_error(p->diags, e->loc, HD_E0203,
           hd_arena_printf(p->arena, "%s for '%.*s'",
                           is_float ? "a float" : "an integer",
                           (int)conversion->size, conversion->text),
           e->kind == HD_EXPR_TENSOR ? "tensor" : hd_type_name(e->type));
  return NULL;
}

// How many values the format takes; -1, and reported, where it is wrong.
static int count_conversions(hd_parser_t *p, const char *format, hd_loc_t loc) {
  hd_conversion_t conversion;
  int count = 0;
  for (; hd_format_next(&format, &conversion); count++)
    if (conversion.size == 0) {
      hd_error(p->diags, loc, HD_E0220, conversion.text);
      return -1;
    }
  return count;
}

const hd_stmt_t *hd_parse_print(hd_parser_t *p, hd_loc_t loc) {
  HD_VEC(const hd_expr_t *) args = {0};
  if (!hd_expect(p, "("))
    return NULL;
  if (hd_peek(p)->kind != HD_TOKEN_STRING) {
    hd_expected(p, "a string, the format");
    return NULL;
  }
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_PRINT, loc);
  const char *format = stmt->u.print.format = hd_peek(p)->text;
  int wanted = count_conversions(p, format, hd_here(p));
  hd_conversion_t conversion;
  p->at++;
  while (wanted >= 0 && hd_accept(p, ",")) {
    const hd_expr_t *e = hd_format_next(&format, &conversion)
                             ? parse_value(p, &conversion)
                             : hd_parse_expr(p);
    if (!e)
      return NULL;
    hd_vec_push(p->arena, &args, e);
  }
  if (wanted < 0 || !hd_expect(p, ")"))
    return NULL;
  if (args.size != (size_t)wanted) {
    hd_error(p->diags, loc, HD_E0206, "the format", wanted, "values",
             (int)args.size);
    return NULL;
  }
  stmt->u.print.args = args.data;
  stmt->u.print.num_args = (uint32_t)args.size;
  return stmt;
}
