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
//   FAKE_CUDA_VERSION=12030   what cuDriverGetVersion says
//   FAKE_CUDA_SM=90          the compute capability
//   FAKE_CUDA_DEVICES=N       how many there are (1)
#include "Runtime/CudaDriver.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 4 };
struct hd_cu_context {
  int retained;
};
struct hd_cu_module {
  hd_cu_context_t context;
  char *text;
};
struct hd_cu_function {
  char name[128];
  int params, maps; // Of its entry; a map is a parameter of 128 bytes.
  int dynamic_shared;
  hd_cu_context_t context;
  struct hd_cu_function *next;
};
struct hd_cu_stream {
  hd_cu_context_t context;
  int capturing;
};
struct hd_cu_event {
  hd_cu_context_t context;
  int recorded;
};
struct hd_cu_node {
  hd_cu_function_t function;
};
enum { MAX_NODES = 1024 };
struct hd_cu_graph {
  int launches, programmatic;
  struct hd_cu_node nodes[MAX_NODES];
};
struct hd_cu_exec {
  hd_cu_context_t context;
  int launches;
};
struct hd_cu_link {
  char *ptx, *error_log;
  size_t error_log_size;
};

// Allocations by number, so that logs do not depend on addresses.
enum { MAX_ALLOCATIONS = 4096 };

static struct {
  struct hd_cu_context contexts[MAX_DEVICES]; // The primary ones.
  uint64_t addresses[MAX_ALLOCATIONS];        // 0: free.
  hd_cu_context_t owners[MAX_ALLOCATIONS];
  int allocated, encoded; // So far.
  int allocations, modules, streams, events, graphs, execs;
  atomic_int links, calls;    // Code is linked by several threads.
  int captured, programmatic; // Launches in the capture under way,
  hd_cu_graph_t capture;      // and what becomes of it.
  hd_cu_node_t last;
  struct hd_cu_function *functions;
} state;

// Of each thread, the innermost last.
static _Thread_local struct {
  hd_cu_context_t contexts[16];
  int size;
} current;

static hd_cu_context_t current_context(void) {
  return current.size ? current.contexts[current.size - 1] : NULL;
}

