// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma: products of a warpgroup, under way until a wait covers their group.
// Each warp asks for its 16 rows; nothing waits before wgmma_wait, which waits
// for all four warps to have asked, as the hardware's one instruction would. At
// the latest moment shared memory is read, and accumulators are written, there;
// at the earliest each warp does its rows when it asks.
//   product  slots: n, accumulators, which; a: address, site, descriptor, or
//            its fragment's address, which; b: address, site, descriptor; keep;
//            majors
//   wait     slots: left, n, accumulators, which
// Registers under way are known by which they are: the tensor's number << 32 |
// the first element.
#include "Sim/Wgmma.h"
#include "Sim/Functions.h"
#include "Sim/Matrix.h"
#include "Sim/Sanitizer.h"

#include <stdlib.h>
#include <string.h>

// --- State ---

static hd_sim_fiber_t *first_of(const hd_sim_warp_t *warp) {
  return hd_sim_fiber(warp->threads[0]); // The warp is whole.
}

static hd_sim_warpgroup_t *state_of(hd_sim_fiber_t *fiber) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  uint32_t number = hd_sim_group_of(fiber);
  char me[HD_SIM_NAME_SIZE];
  if ((number + 1) * HD_SIM_GROUP_WARPS * HD_SIM_WARP_SIZE > block->num_threads)
    hd_sim_refuse(fiber, HD_E0710, fiber->head.site,
                  "%s is at %s, and its warpgroup has less than 128 threads",
                  hd_sim_thread_name(fiber, me), fiber->head.site->tensor);
  hd_sim_warpgroup_t **at = &block->warpgroups[number];
  if (*at)
    return *at;
  *at = calloc(1, sizeof **at);
  if (!*at)
    hd_sim_no_room(hd_sim_run_of(fiber));
  (*at)->last = &(*at)->first;
  for (int i = 0; i < HD_SIM_GROUP_WARPS; i++)
    (*at)->open[i] = 1;
  return *at;
}

static void drop(hd_sim_warpgroup_t *group) {
  while (group->first) {
    hd_sim_product_t *product = group->first;
    group->first = product->next;
    free(product);
  }
  for (int i = 0; i < HD_SIM_GROUP_WARPS; i++)
    while (group->sums[i]) {
      hd_sim_sums_t *sums = group->sums[i];
      group->sums[i] = sums->next;
      free(sums);
    }
  while (group->used) {
    hd_sim_used_t *used = group->used;
    group->used = used->next;
    free(used);
  }
  hd_sim_memo_drop(&group->memo);
  free(group);
}

void hd_sim_warpgroups_forget(hd_sim_resident_t *block) {
  for (int i = 0; i < HD_SIM_WARPGROUPS; i++) {
    if (block->warpgroups[i])
      drop(block->warpgroups[i]);
    block->warpgroups[i] = NULL;
  }
}

// --- Accumulators ---

static hd_sim_sums_t *find_sums(hd_sim_sums_t *list, uint64_t which,
                                uint32_t count) {
  for (hd_sim_sums_t *s = list; s; s = s->next)
    if (s->which == which && s->count == count)
      return s;
  return NULL;
}

static char *lane_of(hd_sim_sums_t *sums, uint32_t lane) {
  return sums->data + (size_t)lane * sums->count * sums->bytes;
}

static hd_sim_sums_t *new_sums(hd_sim_fiber_t *fiber,
                               const hd_sim_sums_t *like) {
  size_t bytes = (size_t)HD_SIM_WARP_SIZE * like->count * like->bytes;
  hd_sim_sums_t *sums = calloc(1, sizeof *sums + bytes);
  if (!sums)
    hd_sim_no_room(hd_sim_run_of(fiber));
  *sums = *like;
  return sums;
}

