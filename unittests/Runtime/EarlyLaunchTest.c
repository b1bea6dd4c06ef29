// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches that begin early: what the sanitizer finds in them, and that the
// proof says yes of just those of which it finds nothing. The verifier refuses
// the others, so here launches become programmatic behind its back.
//
// Random kernels read, write, wait and branch, each branch on a number of its
// own, so that every way through them can be taken: the proof follows all ways,
// the sanitizer the one that is taken, for each choice of the numbers.
#include "IR/EarlyLaunch.h"
#include "IR/Text/Parser.h"
#include "Random.h"
#include "Runtime/Program.h"
#include "TaskMapping/Passes.h"
#include "UnitTest.h"

#include <stdlib.h>
#include <string.h>

enum { KERNELS = 150, CHOICES = 5, THREADS = 32, MAX_TENSORS = 8 };

// --- Running a plan, verified or not ---

typedef struct run {
  hd_context_t context;
  hd_module_t *module;
  hd_device_t *device;
  hd_program_t program;
  hd_arena_t arena;
  hd_slot_t slots[MAX_TENSORS];
} run_t;

static void run_init(run_t *r, const char *text) {
  *r = (run_t){0};
  hd_context_init(&r->context);
  hd_arena_init(&r->arena, NULL);
  r->module = hd_module_create(&r->context);
  if (!hd_module_parse_into(r->module, "test.hir", text, strlen(text), 1))
    fail_msg("%s\n%s", r->context.diags.first->message, text);
  hd_device_options_t options = {.threads = 1, .sanitize = true};
  r->device = hd_device_open_sim(&r->context, &options);
  assert_non_null(r->device);
}

// All launches but the first.
static void make_programmatic(const hd_func_t *plan) {
  bool first = true;
  for (uint32_t i = 0; i < plan->body.size; i++) {
    hd_stmt_t *stmt = (hd_stmt_t *)(uintptr_t)plan->body.stmts[i];
    if (stmt->kind != HD_STMT_LAUNCH)
      continue;
    stmt->u.launch.programmatic = !first;
    first = false;
  }
}

// Makes the program of a plan; its scalars are as given, its tensors zeros.
static void run_load(run_t *r, const char *name, int64_t scalar) {
  const hd_func_t *plan = hd_module_find(r->module, name, HD_FUNC_PLAN);
  hd_env_t env = {.sms = r->device->info.sms};
  hd_program_options_t options = {0};
  for (uint32_t i = 0; i < plan->num_params; i++) {
    const hd_var_t *param = plan->params[i];
    int64_t count;
    if (!param->tensor) {
      assert_true(hd_bind_int(&r->context, &env, &r->arena, param, scalar));
      continue;
    }
    assert_true(hd_tensor_storage_const(param->tensor, &count));
    r->slots[i].bytes = (size_t)count * 4;
    assert_true(r->device->ops->alloc(r->device, param->name, r->slots[i].bytes,
                                      &r->slots[i].address));
    assert_true(r->device->ops->fill(r->device, r->slots[i].address, 0, 4,
                                     (size_t)count));
  }
  assert_true(
      hd_program_init(&r->program, r->device, r->module, plan, &env, &options));
  assert_true(hd_program_load(&r->program));
}

// Whether the sanitizer finds an early access; its message, until the next run.
static const char *run_once(run_t *r) {
  hd_diagnostics_clear(&r->context.diags);
  if (hd_program_run(&r->program, r->slots))
    return NULL;
  assert_int_equal(r->context.diags.first->code, HD_E0715);
  return r->context.diags.first->message;
}

static void run_fini(run_t *r) {
  hd_program_fini(&r->program);
  hd_device_close(r->device);
  hd_context_fini(&r->context);
  hd_arena_fini(&r->arena);
}

static hd_early_answer_t prove(run_t *r, const hd_func_t *plan) {
  hd_early_answer_t worst = HD_EARLY_YES;
  hd_early_launches_t *launches = hd_early_launches_make(&r->arena, plan->body);
  for (uint32_t i = 0; i < plan->body.size; i++) {
    const hd_stmt_t *stmt = plan->body.stmts[i];
    if (stmt->kind != HD_STMT_LAUNCH || !stmt->u.launch.programmatic)
      continue;
    hd_early_proof_t proof = hd_early_launch_prove(launches, stmt);
    if (proof.answer != HD_EARLY_YES && worst != HD_EARLY_NO)
      worst = proof.answer;
  }
  return worst;
}

// --- What the sanitizer finds ---