// What the driver would say of an object of another context, or without one.
#define NEEDS(context_)                                                        \
  do {                                                                         \
    if (!current_context())                                                    \
      return 201;                                                              \
    if ((context_) != current_context())                                       \
      return 400;                                                              \
  } while (0)

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...) {
  const char *path = getenv("FAKE_CUDA_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file)
    return;
  va_list args;
  va_start(args, format);
  vfprintf(file, format, args);
  va_end(args);
  fclose(file);
}

static void keep(const char *name, const char *ptx) {
  const char *folder = getenv("FAKE_CUDA_PTX");
  char path[4096];
  if (!folder)
    return;
  snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
  FILE *file = fopen(path, "w");
  if (!file || fputs(ptx, file) < 0 || fclose(file) != 0)
    abort();
}

// The error that FAKE_CUDA_FAIL asks of this call, or 0. Calls are counted from
// when it asks for another than before.
static char last_wish[200];
static int fault(const char *name) {
  const char *wish = getenv("FAKE_CUDA_FAIL");
  size_t size = strlen(name);
  if (!wish || strncmp(wish, name, size) != 0 || wish[size] != '=')
    return 0;
  if (strcmp(last_wish, wish) != 0) {
    snprintf(last_wish, sizeof last_wish, "%s", wish);
    state.calls = 0;
  }
  const char *at = strchr(wish, '@');
  bool once = at && at[1] == '=';
  int from = at ? atoi(at + (once ? 2 : 1)) : 1, call = ++state.calls;
  return call == from || (!once && call > from) ? atoi(wish + size + 1) : 0;
}

#define FAKE(name, ...)                                                        \
  __attribute__((visibility("default"))) int name(__VA_ARGS__);                \
  int name(__VA_ARGS__)
#define MAY_FAIL(name)                                                         \
  do {                                                                         \
    int error_ = fault(name);                                                  \
    if (error_)                                                                \
      return error_;                                                           \
  } while (0)

// For tests: what there is of objects that are made and ended, and how often
// the function that FAKE_CUDA_FAIL names was called since it did.
FAKE(fakeCudaLeft, void) {
  return state.allocations + state.modules + state.streams + state.events +
         state.graphs + state.execs + state.links;
}
FAKE(fakeCudaCalls, void) {
  const char *wish = getenv("FAKE_CUDA_FAIL");
  return wish && strcmp(last_wish, wish) == 0 ? state.calls : 0;
}

static int number(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text ? atoi(text) : otherwise;
}

FAKE(cuInit, unsigned flags) {
  (void)flags;
  MAY_FAIL("cuInit");
  return number("FAKE_CUDA_DEVICES", 1) ? 0 : HD_CU_NO_DEVICE;
}
FAKE(cuDriverGetVersion, int *version) {
  MAY_FAIL("cuDriverGetVersion");
  *version = number("FAKE_CUDA_VERSION", 12080);
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
  *count = number("FAKE_CUDA_DEVICES", 1);
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
      {HD_CU_DEVICE_MAJOR, number("FAKE_CUDA_SM", 90) / 10},
      {HD_CU_DEVICE_MINOR, number("FAKE_CUDA_SM", 90) % 10},
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
  state.contexts[device].retained++;
  *context = &state.contexts[device];
  return 0;
}
// The process is done with the last: what it left is told.
FAKE(cuDevicePrimaryCtxRelease_v2, int device) {
  state.contexts[device].retained--;
  for (int i = 0; i < MAX_DEVICES; i++)
    if (state.contexts[i].retained)
      return 0;
  note("left: %d allocations, %d modules, %d streams, %d events, %d graphs, %d "
       "executables, %d links\n",
       state.allocations, state.modules, state.streams, state.events,
       state.graphs, state.execs, state.links);
  while (state.functions) {
    struct hd_cu_function *function = state.functions;
    state.functions = function->next;
    free(function);
  }
  return 0;
}
FAKE(cuCtxGetCurrent, hd_cu_context_t *context) {
  MAY_FAIL("cuCtxGetCurrent");
  *context = current_context();
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
  *context = current_context();
  if (!current.size)
    return 201;
  current.size--;
  return 0;
}

FAKE(cuMemGetInfo_v2, size_t *free_bytes, size_t *total) {
  *free_bytes = 123456;
  *total = 1 << 30;
  return 0;
}
// That an address lies in; NULL: it begins no allocation that is known.
static hd_cu_context_t owner_of(uint64_t address) {
  for (int i = 0; i < MAX_ALLOCATIONS; i++)
    if (state.addresses[i] == address)
      return state.owners[i];
  return current_context();
}
FAKE(cuMemAlloc_v2, uint64_t *address, size_t bytes) {
  MAY_FAIL("cuMemAlloc_v2");
  NEEDS(current_context());
  if (bytes == 0)
    return HD_CU_INVALID_VALUE;
  // Aligned as the driver's: calloc() promises 16 bytes alone.
  void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  *address = (uintptr_t)memory;
  if (memory) {
    memset(memory, 0, bytes);
    if (state.allocated < MAX_ALLOCATIONS)
      state.addresses[state.allocated] = *address,
      state.owners[state.allocated] = current_context();
    state.allocated++;
  }
  state.allocations += memory != NULL;
  return memory ? 0 : HD_CU_OUT_OF_MEMORY;
}
FAKE(cuMemFree_v2, uint64_t address) {
  NEEDS(owner_of(address));
  free((void *)(uintptr_t)address);
  state.allocations--;
  for (int i = 0; i < MAX_ALLOCATIONS; i++)
    if (state.addresses[i] == address)
      state.addresses[i] = 0;
  return 0;
}
FAKE(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes) {
  MAY_FAIL("cuMemcpyHtoD_v2");
  NEEDS(owner_of(to));
  memcpy((void *)(uintptr_t)to, from, bytes);
  return 0;
}
FAKE(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes) {
  MAY_FAIL("cuMemcpyDtoH_v2");
  NEEDS(owner_of(from));
  memcpy(to, (void *)(uintptr_t)from, bytes);
  return 0;
}

FAKE(cuMemcpyAsync, uint64_t to, uint64_t from, size_t bytes,
     hd_cu_stream_t stream) {
  (void)stream;
  MAY_FAIL("cuMemcpyAsync");
  NEEDS(owner_of(to));
  note("copy of %zu bytes\n", bytes);
  memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
  return 0;
}

static int set(uint64_t address, const void *value, size_t size, size_t pitch,
               size_t count, hd_cu_stream_t stream) {
  NEEDS(stream->context);
  if (!stream->capturing)
    note("set %zu times %zu bytes\n", count, size);
  for (size_t i = 0; i < count && !stream->capturing; i++)
    memcpy((char *)(uintptr_t)address + i * pitch, value, size);
  return 0;
}
FAKE(cuMemsetD8Async, uint64_t address, unsigned char value, size_t count,
     hd_cu_stream_t stream) {
  MAY_FAIL("cuMemsetD8Async");
  return set(address, &value, 1, 1, count, stream);
}
FAKE(cuMemsetD16Async, uint64_t address, unsigned short value, size_t count,
     hd_cu_stream_t stream) {
  MAY_FAIL("cuMemsetD16Async");
  return set(address, &value, 2, 2, count, stream);
}
FAKE(cuMemsetD32Async, uint64_t address, unsigned value, size_t count,
     hd_cu_stream_t stream) {
  MAY_FAIL("cuMemsetD32Async");
  return set(address, &value, 4, 4, count, stream);
}
FAKE(cuMemsetD2D32Async, uint64_t address, size_t pitch, unsigned value,
     size_t width, size_t height, hd_cu_stream_t stream) {
  MAY_FAIL("cuMemsetD2D32Async");
  return width == 1 ? set(address, &value, 4, pitch, height, stream)
                    : HD_CU_INVALID_VALUE;
}

FAKE(cuLinkCreate_v2, unsigned count, int *options, void **values,
     hd_cu_link_t *link) {
  MAY_FAIL("cuLinkCreate_v2");
  NEEDS(current_context());
  *link = calloc(1, sizeof(**link));
  state.links++;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == HD_CU_JIT_ERROR_LOG)
      (*link)->error_log = values[i];
    if (options[i] == HD_CU_JIT_ERROR_LOG_SIZE)
      (*link)->error_log_size = (size_t)values[i];
    if (options[i] == HD_CU_JIT_TARGET)
      note("link for target %zu\n", (size_t)values[i]);
  }
  return 0;
}
FAKE(cuLinkAddData_v2, hd_cu_link_t link, int type, void *data, size_t size,
     const char *name, unsigned count, int *options, void **values) {
  (void)count, (void)options, (void)values;
  int error = fault("cuLinkAddData_v2");
  const char *text = data;
  if (type != HD_CU_JIT_INPUT_PTX || size == 0 || text[size - 1] != '\0')
    return HD_CU_INVALID_VALUE;
  if (!error && !strstr(text, ".entry"))
    error = HD_CU_INVALID_PTX;
  if (error)
    snprintf(link->error_log, link->error_log_size, "ptxas says no");
  link->ptx = strdup(text);
  note("link %s\n", name);
  keep(name, text);
  return error;
}
FAKE(cuLinkComplete, hd_cu_link_t link, void **cubin, size_t *size) {
  MAY_FAIL("cuLinkComplete");
  *cubin = link->ptx;
  *size = strlen(link->ptx) + 1;
  return 0;
}
FAKE(cuLinkDestroy, hd_cu_link_t link) {
  free(link->ptx);
  free(link);
  state.links--;
  return 0;
}

