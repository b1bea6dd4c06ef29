// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA driver that runs nothing: a shared object with the name and the
// functions of libcuda.so.1, so that the way to the GPU is tested without one.
// Device memory is the host's; a launch checks and logs what it is given.
//
//   FAKE_CUDA_LOG=FILE        appends a line for each call that matters
//   FAKE_CUDA_PTX=FOLDER      keeps what is linked, as FOLDER/<its name>.ptx
//   FAKE_CUDA_FAIL=NAME=CODE  that function returns the code
//   FAKE_CUDA_FAIL=NAME=CODE@N  from its N-th call on
//   FAKE_CUDA_FAIL=NAME=CODE@=N  its N-th call alone
//   FAKE_CUDA_REFUSES=TEXT    PTX with that text in it is refused by the linker
//   FAKE_CUDA_LOCAL=TEXT=N    kernels with it have N bytes of local memory
//   FAKE_CUDA_CLUSTER=N       the largest cluster that there is room for (16)
//   FAKE_CUDA_VERSION=12030   what cuDriverGetVersion says
//   FAKE_CUDA_SM=90           the compute capability
//   FAKE_CUDA_DEVICES=N       how many there are (1)
#include "FakeCuda.h"

#include <stdarg.h>

fake_state_t fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Of each thread, the innermost last.
static _Thread_local struct {
  hd_cu_context_t contexts[16];
  int size;
} current;

hd_cu_context_t fake_context(void) {
  return current.size ? current.contexts[current.size - 1] : NULL;
}

