// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops over ranges and over mappings.
#include "IR/Text/ParserState.h"
#include "IR/Text/Printer.h"

// [unroll | unroll(n)]
static bool parse_unroll(hd_parser_t *p, int32_t *unroll) {
  *unroll = 0;
  if (!hd_accept(p, "unroll"))
    return true;
  *unroll = HD_UNROLL_FULL;
  if (!hd_accept(p, "("))
    return true;
  int64_t count;
  hd_loc_t loc = hd_here(p);
  if (!hd_parse_constant(p, &count) || !hd_expect(p, ")"))
    return false;
  if (count < 1 || count > 1024)
    return hd_error(p->diags, loc, HD_E0307, "unroll", 1LL, 1024LL,
                    (long long)count);
  *unroll = (int32_t)count;
  return true;
}

typedef struct names {
  unsigned count;
  const char *names[16];
  hd_loc_t locs[16];
} names_t;

static const hd_stmt_t *parse_mapfor(hd_parser_t *p, hd_loc_t loc,
                                     const names_t *names) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_MAPFOR, loc);
  hd_loc_t mapping_loc = hd_here(p);
  stmt->u.mapfor.mapping = hd_parse_mapping(p);
  bool ok = stmt->u.mapfor.mapping != NULL;
  if (ok && hd_accept(p, "on")) {
    stmt->u.mapfor.worker = hd_parse_as(p, hd_type(HD_I32));
    ok = stmt->u.mapfor.worker != NULL;
  }
  ok = ok && parse_unroll(p, &stmt->u.mapfor.unroll);
  if (ok && stmt->u.mapfor.mapping->rank != names->count) {
    hd_buffer_t text;
    hd_buffer_init_local(&text, p->arena->budget);
    hd_mapping_print(stmt->u.mapfor.mapping, &text);
    ok = hd_error(p->diags, mapping_loc, HD_E0401, hd_buffer_text(&text),
                  (int)stmt->u.mapfor.mapping->rank, (int)names->count);
    hd_buffer_fini(&text);
  }
  while (!ok && !hd_at(p, "{") && !hd_peek(p)->first_on_line)
    p->at++; // The body is read for more errors.
  size_t outer = hd_visible_size(&p->visible);
  const hd_var_t **vars =
      HD_ARENA_ARRAY(p->arena, const hd_var_t *, names->count);
  for (unsigned i = 0; i < names->count; i++) {
    vars[i] = hd_var_make(p->arena, names->names[i], HD_VAR_LOOP,
                          hd_type(ok ? HD_I32 : HD_VOID), names->locs[i]);
    hd_declare(p, vars[i]);
  }
  stmt->u.mapfor.vars = vars;
  stmt->u.mapfor.body = hd_parse_block(p);
  hd_visible_pop(&p->visible, outer);
  return ok ? stmt : NULL;
}

// One type for both ends of a range: that of the end that has one.
static bool parse_range(hd_parser_t *p, hd_stmt_t *stmt, hd_parsed_t first) {
  hd_parsed_t limit = hd_parse_value(p);
  if (!first.e || !limit.e)
    return false;
  hd_type_t type = hd_type(HD_I32);
  if (!first.untyped)
    type = first.e->type;
  else if (!limit.untyped)
    type = limit.e->type;
  if (!hd_type_is_integer(type) || type.lanes != 1)
    return hd_error(p->diags, limit.e->loc, HD_E0203, "i32",
                    hd_type_name(type));
  if (!(stmt->u.loop.first = hd_coerce(p, first, type)) ||
      !(stmt->u.loop.limit = hd_coerce(p, limit, type)))
    return false;
  if (hd_accept(p, "step")) {
    stmt->u.loop.step = hd_parse_as(p, type);
    if (!stmt->u.loop.step)
      return false;
  }
  return parse_unroll(p, &stmt->u.loop.unroll);
}

const hd_stmt_t *hd_parse_for(hd_parser_t *p, hd_loc_t loc) {
  names_t names = {0};
  do {
    if (names.count == 16) {
      hd_error(p->diags, hd_here(p), HD_E0307, "the number of loop variables",
               1LL, 16LL, 17LL);
      return NULL;
    }
    const char *name = hd_expect_name(p, &names.locs[names.count]);
    if (!name)
      return NULL;
    names.names[names.count++] = name;
  } while (hd_accept(p, ","));
  if (!hd_expect(p, "in"))
    return NULL;
  if (names.count > 1 || hd_at_mapping(p))
    return parse_mapfor(p, loc, &names);
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_FOR, loc);
  hd_parsed_t first = hd_parse_value(p);
  bool ok = hd_expect(p, "..") && parse_range(p, stmt, first);
  if (!ok && !hd_at(p, "{"))
    return NULL;
  size_t outer = hd_visible_size(&p->visible);
  hd_type_t type = ok ? stmt->u.loop.first->type : hd_type(HD_VOID);
  stmt->u.loop.var =
      hd_var_make(p->arena, names.names[0], HD_VAR_LOOP, type, names.locs[0]);
  hd_declare(p, stmt->u.loop.var);
  stmt->u.loop.body = hd_parse_block(p);
  hd_visible_pop(&p->visible, outer);
  return ok ? stmt : NULL;
}
