// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HIDET_GRAPH_EXPAND_LOWER_ATTENTION_H
#define HIDET_GRAPH_EXPAND_LOWER_ATTENTION_H

#include "Graph/Expand/Lower/Lower.h"

// softmax(mask(softcap(query * key' * scale))) * value, by heads. A query that
// sees no key has the result 0.
typedef struct hd_attention {
  const hd_value_t *query;       // [b, heads, m, d]
  const hd_value_t *key, *value; // [b, groups, n, d]; each for some heads.
  const hd_value_t *mask;   // bool, or what is added; broadcast. NULL: none.
  const hd_value_t *length; // Of the keys, one for each of the batch, or NULL.
  // A query's place is that of one key; it sees so many keys before and behind
  // it.
  bool has_left, has_right;
  int64_t left, right;
  int64_t past; // Keys before the first query's place.
  bool at_end;  // The last query's place is the last key of `length`, instead.
  double scale;
  double softcap;         // 0: none.
  const hd_value_t *sink; // [heads]: a score beside the keys' own whose weight
                          // is for no value; NULL: none.
  hd_scalar_t precision;  // Of the softmax; HD_VOID: as it comes.
  // What becomes of the scores before the softmax, and of what it gives; NULL:
  // nothing.
  const hd_graph_t *score_graph, *weight_graph;
  // NULL, or takes the scores: 0 as they are, 1 after softcap, 2 after the
  // mask, 3 after softmax.
  const hd_value_t **stage;
  int64_t stage_number;
} hd_attention_t;

const hd_value_t *hd_lower_attention(hd_lowering_t *l,
                                     const hd_attention_t *attention);
// [b, n, heads * d] to [b, heads, n, d] and back.
const hd_value_t *hd_lower_split_heads(hd_lowering_t *l, const hd_value_t *x,
                                       int64_t heads);
const hd_value_t *hd_lower_join_heads(hd_lowering_t *l, const hd_value_t *x);
// com.microsoft's of queries, keys and values side by side, [b, n, 3 * hidden],
// by the node's attributes, with what was before the keys and values, [2, b,
// heads, n, d]: all its outputs. mask, bias and past may be NULL.
bool hd_lower_packed_attention(hd_lowering_t *l, const hd_value_t *all,
                               const hd_value_t *mask, const hd_value_t *bias,
                               const hd_value_t *past);
// x: [b, s, heads * d] or [b, h, s, d]; cosine and sine [1 or b, s, r].
const hd_value_t *hd_lower_rotary(hd_lowering_t *l, const hd_value_t *x,
                                  int64_t heads, const hd_value_t *cosine,
                                  const hd_value_t *sine, bool interleaved);

#endif
