// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Einsum: the operands are taken together one after the other, each time by a
// product of matrices. Labels in both that are needed later are its batch,
// those in both that are not are summed, those of one alone its rows or
// columns.
#include "Graph/Expand/Lower/Products.h"

#include <string.h>

// Letters, and the axes that an ellipsis stands for, counted from the right.
enum { LETTERS = 52, MAX_LABELS = LETTERS + HD_MAX_RANK, MAX_OPERANDS = 64 };

typedef struct labels {
  unsigned count;
  int labels[2 * HD_MAX_RANK];
} labels_t;

typedef struct operand {
  const hd_value_t *value;
  labels_t labels;
} operand_t;

typedef struct einsum {
  unsigned count;
  operand_t operands[MAX_OPERANDS];
  labels_t output;
  int64_t sizes[MAX_LABELS]; // 0: not met.
  unsigned uses[MAX_LABELS]; // How often it stands at the left.
} einsum_t;

static int index_of_label(const labels_t *list, int label) {
  for (unsigned i = 0; i < list->count; i++)
    if (list->labels[i] == label)
      return (int)i;
  return -1;
}

static void push(labels_t *list, int label) {
  list->labels[list->count++] = label;
}

// Reads the labels of a term up to end; an ellipsis stands for dots axes.
static bool read_term(hd_lowering_t *l, const char *at, const char *end,
                      unsigned dots, labels_t *list) {
  bool seen = false;
  for (; at < end; at++) {
    if (*at == ' ')
      continue;
    bool upper = *at >= 'A' && *at <= 'Z', lower = *at >= 'a' && *at <= 'z';
    bool ellipsis = end - at >= 3 && strncmp(at, "...", 3) == 0 && !seen;
    unsigned more = ellipsis ? dots : 1;
    if ((!upper && !lower && !ellipsis) || list->count + more > HD_MAX_RANK)
      return hd_lower_invalid(l, "the equation at '%s'", at);
    for (unsigned i = more; ellipsis && i-- > 0;)
      push(list, LETTERS + (int)i);
    if (upper || lower)
      push(list, upper ? *at - 'A' + 26 : *at - 'a');
    seen |= ellipsis;
    at += ellipsis ? 2 : 0;
  }
  return true;
}

static unsigned count_letters(const char *at, const char *end, bool *dots) {
  unsigned count = 0;
  *dots = false;
  for (; at < end; at++) {
    *dots |= *at == '.';
    count += *at != '.' && *at != ' ';
  }
  return count;
}

static bool read_operand(hd_lowering_t *l, einsum_t *e, const char *at,
                         const char *end, unsigned *most_dots) {
  operand_t *operand = &e->operands[e->count];
  const hd_value_t *x = hd_lower_input(l, e->count);
  bool has_dots;
  unsigned letters = count_letters(at, end, &has_dots);
  if (!x || letters > (unsigned)x->rank ||
      (!has_dots && letters < (unsigned)x->rank))
    return hd_lower_invalid(l, "operand %u has not as many axes as labels",
                            e->count);
  unsigned dots = (unsigned)x->rank - letters;
  operand->value = x;
  if (!read_term(l, at, end, dots, &operand->labels))
    return false;
  *most_dots = dots > *most_dots ? dots : *most_dots;
  for (unsigned i = 0; i < operand->labels.count; i++) {
    int label = operand->labels.labels[i];
    int64_t size = hd_lower_size(x, (int)i);
    e->uses[label]++;
    if (e->uses[label] > 1 && e->sizes[label] != size && e->sizes[label] != 1 &&
        size != 1)
      return hd_lower_invalid(l, "a label of sizes %lld and %lld",
                              (long long)e->sizes[label], (long long)size);
    if (e->uses[label] == 1 || e->sizes[label] == 1)
      e->sizes[label] = size;
  }
  e->count++;
  return true;
}