static const char text[] =
    "kernel first(in a: f32[64], out s: f32[64]) grid(2) block(32) {\n"
    "  griddepcontrol_launch()\n"
    "  s[block * 32 + thread] = a[block * 32 + thread]\n"
    "}\n"
    "kernel hasty(in s: f32[64], out c: f32[64]) grid(2) block(32) {\n"
    "  let x = s[block * 32 + thread]\n"
    "  griddepcontrol_wait()\n"
    "  c[block * 32 + thread] = x\n"
    "}\n"
    "plan reads(in a: f32[64], out c: f32[64]) {\n"
    "  workspace s: f32[64]\n"
    "  launch first(a, s)\n"
    "  launch hasty(s, c)\n"
    "}\n"
    // The second may not have waited yet when the third begins: it overlaps
    // the first, too.
    "kernel aside(in a: f32[64], out d: f32[64]) grid(2) block(32) {\n"
    "  griddepcontrol_launch()\n"
    "  griddepcontrol_wait()\n"
    "  d[block * 32 + thread] = a[block * 32 + thread]\n"
    "}\n"
    "plan passes_two(in a: f32[64], out c: f32[64], out d: f32[64]) {\n"
    "  workspace s: f32[64]\n"
    "  launch first(a, s)\n"
    "  launch aside(a, d)\n"
    "  launch hasty(s, c)\n"
    "}\n"
    // What the one before still reads is not to be written.
    "kernel writes_early(out s: f32[64]) grid(2) block(32) {\n"
    "  s[block * 32 + thread] = 1\n"
    "  griddepcontrol_wait()\n"
    "}\n"
    "plan overwrites(in a: f32[64], out c: f32[64]) {\n"
    "  workspace s: f32[64] = 0\n"
    "  launch hasty(s, c)\n"
    "  launch writes_early(s)\n"
    "}\n"
    // One thread waits; the others learn of it at a barrier, or do not.
    "kernel by_barrier(in s: f32[64], out c: f32[64]) grid(2) block(32) {\n"
    "  if thread == 0 { griddepcontrol_wait() }\n"
    "  barrier()\n"
    "  c[block * 32 + thread] = s[block * 32 + thread]\n"
    "}\n"
    "plan one_waits(in a: f32[64], out c: f32[64]) {\n"
    "  workspace s: f32[64]\n"
    "  launch first(a, s)\n"
    "  launch by_barrier(s, c)\n"
    "}\n"
    "kernel by_hearsay(in s: f32[64], out c: f32[64]) grid(2) block(32) {\n"
    "  if thread == 0 { griddepcontrol_wait() }\n"
    "  c[block * 32 + thread] = s[block * 32 + thread]\n"
    "}\n"
    "plan others_do_not(in a: f32[64], out c: f32[64]) {\n"
    "  workspace s: f32[64]\n"
    "  launch first(a, s)\n"
    "  launch by_hearsay(s, c)\n"
    "}\n"
    // The copy engine reads for the thread that asks it. Who waits for the
    // copy knows what that thread knew.
    "kernel by_copy(late: i32, in s: f32[64], out c: f32[64],\n"
    "               map t: s box(32) l2(0)) grid(2) block(32) {\n"
    "  shared part: f32[32] align(128)\n"
    "  shared full: mbarrier[1]\n"
    "  if thread == 0 {\n"
    "    mbarrier_init(full[0], 1)\n"
    "    fence_mbarrier_init()\n"
    "    if late == 0 { griddepcontrol_wait() }\n"
    "    mbarrier_arrive_expect(full[0], 128)\n"
    "    tma_load(part[0], t, full[0], block * 32)\n"
    "    if late != 0 { griddepcontrol_wait() }\n"
    "  }\n"
    "  barrier()\n"
    "  mbarrier_wait(full[0], 0)\n"
    "  c[block * 32 + thread] = part[thread]\n"
    "}\n"
    "plan copies(late: i32, in a: f32[64], out c: f32[64]) {\n"
    "  workspace s: f32[64]\n"
    "  launch first(a, s)\n"
    "  launch by_copy(late, s, c)\n"
    "}\n"
    // Nobody waits, so the launch after this one could not rely on its end.
    "kernel never(out d: f32[64]) grid(2) block(32) {\n"
    "  d[block * 32 + thread] = 1\n"
    "}\n"
    "plan nobody_waits(in a: f32[64], out c: f32[64], out d: f32[64]) {\n"
    "  workspace s: f32[64]\n"
    "  launch first(a, s)\n"
    "  launch never(d)\n"
    "  launch by_barrier(s, c)\n"
    "}\n";

