// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/TaskPrinter.h"

#include "IR/Text/Printer.h"

// Whether the pack of an input's axis is bound there.
static bool binds(const hd_task_t *task, const hd_task_value_t *value,
                  uint32_t axis) {
  const hd_pack_t *pack = value->shape[axis]->u.pack;
  for (size_t i = 0; i < task->inputs.size; i++)
    for (uint32_t n = 0; n < task->inputs.data[i]->rank; n++) {
      const hd_term_t *term = task->inputs.data[i]->shape[n];
      if (term->kind == HD_TERM_PACK && term->u.pack == pack)
        return task->inputs.data[i] == value && n == axis;
    }
  return false;
}

static void print_shape(hd_buffer_t *out, const hd_task_t *task,
                        const hd_task_value_t *value) {
  hd_buffer_puts(out, "[");
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_term_t *axis = value->shape[i];
    hd_buffer_puts(out, i ? ", " : "");
    hd_print_task_axis(out, axis, true);
    if (axis->kind == HD_TERM_PACK && axis->u.pack->like &&
        binds(task, value, i))
      hd_buffer_printf(out, " like %s", axis->u.pack->like->name);
    if (axis->kind == HD_TERM_SIZE && axis->u.size->bound) {
      hd_buffer_puts(out, " <= ");
      hd_print_term(out, axis->u.size->bound, 0, false);
    }
  }
  hd_buffer_puts(out, "]");
}

void hd_print_task_type(hd_buffer_t *out, const hd_task_t *task,
                        const hd_task_value_t *value) {
  hd_buffer_puts(out, hd_task_type_name(value->type));
  if (value->kind != HD_VALUE_ATTRIBUTE) {
    print_shape(out, task, value);
    if (value->by)
      hd_buffer_printf(out, " by %s", value->by->name);
    return;
  }
  if (value->pack)
    hd_buffer_printf(out, " over %s", value->pack->name);
  if (value->initial) {
    hd_buffer_puts(out, " = ");
    hd_print_term(out, value->initial, 0, true);
  }
}

static void print_value(hd_buffer_t *out, const hd_task_t *task,
                        const hd_task_value_t *value) {
  hd_buffer_printf(out, "%s: ", value->name);
  hd_print_task_type(out, task, value);
}

static void print_type_var(hd_buffer_t *out, const hd_type_var_t *var) {
  static const char *const sets[] = {"any", "number", "float", "integer"};
  hd_buffer_puts(out, var->name);
  if (var->accumulates) {
    hd_buffer_printf(out, " = acc(%s)", var->accumulates->name);
    return;
  }
  if (var->either[0]) {
    hd_buffer_printf(out, " = %s or %s", var->either[0]->name,
                     var->either[1]->name);
    return;
  }
  for (int i = 0; i < 4; i++)
    if (var->scalars == hd_scalar_set(sets[i])) {
      hd_buffer_printf(out, " in %s", sets[i]);
      return;
    }
  const char *before = " in {";
  for (int i = 0; i < HD_SCALAR_COUNT; i++)
    if (var->scalars >> i & 1) {
      hd_buffer_printf(out, "%s%s", before, hd_scalar_name((hd_scalar_t)i));
      before = ", ";
    }
  hd_buffer_puts(out, "}");
}

bool hd_print_task_where(hd_buffer_t *out, const hd_task_t *task,
                         const char *before) {
  const char *first = before;
  for (size_t i = 0; i < task->types.size; i++) {
    if (!task->types.data[i]->restricted)
      continue;
    hd_buffer_puts(out, before);
    print_type_var(out, task->types.data[i]);
    before = ", ";
  }
  for (size_t i = 0; i < task->conditions.size; i++) {
    hd_buffer_puts(out, before);
    hd_print_term(out, task->conditions.data[i], 0, true);
    before = ", ";
  }
  return before != first;
}

