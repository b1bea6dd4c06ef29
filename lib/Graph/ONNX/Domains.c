// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operator sets: which version of each domain's operators a model means.
#include "Graph/ONNX/State.h"
#include "IR/Keywords.h"
#include "IR/Text/Parser.h"

#include <string.h>

typedef struct row {
  const char *domain, *name;
  int newest;
} row_t;

static const row_t rows[] = {
#define HD_ONNX_DOMAIN(domain, name, newest) {domain, name, newest},
#include "Graph/ONNX/Domains.def"
#undef HD_ONNX_DOMAIN
};

static const row_t *find_row(const char *domain) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].domain, domain) == 0)
      return &rows[i];
  return NULL;
}

// "ai.onnx" is another way to write "".
static const char *plain(const char *domain) {
  return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

const hd_onnx_opset_t *hd_import_opset(const hd_onnx_scope_t *scope,
                                       const char *domain) {
  domain = plain(domain);
  for (size_t i = 0; i < scope->num_opsets; i++)
    if (strcmp(scope->opsets[i].domain, domain) == 0)
      return &scope->opsets[i];
  return NULL;
}

// A name, and as a version follows, no digit ends it.
static const char *name_of(hd_onnx_import_t *im, const char *domain) {
  const char *word = hd_import_word(im->arena, domain);
  char last = word[strlen(word) - 1];
  return (last >= '0' && last <= '9') || hd_is_reserved(word)
             ? hd_arena_printf(im->arena, "%s_", word)
             : word;
}

bool hd_import_opsets(hd_onnx_import_t *im, HdOnnx__OpsetId *const *imports,
                      size_t count, hd_onnx_scope_t *scope) {
  hd_onnx_opset_t *opsets =
      HD_ARENA_ARRAY(im->scratch, hd_onnx_opset_t, count + 1);
  scope->opsets = opsets;
  for (size_t i = 0; i < count; i++) {
    const char *domain = plain(imports[i]->domain);
    const row_t *row = find_row(domain);
    int64_t version = imports[i]->version;
    const char *shown = domain[0] ? domain : "ai.onnx";
    const hd_onnx_opset_t *known = hd_import_opset(scope, domain);
    if (known && known->version == version)
      continue;
    if (known)
      return hd_import_invalid(im, "operator set", shown,
                               "it is imported twice, as version %d and %lld",
                               known->version, (long long)version);
    if (version < 1 || version > HD_MAX_OPERATOR_VERSION)
      return hd_import_invalid(im, "operator set", shown, "version %lld",
                               (long long)version);
    if (row && row->newest && version > row->newest)
      return hd_import_unsupported(
          im, "operator set", shown,
          "version %lld, and the newest one known here is %d; export the model "
          "for that one, or use a newer release",
          (long long)version, row->newest);
    opsets[scope->num_opsets++] = (hd_onnx_opset_t){
        domain, row ? row->name : name_of(im, domain), (int)version};
  }
  return true;
}
