// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TensorProto: elements in raw_data stay where they are in the file; those in
// fields of their own are decoded into the module's arena.
#include "Graph/ONNX/State.h"
#include "Graph/ONNX/Types.h"

#include "IR/Tensor.h"

#include <string.h>

enum { EXTERNAL = 1 }; // Of TensorProto.DataLocation.

// What the importer is looking at, for messages.
typedef struct subject {
  hd_onnx_import_t *im;
  const char *what, *name;
} subject_t;

// An integer of a varint field, which may be written signed or as its bits.
static bool fits(hd_scalar_t type, int64_t value) {
  unsigned bits = hd_scalar_bits(type);
  if (type == HD_BOOL)
    return value == 0 || value == 1;
  if (bits == 64)
    return true;
  if (bits < 8)
    bits = 8; // A byte of them.
  return value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << bits;
}

static bool too_many(const subject_t *s) {
  return hd_import_invalid(s->im, s->what, s->name,
                           "it holds more elements than its shape says");
}

// Numbers of fixed width; those with keys one by one.
static bool decode_fixed(const subject_t *s, const hd_onnx_piece_t *piece,
                         unsigned unit, unsigned char **out, size_t *left) {
  size_t step = piece->key_size + unit;
  if (piece->size % step)
    return hd_import_invalid(s->im, s->what, s->name,
                             "its data ends in the middle of an element");
  size_t count = piece->size / step;
  if (count * unit > *left)
    return too_many(s);
  if (piece->key_size == 0) {
    memcpy(*out, piece->data, piece->size);
  } else {
    for (size_t i = 0; i < count; i++)
      memcpy(*out + i * unit, piece->data + i * step + piece->key_size, unit);
  }
  *out += count * unit;
  *left -= count * unit;
  return true;
}

static bool decode_varints(const subject_t *s, const hd_onnx_piece_t *piece,
                           hd_scalar_t type, unsigned unit, unsigned char **out,
                           size_t *left) {
  const unsigned char *at = piece->data, *end = at + piece->size;
  while (at < end) {
    if ((size_t)(end - at) < piece->key_size)
      break;
    at += piece->key_size;
    uint64_t value;
    if (!hd_onnx_read_varint(&at, end, &value))
      return hd_import_invalid(s->im, s->what, s->name,
                               "its data ends in the middle of an element");
    if (!fits(type, (int64_t)value))
      return hd_import_invalid(s->im, s->what, s->name,
                               "the number %lld is no element of type %s",
                               (long long)value, hd_scalar_name(type));
    if (*left < unit)
      return too_many(s);
    memcpy(*out, &value, unit); // The low bytes.
    *out += unit;
    *left -= unit;
  }
  return true;
}

bool hd_import_decode(hd_onnx_import_t *im, const HdOnnx__Tensor *tensor,
                      hd_scalar_t type, int64_t count, const char *what,
                      const char *name, unsigned char *out, size_t bytes) {
  subject_t subject = {im, what, name};
  unsigned unit = hd_host_element_bytes(type);
  hd_onnx_field_t field = hd_onnx_field(tensor->data_type);
  size_t left = bytes;
  for (uint32_t i = 0; i < tensor->num_pieces; i++) {
    const hd_onnx_piece_t *piece = &im->pieces[tensor->first_piece + i];
    if (piece->field != field)
      return hd_import_invalid(im, what, name,
                               "elements of type %s do not stand in that field",
                               hd_onnx_type_name(tensor->data_type));
    bool ok = field == HD_ONNX_FLOAT_DATA || field == HD_ONNX_DOUBLE_DATA
                  ? decode_fixed(&subject, piece, unit, &out, &left)
                  : decode_varints(&subject, piece, type, unit, &out, &left);
    if (!ok)
      return false;
  }
  if (left)
    return hd_import_invalid(
        im, what, name,
        "it holds %zu bytes of elements, and its shape needs %zu", bytes - left,
        bytes);
  (void)count;
  return true;
}

// The piece of raw_data; NULL where there is none.
static const hd_onnx_piece_t *find_raw(const hd_onnx_import_t *im,
                                       const HdOnnx__Tensor *tensor) {
  for (uint32_t i = 0; i < tensor->num_pieces; i++) {
    const hd_onnx_piece_t *piece = &im->pieces[tensor->first_piece + i];
    if (piece->field == HD_ONNX_RAW_DATA)
      return piece;
  }
  return NULL;
}

static bool use_raw(const subject_t *s, const hd_onnx_piece_t *raw,
                    uint32_t num_pieces, size_t bytes,
                    hd_constant_t *constant) {
  if (num_pieces > 1)
    return hd_import_invalid(s->im, s->what, s->name,
                             "it holds elements in raw_data and elsewhere");
  if (raw->size != bytes)
    return hd_import_invalid(
        s->im, s->what, s->name,
        "it holds %zu bytes of elements, and its shape needs %zu", raw->size,
        bytes);
  constant->mapped = raw->data;
  constant->file = s->im->file;
  constant->offset = raw->data - s->im->bytes;
  return true;
}