static void print_monoid(hd_buffer_t *out, const hd_monoid_t *monoid) {
  hd_buffer_printf(out, "  %s %s(", monoid->in_order ? "fold" : "monoid",
                   monoid->name);
  for (uint32_t i = 0; i < monoid->size; i++)
    hd_buffer_printf(out, "%s%s: %s", i ? ", " : "", monoid->left[i]->name,
                     hd_task_type_name(monoid->left[i]->type));
  hd_buffer_puts(out, ")(");
  for (uint32_t i = 0; i < monoid->size; i++)
    hd_buffer_printf(out, "%s%s", i ? ", " : "", monoid->right[i]->name);
  hd_buffer_puts(out, ") from (");
  hd_print_task_axes(out, monoid->identity, monoid->size, true);
  hd_buffer_puts(out, ") = (");
  hd_print_task_axes(out, monoid->result, monoid->size, true);
  hd_buffer_puts(out, ")\n");
}

static void print_scatter(hd_buffer_t *out, const hd_definition_t *d) {
  const char *how = d->duplicates == HD_DUPLICATES_FIRST  ? "first"
                    : d->duplicates == HD_DUPLICATES_LAST ? "last"
                                                          : d->monoid->name;
  hd_buffer_printf(out, "scatter %s(", how);
  hd_print_task_indices(out, d->indices, d->num_indices);
  hd_buffer_printf(out, ") %s[", d->targets[0]->name);
  hd_print_task_axes(out, d->at, d->targets[0]->rank, true);
  hd_buffer_puts(out, d->drops ? "] else drop = " : "] = ");
  hd_print_term(out, d->term, 0, true);
  if (d->onto)
    hd_buffer_printf(out, " onto %s", d->onto->name);
}

static void print_sort(hd_buffer_t *out, const hd_definition_t *d) {
  uint32_t own = d->num_indices - 1;
  hd_buffer_printf(out, "%s[", d->targets[0]->name);
  hd_print_task_indices(out, d->indices, own);
  hd_buffer_printf(out, "] = sort %s(",
                   d->descends ? "descending" : "ascending");
  hd_print_task_indices(out, d->indices + own, 1);
  hd_buffer_printf(out, " to %s) ", d->along->name);
  hd_print_term(out, d->term, 0, false);
}

static void print_definition(hd_buffer_t *out, const hd_definition_t *d) {
  bool asked = d->num_targets == 1 && d->targets[0]->kind == HD_VALUE_OUTPUT;
  hd_buffer_puts(out, "  ");
  switch (d->kind) {
  case HD_DEFINE:
    for (uint32_t i = 0; i < d->num_targets; i++) {
      hd_buffer_printf(out, "%s%s[", i ? ", " : "", d->targets[i]->name);
      for (uint32_t n = 0; n < d->num_indices && i; n++)
        hd_buffer_printf(out, "%s%s%s", n ? ", " : "",
                         d->indices[n]->range->pack ? ".." : "",
                         d->indices[n]->name);
      if (!i)
        hd_print_task_indices(out, d->indices, d->num_indices);
      hd_buffer_puts(out, "]");
    }
    hd_buffer_puts(out, " = ");
    hd_print_term(out, d->term, 0, asked);
    break;
  case HD_SCATTER:
    print_scatter(out, d);
    break;
  case HD_SORT:
    print_sort(out, d);
    break;
  case HD_DEFINE_SIZE:
    hd_buffer_printf(out, "size %s = ", d->size->name);
    hd_print_term(out, d->term, 0, true);
    break;
  }
  hd_buffer_puts(out, "\n");
}

void hd_task_print(const hd_task_t *task, hd_buffer_t *out) {
  if (task->text) {
    hd_buffer_printf(out, "%s\n", task->text->text);
    return;
  }
  hd_buffer_printf(out, "task %s(", task->name);
  for (size_t i = 0; i < task->inputs.size; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    print_value(out, task, task->inputs.data[i]);
  }
  hd_buffer_puts(out, ") -> ");
  for (size_t i = 0; i < task->outputs.size; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    print_value(out, task, task->outputs.data[i]);
  }
  hd_print_task_where(out, task, " where ");
  hd_buffer_puts(out, " {\n");
  for (size_t i = 0; i < task->monoids.size; i++)
    print_monoid(out, task->monoids.data[i]);
  for (size_t i = 0; i < task->definitions.size; i++)
    print_definition(out, task->definitions.data[i]);
  hd_buffer_puts(out, "}\n");
}
