// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A session's workspaces: one block, which its executables have in turn. It
// grows with them, and stays where a graph of the caller's has it.
#include "Runtime/SessionState.h"

#include <stdlib.h>

static bool has_room(const hd_session_t *s, const hd_ready_t *r) {
  return r->program.apart ||
         (s->block && (size_t)r->program.block_bytes <= s->block_bytes);
}

bool hd_session_is_ready(const hd_session_t *s, const hd_tensor_type_t *types) {
  for (const hd_ready_t *r = s->ready; r; r = r->next)
    if (r->complete && hd_turn_is_for(s->model, r->turn, types))
      return has_room(s, r);
  return false;
}

bool hd_session_keep(hd_session_t *s, hd_address_t address) {
  hd_address_t *kept = realloc(s->kept, (s->num_kept + 1) * sizeof(*kept));
  if (!kept)
    return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E0904,
                    "out of memory");
  s->kept = kept;
  s->kept[s->num_kept++] = address;
  return true;
}

// The block, which is to be another one, is nobody's; or stays for a graph of
// the caller's.
static bool leave_block(hd_session_t *s) {
  if (s->captured && !hd_session_keep(s, s->block))
    return false;
  if (!s->captured)
    s->device->ops->free(s->device, s->block);
  s->block = 0;
  s->captured = false;
  return true;
}

bool hd_session_make_room(hd_session_t *s, hd_ready_t *r) {
  size_t bytes = (size_t)r->program.block_bytes;
  if (r->program.apart)
    return true;
  if (!has_room(s, r)) {
    if (!hd_session_wait(s) || (s->block && !leave_block(s)))
      return false;
    hd_session_may_reclaim(s, true);
    bool ok =
        s->device->ops->alloc(s->device, "the workspaces", bytes, &s->block);
    hd_session_may_reclaim(s, false);
    if (!ok)
      return false;
    s->block_bytes = bytes;
  }
  hd_program_place(&r->program, s->block);
  return true;
}
