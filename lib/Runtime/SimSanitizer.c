// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/SimSanitizer.h"

hd_sim_sanitizer_t *hd_sim_sanitizer_create(hd_sim_run_t *run) {
  hd_error(run->diags, (hd_loc_t){0}, HD_E0609, "--sanitize", "sim");
  return NULL;
}
void hd_sim_sanitizer_destroy(hd_sim_sanitizer_t *s) { (void)s; }
bool hd_sim_sanitizer_conclude(hd_sim_sanitizer_t *s, hd_sim_stats_t *stats) {
  (void)s;
  (void)stats;
  return true;
}
void hd_sim_check_begin_block(hd_sim_sanitizer_t *s, hd_sim_resident_t *b) {
  (void)s;
  (void)b;
}
void hd_sim_check_end_block(hd_sim_sanitizer_t *s, hd_sim_resident_t *b) {
  (void)s;
  (void)b;
}
void hd_sim_check_drop_block(hd_sim_sanitizer_t *s, hd_sim_resident_t *b) {
  (void)s;
  (void)b;
}
bool hd_sim_check_spinning(hd_sim_sanitizer_t *s, hd_sim_worker_t *w) {
  (void)s;
  (void)w;
  return false;
}
void hd_sim_check_event(const hd_sim_task_t *task) { (void)task; }
void hd_sim_banks_settle(hd_sim_sanitizer_t *s, hd_sim_resident_t *b,
                         uint32_t first, uint32_t lanes) {
  (void)s;
  (void)b;
  (void)first;
  (void)lanes;
}
bool hd_sim_touch(hd_sim_task_t *task, const hd_sim_site_t *site,
                  uintptr_t address, uint32_t bytes, unsigned touch,
                  unsigned scope) {
  (void)task;
  (void)site;
  (void)bytes;
  (void)touch;
  (void)scope;
  return address != 0;
}
void hd_sim_sync_give(hd_sim_task_t *t, hd_sim_clocks_t **j) {
  (void)t;
  (void)j;
}
void hd_sim_sync_take(hd_sim_task_t *t, hd_sim_clocks_t *j) {
  (void)t;
  (void)j;
}
void hd_sim_sync_drop(hd_sim_clocks_t **c) { *c = NULL; }
void hd_sim_sync_warp(const hd_sim_warp_t *w) { (void)w; }
void hd_sim_sync_acquire(hd_sim_task_t *t, uintptr_t a, unsigned o,
                         unsigned s) {
  (void)t;
  (void)a;
  (void)o;
  (void)s;
}
void hd_sim_sync_release(hd_sim_task_t *t, uintptr_t a, unsigned o, unsigned s,
                         bool r) {
  (void)t;
  (void)a;
  (void)o;
  (void)s;
  (void)r;
}
void hd_sim_sync_fence(hd_sim_task_t *t, unsigned o, unsigned s) {
  (void)t;
  (void)o;
  (void)s;
}
void hd_sim_sync_copies(hd_sim_task_t *t, uint32_t g) {
  (void)t;
  (void)g;
}
bool hd_sim_check(hd_sim_thread_t *thread, const hd_sim_site_t *site,
                  const int64_t *values, const void *address) {
  (void)thread;
  (void)site;
  (void)values;
  return address != NULL;
}
