// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The format: numpy/lib/format.py. A magic string, a version, the header's
// length, and the header: a Python dict of descr, fortran_order and shape.
#include "Runtime/Npy.h"
#include "Support/File.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const hd_loc_t nowhere;

// NumPy's name of each type: kind and size. raw: bits of a type it lacks.
static const struct {
  hd_scalar_t type;
  char kind;
  unsigned size;
  bool raw;
} names[] = {
    {HD_BOOL, 'b', 1, false},      {HD_I8, 'i', 1, false},
    {HD_U8, 'u', 1, false},        {HD_I16, 'i', 2, false},
    {HD_U16, 'u', 2, false},       {HD_I32, 'i', 4, false},
    {HD_U32, 'u', 4, false},       {HD_I64, 'i', 8, false},
    {HD_U64, 'u', 8, false},       {HD_F16, 'f', 2, false},
    {HD_F32, 'f', 4, false},       {HD_F64, 'f', 8, false},
    {HD_TF32, 'f', 4, true},       {HD_BF16, 'u', 2, true},
    {HD_F8E4M3, 'u', 1, true},     {HD_F8E5M2, 'u', 1, true},
    {HD_F8E4M3FNUZ, 'u', 1, true}, {HD_F8E5M2FNUZ, 'u', 1, true},
    {HD_F8E8M0, 'u', 1, true},     {HD_F4E2M1, 'u', 1, true},
    {HD_I4, 'i', 1, true},         {HD_I2, 'i', 1, true},
    {HD_U4, 'u', 1, true},         {HD_U2, 'u', 1, true},
};
enum { NUM_NAMES = sizeof(names) / sizeof(names[0]) };

typedef struct reader {
  hd_diagnostics_t *diags;
  const char *name;
  const char *next, *end; // Of the header's text.
  char kind;
  unsigned size;
  bool big_endian, column_major;
  unsigned seen; // A bit for each key.
  unsigned rank;
  int64_t shape[HD_TENSOR_MAX_RANK];
} reader_t;

static bool malformed(reader_t *r, const char *why) {
  return hd_error(r->diags, nowhere, HD_E0803, r->name, why);
}

static void skip_spaces(reader_t *r) {
  while (r->next < r->end && (*r->next == ' ' || *r->next == '\n' ||
                              *r->next == '\t' || *r->next == '\r'))
    r->next++;
}

static bool take_text(reader_t *r, const char *text) {
  skip_spaces(r);
  size_t size = strlen(text);
  if ((size_t)(r->end - r->next) < size || memcmp(r->next, text, size) != 0)
    return false;
  r->next += size;
  return true;
}

// 'text' or "text", without escapes.
static bool take_string(reader_t *r, char *text, size_t size) {
  skip_spaces(r);
  if (r->next == r->end || (*r->next != '\'' && *r->next != '"'))
    return false;
  char quote = *r->next++;
  const char *close = memchr(r->next, quote, (size_t)(r->end - r->next));
  if (!close || (size_t)(close - r->next) >= size ||
      memchr(r->next, '\\', (size_t)(close - r->next)))
    return false;
  memcpy(text, r->next, (size_t)(close - r->next));
  text[close - r->next] = '\0';
  r->next = close + 1;
  return true;
}

// '<f4': byte order, kind, bytes.
static bool parse_descr(reader_t *r) {
  char text[32];
  skip_spaces(r);
  if (r->next < r->end && *r->next == '[')
    return hd_error(r->diags, nowhere, HD_E0810, r->name,
                    "an array of records");
  if (!take_string(r, text, sizeof(text)))
    return malformed(r, "its 'descr' is no string");
  size_t length = strlen(text);
  bool ordered = length == 3 && strchr("<>|=", text[0]) && text[1] != '\0' &&
                 text[2] >= '1' && text[2] <= '9';
  if (ordered) {
    r->big_endian = text[0] == '>';
    r->kind = text[1];
    r->size = (unsigned)(text[2] - '0');
    // Raw bits, and the types that ml_dtypes adds to NumPy.
    if (r->kind == 'V' || (r->kind == 'f' && r->size == 1))
      r->kind = 'u';
    for (int i = 0; i < NUM_NAMES; i++)
      if (names[i].kind == r->kind && names[i].size == r->size)
        return true;
  }
  char what[64];
  snprintf(what, sizeof(what), "the element type '%s'", text);
  return hd_error(r->diags, nowhere, HD_E0810, r->name, what);
}

static bool parse_order(reader_t *r) {
  if (take_text(r, "True"))
    r->column_major = true;
  else if (!take_text(r, "False"))
    return malformed(r, "its 'fortran_order' is neither True nor False");
  return true;
}