// The registers that two sets have in common; false where there are none.
static bool in_common(const hd_sim_sums_t *a, const hd_sim_sums_t *b,
                      hd_sim_sums_t *common) {
  uint64_t a_end = a->which + a->count, b_end = b->which + b->count;
  uint64_t from = a->which > b->which ? a->which : b->which;
  uint64_t to = a_end < b_end ? a_end : b_end;
  *common = *a;
  common->which = from;
  common->count = from < to ? (uint32_t)(to - from) : 0;
  return from < to;
}

static void copy_lanes(hd_sim_sums_t *to, hd_sim_sums_t *from,
                       const hd_sim_sums_t *common) {
  for (uint32_t lane = 0; lane < HD_SIM_WARP_SIZE; lane++)
    memcpy(lane_of(to, lane) + (common->which - to->which) * to->bytes,
           lane_of(from, lane) + (common->which - from->which) * from->bytes,
           (size_t)common->count * from->bytes);
}

// Takes registers out of a set: what lies before and after stays in the list.
static void carve(hd_sim_fiber_t *fiber, hd_sim_sums_t **at,
                  const hd_sim_sums_t *common) {
  hd_sim_sums_t *sums = *at;
  uint64_t first = sums->which, end = first + sums->count;
  uint64_t after = common->which + common->count;
  uint64_t parts[2][2] = {{first, common->which}, {after, end}};
  *at = sums->next;
  for (int i = 0; i < 2; i++) {
    if (parts[i][0] == parts[i][1])
      continue;
    hd_sim_sums_t like = *sums;
    like.next = *at;
    like.which = parts[i][0];
    like.count = (uint32_t)(parts[i][1] - parts[i][0]);
    *at = new_sums(fiber, &like);
    copy_lanes(*at, sums, &like);
  }
  free(sums);
}

// Those of the call: as they are under way, or as the registers hold them, but
// for what has come since and no wait has named.
static hd_sim_sums_t *take_sums(hd_sim_warp_t *warp, hd_sim_sums_t **list,
                                const hd_sim_product_t *product) {
  hd_sim_fiber_t *fiber = first_of(warp);
  hd_sim_sums_t like = {.which = warp->slots[0][2],
                        .count = product->n / 2,
                        .bytes = hd_sim_sum_bytes(product->shape.c),
                        .site = fiber->head.site};
  hd_sim_sums_t common, *sums = find_sums(*list, like.which, like.count);
  if (sums)
    return sums;
  bool later = hd_sim_run_of(fiber)->options->async == HD_SIM_ASYNC_LATEST;
  sums = new_sums(fiber, &like);
  for (uint32_t lane = 0; lane < HD_SIM_WARP_SIZE; lane++)
    memcpy(lane_of(sums, lane), (const void *)(uintptr_t)warp->slots[lane][1],
           (size_t)like.count * like.bytes);
  for (hd_sim_sums_t **at = list; *at;)
    if ((*at)->under_way || !in_common(*at, &like, &common)) {
      at = &(*at)->next;
    } else {
      if (later)
        copy_lanes(sums, *at, &common);
      carve(fiber, at, &common);
    }
  sums->next = *list;
  *list = sums;
  return sums;
}

// Copies what the wait names back to the registers, and forgets it where
// nothing is under way to it any more. What it does not name stays under way:
// a later wait may name it.
static void give_back(hd_sim_warp_t *warp, hd_sim_sums_t **list) {
  hd_sim_fiber_t *fiber = first_of(warp);
  hd_sim_sums_t common, named = {.which = warp->slots[0][3],
                                 .count = (uint32_t)warp->slots[0][1] / 2};
  bool later = hd_sim_run_of(fiber)->options->async ==
               HD_SIM_ASYNC_LATEST; // Else the registers have them already.
  for (hd_sim_sums_t **at = list; *at;) {
    hd_sim_sums_t *sums = *at;
    if (sums->under_way || !in_common(sums, &named, &common)) {
      at = &sums->next;
      continue;
    }
    for (uint32_t lane = 0; later && lane < HD_SIM_WARP_SIZE; lane++)
      memcpy((char *)(uintptr_t)warp->slots[lane][2] +
                 (common.which - named.which) * sums->bytes,
             lane_of(sums, lane) + (common.which - sums->which) * sums->bytes,
             (size_t)common.count * sums->bytes);
    carve(fiber, at, &common);
  }
}

