// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statements.
#include "IR/Text/PrinterState.h"

static void print_unroll(hd_printer_t *p, int32_t unroll) {
  if (unroll == HD_UNROLL_FULL)
    hd_buffer_puts(p->out, " unroll");
  else if (unroll > 0)
    hd_buffer_printf(p->out, " unroll(%d)", unroll);
}

static void print_store(hd_printer_t *p, const hd_stmt_t *stmt) {
  hd_print_place(p, stmt->u.store.var, stmt->u.store.linear,
                 stmt->u.store.indices, stmt->u.store.num_indices,
                 stmt->u.store.value->type.lanes);
  hd_buffer_puts(p->out, " = ");
  hd_print_expr(p, stmt->u.store.value, 0);
}

static void print_point(hd_printer_t *p, const hd_stmt_t *stmt) {
  hd_buffer_printf(p->out, "%s ",
                   hd_point_name((hd_point_t)stmt->u.point.kind));
  hd_print_expr(p, stmt->u.point.place, 0);
  if (stmt->u.point.kind != HD_POINT_EXPECT) {
    hd_buffer_puts(p->out, " <- ");
    hd_print_expr(p, stmt->u.point.value, 0);
  }
  if (stmt->u.point.early) {
    hd_buffer_puts(p->out, " in ");
    hd_print_expr(p, stmt->u.point.early, 0);
  }
  const char *before = " across ";
  for (int i = 0; i < HD_ACROSS_COUNT; i++)
    if (stmt->u.point.across[i]) {
      hd_buffer_printf(p->out, "%s%s(%d)", before,
                       hd_across_name((hd_across_t)i), stmt->u.point.across[i]);
      before = ", ";
    }
  if (!stmt->u.point.staging)
    return;
  hd_buffer_puts(p->out, " through ");
  hd_print_expr(p, stmt->u.point.staging, 0);
  if (stmt->u.point.buffers > 1)
    hd_buffer_printf(p->out, " buffers(%d)", stmt->u.point.buffers);
  if (stmt->u.point.barrier) {
    hd_buffer_puts(p->out, " sync(");
    hd_print_expr(p, stmt->u.point.barrier, 0);
    hd_buffer_puts(p->out, ", ");
    hd_print_expr(p, stmt->u.point.threads, 0);
    hd_buffer_puts(p->out, ")");
  }
}

static void print_declare(hd_printer_t *p, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.declare.var;
  hd_scope_t scope = var->tensor->scope;
  hd_buffer_puts(p->out, hd_stmt_is_view(stmt)      ? "view"
                         : scope == HD_SCOPE_GLOBAL ? "workspace"
                                                    : hd_scope_name(scope));
  // The name is visible after its type.
  const char *name = hd_print_pick_name(p, var);
  hd_buffer_printf(p->out, " %s: ", name);
  hd_print_tensor(p, var->tensor);
  if (stmt->u.declare.init) {
    hd_buffer_puts(p->out, " = ");
    hd_print_expr(p, stmt->u.declare.init, 0);
  }
  hd_visible_push(&p->visible, var, name);
}

static void print_for(hd_printer_t *p, const hd_stmt_t *stmt) {
  size_t outer = hd_visible_size(&p->visible);
  const char *name = hd_print_pick_name(p, stmt->u.loop.var);
  hd_buffer_printf(p->out, "for %s in ", name);
  hd_print_expr(p, stmt->u.loop.first, 5);
  hd_buffer_puts(p->out, "..");
  hd_print_expr(p, stmt->u.loop.limit, 5);
  if (stmt->u.loop.step) {
    hd_buffer_puts(p->out, " step ");
    hd_print_expr(p, stmt->u.loop.step, 5);
  }
  print_unroll(p, stmt->u.loop.unroll);
  hd_visible_push(&p->visible, stmt->u.loop.var, name);
  hd_print_block(p, stmt->u.loop.body);
  hd_visible_pop(&p->visible, outer);
}

static void print_mapfor(hd_printer_t *p, const hd_stmt_t *stmt) {
  unsigned rank = stmt->u.mapfor.mapping->rank;
  size_t outer = hd_visible_size(&p->visible);
  const char **names = HD_ARENA_ARRAY(&p->arena, const char *, rank);
  hd_buffer_puts(p->out, "for ");
  for (unsigned i = 0; i < rank; i++) {
    names[i] = hd_print_declare(p, stmt->u.mapfor.vars[i]);
    hd_buffer_printf(p->out, "%s%s", i ? ", " : "", names[i]);
  }
  hd_visible_pop(&p->visible, outer); // The mapping does not see them.
  hd_buffer_puts(p->out, " in ");
  hd_print_mapping(p, stmt->u.mapfor.mapping);
  if (stmt->u.mapfor.worker) {
    hd_buffer_puts(p->out, " on ");
    hd_print_expr(p, stmt->u.mapfor.worker, 5);
  }
  print_unroll(p, stmt->u.mapfor.unroll);
  for (unsigned i = 0; i < rank; i++)
    hd_visible_push(&p->visible, stmt->u.mapfor.vars[i], names[i]);
  hd_print_block(p, stmt->u.mapfor.body);
  hd_visible_pop(&p->visible, outer);
}

