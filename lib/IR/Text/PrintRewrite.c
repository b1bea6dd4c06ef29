// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Graph/RewriteRule.h"
#include "IR/Text/TaskPrinter.h"

#include <string.h>

static void print_parameters(hd_buffer_t *out, const hd_rewrite_t *rewrite) {
  const hd_task_t *signature = rewrite->signature;
  const char *before = "(";
  for (size_t i = 0; i < signature->inputs.size; i++) {
    const hd_task_value_t *input = signature->inputs.data[i];
    const hd_rule_value_t *value = hd_rewrite_typed(rewrite, input);
    if (value && !value->operand)
      continue;
    hd_buffer_printf(out, "%s%s: %s", before, input->name,
                     value && value->constant ? "const " : "");
    hd_print_task_type(out, signature, input);
    before = ", ";
  }
  hd_buffer_puts(out, before[0] == '(' ? "()" : ")");
}

// The name of what a term or type stands for, where it is no more than that.
static const char *bare_name(const hd_rule_attribute_t *a) {
  switch (a->kind) {
  case HD_RULE_TERM:
    return a->term->kind == HD_TERM_ATTRIBUTE ? a->term->u.value->name : NULL;
  case HD_RULE_TYPE:
    return hd_task_type_name(a->type);
  case HD_RULE_RANK:
    return a->pack->name;
  case HD_RULE_LIST:
    break;
  }
  return NULL;
}

static void print_attribute(hd_buffer_t *out, const hd_rule_attribute_t *a) {
  const char *bare = bare_name(a);
  hd_buffer_puts(out, a->name);
  if (a->narrow) {
    hd_buffer_printf(out, " = narrow(%s)", bare);
    return;
  }
  if (bare && strcmp(bare, a->name) == 0)
    return;
  hd_buffer_puts(out, " = ");
  if (bare) {
    hd_buffer_puts(out, bare);
  } else if (a->kind == HD_RULE_TERM) {
    hd_print_task_axes(out, &a->term, 1, false);
  } else {
    hd_buffer_puts(out, "[");
    hd_print_task_axes(out, a->terms, a->count, false);
    hd_buffer_puts(out, "]");
  }
}

static void print_results(hd_buffer_t *out, const hd_rewrite_t *rewrite,
                          const hd_rule_node_t *node, bool right) {
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    const hd_rule_value_t *value = node->outputs[i];
    hd_buffer_printf(out, "%s%s", i ? ", " : "  ", value ? value->name : "_");
    // What both sides give has its type on the left, or on the right.
    hd_value_kind_t kind = right ? HD_VALUE_OUTPUT : HD_VALUE_INPUT;
    if (!value || !value->type || value->type->kind != kind)
      continue;
    hd_buffer_puts(out, ": ");
    hd_print_task_type(out, rewrite->signature, value->type);
  }
}

static void print_node(hd_buffer_t *out, const hd_rewrite_t *rewrite,
                       const hd_rule_node_t *node, bool right) {
  print_results(out, rewrite, node, right);
  hd_buffer_puts(out, node->required ? "  require " : " = ");
  hd_buffer_printf(out, "%s%s", node->op ? node->op : "", node->op ? "(" : "");
  for (uint32_t i = 0; i < node->num_inputs; i++)
    hd_buffer_printf(out, "%s%s", i ? ", " : "", node->inputs[i]->name);
  hd_buffer_puts(out, node->op ? ")" : "");
  for (uint32_t i = 0; i < node->num_attributes; i++) {
    hd_buffer_puts(out, i ? ", " : " { ");
    print_attribute(out, node->attributes[i]);
  }
  hd_buffer_puts(out, node->num_attributes ? " }\n" : "\n");
}

const char *hd_freedom_name(hd_freedom_t freedom) {
  static const char *const names[] = {
#define HD_FREEDOM(name, text) text,
#include "IR/Graph/Freedoms.def"
#undef HD_FREEDOM
  };
  return names[freedom];
}

void hd_freedoms_print(const hd_rewrite_t *rewrite, const char *before,
                       const char *after, hd_buffer_t *out) {
  for (int i = 0; i < HD_FREEDOM_COUNT; i++)
    if (rewrite->freedoms >> i & 1) {
      hd_buffer_printf(out, "%s%s", before, hd_freedom_name((hd_freedom_t)i));
      before = ", ";
    }
  hd_buffer_puts(out, rewrite->freedoms ? after : "");
}

void hd_rewrite_print(const hd_rewrite_t *rewrite, hd_buffer_t *out) {
  if (rewrite->text) {
    hd_buffer_printf(out, "%s\n", rewrite->text->text);
    return;
  }
  hd_buffer_printf(out, "rewrite %s", rewrite->name);
  print_parameters(out, rewrite);
  hd_buffer_puts(out, " {\n");
  for (size_t i = 0; i < rewrite->left.size; i++)
    print_node(out, rewrite, rewrite->left.data[i], false);
  if (hd_print_task_where(out, rewrite->signature, "  where "))
    hd_buffer_puts(out, "\n");
  if (rewrite->apart[0])
    hd_buffer_printf(out, "  apart %s, %s\n", rewrite->apart[0]->name,
                     rewrite->apart[1]->name);
  hd_freedoms_print(rewrite, "  may change ", "\n", out);
  hd_buffer_puts(out, "  =>\n");
  for (size_t i = 0; i < rewrite->right.size; i++)
    print_node(out, rewrite, rewrite->right.data[i], true);
  hd_buffer_puts(out, "}\n");
}
