// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fusion points:
//
//   load     PLACE <- VALUE
//   register PLACE <- VALUE
//   yield    PLACE <- VALUE [in PLACE] [across lane(N)] [through PLACE
//            [buffers(N)] [sync(BARRIER, THREADS)]]
//   expect   PLACE in PLACE
//   rows     PLACE <- VALUE [across lane(N), warp(N), thread(N), cluster(N)]
#include "IR/Text/ParserState.h"

#include "IR/Stmt.h"

#include <string.h>

enum { MAX_BUFFERS = 16, MAX_ACROSS = 1024 };

bool hd_at_point(const hd_parser_t *p) {
  const hd_token_t *name = hd_peek_ahead(p, 1), *next = hd_peek_ahead(p, 2);
  for (int i = 0; i < HD_POINT_COUNT; i++)
    if (hd_at(p, hd_point_name((hd_point_t)i)))
      return name->kind == HD_TOKEN_NAME && !name->first_on_line &&
             strcmp(next->text, ":") != 0;
  return false;
}

// A place in a tensor, as intrinsics take it.
static const hd_expr_t *parse_place(hd_parser_t *p) {
  const hd_token_t *token = hd_peek(p);
  hd_loc_t loc = hd_here(p);
  if (token->kind != HD_TOKEN_NAME) {
    hd_expected(p, "a tensor");
    return NULL;
  }
  const hd_var_t *var = hd_visible(p, token->text);
  if (!var) {
    hd_error(p->diags, loc, HD_E0201, token->text, hd_similar(p, token->text));
    return NULL;
  }
  p->at++;
  if (hd_type_equal(var->type, hd_type(HD_VOID)))
    return NULL;
  if (!var->tensor) {
    hd_error(p->diags, loc, HD_E0209, var->name, "it is no tensor");
    return NULL;
  }
  const hd_expr_t *e = hd_parse_access(p, var, loc);
  return e ? hd_expr_make(p->arena, HD_EXPR_REF, e->type, e, e->operands,
                          e->num_operands)
           : NULL;
}

// (N)
static bool parse_count(hd_parser_t *p, const char *what, int64_t most,
                        int64_t *count) {
  hd_loc_t loc = hd_here(p);
  if (!hd_expect(p, "(") || !hd_parse_constant(p, count) || !hd_expect(p, ")"))
    return false;
  return (*count >= 1 && *count <= most) ||
         hd_error(p->diags, loc, HD_E0307, what, 1LL, (long long)most,
                  (long long)*count);
}

static bool parse_buffers(hd_parser_t *p, uint8_t *buffers) {
  int64_t count = 1;
  if (hd_accept(p, "buffers") &&
      !parse_count(p, "buffers", MAX_BUFFERS, &count))
    return false;
  *buffers = (uint8_t)count;
  return true;
}

static bool parse_across(hd_parser_t *p, hd_stmt_t *stmt) {
  do {
    int which = 0;
    while (which < HD_ACROSS_COUNT &&
           !(hd_at(p, hd_across_name((hd_across_t)which)) &&
             !stmt->u.point.across[which]))
      which++;
    if (which == HD_ACROSS_COUNT)
      return hd_expected(p,
                         "'lane', 'warp', 'thread', 'cluster' or 'grid', each "
                         "once");
    int64_t count;
    p->at++;
    if (!parse_count(p, hd_across_name((hd_across_t)which), MAX_ACROSS, &count))
      return false;
    stmt->u.point.across[which] = (uint16_t)count;
  } while (hd_accept(p, ","));
  return true;
}

static bool parse_sync(hd_parser_t *p, hd_stmt_t *stmt) {
  hd_type_t type = hd_type(HD_I32);
  return !hd_accept(p, "sync") ||
         (hd_expect(p, "(") && (stmt->u.point.barrier = hd_parse_as(p, type)) &&
          hd_expect(p, ",") && (stmt->u.point.threads = hd_parse_as(p, type)) &&
          hd_expect(p, ")"));
}

// [in PLACE]
static bool parse_early(hd_parser_t *p, hd_stmt_t *stmt) {
  return !hd_accept(p, "in") || (stmt->u.point.early = parse_place(p));
}

static const hd_stmt_t *parse_expect(hd_parser_t *p, hd_stmt_t *stmt) {
  hd_type_t type = stmt->u.point.place->type;
  stmt->u.point.value = hd_expect_value(p->arena, type);
  if (hd_at(p, "in"))
    return parse_early(p, stmt) ? stmt : NULL;
  hd_expected(p, "'in'");
  return NULL;
}

const hd_stmt_t *hd_parse_point(hd_parser_t *p, hd_loc_t loc) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_POINT, loc);
  for (int i = 0; i < HD_POINT_COUNT; i++)
    if (hd_at(p, hd_point_name((hd_point_t)i)))
      stmt->u.point.kind = (uint8_t)i;
  p->at++;
  stmt->u.point.buffers = 1;
  stmt->u.point.place = parse_place(p);
  if (!stmt->u.point.place)
    return NULL;
  if (stmt->u.point.kind == HD_POINT_EXPECT)
    return parse_expect(p, stmt);
  if (!hd_at(p, "<") || strcmp(hd_peek_ahead(p, 1)->text, "-") != 0) {
    hd_expected(p, "'<-'");
    return NULL;
  }
  p->at += 2;
  stmt->u.point.value = hd_parse_as(p, stmt->u.point.place->type);
  if (!stmt->u.point.value)
    return NULL;
  if (stmt->u.point.kind == HD_POINT_ROWS && hd_accept(p, "across"))
    return parse_across(p, stmt) ? stmt : NULL;
  if (!parse_early(p, stmt))
    return NULL;
  if (stmt->u.point.kind == HD_POINT_YIELD && hd_accept(p, "across") &&
      !parse_across(p, stmt))
    return NULL;
  if (!hd_accept(p, "through"))
    return stmt;
  stmt->u.point.staging = parse_place(p);
  return stmt->u.point.staging && parse_buffers(p, &stmt->u.point.buffers) &&
                 parse_sync(p, stmt)
             ? stmt
             : NULL;
}