static bool read_equation(hd_lowering_t *l, einsum_t *e) {
  const char *at = hd_lower_string(l, "equation", NULL);
  uint32_t inputs = hd_lower_num_inputs(l);
  unsigned dots = 0;
  if (!at)
    return hd_lower_invalid(l, "the attribute 'equation' is missing");
  const char *arrow = strstr(at, "->");
  const char *end = arrow ? arrow : at + strlen(at);
  for (; e->count < inputs && e->count < MAX_OPERANDS; at++) {
    const char *comma = memchr(at, ',', (size_t)(end - at));
    if (!comma && e->count + 1 < inputs)
      break;
    if (!read_operand(l, e, at, comma ? comma : end, &dots))
      return false;
    at = comma ? comma : end;
    if (!comma)
      break;
  }
  if (e->count != inputs || at != end)
    return hd_lower_invalid(l, "the equation is not for %u operands", inputs);
  if (arrow)
    return read_term(l, arrow + 2, arrow + 2 + strlen(arrow + 2), dots,
                     &e->output);
  // Without an arrow: what stands once, in the alphabet's order.
  for (unsigned i = dots; i-- > 0;)
    push(&e->output, LETTERS + (int)i);
  for (int pass = 26; pass >= 0; pass -= 26)
    for (int i = pass; i < pass + 26; i++)
      if (e->uses[i] == 1 && e->output.count < HD_MAX_RANK)
        push(&e->output, i);
  return true;
}

// x with its axes in the order of list, of which all are among its labels.
static const hd_value_t *arrange(hd_lowering_t *l, const operand_t *x,
                                 const labels_t *list) {
  int64_t order[HD_MAX_RANK];
  for (unsigned i = 0; i < list->count; i++)
    order[i] = index_of_label(&x->labels, list->labels[i]);
  return hd_lower_transpose(l, x->value, order);
}

// Labels that stand twice: the diagonal.
static bool take_diagonals(hd_lowering_t *l, operand_t *x) {
  for (unsigned i = 0; i < x->labels.count; i++)
    for (unsigned j = i + 1; j < x->labels.count; j++) {
      if (x->labels.labels[i] != x->labels.labels[j])
        continue;
      if (hd_lower_size(x->value, (int)i) != hd_lower_size(x->value, (int)j))
        return hd_lower_invalid(l, "a diagonal of sizes that differ");
      int64_t order[HD_MAX_RANK];
      labels_t rest = {0};
      unsigned n = 0;
      for (unsigned axis = 0; axis < x->labels.count; axis++)
        if (axis != i && axis != j) {
          order[n++] = axis;
          push(&rest, x->labels.labels[axis]);
        }
      order[n++] = i;
      order[n] = j;
      push(&rest, x->labels.labels[i]);
      x->value = hd_lower_transpose(l, x->value, order);
      x->value = x->value ? hd_lower_unary(l, "diagonal", x->value) : NULL;
      if (!x->value)
        return false;
      x->labels = rest;
      i = (unsigned)-1; // Again from the start.
      break;
    }
  return true;
}

// Axes of size 1 of labels that are larger elsewhere: any index reads the same.
static bool drop_ones(hd_lowering_t *l, const einsum_t *e, operand_t *x) {
  int64_t shape[HD_MAX_RANK];
  labels_t rest = {0};
  for (unsigned i = 0; i < x->labels.count; i++) {
    int64_t size = hd_lower_size(x->value, (int)i);
    if (size == 1 && e->sizes[x->labels.labels[i]] != 1)
      continue;
    shape[rest.count] = size;
    push(&rest, x->labels.labels[i]);
  }
  if (rest.count < x->labels.count)
    x->value = hd_lower_reshape(l, x->value, shape, rest.count);
  x->labels = rest;
  return x->value != NULL;
}

static int64_t product(const einsum_t *e, const labels_t *list) {
  int64_t count = 1;
  for (unsigned i = 0; i < list->count; i++)
    if (__builtin_mul_overflow(count, e->sizes[list->labels[i]], &count))
      return INT64_MAX; // No tensor has that many: its reshape reports it.
  return count;
}

static void append(labels_t *list, const labels_t *more) {
  for (unsigned i = 0; i < more->count; i++)
    push(list, more->labels[i]);
}

static const hd_value_t *shaped(hd_lowering_t *l, const einsum_t *e,
                                const hd_value_t *x, const labels_t *list) {
  int64_t shape[HD_MAX_RANK];
  if (list->count > HD_MAX_RANK)
    return hd_lower_unsupported(l, "more than %d axes", HD_MAX_RANK), NULL;
  for (unsigned i = 0; i < list->count; i++)
    shape[i] = e->sizes[list->labels[i]];
  return x ? hd_lower_reshape(l, x, shape, list->count) : NULL;
}

