// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The boxes of tensor maps. In shared memory a box is rows of its innermost
// axis, one after another; with a swizzle a row takes the swizzle's bytes, and
// bits 4 to 6 of the address are xored with bits 7 to 9 (128 bytes; 64: 4 and 5
// with 7 and 8; 32: 4 with 7). Elements outside the tensor read as zero and are
// not written. In im2col mode the rows are channels of pixels: positions of the
// window, from the first one on along the inner axes within their corners, then
// the next image; the window's offsets are added where the tensor is read.
#include "Sim/Bulk.h"
#include "Support/Float.h"

#include <string.h>

enum { CHUNK = 16, MOST_ROW = 256 * 8 };

static uint32_t row_elements(const hd_sim_map_t *map) {
  return map->im2col ? map->channels : map->box[map->rank - 1];
}
static uint32_t row_bytes(const hd_sim_map_t *map) {
  return row_elements(map) * map->element_bytes;
}
static uint32_t num_rows(const hd_sim_map_t *map) {
  if (map->im2col)
    return map->pixels;
  uint32_t rows = 1;
  for (uint32_t i = 0; i + 1 < map->rank; i++)
    rows *= map->box[i];
  return rows;
}
static uint32_t pitch(const hd_sim_map_t *map) {
  uint32_t bytes = row_bytes(map);
  return bytes < map->swizzle ? map->swizzle : bytes;
}

uint32_t hd_sim_box_bytes(const hd_sim_map_t *map) {
  return num_rows(map) * row_bytes(map);
}
uint32_t hd_sim_box_span(const hd_sim_map_t *map) {
  return num_rows(map) * pitch(map);
}

// --- Rows ---

// A row of the box: where its first element is in the tensor.
typedef struct row {
  int64_t at[HD_MAP_MAX_RANK];
  // im2col: the position, without the window's offsets.
  int64_t position[HD_MAP_MAX_RANK];
  uint32_t number;
} row_t;

static void first_row(const hd_sim_piece_t *piece, row_t *row) {
  const hd_sim_map_t *map = piece->map;
  memset(row, 0, sizeof *row);
  for (uint32_t i = 0; i < map->rank; i++)
    row->at[i] = row->position[i] = piece->at[i];
  if (map->im2col)
    for (uint32_t i = 1; i + 1 < map->rank; i++)
      row->at[i] += piece->offsets[i - 1];
}

static void next_pixel(const hd_sim_piece_t *piece, row_t *row) {
  const hd_sim_map_t *map = piece->map;
  uint32_t axis = map->rank - 2;
  for (; axis > 0; axis--) {
    row->position[axis] += map->step[axis - 1];
    if (row->position[axis] <= map->sizes[axis] - 1 + map->upper[axis - 1])
      break;
    row->position[axis] = map->lower[axis - 1];
  }
  if (axis == 0)
    row->position[0]++;
  for (uint32_t i = 0; i + 1 < map->rank; i++)
    row->at[i] = row->position[i] + (i > 0 ? piece->offsets[i - 1] : 0);
}

// False after the last.
static bool next_row(const hd_sim_piece_t *piece, row_t *row) {
  const hd_sim_map_t *map = piece->map;
  if (++row->number == num_rows(map))
    return false;
  if (map->im2col) {
    next_pixel(piece, row);
    return true;
  }
  for (uint32_t axis = map->rank - 1; axis-- > 0;) {
    if (++row->at[axis] < (int64_t)piece->at[axis] + map->box[axis])
      break;
    row->at[axis] = piece->at[axis];
  }
  return true;
}

// The row's elements that the tensor has: from, count (0: none) and their
// address.
static char *part_within(const hd_sim_map_t *map, const row_t *row,
                         uint32_t *from, uint32_t *count) {
  uint32_t last = map->rank - 1;
  char *address = (char *)(uintptr_t)map->base;
  *count = 0;
  for (uint32_t i = 0; i < last; i++) {
    if (row->at[i] < 0 || row->at[i] >= map->sizes[i])
      return NULL;
    address += row->at[i] * map->strides[i];
  }
  int64_t begin = row->at[last], end = begin + row_elements(map);
  *from = begin < 0 ? (uint32_t)-begin : 0;
  begin = begin < 0 ? 0 : begin;
  end = end > map->sizes[last] ? map->sizes[last] : end;
  if (end <= begin)
    return NULL;
  *count = (uint32_t)(end - begin);
  return address + begin * map->element_bytes;
}

