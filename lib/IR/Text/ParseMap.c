// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps in a kernel's signature:
//   map ta: a box(128, 64) swizzle(128) l2(256)
//   map tx: x im2col(128, 64, lower = [-1, -1], upper = [-1, -1]) swizzle(128)
#include "IR/Text/ParserState.h"

enum { DEFAULT_L2 = 256 };

// "(index, ...)" between an opening and a closing text, at most `most`.
static bool parse_list(hd_parser_t *p, const char *open, const char *close,
                       const hd_expr_t **values, unsigned most,
                       unsigned *count) {
  *count = 0;
  if (!hd_expect(p, open))
    return false;
  do {
    if (*count == most)
      return hd_expected(p, close[0] == ')' ? "')'" : "']'");
    values[*count] = hd_parse_as(p, hd_type(HD_I32));
    if (!values[(*count)++])
      return false;
  } while (hd_accept(p, ","));
  return hd_expect(p, close);
}

// word = [value for each inner axis]
static bool parse_axes(hd_parser_t *p, const char *word, unsigned axes,
                       const hd_expr_t **values) {
  unsigned count;
  hd_loc_t loc = hd_here(p);
  if (!hd_expect(p, word) || !hd_expect(p, "=") ||
      !parse_list(p, "[", "]", values, HD_MAP_MAX_SPATIAL, &count))
    return false;
  if (count != axes)
    return hd_error(p->diags, loc, HD_E0206, word, (int)axes, "values",
                    (int)count);
  return true;
}

// im2col(pixels, channels, lower = [...], upper = [...] [, step = [...]])
static bool parse_im2col(hd_parser_t *p, hd_map_t *map) {
  unsigned rank = map->tensor->tensor->rank;
  if (rank < 3 || rank > HD_MAP_MAX_RANK)
    return hd_error(p->diags, hd_here(p), HD_E0307,
                    "the rank of a tensor that is read by im2col", 3LL,
                    (long long)HD_MAP_MAX_RANK, (long long)rank);
  map->im2col = true;
  map->num_box = 2;
  if (!hd_expect(p, "(") || !(map->box[0] = hd_parse_as(p, hd_type(HD_I32))) ||
      !hd_expect(p, ",") || !(map->box[1] = hd_parse_as(p, hd_type(HD_I32))) ||
      !hd_expect(p, ",") || !parse_axes(p, "lower", rank - 2, map->lower) ||
      !hd_expect(p, ",") || !parse_axes(p, "upper", rank - 2, map->upper))
    return false;
  for (unsigned i = 0; i < rank - 2; i++)
    map->step[i] = hd_expr_i32(p->arena, 1);
  if (hd_accept(p, ",") && !parse_axes(p, "step", rank - 2, map->step))
    return false;
  return hd_expect(p, ")");
}

// (constant) among a few; the verifier looks which.
static bool parse_bytes(hd_parser_t *p, uint32_t *bytes) {
  int64_t value;
  hd_loc_t loc = hd_here(p);
  if (!hd_expect(p, "(") || !hd_parse_constant(p, &value) || !hd_expect(p, ")"))
    return false;
  if (value < 0 || value > 256)
    return hd_error(p->diags, loc, HD_E0307, "a number of bytes", 0LL, 256LL,
                    (long long)value);
  *bytes = (uint32_t)value;
  return true;
}

const hd_var_t *hd_parse_map(hd_parser_t *p) {
  hd_loc_t loc, tensor_loc;
  const char *name = hd_expect_name(p, &loc);
  if (!name || !hd_expect(p, ":"))
    return NULL;
  const char *of = hd_expect_name(p, &tensor_loc);
  if (!of)
    return NULL;
  hd_map_t *map = HD_ARENA_NEW(p->arena, hd_map_t);
  map->tensor = hd_visible(p, of);
  map->l2 = DEFAULT_L2;
  if (!map->tensor) {
    hd_error(p->diags, tensor_loc, HD_E0201, of, hd_similar(p, of));
    return NULL;
  }
  if (!map->tensor->tensor) {
    hd_error(p->diags, tensor_loc, HD_E0208, of);
    return NULL;
  }
  bool ok =
      hd_accept(p, "im2col")
          ? parse_im2col(p, map)
          : hd_expect(p, "box") && parse_list(p, "(", ")", map->box,
                                              HD_MAP_MAX_RANK, &map->num_box);
  while (ok && (hd_at(p, "swizzle") || hd_at(p, "l2")))
    ok = hd_accept(p, "swizzle")
             ? parse_bytes(p, &map->swizzle)
             : hd_accept(p, "l2") && parse_bytes(p, &map->l2);
  if (!ok)
    return NULL;
  hd_var_t *var = hd_var_make(p->arena, name, HD_VAR_MAP, hd_type(HD_MAP), loc);
  var->map = map;
  return var;
}
