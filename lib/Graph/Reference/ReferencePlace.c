// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which level's points a tree's lanes are, and what varies with them.
#include "Graph/Reference/ReferenceState.h"

void hd_ref_visit(hd_ref_node_t *node,
                  void (*visit)(hd_ref_node_t *node, void *argument),
                  void *argument) {
  visit(node, argument);
  for (unsigned i = 0; i < node->num_operands; i++)
    hd_ref_visit(node->operands[i], visit, argument);
  bool is_load = node->kind == HD_TERM_LOAD || node->kind == HD_TERM_LOADELSE;
  if (is_load) {
    for (unsigned i = 0; i < node->u.access->rank; i++)
      hd_ref_visit(node->u.access->indices[i], visit, argument);
    if (node->u.access->otherwise)
      hd_ref_visit(node->u.access->otherwise, visit, argument);
  }
  if (node->kind == HD_TERM_REDUCE || node->kind == HD_TERM_SCAN) {
    for (unsigned i = 0; i < node->u.fold->size; i++)
      hd_ref_visit(node->u.fold->bodies[i], visit, argument);
    if (node->u.fold->at)
      hd_ref_visit(node->u.fold->at, visit, argument);
  }
}

static bool depends(uint64_t deps, int level) {
  return level >= 0 && (deps >> level & 1);
}

void hd_ref_place_monoid(hd_ref_t *r, hd_ref_fold_t *fold, int lane_level) {
  for (unsigned i = 0; i < fold->size; i++) {
    hd_ref_place(r, fold->identities[i], HD_REF_NO_LEVEL);
    if (fold->builtin != HD_MONOID_COUNT)
      continue;
    fold->left[i]->varies = lane_level >= 0;
    fold->right[i]->varies = lane_level >= 0;
  }
  for (unsigned i = 0; i < fold->size && fold->builtin == HD_MONOID_COUNT; i++)
    hd_ref_place(r, fold->results[i], lane_level);
}

// The last level that has something to be lanes of.
static int last_level(const hd_ref_t *r, unsigned first, unsigned count) {
  for (unsigned i = count; i-- > 0;)
    if (r->levels[first + i].extent > 1)
      return (int)(first + i);
  return HD_REF_NO_LEVEL;
}

// Lanes are those around it where it varies with them, else its own.
static void place_fold(hd_ref_t *r, hd_ref_node_t *node, int lane_level) {
  hd_ref_fold_t *fold = node->u.fold;
  bool varies = depends(fold->deps, lane_level);
  int own = node->kind == HD_TERM_SCAN
                ? (int)fold->first_level
                : last_level(r, fold->first_level, fold->num_levels);
  fold->lane_level = varies ? HD_REF_NO_LEVEL : own;
  for (unsigned i = 0; i < fold->size; i++)
    hd_ref_place(r, fold->bodies[i], varies ? lane_level : own);
  hd_ref_place_monoid(r, fold, varies ? lane_level : HD_REF_NO_LEVEL);
  node->varies = varies;
  if (!fold->at)
    return;
  hd_ref_place(r, fold->at, lane_level);
  node->varies |= fold->at->varies;
}

void hd_ref_place(hd_ref_t *r, hd_ref_node_t *node, int lane_level) {
  if (node->kind == HD_TERM_BOUND)
    return; // With the monoid.
  if (node->kind == HD_TERM_REDUCE || node->kind == HD_TERM_SCAN) {
    place_fold(r, node, lane_level);
    return;
  }
  node->varies = depends(node->deps, lane_level);
  for (unsigned i = 0; i < node->num_operands; i++) {
    hd_ref_place(r, node->operands[i], lane_level);
    node->varies |= node->operands[i]->varies; // By a monoid's variables.
  }
  if (node->kind != HD_TERM_LOAD && node->kind != HD_TERM_LOADELSE)
    return;
  const hd_ref_access_t *access = node->u.access;
  for (unsigned i = 0; i < access->rank; i++) {
    hd_ref_place(r, access->indices[i], lane_level);
    node->varies |= access->indices[i]->varies;
  }
  if (access->otherwise) {
    hd_ref_place(r, access->otherwise, lane_level);
    node->varies |= access->otherwise->varies;
  }
}

// --- The choice of a level ---

typedef struct survey {
  const hd_ref_t *r;
  int level;
  double cost;
  const hd_ref_fold_t *reduction; // The first one.
  int scanned;                    // The level where a scan stands.
} survey_t;

// How far apart the lanes of an access would lie: what is further than a cache
// line costs more.
static void survey_node(hd_ref_node_t *node, void *argument) {
  survey_t *survey = argument;
  if (node->kind == HD_TERM_REDUCE && !survey->reduction)
    survey->reduction = node->u.fold;
  if (node->kind == HD_TERM_SCAN && node->u.fold->at->kind == HD_TERM_INDEX)
    survey->scanned = (int)node->u.fold->at->u.level;
  if (node->kind != HD_TERM_LOAD && node->kind != HD_TERM_LOADELSE)
    return;
  const hd_ref_access_t *access = node->u.access;
  int64_t stride = 0;
  for (unsigned i = 0; i < access->rank && access->affine; i++) {
    const hd_ref_affine_t *affine = access->indices[i]->affine;
    for (unsigned n = 0; n < affine->count; n++)
      if ((int)affine->terms[n].level == survey->level)
        stride += affine->terms[n].by * access->strides[i];
  }
  stride = stride < 0 ? -stride : stride;
  survey->cost += !access->affine ? 4 : stride <= 1 ? 1 : stride <= 16 ? 2 : 8;
}

static double cost_of(survey_t *survey, hd_ref_node_t *root, int level) {
  survey->level = level;
  survey->cost = 1;
  hd_ref_visit(root, survey_node, survey);
  int64_t extent = level < 0 ? 1 : survey->r->levels[level].extent;
  if (extent > HD_REF_LANES)
    extent = HD_REF_LANES;
  return survey->cost * (1 + 16.0 / (double)extent); // What a strip costs.
}

int hd_ref_choose(const hd_ref_t *r, hd_ref_node_t *root, unsigned num_levels) {
  survey_t survey = {.r = r, .scanned = HD_REF_NO_LEVEL};
  int best = HD_REF_NO_LEVEL;
  double least = 0;
  for (unsigned level = num_levels; level-- > 0;) {
    if (r->levels[level].extent <= 1)
      continue;
    double cost = cost_of(&survey, root, (int)level);
    if (best < 0 || cost < least) {
      best = (int)level;
      least = cost;
    }
  }
  // A table for a scan serves the whole axis where the lanes are that axis.
  if (survey.scanned >= 0 && survey.scanned < (int)num_levels)
    return survey.scanned;
  if (!survey.reduction)
    return best;
  int own = last_level(r, survey.reduction->first_level,
                       survey.reduction->num_levels);
  if (own < 0)
    return best;
  double alone = cost_of(&survey, root, own) + 2; // Sums are one chain.
  return best < 0 || alone < least ? HD_REF_NO_LEVEL : best;
}
