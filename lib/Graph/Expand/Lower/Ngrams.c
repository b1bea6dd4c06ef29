// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TfIdfVectorizer: how often each n-gram of a pool is found in each row. The
// pool holds all 1-grams, then all 2-grams and so on; an attribute says where
// each length begins. Its order is that of ngram_indexes, which say the columns
// of the result.
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

typedef struct pool {
  const int64_t *items, *starts, *columns;
  size_t num_items, num_starts, num_columns;
  int64_t width; // Columns of the result.
  int64_t least, most, skips;
} pool_t;

static bool read_pool(hd_lowering_t *l, pool_t *p) {
  p->items = hd_lower_ints(l, "pool_int64s", &p->num_items);
  p->starts = hd_lower_ints(l, "ngram_counts", &p->num_starts);
  p->columns = hd_lower_ints(l, "ngram_indexes", &p->num_columns);
  p->least = hd_lower_int(l, "min_gram_length", 1);
  p->most = hd_lower_int(l, "max_gram_length", 1);
  p->skips = hd_lower_int(l, "max_skip_count", 0);
  if (!p->items)
    return hd_lower_unsupported(l, "pool_strings");
  if (!p->starts || !p->columns || p->least < 1 || p->most < p->least ||
      p->most > (int64_t)p->num_items || p->skips < 0 || p->skips >= INT32_MAX)
    return hd_lower_invalid(l, "lengths from %lld to %lld, %lld skips",
                            (long long)p->least, (long long)p->most,
                            (long long)p->skips);
  p->width = 0;
  for (size_t i = 0; i < p->num_columns; i++) {
    if (p->columns[i] < 0 || p->columns[i] > INT32_MAX)
      return hd_lower_invalid(l, "an index of %lld", (long long)p->columns[i]);
    if (p->columns[i] >= p->width)
      p->width = p->columns[i] + 1;
  }
  return true;
}

static const hd_value_t *table(hd_lowering_t *l, const int64_t *values,
                               int64_t rows, int64_t n) {
  const hd_value_t *list =
      hd_lower_ints_constant(l, values, (size_t)(rows * n));
  return list ? hd_lower_reshape(l, list, (int64_t[]){rows, n}, 2) : NULL;
}

// Adds the counts of the n-grams of one length.
static bool add_counts(hd_lowering_t *l, const pool_t *p, const hd_value_t *x,
                       int64_t n, int64_t from, int64_t rows,
                       const int64_t *columns, const hd_value_t **sum) {
  hd_attributes_t attributes = {0};
  // Apart or not is the same for a single one.
  hd_attributes_int(l, &attributes, "skips", n == 1 ? 1 : p->skips + 1);
  hd_attributes_int(l, &attributes, "size", p->width);
  const hd_value_t *inputs[] = {
      x, table(l, p->items + from, rows, n),
      hd_lower_ints_constant(l, columns, (size_t)rows)};
  const hd_value_t *counts =
      hd_lower_task(l, "ngrams", inputs, 3, &attributes, NULL);
  *sum = *sum && counts ? hd_lower_binary(l, "add", *sum, counts) : counts;
  return *sum != NULL;
}

static const hd_value_t *count_all(hd_lowering_t *l, const pool_t *p,
                                   const hd_value_t *x) {
  const hd_value_t *sum = NULL;
  size_t column = 0;
  for (size_t i = 0; i < p->num_starts; i++) {
    int64_t n = (int64_t)i + 1, from = p->starts[i];
    int64_t to =
        i + 1 < p->num_starts ? p->starts[i + 1] : (int64_t)p->num_items;
    int64_t rows = (to - from) / n;
    if (from < 0 || to < from || to > (int64_t)p->num_items ||
        rows * n != to - from || (size_t)rows > p->num_columns - column) {
      hd_lower_invalid(l, "the pool has no %lld-grams from %lld to %lld",
                       (long long)n, (long long)from, (long long)to);
      return NULL;
    }
    if (rows > 0 && n >= p->least && n <= p->most &&
        !add_counts(l, p, x, n, from, rows, p->columns + column, &sum))
      return NULL;
    column += (size_t)rows;
  }
  if (sum)
    return sum;
  hd_host_tensor_t *zeros;
  int64_t shape[] = {hd_lower_size(x, 0), p->width};
  return hd_lower_constant(l, HD_F32, shape, 2, &zeros);
}

static const hd_value_t *weigh(hd_lowering_t *l, const pool_t *p,
                               const hd_value_t *counts, const char *mode) {
  bool once = strcmp(mode, "IDF") == 0;
  const hd_attribute_t *weights =
      hd_lower_attribute(l, "weights", HD_ATTRIBUTE_FLOATS);
  if (strcmp(mode, "TF") == 0 || (!once && !weights))
    return counts;
  if (weights && weights->count != (size_t)p->width) {
    hd_lower_invalid(l, "%zu weights for %lld columns", weights->count,
                     (long long)p->width);
    return NULL;
  }
  hd_host_tensor_t *data;
  const hd_value_t *inputs[] = {
      counts, hd_lower_constant(l, HD_F32, &p->width, 1, &data)};
  for (int64_t i = 0; inputs[1] && i < p->width; i++)
    hd_host_tensor_set(data, i, weights ? weights->u.floats[i] : 1);
  hd_attributes_t attributes = {0};
  hd_attributes_int(l, &attributes, "once", once);
  return hd_lower_task(l, "ngram_weights", inputs, 2, &attributes, NULL);
}

bool hd_onnx_tf_idf(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  const char *mode = hd_lower_string(l, "mode", "");
  if (strcmp(mode, "TF") != 0 && strcmp(mode, "IDF") != 0 &&
      strcmp(mode, "TFIDF") != 0)
    return hd_lower_invalid(l, "mode is '%s', not 'TF', 'IDF' or 'TFIDF'",
                            mode);
  if (x->rank < 1 || x->rank > 2)
    return hd_lower_invalid(l, "the input has rank %d, not 1 or 2", x->rank);
  pool_t pool;
  if (!read_pool(l, &pool))
    return false;
  int64_t rows = x->rank == 2 ? hd_lower_size(x, 0) : 1;
  int64_t shape[] = {rows, hd_lower_size(x, x->rank - 1)};
  const hd_value_t *y = hd_lower_reshape(l, x, shape, 2);
  y = y ? count_all(l, &pool, y) : NULL;
  y = y ? weigh(l, &pool, y, mode) : NULL;
  if (y && x->rank == 1)
    y = hd_lower_reshape(l, y, &pool.width, 1);
  return hd_lower_output(l, 0, y);
}