static void finds_early_accesses(void **state) {
  (void)state;
  static const struct {
    const char *plan;
    int64_t scalar;
    const char *says; // NULL: nothing is found.
  } cases[] = {
      {"reads", 0, "of block 0 reads 's'["},
      {"passes_two", 0, "of block 0 reads 's'["},
      {"overwrites", 0, "of block 0 writes 's'["},
      {"one_waits", 0, NULL},
      {"others_do_not", 0, "of block 0 reads 's'["},
      {"copies", 0, NULL},
      {"copies", 1, "thread 0 of block 0 reads 's'"},
      {"nobody_waits", 0, "no thread of kernel 'never' calls"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    run_t r;
    run_init(&r, text);
    run_load(&r, cases[i].plan, cases[i].scalar);
    // In order there is nothing to wait for.
    const char *found = run_once(&r);
    assert_null(found);
    run_fini(&r);
    run_init(&r, text);
    make_programmatic(hd_module_find(r.module, cases[i].plan, HD_FUNC_PLAN));
    run_load(&r, cases[i].plan, cases[i].scalar);
    found = run_once(&r);
    if (!found != !cases[i].says || (found && !strstr(found, cases[i].says)))
      fail_msg("%s: %s", cases[i].plan, found ? found : "nothing is found");
    if (found)
      assert_int_not_equal(prove(&r, r.program.entry), HD_EARLY_YES);
    run_fini(&r);
  }
}

// --- What the proof says ---

typedef struct writer {
  random_t random;
  hd_buffer_t *out;
  int choice; // The next that nobody has used; CHOICES: there is none.
  int loops, functions;
  int around;   // Loops around the place.
  bool endless; // Of which the innermost has no end but a break at its end.
  bool has_p;   // In a function: its parameter is a choice not used yet.
} writer_t;

static void write_block(writer_t *w, int depth);

// A number that is 0 or 1.
static const char *choose(writer_t *w) {
  static const char *const names[] = {"n[0]", "n[1]", "n[2]", "n[3]", "n[4]"};
  if (w->has_p) {
    w->has_p = false;
    return "p";
  }
  return w->choice < CHOICES && w->functions < 0 ? names[w->choice++] : NULL;
}

static void write_simple(writer_t *w) {
  static const char *const forms[] = {
      "griddepcontrol_wait()", "griddepcontrol_wait()", "x = x + s[thread]",
      "x = x + n[thread % 5]", "x = x + reads(s)",      "c[thread] = x"};
  hd_buffer_printf(w->out, "%s\n", forms[random_in(&w->random, 0, 5)]);
}

// A loop's body, to its end.
static void write_body(writer_t *w, int depth, bool endless) {
  bool outer = w->endless;
  w->around++;
  w->endless = endless;
  write_block(w, depth);
  w->endless = outer;
  w->around--;
  if (endless)
    hd_buffer_printf(w->out, "break\n");
  hd_buffer_printf(w->out, "}\n");
}

// Leaves a loop, a turn of it, the function or the kernel; or does not.
static void write_exit(writer_t *w) {
  static const char *const words[] = {"return", "break", "continue"};
  int which = (int)random_in(&w->random, 0, 5);
  if (which < (w->around == 0 ? 1 : w->endless ? 2 : 3))
    hd_buffer_printf(w->out, "%s\n", words[which]);
}

static void write_choice(writer_t *w, const char *n, int depth) {
  static const char *const forms[] = {"x = x + (%s > 0 ? s[thread] : 0)\n",
                                      "x = x + (%s > 0 ? waits() : 0)\n",
                                      "x = x + (%s > 0 ? waits() : waits())\n",
                                      "if %s > 0 && waits() > 0 { x = 1 }\n"};
  int form = (int)random_in(&w->random, 0, 8);
  if (form < 4) {
    const char *split = strstr(forms[form], "%s");
    hd_buffer_printf(w->out, "%.*s%s%s", (int)(split - forms[form]),
                     forms[form], n, split + 2);
  } else if (form < 7) {
    hd_buffer_printf(w->out, "if %s > 0 {\n", n);
    write_block(w, depth - 1);
    write_exit(w);
    if (random_in(&w->random, 0, 1)) {
      hd_buffer_printf(w->out, "} else {\n");
      write_block(w, depth - 1);
    }
    hd_buffer_printf(w->out, "}\n");
  } else if (form == 7) {
    hd_buffer_printf(w->out, "for j%d in 0..%s {\n", w->loops++, n);
    write_body(w, depth - 1, false);
  } else {
    int loop = w->loops++;
    hd_buffer_printf(w->out, "register h%d: i32 = %s\nwhile h%d > 0 {\n", loop,
                     n, loop);
    hd_buffer_printf(w->out, "h%d = 0\n", loop);
    write_body(w, depth - 1, false);
  }
}

static void write_block(writer_t *w, int depth) {
  int count = (int)random_in(&w->random, 1, 3);
  for (int i = 0; i < count; i++) {
    int form = (int)random_in(&w->random, 0, 9);
    const char *n = depth > 0 && form < 5 ? choose(w) : NULL;
    if (n) {
      write_choice(w, n, depth);
    } else if (depth > 0 && form == 5) {
      hd_buffer_printf(w->out, "for j%d in 0..2 {\n", w->loops++);
      write_body(w, depth - 1, false);
    } else if (depth > 0 && form == 7 && random_in(&w->random, 0, 1)) {
      hd_buffer_printf(w->out, "while true {\n");
      write_body(w, depth - 1, true);
    } else if (w->functions < 0 && form == 6 && w->choice < CHOICES) {
      hd_buffer_printf(w->out, "f%d(n, s, c, n[%d])\n", w->choice, w->choice);
      w->choice++;
    } else {
      write_simple(w);
    }
  }
}

// f0 to f4, each to be called once at most, with a choice.
static void write_kernel(writer_t *w) {
  hd_buffer_printf(
      w->out,
      "kernel first(inout s: i32[32], inout c: i32[32]) grid(1) block(32) {\n"
      "  c[thread] = s[thread]\n  s[thread] = 0\n}\n"
      "fn waits() -> i32 {\n  griddepcontrol_wait()\n  return 1\n}\n"
      "fn reads(in t: i32[32]) -> i32 {\n  return t[thread]\n}\n");
  for (w->functions = 0; w->functions < CHOICES; w->functions++) {
    hd_buffer_printf(w->out,
                     "fn f%d(in n: i32[5], in s: i32[32], inout c: i32[32], "
                     "p: i32) {\nregister x: i32 = 0\n",
                     w->functions);
    w->has_p = true;
    write_block(w, 2);
    hd_buffer_printf(w->out, "}\n");
  }
  w->has_p = false;
  w->functions = -1;
  hd_buffer_printf(w->out, "kernel k(in n: i32[5], in s: i32[32], "
                           "inout c: i32[32]) grid(1) block(32) {\n"
                           "register x: i32 = 0\n");
  write_block(w, 3);
  write_block(w, 2);
  hd_buffer_printf(w->out, "}\n"
                           "plan main(in n: i32[5], inout s: i32[32], "
                           "inout c: i32[32]) {\n"
                           "launch first(s, c)\n"
                           "launch k(n, s, c)\n}\n");
}

// Whether the sanitizer finds something on any way through the kernel.
static bool found_on_any_way(run_t *r) {
  for (int way = 0; way < 1 << CHOICES; way++) {
    int32_t choices[CHOICES];
    for (int i = 0; i < CHOICES; i++)
      choices[i] = way >> i & 1;
    assert_true(r->device->ops->upload(r->device, r->slots[0].address, choices,
                                       sizeof choices));
    if (run_once(r))
      return true;
  }
  return false;
}

static void proves_what_is_right(void **state) {
  (void)state;
  random_t random = random_begin("proves_what_is_right");
  unsigned answers[3] = {0};
  for (int i = 0; i < KERNELS; i++) {
    hd_buffer_t out = {0};
    writer_t w = {.random = {random_bits(&random)}, .out = &out};
    write_kernel(&w);
    run_t r;
    run_init(&r, hd_buffer_text(&out));
    make_programmatic(hd_module_find(r.module, "main", HD_FUNC_PLAN));
    run_load(&r, "main", 0);
    hd_early_answer_t answer = prove(&r, r.program.entry);
    bool found = found_on_any_way(&r);
    if (found != (answer != HD_EARLY_YES)) {
      fprintf(stderr, "%s", hd_buffer_text(&out));
      fail_msg("kernel %d: the proof says %d, the sanitizer finds %s", i,
               (int)answer, found ? r.context.diags.first->message : "nothing");
    }
    answers[answer]++;
    run_fini(&r);
    hd_buffer_fini(&out);
  }
  printf("  yes %u, no %u, not known %u\n", answers[0], answers[1], answers[2]);
  for (int i = 0; i < 3; i++)
    assert_true(answers[i] >= KERNELS / 20);
}

HD_UNIT_TESTS(cmocka_unit_test(finds_early_accesses),
              cmocka_unit_test(proves_what_is_right))
