// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last run's graph compiled once more, to be measured against what is there
// and taken where it is faster.
#include "Runtime/SessionState.h"

bool hd_session_compile_again(hd_session_t *s, hd_session_version_t *version) {
  hd_model_t *m = s->model;
  hd_model_segment_t segment = {.graph = s->now->turn->segment.graph,
                                .inouts = s->now->turn->segment.inouts};
  bool explain = m->options.explain;
  *version = (hd_session_version_t){0};
  m->options.explain = m->schedules.explain = false; // It has been said.
  bool ok = hd_model_compile(m, &segment, true);
  m->options.explain = m->schedules.explain = explain;
  *version = (hd_session_version_t){segment.made, segment.program};
  return ok;
}

void hd_session_version_end(hd_session_version_t *version) {
  hd_program_fini(&version->program);
  hd_module_destroy(version->made);
  *version = (hd_session_version_t){0};
}

bool hd_session_version_take(hd_session_t *s, hd_session_version_t *version) {
  hd_ready_t *r = s->now;
  hd_model_segment_t *segment = &r->turn->segment;
  hd_session_version_t before = {segment->made, segment->program};
  hd_session_drop_recording(s, r); // Of launches of what was there before.
  hd_program_fini(&r->program);
  segment->made = version->made;
  segment->program = version->program;
  *version = (hd_session_version_t){0};
  hd_session_version_end(&before);
  r->complete = hd_program_share(&r->program, &segment->program, s->device) &&
                hd_session_make_room(s, r);
  return r->complete;
}
