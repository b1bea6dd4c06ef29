// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes a graph that fails small: first one output alone, then node after node,
// from the last on: what it gives becomes an input that holds what it gave.
#include "Fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct reducer {
  fuzz_graph_t *g;
  const fuzz_options_t *options;
  uint64_t way;
  fuzz_verdict_t verdict;
  bool died;
} reducer_t;

static bool still_fails(const reducer_t *r) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    fuzz_report_t report;
    alarm(r->options->seconds + 5);
    fclose(stderr);
    fuzz_check(r->g, r->options, r->way, &report);
    _exit(10 + (int)report.verdict);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return false;
  return r->died
             ? WIFSIGNALED(status)
             : WIFEXITED(status) && WEXITSTATUS(status) == 10 + (int)r->verdict;
}

// Takes out nodes of which nothing is used.
static void drop_dead(fuzz_graph_t *g) {
  for (size_t n = g->nodes.size; n-- > 0;) {
    const fuzz_node_t *node = g->nodes.data[n];
    bool used = false;
    for (uint32_t k = 0; k < node->node.num_outputs; k++) {
      const fuzz_value_t *v = node->outputs[k];
      for (size_t i = 0; v && i < g->outputs.size; i++)
        used |= g->outputs.data[i] == v;
      for (size_t i = n + 1; v && i < g->nodes.size; i++)
        for (uint32_t m = 0; m < g->nodes.data[i]->node.num_inputs; m++)
          used |= g->nodes.data[i]->inputs[m] == v;
    }
    if (used)
      continue;
    memmove(g->nodes.data + n, g->nodes.data + n + 1,
            (g->nodes.size - n - 1) * sizeof *g->nodes.data);
    g->nodes.size--;
  }
}

typedef struct saved {
  fuzz_node_t **nodes;
  size_t num_nodes;
  fuzz_value_t **outputs;
  size_t num_outputs;
} saved_t;

static void *copy_of(fuzz_graph_t *g, const void *data, size_t bytes) {
  void *copy = hd_arena_alloc(&g->arena, bytes + 1);
  if (bytes)
    memcpy(copy, data, bytes);
  return copy;
}

static saved_t save(fuzz_graph_t *g) {
  return (saved_t){
      copy_of(g, g->nodes.data, g->nodes.size * sizeof *g->nodes.data),
      g->nodes.size,
      copy_of(g, g->outputs.data, g->outputs.size * sizeof *g->outputs.data),
      g->outputs.size};
}

static void restore(fuzz_graph_t *g, saved_t saved) {
  g->nodes.data = saved.nodes;
  g->nodes.size = g->nodes.capacity = saved.num_nodes;
  g->outputs.data = saved.outputs;
  g->outputs.size = g->outputs.capacity = saved.num_outputs;
}

static void one_output(reducer_t *r) {
  fuzz_graph_t *g = r->g;
  saved_t saved = save(g);
  for (size_t i = 0; saved.num_outputs > 1 && i < saved.num_outputs; i++) {
    fuzz_value_t *output = saved.outputs[i];
    g->outputs.size = 0;
    hd_vec_push(&g->arena, &g->outputs, output);
    drop_dead(g);
    if (still_fails(r))
      return;
    restore(g, saved);
    saved = save(g);
  }
}

// What a node gives comes from outside.
static bool cut(reducer_t *r, size_t n) {
  fuzz_graph_t *g = r->g;
  saved_t saved = save(g);
  fuzz_node_t *node = g->nodes.data[n];
  for (uint32_t k = 0; k < node->node.num_outputs; k++)
    if (node->outputs[k])
      node->outputs[k]->from = NULL;
  memmove(g->nodes.data + n, g->nodes.data + n + 1,
          (g->nodes.size - n - 1) * sizeof *g->nodes.data);
  g->nodes.size--;
  drop_dead(g);
  if (still_fails(r))
    return true;
  for (uint32_t k = 0; k < node->node.num_outputs; k++)
    if (node->outputs[k])
      node->outputs[k]->from = node;
  restore(g, saved);
  return false;
}

void fuzz_reduce(fuzz_graph_t *g, const fuzz_options_t *options, uint64_t way,
                 fuzz_verdict_t verdict, bool died) {
  reducer_t r = {g, options, way, verdict, died};
  if (!still_fails(&r)) {
    fprintf(stderr, "graph_fuzz: it does not fail when it is run again\n");
    return;
  }
  one_output(&r);
  bool again = true;
  while (again) {
    again = false;
    for (size_t n = g->nodes.size; n-- > 0;)
      again |= n < g->nodes.size && cut(&r, n);
  }
}
