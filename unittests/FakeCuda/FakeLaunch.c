// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches, streams, recordings and events of the fake device.
#include "FakeCuda.h"

static unsigned product(const unsigned dims[3]) {
  return dims[0] * dims[1] * dims[2];
}
// Maps come after all other parameters.
static void note_maps(const struct hd_cu_function *function, void **arguments) {
  for (int i = function->params - function->maps; i < function->params; i++) {
    const hd_cu_map_t *map = arguments[i];
    fake_note(" map %d%s", (int)map->words[0],
              map->words[1] >> 21 & 1 ? "" : " (bit 21 cleared)");
  }
}
static unsigned cluster_of(const hd_cu_launch_t *config) {
  for (unsigned i = 0; i < config->num_attributes; i++)
    if (config->attributes[i].id == HD_CU_LAUNCH_CLUSTER)
      return config->attributes[i].value.cluster.x *
             config->attributes[i].value.cluster.y *
             config->attributes[i].value.cluster.z;
  return 1;
}
FAKE(cuOccupancyMaxActiveClusters, int *count, hd_cu_function_t function,
     const hd_cu_launch_t *config) {
  MAY_FAIL("cuOccupancyMaxActiveClusters");
  NEEDS(function->context);
  *count = (int)cluster_of(config) <= fake_number("FAKE_CUDA_CLUSTER", 16);
  return 0;
}
FAKE(cuLaunchKernelEx, const hd_cu_launch_t *config, hd_cu_function_t function,
     void **arguments, void **extra) {
  MAY_FAIL("cuLaunchKernelEx");
  NEEDS(function->context);
  NEEDS(config->stream->context);
  if (extra || !arguments || !product(config->grid) ||
      !product(config->block) || product(config->block) > 1024 ||
      (config->shared_bytes > 48 << 10 &&
       (int)config->shared_bytes > function->dynamic_shared))
    return HD_CU_INVALID_VALUE;
  if (config->stream->capturing) {
    if (fake.captured == FAKE_MAX_NODES)
      abort();
    fake.last = &fake.capture->nodes[fake.captured++];
    fake.last->function = function;
    for (unsigned i = 0; i < config->num_attributes; i++)
      fake.programmatic +=
          config->attributes[i].id == HD_CU_LAUNCH_PROGRAMMATIC;
    if (function->maps)
      fake_note("captured %s", function->name);
    note_maps(function, arguments);
    if (function->maps)
      fake_note("\n");
    return 0;
  }
  fake_note("launch %s grid %u %u %u block %u %u %u shared %u", function->name,
            config->grid[0], config->grid[1], config->grid[2], config->block[0],
            config->block[1], config->block[2], config->shared_bytes);
  for (unsigned i = 0; i < config->num_attributes; i++)
    if (config->attributes[i].id == HD_CU_LAUNCH_PROGRAMMATIC)
      fake_note(" programmatic %d", config->attributes[i].value.programmatic);
    else
      fake_note(" attribute %d: %u %u %u", config->attributes[i].id,
                config->attributes[i].value.cluster.x,
                config->attributes[i].value.cluster.y,
                config->attributes[i].value.cluster.z);
  note_maps(function, arguments);
  fake_note("\n");
  return 0;
}

