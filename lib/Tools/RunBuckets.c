// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --buckets=NAME or --buckets=NAME:128,512, and --inout=INPUT=OUTPUT.
#include "Fusion/Bucket/BucketSizes.h"
#include "Tools/InOut.h"
#include "Tools/RunTool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool fail(hd_run_t *run, const char *text) {
  return hd_error(hd_run_diags(run), (hd_loc_t){0}, HD_E1002, "--buckets",
                  text);
}

// 128,512: ascending.
static bool parse_bounds(hd_arena_t *arena, const char *text,
                         hd_bucket_policy_t *policy) {
  int64_t *bounds = HD_ARENA_ARRAY(arena, int64_t, strlen(text) + 1);
  for (;;) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || errno || value < 1 ||
        (policy->count && value <= bounds[policy->count - 1]))
      return false;
    bounds[policy->count++] = value;
    policy->bounds = bounds;
    if (!*end)
      return true;
    if (*end != ',')
      return false;
    text = end + 1;
  }
}

static bool take_policy(hd_run_t *run, const char *text,
                        hd_bucket_policy_t *policy) {
  size_t length = strcspn(text, ":");
  policy->name = hd_arena_strndup(&run->arena, text, length);
  if (!length ||
      (text[length] && !parse_bounds(&run->arena, text + length + 1, policy)))
    return fail(run, hd_arena_printf(&run->arena,
                                     "takes NAME or NAME:128,512, bounds that "
                                     "ascend, found '%s'",
                                     text));
  return hd_bucket_has_size(&run->arena, run->graph, policy->name) ||
         fail(run,
              hd_arena_printf(&run->arena, "finds no size '%s'", policy->name));
}

bool hd_run_buckets(hd_run_t *run, hd_model_options_t *options) {
  size_t uses = run->options.uses.size;
  hd_bucket_policy_t *policies =
      HD_ARENA_ARRAY(&run->arena, hd_bucket_policy_t, uses + 1);
  bool ok = true;
  for (size_t i = 0; i < uses; i++)
    if (run->options.uses.data[i].option == RUN_BUCKETS)
      ok &= take_policy(run, run->options.uses.data[i].value,
                        &policies[options->num_buckets++]);
  options->buckets = policies;
  return ok;
}

static bool take_inout(hd_run_t *run, const char *text, hd_inouts_t *inouts) {
  const char *output = strchr(text, '=');
  const char *why = "takes INPUT=OUTPUT";
  if (output)
    why = hd_inouts_add(
        &run->arena, run->graph,
        hd_arena_strndup(&run->arena, text, (size_t)(output - text)),
        output + 1, inouts);
  return !why ||
         hd_error(hd_run_diags(run), (hd_loc_t){0}, HD_E1003,
                  hd_arena_printf(&run->arena, "--inout=%s: %s", text, why));
}

bool hd_run_inouts(hd_run_t *run, hd_model_options_t *options) {
  bool ok = true;
  for (size_t i = 0; i < run->options.uses.size; i++)
    if (run->options.uses.data[i].option == RUN_INOUT)
      ok &= take_inout(run, run->options.uses.data[i].value, &options->inouts);
  return ok;
}