// Sums over the labels that keep has not.
static bool sum_out(hd_lowering_t *l, const einsum_t *e, operand_t *x,
                    const bool *keep) {
  labels_t kept = {0}, summed = {0}, all;
  for (unsigned i = 0; i < x->labels.count; i++)
    push(keep[x->labels.labels[i]] ? &kept : &summed, x->labels.labels[i]);
  if (summed.count == 0)
    return true;
  all = kept;
  append(&all, &summed);
  int64_t shape[] = {product(e, &kept), product(e, &summed)};
  const hd_value_t *y = arrange(l, x, &all);
  y = y ? hd_lower_reshape(l, y, shape, 2) : NULL;
  y = y ? hd_lower_unary(l, "sum_last", y) : NULL;
  x->value = shaped(l, e, y, &kept);
  x->labels = kept;
  return x->value != NULL;
}

static bool combine(hd_lowering_t *l, const einsum_t *e, operand_t *a,
                    const operand_t *b, const bool *needed) {
  labels_t batch = {0}, sums = {0}, rows = {0}, columns = {0};
  for (unsigned i = 0; i < a->labels.count; i++) {
    int label = a->labels.labels[i];
    bool both = index_of_label(&b->labels, label) >= 0;
    push(!both ? &rows : needed[label] ? &batch : &sums, label);
  }
  for (unsigned i = 0; i < b->labels.count; i++)
    if (index_of_label(&a->labels, b->labels.labels[i]) < 0)
      push(&columns, b->labels.labels[i]);
  labels_t left = batch, right = batch, result = batch;
  append(&left, &rows);
  append(&left, &sums);
  append(&right, &sums);
  append(&right, &columns);
  append(&result, &rows);
  append(&result, &columns);
  int64_t n = product(e, &batch), k = product(e, &sums);
  int64_t left_shape[] = {n, product(e, &rows), k};
  int64_t right_shape[] = {n, k, product(e, &columns)};
  const hd_value_t *x = arrange(l, a, &left), *y = arrange(l, b, &right);
  x = x ? hd_lower_reshape(l, x, left_shape, 3) : NULL;
  y = y ? hd_lower_reshape(l, y, right_shape, 3) : NULL;
  x = x && y ? hd_lower_matmul(l, x, y, false, false) : NULL;
  a->value = shaped(l, e, x, &result);
  a->labels = result;
  return a->value != NULL;
}

bool hd_onnx_einsum(hd_lowering_t *l) {
  einsum_t *e = HD_ARENA_NEW(hd_lower_arena(l), einsum_t);
  if (!read_equation(l, e))
    return false;
  for (unsigned i = 0; i < e->output.count; i++) {
    int label = e->output.labels[i];
    labels_t before = {.count = i};
    memcpy(before.labels, e->output.labels, i * sizeof(int));
    if (e->uses[label] == 0 || index_of_label(&before, label) >= 0)
      return hd_lower_invalid(l, "a label of the result stands nowhere, or "
                                 "twice");
  }
  operand_t x = {0};
  for (unsigned i = 0; i < e->count; i++) {
    operand_t *operand = &e->operands[i];
    bool needed[MAX_LABELS] = {false}, here[MAX_LABELS] = {false};
    for (unsigned j = 0; j < e->output.count; j++)
      needed[e->output.labels[j]] = true;
    for (unsigned n = i + 1; n < e->count; n++)
      for (unsigned j = 0; j < e->operands[n].labels.count; j++)
        needed[e->operands[n].labels.labels[j]] = true;
    if (!take_diagonals(l, operand) || !drop_ones(l, e, operand))
      return false;
    // A sum within one of the two may come first.
    memcpy(here, needed, sizeof needed);
    for (unsigned j = 0; i > 0 && j < x.labels.count; j++)
      here[x.labels.labels[j]] = true;
    if (!sum_out(l, e, operand, here))
      return false;
    if (i == 0) {
      x = *operand;
      continue;
    }
    memcpy(here, needed, sizeof needed);
    for (unsigned j = 0; j < operand->labels.count; j++)
      here[operand->labels.labels[j]] = true;
    if (!sum_out(l, e, &x, here) || !combine(l, e, &x, operand, needed))
      return false;
  }
  const hd_value_t *y = arrange(l, &x, &e->output);
  return hd_lower_output(l, 0, y);
}
