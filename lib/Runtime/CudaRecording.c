// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recordings are CUDA graphs, captured from the device's stream.
#include "Runtime/DeviceCuda.h"

#include <stdlib.h>

struct hd_recording {
  hd_cu_exec_t exec;
};

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
  hd_cu_graph_t graph = NULL;
  bool ok = hd_cuda_device_check(d, driver->capture_end(d->stream, &graph),
                                 "cuStreamEndCapture");
  hd_recording_t *recording = ok ? calloc(1, sizeof(*recording)) : NULL;
  ok =
      recording && hd_cuda_device_check(
                       d, driver->graph_instantiate(&recording->exec, graph, 0),
                       "cuGraphInstantiate");
  if (graph)
    driver->graph_destroy(graph);
  if (ok)
    return recording;
  free(recording);
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
  hd_cuda_device_of(device)->cuda->driver.exec_destroy(recording->exec);
  free(recording);
}