// Where byte `offset` of the box lies in shared memory.
static char *swizzled(const hd_sim_map_t *map, char *shared, uint32_t offset) {
  uintptr_t address = (uintptr_t)shared + offset;
  uintptr_t mask = map->swizzle / CHUNK;
  if (mask)
    address ^= (address >> 7 & (mask - 1)) << 4;
  return (char *)address;
}

// --- Copies ---

void hd_sim_box_read(const hd_sim_piece_t *piece) {
  const hd_sim_map_t *map = piece->map;
  uint32_t bytes = row_bytes(map), each = map->element_bytes, from, count;
  char image[MOST_ROW];
  row_t row;
  first_row(piece, &row);
  do {
    const char *data = part_within(map, &row, &from, &count);
    if (count < row_elements(map))
      memset(image, 0, bytes);
    if (count)
      memcpy(image + from * each, data, count * each);
    uint32_t start = row.number * pitch(map);
    for (uint32_t i = 0; i < bytes; i += CHUNK)
      memcpy(swizzled(map, piece->shared, start + i), image + i,
             bytes - i < CHUNK ? bytes - i : CHUNK);
  } while (next_row(piece, &row));
}

// Adds words that other workers may add to.
#define ADD(word, sum)                                                         \
  do {                                                                         \
    word *to = (word *)(void *)at, old, more, new;                             \
    __atomic_load(to, &old, __ATOMIC_SEQ_CST);                                 \
    memcpy(&more, from, sizeof more);                                          \
    do                                                                         \
      new = (sum);                                                             \
    while (!__atomic_compare_exchange(to, &old, &new, true, __ATOMIC_SEQ_CST,  \
                                      __ATOMIC_SEQ_CST));                      \
  } while (0)

static uint16_t add_f16(uint16_t a, uint16_t b) {
  return hd_f16_from_f64((double)hd_f16_to_f32(a) + (double)hd_f16_to_f32(b));
}
static uint16_t add_bf16(uint16_t a, uint16_t b) {
  return hd_bf16_from_f64((double)hd_bf16_to_f32(a) +
                          (double)hd_bf16_to_f32(b));
}

// The types that the hardware adds (the verifier lets no others through).
static bool add_element(hd_scalar_t type, char *at, const char *from) {
  if (type == HD_F32)
    ADD(float, old + more);
  else if (type == HD_F64)
    ADD(double, old + more);
  else if (type == HD_F16)
    ADD(uint16_t, add_f16(old, more));
  else if (type == HD_BF16)
    ADD(uint16_t, add_bf16(old, more));
  else if (type == HD_I32 || type == HD_U32)
    ADD(uint32_t, old + more);
  else if (type == HD_I64 || type == HD_U64)
    ADD(uint64_t, old + more);
  else
    return false;
  return true;
}

void hd_sim_box_write(const hd_sim_piece_t *piece, const char *image,
                      bool adds) {
  const hd_sim_map_t *map = piece->map;
  uint32_t bytes = row_bytes(map), each = map->element_bytes, from, count;
  char straight[MOST_ROW];
  row_t row;
  first_row(piece, &row);
  do {
    char *data = part_within(map, &row, &from, &count);
    uint32_t start = row.number * pitch(map);
    for (uint32_t i = 0; count && i < bytes; i += CHUNK) {
      const char *own = swizzled(map, piece->shared, start + i);
      memcpy(straight + i, image + (own - piece->shared),
             bytes - i < CHUNK ? bytes - i : CHUNK);
    }
    if (!adds && count)
      memcpy(data, straight + from * each, count * each);
    for (uint32_t i = 0; adds && i < count; i++)
      add_element(map->type, data + i * each, straight + (from + i) * each);
  } while (next_row(piece, &row));
}

void hd_sim_box_walk(const hd_sim_piece_t *piece, hd_sim_run_fn run,
                     void *argument) {
  row_t row;
  uint32_t from, count;
  first_row(piece, &row);
  do {
    char *data = part_within(piece->map, &row, &from, &count);
    if (count)
      run(argument, data, count * piece->map->element_bytes);
  } while (next_row(piece, &row));
}

bool hd_sim_box_meets(const hd_sim_piece_t *piece) {
  row_t row;
  uint32_t from, count;
  first_row(piece, &row);
  do {
    part_within(piece->map, &row, &from, &count);
    if (count)
      return true;
  } while (next_row(piece, &row));
  return false;
}