static bool parse_size(reader_t *r, int64_t *size) {
  skip_spaces(r);
  if (r->next == r->end || *r->next < '0' || *r->next > '9')
    return false;
  *size = 0;
  for (; r->next < r->end && *r->next >= '0' && *r->next <= '9'; r->next++)
    if (__builtin_mul_overflow(*size, 10, size) ||
        __builtin_add_overflow(*size, *r->next - '0', size))
      return false;
  if (r->next < r->end && *r->next == 'L') // Python 2 wrote 3L.
    r->next++;
  return true;
}

static bool parse_shape(reader_t *r) {
  if (!take_text(r, "("))
    return malformed(r, "its 'shape' is no tuple");
  while (!take_text(r, ")")) {
    if (r->rank == HD_TENSOR_MAX_RANK)
      return hd_error(r->diags, nowhere, HD_E0810, r->name,
                      "an array of more than 16 axes");
    if (!parse_size(r, &r->shape[r->rank]))
      return malformed(r, "its 'shape' is no tuple of sizes");
    r->rank++;
    if (take_text(r, ","))
      continue;
    // (3) is a number in Python, not a tuple.
    if (r->rank < 2 || !take_text(r, ")"))
      return malformed(r, "its 'shape' is no tuple of sizes");
    return true;
  }
  return true;
}

static bool parse_header(reader_t *r) {
  static const struct {
    const char *key;
    bool (*parse)(reader_t *);
  } fields[] = {{"descr", parse_descr},
                {"fortran_order", parse_order},
                {"shape", parse_shape}};
  if (!take_text(r, "{"))
    return malformed(r, "its header is no dict");
  while (!take_text(r, "}")) {
    char key[32];
    if (!take_string(r, key, sizeof(key)) || !take_text(r, ":"))
      return malformed(r, "its header is no dict");
    unsigned i = 0;
    while (i < 3 && strcmp(fields[i].key, key) != 0)
      i++;
    if (i == 3 || r->seen & 1u << i)
      return malformed(r, i == 3 ? "its header has an unknown key"
                                 : "its header gives a key twice");
    r->seen |= 1u << i;
    if (!fields[i].parse(r))
      return false;
    if (take_text(r, ","))
      continue;
    if (!take_text(r, "}"))
      return malformed(r, "its header is no dict");
    break;
  }
  skip_spaces(r);
  if (r->seen != 7)
    return malformed(r, "its header lacks descr, fortran_order or shape");
  if (r->next != r->end)
    return malformed(r, "something follows the dict of its header");
  return true;
}

// Finds the header's text and where the data starts.
static bool find_header(reader_t *r, const unsigned char *bytes, size_t size,
                        size_t *data) {
  if (size < 6 || memcmp(bytes, "\x93NUMPY", 6) != 0)
    return malformed(r, "it does not start with \\x93NUMPY");
  if (size < 10)
    return hd_error(r->diags, nowhere, HD_E0804, r->name, (long long)size,
                    10ll);
  unsigned major = bytes[6], minor = bytes[7];
  if (major < 1 || major > 3 || minor != 0)
    return malformed(r, "its version is none of 1.0, 2.0 and 3.0");
  size_t start = major == 1 ? 10 : 12;
  size_t length = bytes[8] | (size_t)bytes[9] << 8;
  if (major > 1) {
    if (size < 12)
      return hd_error(r->diags, nowhere, HD_E0804, r->name, (long long)size,
                      12ll);
    length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
  }
  if (size - start < length)
    return hd_error(r->diags, nowhere, HD_E0804, r->name, (long long)size,
                    (long long)(start + length));
  r->next = (const char *)bytes + start;
  r->end = r->next + length;
  *data = start + length;
  return true;
}

// The type that the array gets; false where it is not the wanted one.
static bool settle_type(reader_t *r, hd_scalar_t wanted, hd_scalar_t *type) {
  *type = HD_VOID;
  for (int i = 0; i < NUM_NAMES; i++) {
    if (names[i].kind != r->kind || names[i].size != r->size)
      continue;
    if (names[i].type == wanted) {
      *type = wanted;
      return true;
    }
    if (!names[i].raw)
      *type = names[i].type;
  }
  return wanted == HD_VOID ||
         hd_error(r->diags, nowhere, HD_E0805, r->name, hd_scalar_name(*type),
                  hd_scalar_name(wanted));
}

static void swap_bytes(hd_host_tensor_t *tensor) {
  size_t size = hd_host_element_bytes(tensor->type);
  for (size_t i = 0; i < tensor->bytes; i += size)
    for (size_t k = 0; k < size / 2; k++) {
      unsigned char *a = tensor->data + i + k;
      unsigned char *b = tensor->data + i + size - 1 - k;
      unsigned char byte = *a;
      *a = *b;
      *b = byte;
    }
}

