// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft's product with a matrix of a few bits: its rows lie in blocks
// along the sum, each with a scale and a zero point, several elements in a
// byte.
#include "Graph/Expand/Lower/Products.h"

typedef struct nbits {
  hd_lowering_t *l;
  int64_t k, n, bits, block; // Of b, [n, k], and of its blocks along k.
  int64_t blocks;            // Of a row; the last one may be filled up.
} nbits_t;

static hd_scalar_t type_of(const nbits_t *p) {
  return p->bits == 8 ? HD_U8 : p->bits == 4 ? HD_U4 : HD_U2;
}

static bool read_sizes(hd_lowering_t *l, nbits_t *p) {
  *p = (nbits_t){.l = l,
                 .k = hd_lower_int(l, "K", 0),
                 .n = hd_lower_int(l, "N", 0),
                 .bits = hd_lower_int(l, "bits", 4),
                 .block = hd_lower_int(l, "block_size", 0)};
  if (p->bits != 2 && p->bits != 4 && p->bits != 8)
    return hd_lower_unsupported(l, "matrices of %lld bits", (long long)p->bits);
  bool is_power = p->block >= 16 && (p->block & (p->block - 1)) == 0;
  // What follows from them is far from 2^63.
  if (p->k < 1 || p->n < 1 || !is_power || p->block > INT32_MAX ||
      p->k > INT32_MAX || p->n > INT32_MAX)
    return hd_lower_invalid(l, "K is %lld, N is %lld, block_size is %lld",
                            (long long)p->k, (long long)p->n,
                            (long long)p->block);
  p->blocks = p->k / p->block + (p->k % p->block != 0);
  return true;
}

static const hd_value_t *first_columns(const nbits_t *p, const hd_value_t *v,
                                       int64_t size) {
  const int64_t start[] = {0, 0}, sizes[] = {p->n, size};
  return hd_lower_slice(p->l, v, start, sizes, NULL);
}

// Elements of some bits in rows of bytes, as [n, size].
static const hd_value_t *unpack(const nbits_t *p, const hd_value_t *bytes,
                                int64_t size, const char *what) {
  int64_t row = (size * p->bits + 7) / 8, each = 8 / p->bits;
  if (bytes->type != HD_U8)
    return hd_lower_unsupported(p->l, "%s of type %s", what,
                                hd_scalar_name(bytes->type)),
           NULL;
  if (hd_lower_count(bytes) != hd_size_times(p->n, row))
    return hd_lower_invalid(p->l,
                            "%s are %lld bytes, and %lld x %lld are "
                            "expected",
                            what, (long long)hd_lower_count(bytes),
                            (long long)p->n, (long long)row),
           NULL;
  const int64_t shape[] = {p->n, row};
  const hd_value_t *y = hd_lower_reshape(p->l, bytes, shape, 2);
  if (!y || each == 1)
    return y;
  hd_attributes_t list = {0};
  hd_attributes_int(p->l, &list, "each", each);
  hd_attributes_type(p->l, &list, "Q", type_of(p));
  y = hd_lower_task(p->l, "unpack", &y, 1, &list, NULL);
  return y && row * each > size ? first_columns(p, y, size) : y;
}

// A number for each block, as a column of it.
static const hd_value_t *of_blocks(const nbits_t *p, const hd_value_t *v,
                                   const char *what) {
  const int64_t shape[] = {p->n, p->blocks, 1};
  if (hd_lower_count(v) != hd_size_times(p->n, p->blocks))
    return hd_lower_invalid(p->l, "%lld %s, and %lld x %lld are expected",
                            (long long)hd_lower_count(v), what, (long long)p->n,
                            (long long)p->blocks),
           NULL;
  return hd_lower_reshape(p->l, v, shape, 3);
}

static const hd_value_t *zero_points(const nbits_t *p, const hd_value_t *zero) {
  if (!zero)
    return hd_lower_scalar(p->l, type_of(p), (double)(1 << (p->bits - 1)));
  if (!hd_type_is_float(hd_type(zero->type)))
    zero = unpack(p, zero, p->blocks, "zero points");
  return zero ? of_blocks(p, zero, "zero points") : NULL;
}

// The matrix, [n, k], in a's type.
static const hd_value_t *matrix_of(const nbits_t *p, const hd_value_t *b,
                                   const hd_value_t *scale,
                                   const hd_value_t *zero, hd_scalar_t type) {
  const int64_t blocks[] = {p->n, p->blocks, p->block};
  const int64_t rows[] = {p->n, p->blocks * p->block};
  b = unpack(p, b, rows[1], "elements of the matrix");
  b = b ? hd_lower_reshape(p->l, b, blocks, 3) : NULL;
  scale = b ? of_blocks(p, scale, "scales") : NULL;
  zero = scale ? zero_points(p, zero) : NULL;
  const hd_value_t *inputs[] = {b, scale, zero};
  if (!zero)
    return NULL;
  hd_attributes_t list = {0};
  hd_attributes_type(p->l, &list, "R", type);
  const hd_value_t *w =
      hd_lower_task(p->l, "dequantize", inputs, 3, &list, NULL);
  w = w ? hd_lower_reshape(p->l, w, rows, 2) : NULL;
  return w && rows[1] > p->k ? first_columns(p, w, p->k) : w;
}

bool hd_onnx_ms_matmul_nbits(hd_lowering_t *l) {
  nbits_t p;
  const hd_value_t *a = hd_lower_input(l, 0), *bias = hd_lower_input(l, 5);
  if (hd_lower_input(l, 4))
    return hd_lower_unsupported(l, "g_idx");
  if (!read_sizes(l, &p))
    return false;
  if (a->rank < 1 || hd_lower_size(a, a->rank - 1) != p.k)
    return hd_lower_invalid(l, "rows of %lld elements are expected",
                            (long long)p.k);
  if (bias && (bias->rank != 1 || hd_lower_size(bias, 0) != p.n))
    return hd_lower_invalid(l, "a bias of %lld elements is expected",
                            (long long)p.n);
  const hd_value_t *w =
      matrix_of(&p, hd_lower_input(l, 1), hd_lower_input(l, 2),
                hd_lower_input(l, 3), a->type);
  const hd_value_t *y = w ? hd_lower_matmul(l, a, w, false, true) : NULL;
  y = y && bias ? hd_lower_binary(l, "add", y, bias) : y;
  return hd_lower_output(l, 0, y);
}
