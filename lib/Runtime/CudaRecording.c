// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recordings are CUDA graphs, captured from the device's stream.
#include "Runtime/DeviceCuda.h"

#include <stdlib.h>

static const hd_loc_t nowhere;

struct hd_recording {
  hd_cu_graph_t graph; // That names the nodes.
  hd_cu_exec_t exec;
  hd_cu_node_t *nodes;
  size_t num_nodes;
};

static void end_recording(hd_cuda_device_t *d, hd_recording_t *recording) {
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  if (recording->exec)
    driver->exec_destroy(recording->exec);
  if (recording->graph)
    driver->graph_destroy(recording->graph);
  free(recording->nodes);
  free(recording);
}

bool hd_cuda_record_node(hd_cuda_device_t *d) {
  const hd_cu_node_t *last = NULL;
  hd_cu_graph_t graph;
  uint64_t id;
  size_t num_last = 0;
  int status;
  if (!hd_cuda_device_check(d,
                            d->cuda->driver.capture_info(d->stream, &status,
                                                         &id, &graph, &last,
                                                         &num_last),
                            "cuStreamGetCaptureInfo"))
    return false;
  if (d->num_nodes == d->cap_nodes) {
    size_t count = d->cap_nodes ? 2 * d->cap_nodes : 64;
    hd_cu_node_t *nodes = realloc(d->nodes, count * sizeof(*nodes));
    if (!nodes)
      return hd_error(hd_cuda_diags(d), nowhere, HD_E0904, "out of memory");
    d->nodes = nodes;
    d->cap_nodes = count;
  }
  d->nodes[d->num_nodes++] = num_last ? last[0] : NULL;
  return true;
}

bool hd_cuda_set_node(hd_cuda_device_t *d, hd_recording_t *recording, size_t n,
                      const hd_cu_kernel_node_t *kernel) {
  return hd_cuda_device_check(d,
                              d->cuda->driver.exec_set_kernel(
                                  recording->exec, recording->nodes[n], kernel),
                              "cuGraphExecKernelNodeSetParams");
}

bool hd_cuda_record_begin(hd_device_t *device) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  if (!d->start && (!hd_cuda_device_check(d, driver->event_create(&d->start, 0),
                                          "cuEventCreate") ||
                    !hd_cuda_device_check(d, driver->event_create(&d->stop, 0),
                                          "cuEventCreate")))
    return false;
  d->recording = hd_cuda_device_check(
      d, driver->capture_begin(d->stream, HD_CU_CAPTURE_THREAD_LOCAL),
      "cuStreamBeginCapture");
  return d->recording;
}

hd_recording_t *hd_cuda_record_end(hd_device_t *device) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  hd_recording_t *recording = calloc(1, sizeof(*recording));
  hd_cu_graph_t graph = NULL;
  bool ok = hd_cuda_device_check(d, driver->capture_end(d->stream, &graph),
                                 "cuStreamEndCapture");
  if (!recording) {
    if (graph)
      driver->graph_destroy(graph);
    hd_error(hd_cuda_diags(d), nowhere, HD_E0904, "out of memory");
    return NULL;
  }
  *recording = (hd_recording_t){
      .graph = graph, .nodes = d->nodes, .num_nodes = d->num_nodes};
  d->nodes = NULL;
  d->num_nodes = d->cap_nodes = 0;
  if (ok && hd_cuda_device_check(
                d, driver->graph_instantiate(&recording->exec, graph, 0),
                "cuGraphInstantiate"))
    return recording;
  end_recording(d, recording);
  return NULL;
}

bool hd_cuda_replay(hd_device_t *device, hd_recording_t *recording, double *ms,
                    double *host_us) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  float elapsed = 0;
  if (!hd_cuda_device_check(d, driver->event_record(d->start, d->stream),
                            "cuEventRecord"))
    return false;
  uint64_t start = hd_clock_ns();
  int error = driver->graph_launch(recording->exec, d->stream);
  *host_us = (double)(hd_clock_ns() - start) * 1e-3;
  if (!hd_cuda_device_check(d, error, "cuGraphLaunch") ||
      !hd_cuda_device_check(d, driver->event_record(d->stop, d->stream),
                            "cuEventRecord") ||
      !hd_cuda_device_check(d, driver->event_wait(d->stop),
                            "running the recorded launches") ||
      !hd_cuda_device_check(d,
                            driver->event_elapsed(&elapsed, d->start, d->stop),
                            "cuEventElapsedTime"))
    return false;
  *ms = (double)elapsed;
  return true;
}

bool hd_cuda_enqueue(hd_device_t *device, hd_recording_t *recording,
                     void *stream) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  return hd_cuda_device_check(
      d, d->cuda->driver.graph_launch(recording->exec, stream),
      "cuGraphLaunch");
}

void hd_cuda_recording_free(hd_device_t *device, hd_recording_t *recording) {
  end_recording(hd_cuda_device_of(device), recording);
}