FAKE(cuStreamCreate, hd_cu_stream_t *stream, unsigned flags) {
  (void)flags;
  MAY_FAIL("cuStreamCreate");
  NEEDS(fake_context());
  *stream = calloc(1, sizeof(**stream));
  (*stream)->context = fake_context();
  fake.streams++;
  return 0;
}
FAKE(cuStreamDestroy_v2, hd_cu_stream_t stream) {
  NEEDS(stream->context);
  free(stream);
  fake.streams--;
  return 0;
}
FAKE(cuStreamSynchronize, hd_cu_stream_t stream) {
  MAY_FAIL("cuStreamSynchronize");
  NEEDS(stream ? stream->context : fake_context());
  ENDS_CAPTURES();
  return stream && stream->capturing ? FAKE_CAPTURING : 0;
}
FAKE(cuStreamWaitEvent, hd_cu_stream_t stream, hd_cu_event_t event,
     unsigned flags) {
  MAY_FAIL("cuStreamWaitEvent");
  NEEDS(event->context);
  if (event->captured != (stream && stream->capturing)) {
    fake.invalid = 1;
    return FAKE_ISOLATED;
  }
  return event->recorded && !flags ? 0 : HD_CU_INVALID_VALUE;
}
FAKE(cuStreamBeginCapture_v2, hd_cu_stream_t stream, int mode) {
  MAY_FAIL("cuStreamBeginCapture_v2");
  NEEDS(stream->context);
  stream->capturing = 1;
  fake.of_all = mode == 0;
  fake.invalid = 0;
  fake.captured = fake.programmatic = 0;
  fake.capture = calloc(1, sizeof(*fake.capture));
  fake.graphs++;
  return 0;
}
FAKE(cuStreamGetCaptureInfo_v2, hd_cu_stream_t stream, int *status,
     uint64_t *id, hd_cu_graph_t *graph, const hd_cu_node_t **last,
     size_t *num_last) {
  MAY_FAIL("cuStreamGetCaptureInfo_v2");
  NEEDS(stream->context);
  *status = stream->capturing;
  *id = 1;
  *graph = fake.capture;
  *last = &fake.last;
  *num_last = fake.captured > 0;
  return 0;
}
// The node is of the graph, which is there still.
FAKE(cuGraphExecKernelNodeSetParams_v2, hd_cu_exec_t exec, hd_cu_node_t node,
     const hd_cu_kernel_node_t *kernel) {
  MAY_FAIL("cuGraphExecKernelNodeSetParams_v2");
  NEEDS(exec->context);
  if (node->function != kernel->function || !kernel->arguments)
    return HD_CU_INVALID_VALUE;
  fake_note("update %s", node->function->name);
  note_maps(node->function, kernel->arguments);
  fake_note("\n");
  return 0;
}
FAKE(cuStreamEndCapture, hd_cu_stream_t stream, hd_cu_graph_t *graph) {
  NEEDS(stream->context);
  stream->capturing = 0;
  *graph = fake.capture;
  fake.capture = NULL;
  (*graph)->launches = fake.captured;
  (*graph)->programmatic = fake.programmatic;
  int error = fake_fault("cuStreamEndCapture");
  error = error ? error : fake.invalid ? FAKE_INVALIDATED : 0;
  if (error) {
    free(*graph);
    fake.graphs--;
    *graph = NULL;
  }
  return error;
}
FAKE(cuGraphInstantiateWithFlags, hd_cu_exec_t *exec, hd_cu_graph_t graph,
     unsigned long long flags) {
  MAY_FAIL("cuGraphInstantiateWithFlags");
  (void)flags;
  NEEDS(fake_context());
  ENDS_CAPTURES();
  *exec = calloc(1, sizeof(**exec));
  (*exec)->context = fake_context();
  (*exec)->launches = graph->launches;
  fake.execs++;
  fake_note("graph of %d launches", graph->launches);
  if (graph->programmatic)
    fake_note(", %d programmatic", graph->programmatic);
  fake_note("\n");
  return 0;
}
FAKE(cuGraphLaunch, hd_cu_exec_t exec, hd_cu_stream_t stream) {
  MAY_FAIL("cuGraphLaunch");
  NEEDS(exec->context);
  return (stream && stream->capturing) || exec->launches == 0 ? FAKE_CAPTURING
                                                              : 0;
}
FAKE(cuGraphDestroy, hd_cu_graph_t graph) {
  free(graph);
  fake.graphs--;
  return 0;
}
FAKE(cuGraphExecDestroy, hd_cu_exec_t exec) {
  ENDS_CAPTURES();
  free(exec);
  fake.execs--;
  return 0;
}
FAKE(cuEventCreate, hd_cu_event_t *event, unsigned flags) {
  (void)flags;
  MAY_FAIL("cuEventCreate");
  NEEDS(fake_context());
  *event = calloc(1, sizeof(**event));
  (*event)->context = fake_context();
  fake.events++;
  return 0;
}
FAKE(cuEventDestroy_v2, hd_cu_event_t event) {
  free(event);
  fake.events--;
  return 0;
}
FAKE(cuEventRecord, hd_cu_event_t event, hd_cu_stream_t stream) {
  MAY_FAIL("cuEventRecord");
  NEEDS(event->context);
  event->recorded = 1;
  event->captured = stream && stream->capturing;
  return 0;
}
FAKE(cuEventSynchronize, hd_cu_event_t event) {
  MAY_FAIL("cuEventSynchronize");
  ENDS_CAPTURES();
  return event->recorded ? 0 : HD_CU_INVALID_VALUE;
}
FAKE(cuEventElapsedTime, float *milliseconds, hd_cu_event_t start,
     hd_cu_event_t end) {
  MAY_FAIL("cuEventElapsedTime");
  *milliseconds = 2;
  return start->recorded && end->recorded ? 0 : HD_CU_INVALID_VALUE;
}