FAKE(cuModuleLoadData, hd_cu_module_t *module, const void *image) {
  MAY_FAIL("cuModuleLoadData");
  NEEDS(current_context());
  *module = calloc(1, sizeof(**module));
  (*module)->context = current_context();
  (*module)->text = strdup(image);
  state.modules++;
  return 0;
}
FAKE(cuModuleUnload, hd_cu_module_t module) {
  NEEDS(module->context);
  free(module->text);
  free(module);
  state.modules--;
  return 0;
}
// From ".entry name(" to ")", as PTX has it.
static void count_params(struct hd_cu_function *function, const char *text) {
  const char *end = strchr(strchr(text, '(') + 1, ')');
  for (const char *at = text; (at = strstr(at, ".param")) && at < end; at++) {
    const char *line = memchr(at, '\n', (size_t)(end - at));
    const char *size = strstr(at, "[128]");
    function->params++;
    function->maps += size && size < (line ? line : end);
  }
}

FAKE(cuModuleGetFunction, hd_cu_function_t *function, hd_cu_module_t module,
     const char *name) {
  MAY_FAIL("cuModuleGetFunction");
  char entry[160];
  snprintf(entry, sizeof(entry), ".entry %s(", name);
  if (!strstr(module->text, entry))
    return 500;
  *function = calloc(1, sizeof(**function));
  (*function)->context = module->context;
  snprintf((*function)->name, sizeof((*function)->name), "%s", name);
  count_params(*function, strstr(module->text, entry));
  (*function)->next = state.functions;
  state.functions = *function;
  return 0;
}
FAKE(cuFuncGetAttribute, int *value, int attribute, hd_cu_function_t function) {
  MAY_FAIL("cuFuncGetAttribute");
  (void)function;
  *value = attribute == HD_CU_FUNCTION_REGISTERS     ? 40
           : attribute == HD_CU_FUNCTION_MAX_THREADS ? number("FAKE_CUDA_"
                                                              "MAX_THREADS",
                                                              1024)
                                                     : 0;
  return 0;
}
FAKE(cuFuncSetAttribute, hd_cu_function_t function, int attribute, int value) {
  MAY_FAIL("cuFuncSetAttribute");
  if (attribute == HD_CU_FUNCTION_MAX_DYNAMIC_SHARED)
    function->dynamic_shared = value;
  note("set attribute %d of %s to %d\n", attribute, function->name, value);
  return 0;
}