// --- Products ---

static hd_sim_view_t view_of(hd_sim_fiber_t *fiber, const uint64_t *slots,
                             hd_sim_operand_t type, bool mn_major,
                             uint32_t extent) {
  const hd_sim_site_t *site = (const hd_sim_site_t *)(uintptr_t)slots[1];
  if (!slots[0]) {
    hd_sim_touch(fiber, fiber, site, 0, HD_SIM_LINE, HD_SIM_READS, 0);
    hd_sim_fail(hd_sim_run_of(fiber));
    hd_sim_leave();
  }
  const char *shared = fiber->head.block->shared;
  hd_sim_view_t view = {
      .shared = shared,
      .start = (uint32_t)((const char *)(uintptr_t)slots[0] - shared),
      .descriptor = slots[2],
      .type = type,
      .mn_major = mn_major,
      .extent = extent};
  hd_sim_wgmma_check_reach(fiber, site, &view);
  return view;
}

static hd_sim_product_t read_call(hd_sim_fiber_t *fiber, hd_sim_shape_t shape,
                                  bool in_registers) {
  const uint64_t *slots = fiber->head.slots;
  // Two bytes may be MN-major; others have no such operands.
  bool has_majors = hd_sim_operand_bytes(shape.a) == 2;
  const uint64_t *b = slots + (in_registers ? 5 : 6);
  const uint64_t *majors = b + 4;
  hd_sim_product_t p = {.shape = shape,
                        .n = (uint32_t)slots[0],
                        .keep = b[3] & 1,
                        .in_registers = in_registers};
  if (!in_registers)
    p.a = view_of(fiber, slots + 3, shape.a, has_majors && majors[0], 64);
  p.b = view_of(fiber, b, shape.b, has_majors && majors[in_registers ? 0 : 1],
                p.n);
  return p;
}

static void multiply_warp(const hd_sim_product_t *p, uint32_t warp,
                          hd_sim_b_t b, char *const *fragments,
                          char *const *lanes) {
  hd_sim_a_t a;
  if (p->in_registers)
    hd_sim_fragment_a(p->shape.a, fragments, a);
  else
    hd_sim_view_a(&p->a, warp * HD_SIM_PRODUCT_ROWS, a);
  hd_sim_product(p->shape.c, hd_sim_product_k(p->shape.a), p->n, p->keep, a, b,
                 lanes);
}

// All four warps' rows of a product that was left for later.
static void multiply(hd_sim_product_t *p) {
  hd_sim_b_t b;
  hd_sim_view_b(&p->b, b);
  for (uint32_t warp = 0; warp < HD_SIM_GROUP_WARPS; warp++) {
    char *fragments[HD_SIM_WARP_SIZE], *lanes[HD_SIM_WARP_SIZE];
    for (uint32_t lane = 0; lane < HD_SIM_WARP_SIZE; lane++) {
      fragments[lane] = p->fragments[warp][lane];
      lanes[lane] = lane_of(p->sums[warp], lane);
    }
    multiply_warp(p, warp, b, fragments, lanes);
    p->sums[warp]->under_way--;
  }
}

static void multiply_now(hd_sim_warp_t *warp, const hd_sim_product_t *p) {
  hd_sim_b_t b;
  hd_sim_view_b(&p->b, b);
  char *fragments[HD_SIM_WARP_SIZE], *lanes[HD_SIM_WARP_SIZE];
  for (uint32_t lane = 0; lane < HD_SIM_WARP_SIZE; lane++) {
    lanes[lane] = (char *)(uintptr_t)warp->slots[lane][1];
    fragments[lane] = (char *)(uintptr_t)warp->slots[lane][3];
  }
  multiply_warp(p, hd_sim_group_warp(first_of(warp)), b, fragments, lanes);
}

