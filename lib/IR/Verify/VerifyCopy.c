// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies by tensor maps: the map, its coordinates and the shared tensor fit
// each other. A function may take a map as a parameter; which it is, its calls
// in kernels say, so it is looked into from there.
#include "IR/Verify/VerifierState.h"

#include "IR/Matrix.h"
#include "IR/Rewrite.h"

#include <stddef.h>

enum { MAX_CALLS = 256 };

// What a function's parameters of type map stand for, in a call.
typedef struct frame {
  hd_verifier_t *v;
  const hd_expr_t *call; // NULL: the kernel itself.
  const struct frame *caller;
  unsigned *calls;
} frame_t;

// The kernel's map that a variable stands for, or NULL.
static const hd_map_t *resolve(const frame_t *frame, const hd_expr_t *e) {
  if (e->kind != HD_EXPR_VAR)
    return NULL;
  const hd_var_t *var = e->u.var;
  if (var->map || !frame->call)
    return var->map;
  const hd_func_t *func = frame->call->u.func;
  for (uint32_t i = 0; i < func->num_params; i++)
    if (func->params[i] == var)
      return resolve(frame->caller, frame->call->operands[i]);
  return NULL;
}

static bool may_be_summed(hd_type_t type) {
  static const hd_scalar_t scalars[] = {HD_I32,  HD_U32, HD_U64, HD_F16,
                                        HD_BF16, HD_F32, HD_F64};
  for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++)
    if (scalars[i] == type.scalar)
      return true;
  return false;
}

// Whether elements lie as a map writes them.
static bool is_dense(const hd_tensor_t *tensor) {
  const hd_layout_t *layout = tensor->layout;
  return !layout || hd_matrix_swizzle(tensor) ||
         (layout->num_items == 1 && layout->items[0].kind == HD_LAYOUT_ROW);
}

static int64_t product(const hd_expr_t *const *sizes, uint32_t count) {
  int64_t all = 1, size;
  for (uint32_t i = 0; i < count; i++)
    all *= hd_expr_fold_int(sizes[i], &size) ? size : 1;
  return all;
}

// Whether the lines of a box lie in a shared tensor as in its axes: as long as
// the last one, or a single line.
static bool has_lines(const hd_map_t *map, const hd_tensor_t *shared) {
  int64_t row = 0, inner = 0;
  if (shared->rank == 0)
    return false;
  hd_expr_fold_int(shared->shape[shared->rank - 1], &row);
  hd_expr_fold_int(map->box[map->num_box - 1], &inner);
  bool is_line = !map->swizzle && product(map->box, map->num_box) == inner;
  return shared->rank == 1 || row == inner || (is_line && inner < row);
}

// Why a box cannot be copied between a map's tensor and a shared one, or NULL.
static const char *why_not(const hd_map_t *map, const hd_tensor_t *shared) {
  const hd_tensor_t *tensor = map->tensor->tensor;
  int64_t storage;
  if (hd_type_bits(shared->element) != hd_type_bits(tensor->element))
    return "the tensors' elements differ in size";
  if (!has_lines(map, shared))
    return "the box must be as long as the shared tensor's last axis";
  if (!is_dense(shared))
    return "the shared tensor must be row-major, and at most swizzled";
  if (hd_matrix_swizzle(shared) != map->swizzle)
    return "the map's swizzle is not that of the shared tensor's layout";
  if (map->swizzle && shared->align < 8 * map->swizzle)
    return "a swizzled tile must be aligned to eight rows of the pattern: "
           "align(1024) for swizzle(128)";
  if (shared->align < 128)
    return "the shared tensor must be aligned: align(128)";
  if (hd_tensor_storage_const(shared, &storage) &&
      product(map->box, map->num_box) > storage)
    return "the box is larger than the shared tensor";
  return NULL;
}

static bool verify_one(const frame_t *frame, const hd_expr_t *e) {
  const hd_intrinsic_info_t *info = hd_intrinsic_of(e);
  const hd_map_t *map = NULL;
  const hd_intrinsic_param_t *copied = NULL; // The map's tensor.
  const hd_tensor_t *shared = NULL;
  unsigned coordinates = 0;
  for (unsigned i = 0; i < info->num_params; i++) {
    const hd_intrinsic_param_t *param = &info->params[i];
    if (param->form == HD_PARAM_SHARED && !shared)
      shared = e->operands[i]->u.var->tensor;
    if (param->form == HD_PARAM_VALUE && param->type.scalar == HD_MAP) {
      map = resolve(frame, e->operands[i]);
      copied = param;
    }
    coordinates +=
        param->form == HD_PARAM_VALUE && param->type.scalar == HD_I32;
  }
  if (!map || !shared)
    return true;
  bool is_im2col = info->traits & HD_TRAIT_IM2COL, is_load = !copied->writes;
  const char *why = NULL;
  if (is_im2col && !map->im2col)
    why = "the map is not declared with im2col";
  else if (is_load && !is_im2col && map->im2col)
    why = "the map is declared with im2col";
  else if (!is_load && map->im2col)
    why = "a map declared with im2col is for loads alone";
  else if (coordinates != map->tensor->tensor->rank)
    why = "it takes a coordinate for each axis of the map's tensor";
  else if (!is_load && map->tensor->direction == HD_DIR_IN)
    why = "the map's tensor is an 'in' parameter";
  else if (copied->reads && copied->writes && !may_be_summed(map->tensor->type))
    why = "the hardware does not add elements of this type";
  else
    why = why_not(map, shared);
  if (why)
    hd_verify_intrinsic_fault(frame->v, e, why);
  return !why;
}

static bool visit(void *argument, const hd_expr_t *e);

static bool takes_map(const hd_func_t *func) {
  for (uint32_t i = 0; i < func->num_params; i++)
    if (func->params[i]->type.scalar == HD_MAP)
      return true;
  return false;
}

static bool verify_body(const frame_t *frame, const hd_expr_t *call) {
  frame_t inner = {frame->v, call, frame, frame->calls};
  if (!takes_map(call->u.func) || ++*frame->calls > MAX_CALLS)
    return true;
  bool ok = hd_walk_block(call->u.func->body, NULL, visit, &inner);
  if (!ok && !frame->call)
    hd_note(frame->v->diags, call->loc, "called from here");
  return ok;
}

// What is wrong in the function itself is reported there.
static bool is_whole(const hd_expr_t *e) {
  const hd_intrinsic_info_t *info = hd_intrinsic_of(e);
  if (e->num_operands != info->num_params)
    return false;
  for (unsigned i = 0; i < info->num_params; i++)
    if (info->params[i].form == HD_PARAM_SHARED &&
        (e->operands[i]->kind != HD_EXPR_REF || !e->operands[i]->u.var->tensor))
      return false;
  return true;
}

static bool visit(void *argument, const hd_expr_t *e) {
  const frame_t *frame = argument;
  if (e->kind == HD_EXPR_INTRINSIC)
    return !is_whole(e) || verify_one(frame, e);
  return e->kind != HD_EXPR_CALL || e->num_operands != e->u.func->num_params ||
         verify_body(frame, e);
}

void hd_verify_copy(hd_verifier_t *v, const hd_expr_t *intrinsic) {
  unsigned calls = 0;
  frame_t kernel = {v, NULL, NULL, &calls};
  if (is_whole(intrinsic))
    verify_one(&kernel, intrinsic);
}

void hd_verify_copies(hd_verifier_t *v, const hd_expr_t *call) {
  unsigned calls = 0;
  frame_t kernel = {v, NULL, NULL, &calls};
  if (v->func->kind == HD_FUNC_KERNEL)
    verify_body(&kernel, call);
}