// What a map is here: its number, and for the rest ones, so that a bit that is
// cleared shows.
static int allocation_of(const void *address) {
  for (int i = 0; i < MAX_ALLOCATIONS; i++)
    if (state.addresses[i] == (uintptr_t)address)
      return i;
  return -1;
}
static void note_list(const char *name, const void *values, unsigned count,
                      unsigned bytes) {
  note(" %s", name);
  for (unsigned i = 0; i < count; i++)
    note("%c%lld", i ? ',' : ' ',
         bytes == 8 ? (long long)((const uint64_t *)values)[i]
                    : (long long)((const int *)values)[i]);
}
// What both ways of encoding ask.
static int encode(void *map, const char *kind, int type, uint32_t rank,
                  const void *base, const uint64_t *sizes,
                  const uint64_t *strides, const uint32_t *steps) {
  hd_cu_map_t *code = map;
  if ((uintptr_t)map % 64 || (uintptr_t)base % 16 || rank < 1 || rank > 5)
    return HD_CU_INVALID_VALUE;
  for (uint32_t i = 0; i < rank; i++)
    if (sizes[i] < 1 || sizes[i] > UINT64_C(1) << 32 || steps[i] < 1 ||
        steps[i] > 8 || (i > 0 && strides[i - 1] % 16))
      return HD_CU_INVALID_VALUE;
  memset(code, 0xff, sizeof(*code));
  code->words[0] = (uint64_t)state.encoded;
  note("map %d %s type %d base %d", state.encoded++, kind, type,
       allocation_of(base));
  note_list("sizes", sizes, rank, 8);
  if (rank > 1)
    note_list("strides", strides, rank - 1, 8);
  return 0;
}
static int encoded(const uint32_t *steps, uint32_t rank, int interleave,
                   int swizzle, int l2, int fill) {
  note_list("steps", steps, rank, 4);
  note(" interleave %d swizzle %d l2 %d fill %d\n", interleave, swizzle, l2,
       fill);
  return 0;
}
FAKE(cuTensorMapEncodeTiled, void *map, int type, uint32_t rank, void *base,
     const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
     const uint32_t *steps, int interleave, int swizzle, int l2, int fill) {
  MAY_FAIL("cuTensorMapEncodeTiled");
  int error = encode(map, "tiled", type, rank, base, sizes, strides, steps);
  if (error)
    return error;
  note_list("box", box, rank, 4);
  return encoded(steps, rank, interleave, swizzle, l2, fill);
}
FAKE(cuTensorMapEncodeIm2col, void *map, int type, uint32_t rank, void *base,
     const uint64_t *sizes, const uint64_t *strides, const int *lower,
     const int *upper, uint32_t channels, uint32_t pixels,
     const uint32_t *steps, int interleave, int swizzle, int l2, int fill) {
  MAY_FAIL("cuTensorMapEncodeIm2col");
  int error =
      rank < 3 ? HD_CU_INVALID_VALUE
               : encode(map, "im2col", type, rank, base, sizes, strides, steps);
  if (error)
    return error;
  note_list("lower", lower, rank - 2, 4);
  note_list("upper", upper, rank - 2, 4);
  note(" channels %u pixels %u", channels, pixels);
  return encoded(steps, rank, interleave, swizzle, l2, fill);
}