// Elements that are not raw: decoded now.
static bool decode(const subject_t *s, const HdOnnx__Tensor *tensor,
                   const hd_value_t *value, const int64_t *shape, int64_t count,
                   size_t bytes) {
  hd_arena_t *arena = s->im->arena;
  bool packed = hd_scalar_bits(value->type) < 8;
  // What the data cannot fill is refused before memory is taken for it.
  size_t held = 0;
  for (uint32_t i = 0; i < tensor->num_pieces; i++)
    held += s->im->pieces[tensor->first_piece + i].size;
  if (bytes / hd_host_element_bytes(value->type) > held)
    return hd_import_invalid(
        s->im, s->what, s->name,
        "its data holds fewer elements than its shape says (%lld)",
        (long long)count);
  unsigned char *data =
      hd_arena_alloc(packed ? s->im->scratch : arena, bytes + 1);
  if (!hd_import_decode(s->im, tensor, value->type, count, s->what, s->name,
                        data, bytes))
    return false;
  hd_host_tensor_t *host = HD_ARENA_NEW(arena, hd_host_tensor_t);
  *host = (hd_host_tensor_t){.type = value->type,
                             .rank = (unsigned)value->rank,
                             .count = count,
                             .data = data,
                             .bytes = bytes};
  for (unsigned i = 0; i < host->rank; i++)
    host->shape[i] = shape[i];
  if (packed) {
    host->bytes = (size_t)count;
    host->data = hd_arena_alloc(arena, (size_t)count + 1);
    hd_unpack_elements(value->type, data, count, host->data);
  }
  value->constant->tensor = host;
  return true;
}

static bool check_bools(const subject_t *s, const hd_constant_t *constant,
                        size_t bytes) {
  const unsigned char *data =
      constant->tensor ? constant->tensor->data : constant->mapped;
  for (size_t i = 0; i < bytes; i++)
    if (data[i] > 1)
      return hd_import_invalid(s->im, s->what, s->name,
                               "the number %d is no element of type bool",
                               data[i]);
  return true;
}

static bool read_shape(const subject_t *s, const HdOnnx__Tensor *tensor,
                       hd_value_t *value) {
  if (tensor->n_dims > HD_MAX_RANK)
    return hd_import_unsupported(s->im, s->what, s->name,
                                 "rank %zu (at most %d)", tensor->n_dims,
                                 HD_MAX_RANK);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(s->im->arena, const hd_expr_t *, tensor->n_dims + 1);
  for (size_t i = 0; i < tensor->n_dims; i++) {
    if (tensor->dims[i] < 0)
      return hd_import_invalid(s->im, s->what, s->name,
                               "axis %zu has the size %lld", i,
                               (long long)tensor->dims[i]);
    shape[i] = hd_expr_int(s->im->arena, hd_type(HD_I64), tensor->dims[i]);
  }
  value->rank = (int)tensor->n_dims;
  value->shape = shape;
  return true;
}

static bool read_elements(const subject_t *s, const HdOnnx__Tensor *tensor,
                          hd_value_t *value) {
  int64_t count, bytes;
  if (!hd_packed_size(value->type, tensor->dims, (unsigned)tensor->n_dims,
                      &count, &bytes))
    return hd_error(s->im->diags, (hd_loc_t){0}, HD_E0309,
                    hd_arena_printf(s->im->scratch, "%.200s", s->name));
  hd_constant_t *constant = HD_ARENA_NEW(s->im->arena, hd_constant_t);
  value->constant = constant;
  const hd_onnx_piece_t *raw = find_raw(s->im, tensor);
  bool ok;
  if (tensor->data_location == EXTERNAL)
    ok = hd_import_external(s->im, tensor, s->name, bytes, constant);
  else if (raw)
    ok = use_raw(s, raw, tensor->num_pieces, (size_t)bytes, constant);
  else
    ok = decode(s, tensor, value, tensor->dims, count, (size_t)bytes);
  if (!ok)
    return false;
  // Small ones, and those that need no copy, can be looked at from now on.
  if (!constant->tensor &&
      (bytes <= HD_ONNX_SMALL ||
       (hd_scalar_bits(value->type) >= 8 &&
        (uintptr_t)constant->mapped % hd_host_element_bytes(value->type) == 0)))
    ok = hd_constant_load(s->im->module, value) != NULL;
  if (count <= HD_ONNX_INLINE && constant->tensor)
    constant->file = NULL; // The elements are printed, not their place.
  return ok &&
         (value->type != HD_BOOL || check_bools(s, constant, (size_t)bytes));
}

hd_value_t *hd_import_constant(hd_onnx_import_t *im,
                               const HdOnnx__Tensor *tensor, const char *what,
                               const char *name) {
  subject_t subject = {im, what, name};
  hd_value_t *value = hd_import_value(im, name);
  value->type = hd_onnx_scalar(tensor->data_type);
  if (value->type == HD_VOID) {
    im->failed = true;
    hd_import_unsupported(im, what, name, "elements of type %s (%d)",
                          hd_onnx_type_name(tensor->data_type),
                          (int)tensor->data_type);
    return value;
  }
  return read_shape(&subject, tensor, value) &&
                 read_elements(&subject, tensor, value)
             ? value
             : NULL;
}
