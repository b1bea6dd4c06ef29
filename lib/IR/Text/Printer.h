// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// IR to text. What is printed parses back to IR that prints the same.
#ifndef HIDET_IR_TEXT_PRINTER_H
#define HIDET_IR_TEXT_PRINTER_H

#include "IR/Module.h"

void hd_module_print(const hd_module_t *module, hd_buffer_t *out);
// A table's item.
void hd_table_print(const hd_var_t *table, hd_buffer_t *out);
void hd_func_print(const hd_func_t *func, hd_buffer_t *out);
// name(parameters) -> result
void hd_signature_print(const hd_func_t *func, hd_buffer_t *out);
// Number i of a function's parameters and, behind them, its maps, as its
// signature has it: "in a: f32[n]".
void hd_param_print(const hd_func_t *func, uint32_t i, hd_buffer_t *out);
// The shortest decimal that reads back as the value, rounded to its type.
void hd_float_print(hd_scalar_t scalar, double value, hd_buffer_t *out);
void hd_expr_print(const hd_expr_t *e, hd_buffer_t *out);
// Its element type, shape and layout.
void hd_tensor_print(const hd_tensor_t *tensor, hd_buffer_t *out);
void hd_mapping_print(const hd_mapping_t *mapping, hd_buffer_t *out);

#endif