static bool same_view(const hd_sim_view_t *a, const hd_sim_view_t *b) {
  return a->start == b->start && a->descriptor == b->descriptor &&
         a->mn_major == b->mn_major;
}

static bool same_product(const hd_sim_product_t *a, const hd_sim_product_t *b) {
  return a->n == b->n && a->keep == b->keep && a->group == b->group &&
         a->shape.a == b->shape.a && a->shape.b == b->shape.b &&
         a->shape.c == b->shape.c && a->in_registers == b->in_registers &&
         (a->in_registers || same_view(&a->a, &b->a)) &&
         same_view(&a->b, &b->b);
}

// The product that this warp asks for: the first to come makes it.
static hd_sim_product_t *join_product(hd_sim_fiber_t *fiber,
                                      hd_sim_warpgroup_t *group,
                                      const hd_sim_product_t *asked) {
  uint32_t warp = hd_sim_group_warp(fiber);
  hd_sim_product_t *p = group->next[warp];
  char me[HD_SIM_NAME_SIZE];
  if (p && !same_product(p, asked))
    hd_sim_refuse(fiber, HD_E0710, fiber->head.site,
                  "%s asks for another product than the other warps of its "
                  "warpgroup: its matrices, n or keep differ",
                  hd_sim_thread_name(fiber, me));
  if (!p) {
    p = malloc(sizeof *p);
    if (!p)
      hd_sim_no_room(hd_sim_run_of(fiber));
    *p = *asked;
    *group->last = p;
    group->last = &p->next;
    for (uint32_t i = 0; i < HD_SIM_GROUP_WARPS; i++)
      if (!group->next[i])
        group->next[i] = p;
  }
  group->next[warp] = p->next;
  p->asked |= 1u << warp;
  return p;
}

static void ask(hd_sim_warp_t *warp, hd_sim_shape_t shape, bool in_registers) {
  if (!hd_sim_whole_warp(warp))
    return;
  hd_sim_fiber_t *fiber = first_of(warp);
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  hd_sim_warpgroup_t *group = state_of(fiber);
  uint32_t number = hd_sim_group_warp(fiber);
  hd_sim_product_t asked = read_call(fiber, shape, in_registers);
  asked.group = group->open[number];
  if (run->sanitizer)
    hd_sim_wgmma_check(fiber, group, &asked);
  hd_sim_product_t *p = join_product(fiber, group, &asked);
  hd_sim_sums_t *sums = take_sums(warp, &group->sums[number], p);
  p->sums[number] = sums;
  p->which[number] = in_registers ? fiber->head.slots[4] : 0;
  sums->under_way++;
  sums->site = fiber->head.site;
  if (run->options->async == HD_SIM_ASYNC_EARLIEST)
    multiply_now(warp, p);
  else if (in_registers)
    for (uint32_t lane = 0; lane < HD_SIM_WARP_SIZE; lane++)
      memcpy(p->fragments[number][lane],
             (const void *)(uintptr_t)warp->slots[lane][3], HD_SIM_FRAGMENT);
}

// --- The functions ---