static void print_if(hd_printer_t *p, const hd_stmt_t *stmt) {
  hd_buffer_puts(p->out, "if ");
  hd_print_expr(p, stmt->u.branch.condition, 0);
  hd_print_block(p, stmt->u.branch.then);
  hd_block_t otherwise = stmt->u.branch.otherwise;
  if (otherwise.size == 0)
    return;
  hd_buffer_puts(p->out, " else");
  if (otherwise.size == 1 && otherwise.stmts[0]->kind == HD_STMT_IF) {
    hd_buffer_puts(p->out, " ");
    print_if(p, otherwise.stmts[0]);
  } else {
    hd_print_block(p, otherwise);
  }
}

static void print_stmt(hd_printer_t *p, const hd_stmt_t *stmt) {
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET: {
    const char *name = hd_print_pick_name(p, stmt->u.let.var);
    hd_buffer_printf(p->out, "let %s = ", name);
    hd_print_expr(p, stmt->u.let.value, 0);
    hd_visible_push(&p->visible, stmt->u.let.var, name);
    break;
  }
  case HD_STMT_DECLARE:
    print_declare(p, stmt);
    break;
  case HD_STMT_STORE:
    print_store(p, stmt);
    break;
  case HD_STMT_POINT:
    print_point(p, stmt);
    break;
  case HD_STMT_FOR:
    print_for(p, stmt);
    break;
  case HD_STMT_MAPFOR:
    print_mapfor(p, stmt);
    break;
  case HD_STMT_WHILE:
    hd_buffer_puts(p->out, "while ");
    hd_print_expr(p, stmt->u.branch.condition, 0);
    hd_print_block(p, stmt->u.branch.then);
    break;
  case HD_STMT_IF:
    print_if(p, stmt);
    break;
  case HD_STMT_ASSERT:
    hd_buffer_puts(p->out, "assert ");
    hd_print_expr(p, stmt->u.assertion.condition, 0);
    if (stmt->u.assertion.message) {
      hd_buffer_puts(p->out, ", ");
      hd_print_string(p, stmt->u.assertion.message);
    }
    break;
  case HD_STMT_EVAL:
    hd_print_expr(p, stmt->u.eval.value, 0);
    break;
  case HD_STMT_RETURN:
    hd_buffer_puts(p->out, "return");
    if (stmt->u.eval.value) {
      hd_buffer_puts(p->out, " ");
      hd_print_expr(p, stmt->u.eval.value, 0);
    }
    break;
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
    hd_buffer_puts(p->out, hd_stmt_kind_text((hd_stmt_kind_t)stmt->kind));
    break;
  case HD_STMT_PRINT:
    hd_buffer_puts(p->out, "printf(");
    hd_print_string(p, stmt->u.print.format);
    if (stmt->u.print.num_args)
      hd_buffer_puts(p->out, ", ");
    hd_print_list(p, stmt->u.print.args, stmt->u.print.num_args);
    hd_buffer_puts(p->out, ")");
    break;
  case HD_STMT_LAUNCH:
    hd_buffer_printf(p->out, "launch %s(", stmt->u.launch.kernel->name);
    hd_print_list(p, stmt->u.launch.args, stmt->u.launch.num_args);
    hd_buffer_puts(p->out,
                   stmt->u.launch.programmatic ? ") programmatic" : ")");
    break;
  case HD_STMT_COUNT:
    break;
  }
}

void hd_print_block(hd_printer_t *p, hd_block_t block) {
  size_t outer = hd_visible_size(&p->visible);
  hd_buffer_puts(p->out, " {\n");
  p->indent += 2;
  for (uint32_t i = 0; i < block.size; i++) {
    hd_buffer_printf(p->out, "%*s", p->indent, "");
    print_stmt(p, block.stmts[i]);
    hd_buffer_puts(p->out, "\n");
  }
  p->indent -= 2;
  hd_buffer_printf(p->out, "%*s}", p->indent, "");
  hd_visible_pop(&p->visible, outer);
}
