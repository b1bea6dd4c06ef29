// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GroupQueryAttention of com.microsoft: a decoder's attention with a cache.
// Each of the batch has seqlens_k + 1 keys, the last of them those of this
// call, which go into the cache behind what it holds; total_sequence_length
// are the keys of the longest. A call with as many queries as that begins anew.
#include "Graph/Expand/Lower/Attention.h"

#include <math.h>
#include <string.h>

typedef struct cached {
  hd_attention_t a;
  int64_t heads, groups;
  int64_t batch, queries, total;
  bool first;               // Nothing is before the queries.
  const hd_value_t *before; // Else i64[batch]: as many keys are.
  const hd_value_t *length; // i32[batch], with those of this call.
} cached_t;

static const hd_value_t *add_number(hd_lowering_t *l, const hd_value_t *x,
                                    int64_t number) {
  const hd_value_t *by = hd_lower_scalar(l, x->type, (double)number);
  return by ? hd_lower_binary(l, "add", x, by) : NULL;
}

static bool refuse_others(hd_lowering_t *l) {
  static const char *const types[] = {"k_quant_type", "v_quant_type"};
  for (int i = 0; i < 2; i++)
    if (strcmp(hd_lower_string(l, types[i], "NONE"), "NONE") != 0)
      return hd_lower_unsupported(l, "a quantized cache (%s)", types[i]);
  if (hd_lower_int(l, "qk_output", 0) || hd_lower_wants_output(l, 3))
    return hd_lower_unsupported(l, "scores as a result");
  for (uint32_t i = 12; i < hd_lower_num_inputs(l); i++)
    if (hd_lower_input(l, i))
      return hd_lower_unsupported(l, "input %u", i);
  return true;
}

static bool read_lengths(hd_lowering_t *l, cached_t *c) {
  const hd_value_t *lengths = hd_lower_input(l, 5), *q = hd_lower_input(l, 0);
  size_t count;
  if (!lengths || !hd_lower_input(l, 6))
    return hd_lower_invalid(l, "seqlens_k or total_sequence_length is missing");
  const int64_t *total = hd_lower_data_ints(l, hd_lower_input(l, 6), &count);
  if (!total)
    return false;
  if (q->rank != 3)
    return hd_lower_invalid(l, "queries of rank %d", q->rank);
  c->batch = hd_lower_size(q, 0);
  c->queries = hd_lower_size(q, 1);
  if (count != 1 || total[0] < c->queries || total[0] > INT32_MAX)
    return hd_lower_invalid(l, "a total length of %lld for %lld queries",
                            (long long)(count == 1 ? total[0] : 0),
                            (long long)c->queries);
  c->total = total[0];
  if (hd_lower_count(lengths) != c->batch)
    return hd_lower_invalid(l, "%lld lengths for a batch of %lld",
                            (long long)hd_lower_count(lengths),
                            (long long)c->batch);
  c->first = c->total == c->queries || !hd_lower_input(l, 3);
  lengths = hd_lower_reshape(l, lengths, &c->batch, 1);
  c->length = lengths ? add_number(l, lengths, 1) : NULL;
  const hd_value_t *wide =
      c->length ? hd_lower_cast(l, c->length, HD_I64) : NULL;
  c->before = wide ? add_number(l, wide, -c->queries) : NULL;
  return c->before != NULL;
}

// Queries, keys and values by heads; those of one input lie side by side.
static bool split_operands(hd_lowering_t *l, cached_t *c) {
  const hd_value_t *parts[] = {hd_lower_input(l, 0), hd_lower_input(l, 1),
                               hd_lower_input(l, 2)};
  c->heads = hd_lower_int(l, "num_heads", 0);
  c->groups = hd_lower_int(l, "kv_num_heads", 0);
  if (c->heads < 1 || c->groups < 1 || c->heads > INT32_MAX ||
      c->heads % c->groups != 0)
    return hd_lower_invalid(l, "%lld heads for %lld heads of keys",
                            (long long)c->heads, (long long)c->groups);
  if (!parts[1] != !parts[2])
    return hd_lower_invalid(l, "keys and values are not both given");
  int64_t width = hd_lower_size(parts[0], 2), all = c->heads + 2 * c->groups;
  if (!parts[1] && width % all != 0)
    return hd_lower_invalid(l, "%lld features do not split into %lld heads",
                            (long long)width, (long long)all);
  const hd_value_t *packed = parts[1] ? NULL : parts[0];
  int64_t head = width / all, start[3] = {0};
  for (int i = 0; i < 3; i++) {
    int64_t heads = i == 0 ? c->heads : c->groups;
    int64_t size[] = {c->batch, c->queries, heads * head};
    if (packed)
      parts[i] = hd_lower_slice(l, packed, start, size, NULL);
    start[2] += heads * head;
    parts[i] = parts[i] ? hd_lower_split_heads(l, parts[i], heads) : NULL;
    if (!parts[i])
      return false;
    if (hd_lower_size(parts[i], 0) != c->batch ||
        hd_lower_size(parts[i], 2) != c->queries)
      return hd_lower_invalid(l, "queries, keys and values are not as many");
  }
  c->a.query = parts[0];
  c->a.key = parts[1];
  c->a.value = parts[2];
  return true;
}