// Copies the file's elements, whose first axis is contiguous.
static void copy_columns(hd_host_tensor_t *tensor, const unsigned char *from) {
  size_t size = hd_host_element_bytes(tensor->type);
  int64_t index[HD_TENSOR_MAX_RANK] = {0};
  int64_t strides[HD_TENSOR_MAX_RANK];
  int64_t stride = 1;
  for (unsigned axis = tensor->rank; axis-- > 0;) {
    strides[axis] = stride;
    stride *= tensor->shape[axis];
  }
  for (int64_t i = 0; i < tensor->count; i++) {
    int64_t to = 0;
    for (unsigned axis = 0; axis < tensor->rank; axis++)
      to += index[axis] * strides[axis];
    memcpy(tensor->data + (size_t)to * size, from + (size_t)i * size, size);
    for (unsigned axis = 0; axis < tensor->rank; axis++) {
      if (++index[axis] < tensor->shape[axis])
        break;
      index[axis] = 0;
    }
  }
}

// The data must be what the header says, to the byte, before memory is taken
// for it.
static bool check_size(reader_t *r, size_t available, size_t data) {
  int64_t needed = r->size;
  for (unsigned i = 0; i < r->rank; i++)
    if (__builtin_mul_overflow(needed, r->shape[i], &needed))
      return hd_error(r->diags, nowhere, HD_E0309, r->name);
  if ((uint64_t)needed > available)
    return hd_error(r->diags, nowhere, HD_E0804, r->name,
                    (long long)(data + available),
                    (long long)data + (long long)needed);
  if ((uint64_t)needed < available)
    return malformed(r, "something follows its data");
  return true;
}

bool hd_npy_decode(hd_diagnostics_t *diags, hd_budget_t *budget,
                   const char *name, const void *bytes, size_t size,
                   hd_scalar_t wanted, hd_host_tensor_t *tensor) {
  reader_t r = {.diags = diags, .name = name};
  *tensor = (hd_host_tensor_t){0};
  size_t data = 0;
  hd_scalar_t type;
  if (!find_header(&r, bytes, size, &data) || !parse_header(&r) ||
      !check_size(&r, size - data, data) || !settle_type(&r, wanted, &type) ||
      !hd_host_tensor_init(tensor, diags, budget, name, type, r.shape, r.rank))
    return false;
  const unsigned char *from = (const unsigned char *)bytes + data;
  if (r.column_major && r.rank > 1)
    copy_columns(tensor, from);
  else if (tensor->bytes)
    memcpy(tensor->data, from, tensor->bytes);
  if (r.big_endian)
    swap_bytes(tensor);
  for (size_t i = 0; type == HD_BOOL && i < tensor->bytes; i++)
    tensor->data[i] = tensor->data[i] != 0;
  return true;
}

bool hd_npy_read(hd_diagnostics_t *diags, hd_budget_t *budget, const char *path,
                 hd_scalar_t wanted, hd_host_tensor_t *tensor) {
  hd_buffer_t text = {0};
  *tensor = (hd_host_tensor_t){0};
  if (!hd_file_read(diags, path, budget ? budget->bytes_limit : 0, &text))
    return false;
  bool ok = hd_npy_decode(diags, budget, path, hd_buffer_text(&text), text.size,
                          wanted, tensor);
  hd_buffer_fini(&text);
  return ok;
}

void hd_npy_header(const hd_host_tensor_t *tensor, hd_buffer_t *out) {
  int i = 0;
  while (i < NUM_NAMES && names[i].type != tensor->type)
    i++;
  assert(i < NUM_NAMES);
  hd_buffer_t dict = {0};
  hd_buffer_printf(&dict, "{'descr': '%c%c%u', 'fortran_order': False, ",
                   names[i].size == 1 ? '|' : '<', names[i].kind,
                   names[i].size);
  hd_buffer_puts(&dict, "'shape': (");
  for (unsigned axis = 0; axis < tensor->rank; axis++)
    hd_buffer_printf(&dict, "%s%lld", axis ? ", " : "",
                     (long long)tensor->shape[axis]);
  hd_buffer_puts(&dict, tensor->rank == 1 ? ",), }" : "), }");
  // Spaces and a newline bring the data to a multiple of 64 bytes.
  size_t length = (10 + dict.size + 1 + 63) / 64 * 64 - 10;
  const char start[10] = {'\x93',
                          'N',
                          'U',
                          'M',
                          'P',
                          'Y',
                          1,
                          0,
                          (char)(length & 0xff),
                          (char)(length >> 8)};
  hd_buffer_write(out, start, sizeof(start));
  hd_buffer_printf(out, "%-*s\n", (int)length - 1, hd_buffer_text(&dict));
  hd_buffer_fini(&dict);
}

bool hd_npy_write(hd_diagnostics_t *diags, const char *path,
                  const hd_host_tensor_t *tensor) {
  hd_buffer_t header = {0};
  hd_npy_header(tensor, &header);
  hd_file_part_t parts[] = {{hd_buffer_text(&header), header.size},
                            {tensor->data, tensor->bytes}};
  bool ok = hd_file_write(diags, path, parts, 2);
  hd_buffer_fini(&header);
  return ok;
}
