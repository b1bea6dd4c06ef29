// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps of motifs. Each takes values, of which any may be NULL, and gives
// the value of the node that it adds; NULL where one was NULL, or the node is
// refused.
#ifndef HIDET_FUZZ_GRAPHS_STEPS_H
#define HIDET_FUZZ_GRAPHS_STEPS_H

#include "Fuzz.h"

hd_tensor_type_t fuzz_shape(hd_scalar_t type, unsigned rank, int64_t a,
                            int64_t b, int64_t c);
// A task of one to three operands; of exactly one, or two.
fuzz_value_t *fuzz_call(fuzz_graph_t *g, const char *task, fuzz_value_t *a,
                        fuzz_value_t *b, fuzz_value_t *c);
fuzz_value_t *fuzz_one(fuzz_graph_t *g, const char *task, fuzz_value_t *x);
fuzz_value_t *fuzz_two(fuzz_graph_t *g, const char *task, fuzz_value_t *a,
                       fuzz_value_t *b);
// Whatever the task needs besides x is drawn.
fuzz_value_t *fuzz_with(fuzz_graph_t *g, const char *task, fuzz_value_t *x);
fuzz_value_t *fuzz_reshaped(fuzz_graph_t *g, fuzz_value_t *x,
                            hd_tensor_type_t type);
fuzz_value_t *fuzz_cast_to(fuzz_graph_t *g, fuzz_value_t *x, hd_scalar_t type);
fuzz_value_t *fuzz_weight(fuzz_graph_t *g, hd_tensor_type_t type);
// A number for every element, of rank 0 or of one element.
fuzz_value_t *fuzz_number(fuzz_graph_t *g, fuzz_value_t *like, double value);
// A value of floats that is there, of so many axes, or a new one.
fuzz_value_t *fuzz_some(fuzz_graph_t *g, unsigned least, unsigned most);
// Of the last axis; of all others together.
int64_t fuzz_last_of(fuzz_value_t *x);
int64_t fuzz_rows_of(fuzz_value_t *x);
// One function of a number; several, some of them of two, as far as they are
// taken.
fuzz_value_t *fuzz_activate(fuzz_graph_t *g, fuzz_value_t *x);
fuzz_value_t *fuzz_chain(fuzz_graph_t *g, fuzz_value_t *x, int64_t length);

// Motifs of their own (Gathered.c): rows of a table, and what is made of them;
// rows by a matrix each, which an index chooses, from either side.
void fuzz_embedding(fuzz_graph_t *g);
void fuzz_experts(fuzz_graph_t *g);
// Loops (Recurrent.c): states that fade, that are the greatest or the least so
// far, and of recurrent layers.
void fuzz_recurrent(fuzz_graph_t *g);

#endif