static unsigned product(const unsigned dims[3]) {
  return dims[0] * dims[1] * dims[2];
}
// Maps come after all other parameters.
static void note_maps(const struct hd_cu_function *function, void **arguments) {
  for (int i = function->params - function->maps; i < function->params; i++) {
    const hd_cu_map_t *map = arguments[i];
    note(" map %d%s", (int)map->words[0],
         map->words[1] >> 21 & 1 ? "" : " (bit 21 cleared)");
  }
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
    if (state.captured == MAX_NODES)
      abort();
    state.last = &state.capture->nodes[state.captured++];
    state.last->function = function;
    for (unsigned i = 0; i < config->num_attributes; i++)
      state.programmatic +=
          config->attributes[i].id == HD_CU_LAUNCH_PROGRAMMATIC;
    if (function->maps)
      note("captured %s", function->name);
    note_maps(function, arguments);
    if (function->maps)
      note("\n");
    return 0;
  }
  note("launch %s grid %u %u %u block %u %u %u shared %u", function->name,
       config->grid[0], config->grid[1], config->grid[2], config->block[0],
       config->block[1], config->block[2], config->shared_bytes);
  for (unsigned i = 0; i < config->num_attributes; i++)
    if (config->attributes[i].id == HD_CU_LAUNCH_PROGRAMMATIC)
      note(" programmatic %d", config->attributes[i].value.programmatic);
    else
      note(" attribute %d: %u %u %u", config->attributes[i].id,
           config->attributes[i].value.cluster.x,
           config->attributes[i].value.cluster.y,
           config->attributes[i].value.cluster.z);
  note_maps(function, arguments);
  note("\n");
  return 0;
}

