// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variables, tensors and layouts.
#ifndef HIDET_IR_TENSOR_H
#define HIDET_IR_TENSOR_H

#include "IR/Expr.h"

typedef struct hd_mapping hd_mapping_t;

enum { HD_MAX_RANK = 16, HD_MAX_TILE = 1 << 20, HD_MAX_SWIZZLE_BITS = 10 };

typedef enum hd_scope {
  HD_SCOPE_GLOBAL,
  HD_SCOPE_SHARED,
  HD_SCOPE_REGISTER
} hd_scope_t;

// A layout sends the logical indices of a tensor to an offset in elements. It
// is a base (absent: row-major) and then any number of swizzles.
typedef enum hd_layout_kind {
  HD_LAYOUT_ROW,     // last axis contiguous
  HD_LAYOUT_COLUMN,  // first axis contiguous
  HD_LAYOUT_STRIDES, // values: a stride for each axis, in elements
  HD_LAYOUT_PERMUTE, // values: axes from the outermost to the contiguous one
  HD_LAYOUT_TILE, // values: tile size for each axis; tiles row-major, row-major
                  // inside
  HD_LAYOUT_SWIZZLE, // values: {bytes} of the hardware's pattern (32, 64, 128),
                     // or {bits, base, shift}: offset ^= ((offset >> (base +
                     // shift)) & (2^bits - 1)) << base, in elements
  HD_LAYOUT_LOCAL,   // register scope: the element's place in its worker's list
                     // of tasks of a mapping
} hd_layout_kind_t;

typedef struct hd_layout_item {
  hd_layout_kind_t kind;
  uint32_t num_values;
  const hd_expr_t *const
      *values;                 // Strides may be symbolic, others are constants.
  const hd_mapping_t *mapping; // LOCAL
} hd_layout_item_t;

typedef struct hd_layout {
  uint32_t num_items;
  hd_layout_item_t items[];
} hd_layout_t;

// The type of a tensor variable.
typedef struct hd_tensor {
  hd_scope_t scope;
  hd_type_t element;
  uint32_t rank;
  uint32_t align; // In bytes, as written; 0: not. See hd_tensor_align().
  const hd_expr_t *const *shape; // i32 or i64, over size parameters.
  const hd_layout_t *layout;     // NULL: row-major.
  // SHARED: overlay(n), so many bytes into the block's, in the place of what
  // lies there.
  bool is_overlay;
  uint32_t overlay;
} hd_tensor_t;

typedef enum hd_var_kind {
  HD_VAR_PARAM,   // a scalar parameter
  HD_VAR_LET,     // a named value
  HD_VAR_LOOP,    // of a for, or of a for over a mapping
  HD_VAR_TENSOR,  // a tensor: a parameter or declared
  HD_VAR_MAPPING, // bound inside a custom mapping
  HD_VAR_MAP,     // a tensor map, declared in a kernel's signature
} hd_var_kind_t;

typedef enum hd_direction {
  HD_DIR_NONE,
  HD_DIR_IN,
  HD_DIR_OUT,
  HD_DIR_INOUT
} hd_direction_t;

enum { HD_MAP_MAX_RANK = 5, HD_MAP_MAX_SPATIAL = 3 };

// A tensor map: what the copy engine (TMA) knows of a tensor in global memory
// and of the box that one instruction copies. The launcher encodes it. Axes are
// in the tensor's order, the contiguous one last; the fill outside is zero.
typedef struct hd_map {
  const hd_var_t *tensor; // A parameter of the kernel.
  bool im2col;
  uint32_t swizzle; // Bytes: 0, 32, 64, 128.
  uint32_t l2;      // Promotion, in bytes: 0, 64, 128, 256.
  // Tiled: the box's extent along each axis. im2col, of a tensor [n, d.., c]:
  // pixels and channels. Constants.
  uint32_t num_box;
  const hd_expr_t *box[HD_MAP_MAX_RANK];
  // im2col, for each axis between the first and the last: the corners of the
  // window's positions relative to the tensor's, and the step. Over parameters.
  const hd_expr_t *lower[HD_MAP_MAX_SPATIAL];
  const hd_expr_t *upper[HD_MAP_MAX_SPATIAL];
  const hd_expr_t *step[HD_MAP_MAX_SPATIAL];
} hd_map_t;

struct hd_host_tensor; // IR/Graph/HostTensor.h

// A variable is known by its address; the name is for printing.
struct hd_var {
  const char *name;
  hd_var_kind_t kind;
  hd_direction_t direction;  // Of tensor parameters.
  hd_type_t type;            // Of a tensor: its element's.
  const hd_tensor_t *tensor; // HD_VAR_TENSOR, else NULL.
  const hd_map_t *map;       // HD_VAR_MAP, else NULL.
  // Of a table, which is an `in` tensor of constant shape that the module has
  // and no function declares: its elements, row-major. NULL of others.
  const struct hd_host_tensor *table;
  hd_loc_t loc;
};

hd_var_t *hd_var_make(hd_arena_t *arena, const char *name, hd_var_kind_t kind,
                      hd_type_t type, hd_loc_t loc);
hd_var_t *hd_var_make_tensor(hd_arena_t *arena, const char *name,
                             const hd_tensor_t *tensor, hd_loc_t loc);

// Which element of a table an access begins at, where its indices are constants
// within their bounds.
bool hd_table_find(const hd_expr_t *access, int64_t *element);

// Why a tensor is only read: "it is an 'in' parameter"; NULL where it is not.
const char *hd_var_read_only(const hd_var_t *var);

// "2 indices in brackets", and how many were found, where some were.
const char *hd_rank_text(hd_arena_t *arena, size_t rank, size_t found);

const char *hd_scope_name(hd_scope_t scope);
const char *hd_direction_name(hd_direction_t direction); // "" for none.
const char *hd_layout_kind_name(hd_layout_kind_t kind);

// The number of elements that storage must hold (with padding of tiles and
// strides), as an expression (i32, or i64 where it may pass 2^31 - 1).
const hd_expr_t *hd_tensor_storage(hd_arena_t *arena,
                                   const hd_tensor_t *tensor);
// Likewise, where it is a constant; false where it is not, passes 2^62, or the
// layout breaks a rule.
bool hd_tensor_storage_const(const hd_tensor_t *tensor, int64_t *elements);
// A multiple of which, in bytes, a tensor in memory begins at: at least 16, so
// that vectors fit; in shared memory 8 n bytes for the hardware's swizzle of n,
// which repeats so often. A power of two.
uint32_t hd_tensor_align(const hd_tensor_t *tensor);
// The offset in elements of the element at indices: the layout applied. Index
// arithmetic is i32, or i64 where the storage may pass 2^31 - 1 elements.
const hd_expr_t *hd_tensor_offset(hd_arena_t *arena, const hd_tensor_t *tensor,
                                  const hd_expr_t *const *indices);
// NULL where the layout keeps so many elements along the last axis side by
// side, from a place on whose offset is a multiple of them; else why it does
// not.
const char *hd_tensor_why_apart(const hd_tensor_t *tensor, unsigned lanes);
// Like hd_tensor_offset(), its swizzles left out: what hardware is told that
// swizzles itself, by the bits of the address.
const hd_expr_t *hd_tensor_bare_offset(hd_arena_t *arena,
                                       const hd_tensor_t *tensor,
                                       const hd_expr_t *const *indices);
// A layout of one item.
const hd_layout_t *hd_layout_make(hd_arena_t *arena, hd_layout_item_t item);
bool hd_tensor_is_row_major(const hd_tensor_t *tensor);

#endif