void fake_note(const char *format, ...) {
  const char *path = getenv("FAKE_CUDA_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file)
    return;
  va_list args;
  va_start(args, format);
  vfprintf(file, format, args);
  va_end(args);
  fclose(file); // In one piece, behind what other threads wrote.
}

static char last_wish[200];
int fake_fault(const char *name) {
  const char *wish = getenv("FAKE_CUDA_FAIL");
  size_t size = strlen(name);
  if (!wish || strncmp(wish, name, size) != 0 || wish[size] != '=')
    return 0;
  pthread_mutex_lock(&fake.lock);
  if (strcmp(last_wish, wish) != 0) {
    snprintf(last_wish, sizeof last_wish, "%s", wish);
    fake.calls = 0;
  }
  int call = ++fake.calls;
  pthread_mutex_unlock(&fake.lock);
  const char *at = strchr(wish, '@');
  bool once = at && at[1] == '=';
  int from = at ? atoi(at + (once ? 2 : 1)) : 1;
  return call == from || (!once && call > from) ? atoi(wish + size + 1) : 0;
}

// For tests: what there is of objects that are made and ended, and how often
// the function that FAKE_CUDA_FAIL names was called since it did.
FAKE(fakeCudaLeft, void) {
  return fake.allocations + fake.libraries + fake.streams + fake.events +
         fake.graphs + fake.execs + fake.links;
}
FAKE(fakeCudaCalls, void) {
  const char *wish = getenv("FAKE_CUDA_FAIL");
  return wish && strcmp(last_wish, wish) == 0 ? fake.calls : 0;
}

// A stream of the first device that is the test's own.
FAKE(fakeCudaStream, void **stream) {
  static struct hd_cu_stream own;
  own.context = &fake.contexts[0];
  *stream = &own;
  return 0;
}

int fake_number(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text ? atoi(text) : otherwise;
}

FAKE(cuInit, unsigned flags) {
  (void)flags;
  MAY_FAIL("cuInit");
  return fake_number("FAKE_CUDA_DEVICES", 1) ? 0 : HD_CU_NO_DEVICE;
}
FAKE(cuDriverGetVersion, int *version) {
  MAY_FAIL("cuDriverGetVersion");
  *version = fake_number("FAKE_CUDA_VERSION", 12080);
  return 0;
}
FAKE(cuGetErrorName, int error, const char **text) {
  *text = error == 1     ? "CUDA_ERROR_INVALID_VALUE"
          : error == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 218 ? "CUDA_ERROR_INVALID_PTX"
          : error == 222 ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
          : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == 701 ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
                         : NULL;
  return *text ? 0 : HD_CU_INVALID_VALUE;
}
FAKE(cuGetErrorString, int error, const char **text) {
  *text = error == 700 ? "an illegal memory access was encountered" : "fake";
  return 0;
}
FAKE(cuDeviceGetCount, int *count) {
  MAY_FAIL("cuDeviceGetCount");
  *count = fake_number("FAKE_CUDA_DEVICES", 1);
  return 0;
}
FAKE(cuDeviceGet, int *device, int ordinal) {
  MAY_FAIL("cuDeviceGet");
  *device = ordinal;
  return 0;
}
FAKE(cuDeviceGetName, char *name, int size, int device) {
  MAY_FAIL("cuDeviceGetName");
  (void)device;
  snprintf(name, (size_t)size, "Fake H200");
  return 0;
}
FAKE(cuDeviceGetAttribute, int *value, int attribute, int device) {
  MAY_FAIL("cuDeviceGetAttribute");
  const struct {
    int attribute, value;
  } rows[] = {
      {HD_CU_DEVICE_SMS, 132},
      {HD_CU_DEVICE_MEMORY_KHZ, 3201000},
      {HD_CU_DEVICE_MEMORY_BITS, 6144},
      {HD_CU_DEVICE_L2_BYTES, 1 << 20},
      {HD_CU_DEVICE_MAJOR, fake_number("FAKE_CUDA_SM", 90) / 10},
      {HD_CU_DEVICE_MINOR, fake_number("FAKE_CUDA_SM", 90) % 10},
      {HD_CU_DEVICE_SM_SHARED, 228 << 10},
      {HD_CU_DEVICE_MAX_SHARED_OPTIN, 227 << 10},
      {HD_CU_DEVICE_RESERVED_SHARED, 1 << 10},
  };
  (void)device;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (rows[i].attribute == attribute) {
      *value = rows[i].value;
      return 0;
    }
  return HD_CU_INVALID_VALUE;
}
FAKE(cuDevicePrimaryCtxRetain, hd_cu_context_t *context, int device) {
  MAY_FAIL("cuDevicePrimaryCtxRetain");
  fake.contexts[device].retained++;
  *context = &fake.contexts[device];
  return 0;
}
// The process is done with the last: what it left is told.
FAKE(cuDevicePrimaryCtxRelease_v2, int device) {
  fake.contexts[device].retained--;
  for (int i = 0; i < FAKE_MAX_DEVICES; i++)
    if (fake.contexts[i].retained)
      return 0;
  fake_note("left: %d allocations, %d libraries, %d streams, %d events, %d "
            "graphs, %d "
            "executables, %d links\n",
            fake.allocations, fake.libraries, fake.streams, fake.events,
            fake.graphs, fake.execs, fake.links);
  while (fake.functions) {
    struct hd_cu_function *function = fake.functions;
    fake.functions = function->next;
    free(function);
  }
  return 0;
}
FAKE(cuCtxGetCurrent, hd_cu_context_t *context) {
  MAY_FAIL("cuCtxGetCurrent");
  *context = fake_context();
  return 0;
}
// For programs that stay in one.
FAKE(cuCtxSetCurrent, hd_cu_context_t context) {
  current.size = current.size ? current.size - 1 : 0;
  if (context)
    current.contexts[current.size++] = context;
  return 0;
}
FAKE(cuCtxPushCurrent_v2, hd_cu_context_t context) {
  MAY_FAIL("cuCtxPushCurrent_v2");
  if (!context || current.size == 16)
    return HD_CU_INVALID_VALUE;
  current.contexts[current.size++] = context;
  return 0;
}
FAKE(cuCtxPopCurrent_v2, hd_cu_context_t *context) {
  *context = fake_context();
  if (!current.size)
    return 201;
  current.size--;
  return 0;
}
