// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Candidates that did not do, as an entry of the cache, so that the next
// process need not find them again: a line each, its fields between tabs.
#include "Runtime/Cache.h"
#include "Runtime/ModelState.h"
#include "Support/BuildId.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { US, IS_USERS, KEY, NAME, WHY, FIELDS };

// What is found holds for this build on such a device; zero where the build is
// not known.
static hd_cache_key_t key_of(hd_device_t *device) {
  char build[128];
  hd_buffer_t text = {0};
  hd_cache_key_t key = {0, 0};
  if (!device->cache || !hd_build_id(build, sizeof build))
    return key;
  hd_buffer_printf(&text, "%s %s %d %lld ", build, device->info.target->name,
                   device->info.sms, (long long)device->info.max_shared_bytes);
  device->ops->describe(device, &text);
  if (!text.failed)
    key = hd_cache_key("falls", hd_buffer_text(&text), text.size);
  hd_buffer_fini(&text);
  return key;
}

// A line, which is cut at its tabs; what does not read as one is none.
static void read_line(hd_falls_t *falls, char *line) {
  char *fields[FIELDS];
  for (int i = 0; i < FIELDS; i++) {
    fields[i] = line;
    line = line ? strchr(line, '\t') : NULL;
    if (line)
      *line++ = 0;
  }
  if (!fields[WHY] || hd_falls_find(falls, fields[KEY]))
    return;
  const hd_fall_t fall = {.key = fields[KEY],
                          .name = fields[NAME],
                          .why = fields[WHY],
                          .us = strtod(fields[US], NULL),
                          .is_users = fields[IS_USERS][0] == '1',
                          .told = UINT_MAX};
  hd_falls_add(falls, falls->arena, &fall);
}

void hd_falls_read(hd_falls_t *falls, hd_device_t *device) {
  hd_buffer_t text = {0};
  hd_cleanup_t cleanup;
  hd_budget_t *budget = &device->context->budget;
  hd_budget_defer(budget, &cleanup, hd_buffer_end, &text);
  if (hd_cache_get(device->cache, key_of(device), &text)) {
    hd_buffer_write(&text, "", 1);
    for (char *line = text.failed ? NULL : text.data, *next; line && *line;
         line = next) {
      next = strchr(line, '\n');
      if (next)
        *next++ = 0;
      read_line(falls, line);
    }
  }
  hd_budget_clean(budget, &cleanup);
}

// A field has no tabs and no ends of lines.
static void put_field(hd_buffer_t *text, const char *field, char end) {
  for (; *field; field++)
    hd_buffer_write(text, *field == '\t' || *field == '\n' ? " " : field, 1);
  hd_buffer_write(text, &end, 1);
}

void hd_falls_write(hd_falls_t *falls, hd_device_t *device) {
  bool any = false;
  for (size_t i = 0; i < falls->list.size; i++) {
    any |= falls->list.data[i]->is_new;
    falls->list.data[i]->is_new = false;
  }
  if (!any || !device->cache)
    return;
  hd_falls_read(falls, device); // What others have found meanwhile.
  hd_buffer_t text = {0};
  for (size_t i = 0; i < falls->list.size; i++) {
    const hd_fall_t *fall = falls->list.data[i];
    hd_buffer_printf(&text, "%a\t%d\t", fall->us, fall->is_users);
    put_field(&text, fall->key, '\t');
    put_field(&text, fall->name, '\t');
    put_field(&text, fall->why, '\n');
  }
  if (!text.failed)
    hd_cache_put(device->cache, key_of(device), &text);
  hd_buffer_fini(&text);
}