// Of each query: [1, n] where all begin at the first place, else [batch, n].
static const hd_value_t *positions(hd_lowering_t *l, const cached_t *c) {
  const hd_value_t *given = hd_lower_input(l, 9);
  int64_t shape[] = {1, c->queries}, column[] = {c->batch, 1};
  if (given)
    return given;
  const hd_value_t *steps = hd_lower_iota(l, HD_I64, shape, 2);
  if (!steps || c->first)
    return steps;
  const hd_value_t *before = hd_lower_reshape(l, c->before, column, 2);
  return before ? hd_lower_binary(l, "add", before, steps) : NULL;
}

static bool rotate(hd_lowering_t *l, cached_t *c) {
  const hd_value_t *cosine = hd_lower_input(l, 7), *sine = hd_lower_input(l, 8);
  if (!hd_lower_int(l, "do_rotary", 0))
    return true;
  if (!cosine || !sine || cosine->rank != 2 || sine->rank != 2)
    return hd_lower_invalid(l, "do_rotary without caches of rank 2");
  const hd_value_t *at = positions(l, c);
  cosine = at ? hd_lower_gather(l, cosine, at, 0) : NULL;
  sine = cosine ? hd_lower_gather(l, sine, at, 0) : NULL;
  bool interleaved = hd_lower_int(l, "rotary_interleaved", 0) != 0;
  const hd_value_t **both[] = {&c->a.query, &c->a.key};
  for (int i = 0; i < 2 && sine; i++)
    if (!(*both[i] =
              hd_lower_rotary(l, *both[i], 0, cosine, sine, interleaved)))
      return false;
  return sine != NULL;
}

// The cache with the rows x in it, and of x what the queries see of the cache.
static bool put_in_cache(hd_lowering_t *l, const cached_t *c,
                         const hd_value_t *past, const hd_value_t **x,
                         const hd_value_t **cache) {
  hd_tensor_type_t type = hd_lower_type(*x);
  int64_t start[4] = {0}, behind = type.shape[2];
  *cache = *x;
  if (!past)
    return true;
  hd_tensor_type_t held = hd_lower_type(past);
  if (held.rank != 4 || held.shape[0] != type.shape[0] ||
      held.shape[1] != type.shape[1] || held.shape[3] != type.shape[3])
    return hd_lower_invalid(l, "a cache that has other heads than the keys");
  if (held.shape[2] < c->total) {
    held.shape[2] = c->total;
    past = hd_lower_pad(l, past, start, held.shape, NULL);
  }
  const hd_value_t *inputs[] = {past, *x, c->before};
  hd_host_tensor_t *zeros;
  if (c->first)
    inputs[2] = hd_lower_constant(l, HD_I64, &c->batch, 1, &zeros);
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "circular", 0);
  *cache = past && inputs[2]
               ? hd_lower_task(l, "tensor_scatter", inputs, 3, &list, NULL)
               : NULL;
  if (!*cache || (c->first && behind == c->total))
    return *cache != NULL;
  type.shape[2] = c->total;
  *x = held.shape[2] == c->total
           ? *cache
           : hd_lower_slice(l, *cache, start, type.shape, NULL);
  return *x != NULL;
}

static bool say_who_sees(hd_lowering_t *l, cached_t *c) {
  int64_t window = hd_lower_int(l, "local_window_size", -1);
  double scale = hd_lower_float(l, "scale", 0);
  int64_t head = hd_lower_size(c->a.query, 3);
  c->a.scale = scale != 0 ? scale : 1 / sqrt((double)(head ? head : 1));
  c->a.softcap = hd_lower_float(l, "softcap", 0);
  if (c->a.scale < 0)
    return hd_lower_unsupported(l, "a scale below 0");
  c->a.has_right = true;
  c->a.has_left = window >= 0;
  c->a.left = window - 1;
  c->a.at_end = !c->first;
  c->a.length = c->first ? NULL : c->length;
  c->a.mask = hd_lower_input(l, 10);
  c->a.sink = hd_lower_input(l, 11);
  hd_host_tensor_t *zeros;
  if (!c->a.sink && hd_lower_int(l, "smooth_softmax", 0) == 1)
    return (c->a.sink = hd_lower_constant(l, c->a.query->type, &c->heads, 1,
                                          &zeros)) != NULL;
  return true;
}

bool hd_onnx_ms_group_query_attention(hd_lowering_t *l) {
  cached_t c = {0};
  const hd_value_t *keys, *values;
  if (!refuse_others(l) || !read_lengths(l, &c) || !split_operands(l, &c) ||
      !rotate(l, &c) ||
      !put_in_cache(l, &c, hd_lower_input(l, 3), &c.a.key, &keys) ||
      !put_in_cache(l, &c, hd_lower_input(l, 4), &c.a.value, &values) ||
      !say_who_sees(l, &c))
    return false;
  const hd_value_t *y = hd_lower_attention(l, &c.a);
  y = y ? hd_lower_join_heads(l, y) : NULL;
  return hd_lower_output(l, 0, y) &&
         (!hd_lower_wants_output(l, 1) || hd_lower_output(l, 1, keys)) &&
         (!hd_lower_wants_output(l, 2) || hd_lower_output(l, 2, values));
}
