// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Json.h"
#include "Support/File.h"
#include "hidet/Version.h"

#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

static json_t *location(const hd_diagnostics_t *diags, hd_loc_t loc) {
  const char *name;
  uint32_t line, column;
  if (!hd_diagnostics_locate(diags, loc, &name, &line, &column))
    return NULL;
  return json_sprintf("%s:%u:%u", name, line, column);
}

json_t *hd_json_diagnostics(const hd_diagnostics_t *diags) {
  static const char *const severities[] = {"error", "warning", "remark",
                                           "note"};
  json_t *array = json_array();
  for (const hd_diagnostic_t *d = diags->first; d; d = d->next) {
    json_t *row = json_object();
    if (d->severity == HD_ERROR)
      json_object_set_new(row, "code",
                          json_string(hd_diagnostic_code_name(d->code)));
    json_object_set_new(row, "severity", json_string(severities[d->severity]));
    json_object_set_new(row, "message", json_string(d->message));
    if (d->node)
      json_object_set_new(row, "node", json_string(d->node));
    json_t *place = location(diags, d->loc);
    if (place)
      json_object_set_new(row, "location", place);
    json_array_append_new(array, row);
  }
  return array;
}

json_t *hd_json_ended(const hd_diagnostics_t *diags, hd_exit_t exit_code) {
  return json_pack("{s:s, s:i, s:o}", "version", hidet_version(), "exit",
                   (int)exit_code, "diagnostics", hd_json_diagnostics(diags));
}

bool hd_json_write(hd_diagnostics_t *diags, const char *path, json_t *object) {
  char *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  json_decref(object);
  if (!text)
    return hd_error(diags, nowhere, HD_E0904,
                    "not enough memory for the JSON report");
  hd_file_part_t parts[] = {{text, strlen(text)}, {"\n", 1}};
  bool ok = hd_file_write(diags, path, parts, 2);
  free(text);
  return ok;
}
