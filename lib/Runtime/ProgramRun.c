// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running a program: a walk over its actions, through loops turn by turn.
#include "Runtime/ProgramState.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

static hd_address_t address_of(const hd_program_t *p, const hd_slot_t *params,
                               int slot) {
  uint32_t count = p->entry->num_params;
  if ((uint32_t)slot < count)
    return params[slot].address;
  const hd_view_t *view = &p->views.data[(uint32_t)slot - count];
  return view->base >= 0
             ? address_of(p, params, view->base) + view->offset
             : p->block + p->workspaces.data[(uint32_t)slot - count].address;
}

// A tensor parameter of the entry, in the order of addresses.
typedef struct span {
  const hd_var_t *param;
  hd_address_t begin, end;
} span_t;

static int by_address(const void *a, const void *b) {
  const span_t *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

static bool is_written(const span_t *span) {
  return span->param->direction != HD_DIR_IN;
}

static bool fail_overlap(const hd_program_t *p, const span_t *a,
                         const span_t *b) {
  char text[300];
  const span_t *written = is_written(a) ? a : b;
  snprintf(text, sizeof(text),
           "'%.80s', which '%.80s' writes, lies in the same memory as '%.80s'",
           written->param->name, p->entry->name,
           (written == a ? b : a)->param->name);
  return hd_error(hd_program_diags(p), nowhere, HD_E0809, text);
}

// Code is made for parameters that do not overlap: an `in` is read ahead of
// what is written. Of those that begin before a tensor, one that reaches into
// it is the one that reaches farthest; of those that are written, likewise.
static bool check_disjoint(const hd_program_t *p, span_t *spans, size_t count) {
  const span_t *far = NULL, *far_written = NULL;
  qsort(spans, count, sizeof(*spans), by_address);
  for (size_t i = 0; i < count; i++) {
    const span_t *span = &spans[i];
    const span_t *before = is_written(span) ? far : far_written;
    if (before && before->end > span->begin)
      return fail_overlap(p, before, span);
    if (!far || span->end > far->end)
      far = span;
    if (is_written(span) && (!far_written || span->end > far_written->end))
      far_written = span;
  }
  return true;
}

static bool check_params(hd_program_t *p, const hd_slot_t *params) {
  const hd_func_t *entry = p->entry;
  hd_arena_t scratch;
  hd_arena_init_local(&scratch, &p->device->context->budget);
  span_t *spans = HD_ARENA_ARRAY(&scratch, span_t, entry->num_params + 1);
  size_t count = 0;
  for (uint32_t i = 0; i < entry->num_params; i++)
    if (entry->params[i]->tensor && params[i].bytes)
      spans[count++] = (span_t){entry->params[i], params[i].address,
                                params[i].address + params[i].bytes};
  bool ok = check_disjoint(p, spans, count);
  hd_arena_fini(&scratch);
  return ok;
}

// --- Walking ---

typedef struct runner {
  hd_program_t *program;
  const hd_slot_t *params; // NULL: nothing is launched.
  bool after_launch;       // That was the last that the device was told.
} runner_t;

static bool eval(const hd_program_t *p, const hd_expr_t *e, int64_t *value) {
  return hd_eval_int(&p->env, e, value) ||
         hd_program_fail(p, p->entry, "an argument divides by zero");
}

static void set_turn(hd_program_t *p, const hd_action_t *loop) {
  hd_env_set(&p->arena, &p->env, loop->stmt->u.loop.var,
             (hd_number_t){.i = loop->turn});
}

// *next: the action that comes then.
static bool begin_loop(hd_program_t *p, hd_action_t *loop, size_t *next) {
  const hd_stmt_t *stmt = loop->stmt;
  loop->step = 1;
  if (!eval(p, stmt->u.loop.first, &loop->turn) ||
      !eval(p, stmt->u.loop.limit, &loop->limit) ||
      (stmt->u.loop.step && !eval(p, stmt->u.loop.step, &loop->step)))
    return false;
  if (loop->step < 1)
    return hd_program_fail(p, p->entry, "the step of a loop is below 1");
  if (loop->turn >= loop->limit)
    *next = loop->other + 1;
  else
    set_turn(p, loop);
  return true;
}

static void end_loop(hd_program_t *p, const hd_action_t *end, size_t *next) {
  hd_action_t *loop = p->actions.data[end->other];
  hd_budget_check(&p->device->context->budget);
  if (loop->limit - loop->turn <= loop->step)
    return;
  loop->turn += loop->step;
  set_turn(p, loop);
  *next = end->other + 1;
}

static bool place(hd_program_t *p, const hd_action_t *action) {
  uint32_t at = (uint32_t)action->slot - p->entry->num_params;
  return hd_program_place_view(p, action->stmt, &p->workspaces.data[at],
                               &p->views.data[at]);
}

static bool move_arguments(hd_program_t *p, hd_action_t *action) {
  for (uint32_t k = 0; k < action->num_moving; k++) {
    hd_number_t value;
    const hd_moving_t *moving = &action->moving[k];
    if (!hd_eval(&p->env, moving->value, &value))
      return hd_program_fail(p, action->kernel->func,
                             "an argument divides by zero");
    action->values[moving->arg] = hd_program_encode(
        action->kernel->func->params[moving->arg]->type, value);
  }
  return true;
}

// Settles where a launch's tensors are; *moved: not where they were.
static bool set_addresses(hd_program_t *p, const hd_slot_t *params,
                          hd_action_t *action, bool *moved) {
  for (uint32_t k = 0; k < action->launch.num_tensors; k++) {
    int arg = action->tensor_args[k];
    hd_address_t address = address_of(p, params, action->slots[arg]);
    *moved |= action->values[arg] != address;
    action->values[arg] = address;
    action->tensors[k].address = address;
  }
  for (uint32_t k = 0; *moved && k < action->launch.num_maps; k++)
    if (!hd_tensor_map_place(hd_program_diags(p), action->kernel->func,
                             &action->maps[k],
                             action->values[action->map_args[k]]))
      return false;
  return true;
}

// Before the first launch, and after a fill, there is none to overlap.
static bool launch(runner_t *r, hd_action_t *action) {
  hd_program_t *p = r->program;
  bool moved = true;
  if (!set_addresses(p, r->params, action, &moved))
    return false;
  action->launch.programmatic = action->programmatic && r->after_launch;
  r->after_launch = true;
  const hd_times_t *times = &p->device->context->times;
  uint64_t start = times->trace ? hd_clock_ns() : 0;
  bool ok = p->device->ops->launch(p->device, action->kernel, &action->launch);
  if (times->trace)
    hd_trace_add(times->trace, times->lane, action->kernel->func->name,
                 "launch", start, hd_clock_ns());
  return ok;
}

static bool fill(runner_t *r, const hd_action_t *action) {
  hd_device_t *device = r->program->device;
  r->after_launch = false;
  return device->ops->fill(device,
                           address_of(r->program, r->params, action->slot),
                           action->bits, action->element_bytes, action->count);
}

// Where a tensor is: in which slot, and from which byte on.
static int find_base(const hd_program_t *p, int slot, size_t *offset,
                     bool *moves) {
  uint32_t params = p->entry->num_params;
  const hd_view_t *view =
      slot < (int)params ? NULL : &p->views.data[(uint32_t)slot - params];
  *offset = view && view->base >= 0 ? view->offset : 0;
  *moves = view && view->moves;
  return view && view->base >= 0 ? view->base : slot;
}

// Of views that move: the verifier knows of the others.
static bool check_apart(const hd_program_t *p, const hd_action_t *action,
                        uint32_t a, uint32_t b) {
  const hd_launch_tensor_t *x = &action->tensors[a], *y = &action->tensors[b];
  size_t at, bt;
  bool x_moves, y_moves;
  char text[300];
  if (x->read_only && y->read_only)
    return true;
  if (find_base(p, action->slots[action->tensor_args[a]], &at, &x_moves) !=
          find_base(p, action->slots[action->tensor_args[b]], &bt, &y_moves) ||
      !(x_moves || y_moves) || at + x->bytes <= bt || bt + y->bytes <= at)
    return true;
  snprintf(text, sizeof(text),
           "'%.80s' and '%.80s' overlap in a turn, and one is written", x->name,
           y->name);
  return hd_program_fail(p, action->kernel->func, text);
}

static bool check_launch(hd_program_t *p, hd_action_t *action) {
  action->times++;
  p->num_launches++;
  for (uint32_t a = 0; a < action->launch.num_tensors; a++)
    for (uint32_t b = 0; b < a; b++)
      if (!check_apart(p, action, a, b))
        return false;
  return true;
}

// *next is the action behind.
static bool take_step(runner_t *r, hd_action_t *action, size_t *next) {
  hd_program_t *p = r->program;
  switch (action->does) {
  case HD_ACTION_LAUNCHES:
    return move_arguments(p, action) &&
           (r->params ? launch(r, action) : check_launch(p, action));
  case HD_ACTION_FILLS:
    return !r->params || fill(r, action);
  case HD_ACTION_PLACES:
    return place(p, action);
  case HD_ACTION_BEGINS_LOOP:
    return begin_loop(p, action, next);
  case HD_ACTION_ENDS_LOOP:
    end_loop(p, action, next);
    break;
  }
  return true;
}

static bool take_steps(runner_t *r, size_t end) {
  hd_program_t *p = r->program;
  for (size_t at = 0, next; at < end; at = next) {
    next = at + 1;
    if (!take_step(r, p->actions.data[at], &next))
      return false;
  }
  return true;
}

bool hd_program_check_turns(hd_program_t *p) {
  return take_steps(&(runner_t){.program = p}, p->actions.size);
}

bool hd_program_run(hd_program_t *program, const hd_slot_t *params) {
  return hd_program_run_until(program, params, program->actions.size);
}

bool hd_program_run_until(hd_program_t *program, const hd_slot_t *params,
                          size_t end) {
  hd_times_t *times = &program->device->context->times;
  size_t part = hd_times_enter(times, "run");
  bool ok = check_params(program, params) &&
            take_steps(&(runner_t){.program = program, .params = params}, end);
  hd_times_leave(times, part);
  return ok;
}

bool hd_program_update(hd_program_t *program, const hd_slot_t *params,
                       hd_recording_t *recording, bool *updated) {
  hd_device_t *device = program->device;
  size_t n = 0;
  *updated = true;
  for (size_t i = 0; i < program->actions.size; i++)
    *updated &= program->actions.data[i]->loop < 0 &&
                program->actions.data[i]->does != HD_ACTION_BEGINS_LOOP;
  for (size_t i = 0; *updated && i < program->actions.size; i++) {
    hd_action_t *action = program->actions.data[i];
    bool moved = false;
    if (action->does != HD_ACTION_LAUNCHES)
      continue;
    if (!set_addresses(program, params, action, &moved) ||
        (moved && !device->ops->update(device, recording, n, action->kernel,
                                       &action->launch)))
      return false;
    n++;
  }
  return true;
}

hd_moved_t hd_program_moved(const hd_program_t *program, uint32_t first,
                            uint32_t end) {
  hd_moved_t moved = {0};
  for (size_t i = 0; i < program->actions.size; i++) {
    const hd_action_t *action = program->actions.data[i];
    for (uint32_t k = 0; k < action->launch.num_tensors; k++) {
      int arg = action->tensor_args[k], slot = action->slots[arg];
      const hd_var_t *param = action->kernel->func->params[arg];
      int64_t times =
          action->times * (param->direction == HD_DIR_INOUT ? 2 : 1);
      bool constant = slot >= (int)first && slot < (int)end;
      *(constant ? &moved.constants : &moved.activations) +=
          times * (int64_t)action->tensors[k].bytes;
    }
  }
  return moved;
}