#define WGMMA(name, a, b, c)                                                   \
  void hd_sim_wgmma_##name(hd_sim_warp_t *warp) {                              \
    ask(warp, (hd_sim_shape_t){HD_SIM_##a, HD_SIM_##b, HD_SIM_##c}, false);    \
  }                                                                            \
  void hd_sim_wgmma_##name##_r(hd_sim_warp_t *warp) {                          \
    ask(warp, (hd_sim_shape_t){HD_SIM_##a, HD_SIM_##b, HD_SIM_##c}, true);     \
  }
WGMMA(f32_f16, F16, F16, F32)
WGMMA(f16_f16, F16, F16, SUM_F16)
WGMMA(f32_bf16, BF16, BF16, F32)
WGMMA(f32_tf32, TF32, TF32, F32)
WGMMA(f32_f8e4m3, F8E4M3, F8E4M3, F32)
WGMMA(f32_f8e4m3_f8e5m2, F8E4M3, F8E5M2, F32)
WGMMA(f32_f8e5m2_f8e4m3, F8E5M2, F8E4M3, F32)
WGMMA(f32_f8e5m2, F8E5M2, F8E5M2, F32)
WGMMA(f16_f8e4m3, F8E4M3, F8E4M3, SUM_F16)
WGMMA(f16_f8e4m3_f8e5m2, F8E4M3, F8E5M2, SUM_F16)
WGMMA(f16_f8e5m2_f8e4m3, F8E5M2, F8E4M3, SUM_F16)
WGMMA(f16_f8e5m2, F8E5M2, F8E5M2, SUM_F16)
WGMMA(i32_i8, I8, I8, I32)
WGMMA(i32_i8_u8, I8, U8, I32)
WGMMA(i32_u8_i8, U8, I8, I32)
WGMMA(i32_u8, U8, U8, I32)

void hd_sim_wgmma_fence(hd_sim_warp_t *warp) {
  if (!hd_sim_whole_warp(warp))
    return;
  hd_sim_fiber_t *fiber = first_of(warp);
  state_of(fiber)->fenced[hd_sim_group_warp(fiber)] = true;
  hd_sim_wgmma_forget_used(state_of(fiber), hd_sim_group_warp(fiber));
}

void hd_sim_wgmma_commit(hd_sim_warp_t *warp) {
  if (!hd_sim_whole_warp(warp))
    return;
  hd_sim_fiber_t *fiber = first_of(warp);
  state_of(fiber)->open[hd_sim_group_warp(fiber)]++;
}

static void finish(hd_sim_fiber_t *fiber, hd_sim_warpgroup_t *group,
                   uint32_t last) {
  bool now = hd_sim_run_of(fiber)->options->async == HD_SIM_ASYNC_EARLIEST;
  while (group->first && group->first->group <= last) {
    hd_sim_product_t *p = group->first;
    char me[HD_SIM_NAME_SIZE];
    if (p->asked != (1u << HD_SIM_GROUP_WARPS) - 1)
      hd_sim_refuse(fiber, HD_E0710, fiber->head.site,
                    "%s waits for a product that not all warps of its "
                    "warpgroup have asked for",
                    hd_sim_thread_name(fiber, me));
    if (now)
      for (int i = 0; i < HD_SIM_GROUP_WARPS; i++)
        p->sums[i]->under_way--;
    else
      multiply(p);
    group->first = p->next;
    if (!group->first)
      group->last = &group->first;
    free(p);
  }
}

void hd_sim_wgmma_wait(hd_sim_warp_t *warp) {
  if (!hd_sim_whole_warp(warp))
    return;
  hd_sim_fiber_t *fiber = first_of(warp);
  hd_sim_warpgroup_t *group = state_of(fiber);
  uint32_t number = hd_sim_group_warp(fiber),
           left = (uint32_t)warp->slots[0][0];
  uint32_t closed = group->open[number] - 1;
  uint32_t last = closed > left ? closed - left : 0;
  for (int i = 0; i < HD_SIM_GROUP_WARPS; i++)
    if (group->open[i] <= last) {
      warp->wait = true; // Not all of the warpgroup have come so far.
      return;
    }
  finish(fiber, group, last);
  give_back(warp, &group->sums[number]);
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  if (!run->sanitizer)
    return;
  uint32_t entry =
      hd_sim_entry(run, HD_SIM_ENTRY_WARPGROUPS, hd_sim_group_of(fiber));
  for (uint32_t lane = 0; lane < HD_SIM_WARP_SIZE; lane++)
    hd_sim_sync_mark(hd_sim_fiber(warp->threads[lane]), entry, last,
                     &group->memo);
}