FAKE(cuStreamCreate, hd_cu_stream_t *stream, unsigned flags) {
  (void)flags;
  MAY_FAIL("cuStreamCreate");
  NEEDS(current_context());
  *stream = calloc(1, sizeof(**stream));
  (*stream)->context = current_context();
  state.streams++;
  return 0;
}
FAKE(cuStreamDestroy_v2, hd_cu_stream_t stream) {
  NEEDS(stream->context);
  free(stream);
  state.streams--;
  return 0;
}
FAKE(cuStreamSynchronize, hd_cu_stream_t stream) {
  MAY_FAIL("cuStreamSynchronize");
  NEEDS(stream ? stream->context : current_context());
  return stream && stream->capturing ? 900 : 0;
}
FAKE(cuStreamWaitEvent, hd_cu_stream_t stream, hd_cu_event_t event,
     unsigned flags) {
  (void)stream;
  MAY_FAIL("cuStreamWaitEvent");
  NEEDS(event->context);
  return event->recorded && !flags ? 0 : HD_CU_INVALID_VALUE;
}
FAKE(cuStreamBeginCapture_v2, hd_cu_stream_t stream, int mode) {
  (void)mode;
  MAY_FAIL("cuStreamBeginCapture_v2");
  NEEDS(stream->context);
  stream->capturing = 1;
  state.captured = state.programmatic = 0;
  state.capture = calloc(1, sizeof(*state.capture));
  state.graphs++;
  return 0;
}
FAKE(cuStreamGetCaptureInfo_v2, hd_cu_stream_t stream, int *status,
     uint64_t *id, hd_cu_graph_t *graph, const hd_cu_node_t **last,
     size_t *num_last) {
  MAY_FAIL("cuStreamGetCaptureInfo_v2");
  NEEDS(stream->context);
  *status = stream->capturing;
  *id = 1;
  *graph = state.capture;
  *last = &state.last;
  *num_last = state.captured > 0;
  return 0;
}
// The node is of the graph, which is there still.
FAKE(cuGraphExecKernelNodeSetParams_v2, hd_cu_exec_t exec, hd_cu_node_t node,
     const hd_cu_kernel_node_t *kernel) {
  MAY_FAIL("cuGraphExecKernelNodeSetParams_v2");
  NEEDS(exec->context);
  if (node->function != kernel->function || !kernel->arguments)
    return HD_CU_INVALID_VALUE;
  note("update %s", node->function->name);
  note_maps(node->function, kernel->arguments);
  note("\n");
  return 0;
}
FAKE(cuStreamEndCapture, hd_cu_stream_t stream, hd_cu_graph_t *graph) {
  NEEDS(stream->context);
  stream->capturing = 0;
  *graph = state.capture;
  state.capture = NULL;
  (*graph)->launches = state.captured;
  (*graph)->programmatic = state.programmatic;
  int error = fault("cuStreamEndCapture");
  if (error) {
    free(*graph);
    state.graphs--;
    *graph = NULL;
  }
  return error;
}
FAKE(cuGraphInstantiateWithFlags, hd_cu_exec_t *exec, hd_cu_graph_t graph,
     unsigned long long flags) {
  MAY_FAIL("cuGraphInstantiateWithFlags");
  (void)flags;
  NEEDS(current_context());
  *exec = calloc(1, sizeof(**exec));
  (*exec)->context = current_context();
  (*exec)->launches = graph->launches;
  state.execs++;
  note("graph of %d launches", graph->launches);
  if (graph->programmatic)
    note(", %d programmatic", graph->programmatic);
  note("\n");
  return 0;
}
FAKE(cuGraphLaunch, hd_cu_exec_t exec, hd_cu_stream_t stream) {
  MAY_FAIL("cuGraphLaunch");
  NEEDS(exec->context);
  return (stream && stream->capturing) || exec->launches == 0 ? 900 : 0;
}
FAKE(cuGraphDestroy, hd_cu_graph_t graph) {
  free(graph);
  state.graphs--;
  return 0;
}
FAKE(cuGraphExecDestroy, hd_cu_exec_t exec) {
  free(exec);
  state.execs--;
  return 0;
}
FAKE(cuEventCreate, hd_cu_event_t *event, unsigned flags) {
  (void)flags;
  MAY_FAIL("cuEventCreate");
  NEEDS(current_context());
  *event = calloc(1, sizeof(**event));
  (*event)->context = current_context();
  state.events++;
  return 0;
}
FAKE(cuEventDestroy_v2, hd_cu_event_t event) {
  free(event);
  state.events--;
  return 0;
}
FAKE(cuEventRecord, hd_cu_event_t event, hd_cu_stream_t stream) {
  (void)stream;
  MAY_FAIL("cuEventRecord");
  NEEDS(event->context);
  event->recorded = 1;
  return 0;
}
FAKE(cuEventSynchronize, hd_cu_event_t event) {
  MAY_FAIL("cuEventSynchronize");
  return event->recorded ? 0 : HD_CU_INVALID_VALUE;
}
FAKE(cuEventElapsedTime, float *milliseconds, hd_cu_event_t start,
     hd_cu_event_t end) {
  *milliseconds = 2;
  return start->recorded && end->recorded ? 0 : HD_CU_INVALID_VALUE;
}
