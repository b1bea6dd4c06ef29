// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/Cuda.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

const char *hd_cuda_driver_open(hd_cuda_driver_t *driver, const char *library) {
  static const struct {
    const char *symbol;
    size_t offset;
  } functions[] = {
#define HD_CUDA(member, symbol, parameters)                                    \
  {symbol, offsetof(hd_cuda_driver_t, member)},
#include "Runtime/CudaDriver.def"
#undef HD_CUDA
  };
  *driver = (hd_cuda_driver_t){0};
  driver->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!driver->library)
    return dlerror();
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
    void *function = dlsym(driver->library, functions[i].symbol);
    if (!function) {
      hd_cuda_driver_close(driver);
      return functions[i].symbol;
    }
    memcpy((char *)driver + functions[i].offset, &function, sizeof(function));
  }
  return NULL;
}

void hd_cuda_driver_close(hd_cuda_driver_t *driver) {
  if (driver->library)
    dlclose(driver->library);
  *driver = (hd_cuda_driver_t){0};
}

const char *hd_cuda_error_text(const hd_cuda_t *cuda, int error, char *text,
                               size_t size) {
  const char *name = NULL, *meaning = NULL;
  cuda->driver.error_name(error, &name);
  cuda->driver.error_string(error, &meaning);
  if (name && meaning)
    snprintf(text, size, "%s (%s)", name, meaning);
  else
    snprintf(text, size, "CUDA error %d", error);
  return text;
}

bool hd_cuda_check(const hd_cuda_t *cuda, hd_diagnostics_t *diags, int error,
                   const char *what) {
  char text[256];
  return error == HD_CU_SUCCESS ||
         hd_error(diags, nowhere, HD_E0604, what,
                  hd_cuda_error_text(cuda, error, text, sizeof(text)));
}

// A symbol that a driver lacks is one that it is too old for.
static bool open_driver(hd_cuda_t *cuda, hd_diagnostics_t *diags) {
  const char *fault = hd_cuda_driver_open(&cuda->driver, "libcuda.so.1");
  if (!fault)
    return true;
  if (strncmp(fault, "cu", 2) != 0)
    return hd_error(diags, nowhere, HD_E0601, fault);
  char text[128];
  snprintf(text, sizeof(text), "it is too old: it has no %s", fault);
  return hd_error(diags, nowhere, HD_E0601, text);
}

static bool init_driver(hd_cuda_t *cuda, hd_diagnostics_t *diags) {
  int error = cuda->driver.init(0);
  if (error == HD_CU_NO_DEVICE)
    return hd_error(diags, nowhere, HD_E0603, "");
  if (!hd_cuda_check(cuda, diags, error, "cuInit") ||
      !hd_cuda_check(cuda, diags, cuda->driver.driver_version(&cuda->version),
                     "cuDriverGetVersion"))
    return false;
  int least = HD_CUDA_LEAST_VERSION;
  return cuda->version >= least ||
         hd_error(diags, nowhere, HD_E0602, cuda->version / 1000,
                  cuda->version % 1000 / 10, least / 1000, least % 1000 / 10);
}

static bool find_device(hd_cuda_t *cuda, hd_diagnostics_t *diags, int ordinal) {
  int count = 0;
  if (!hd_cuda_check(cuda, diags, cuda->driver.device_count(&count),
                     "cuDeviceGetCount"))
    return false;
  if (ordinal >= count) {
    char text[80];
    snprintf(text, sizeof(text), " number %d (there %s %d)", ordinal,
             count == 1 ? "is" : "are", count);
    return hd_error(diags, nowhere, HD_E0603, text);
  }
  return hd_cuda_check(cuda, diags,
                       cuda->driver.device_get(&cuda->device, ordinal),
                       "cuDeviceGet");
}

static bool read_attributes(hd_cuda_t *cuda, hd_diagnostics_t *diags) {
  enum {
    MAJOR,
    MINOR,
    SMS,
    L2,
    MEMORY_KHZ,
    MEMORY_BITS,
    MAX_SHARED,
    SM_SHARED,
    RESERVED,
    COUNT
  };
  static const int attributes[COUNT] = {
      [MAJOR] = HD_CU_DEVICE_MAJOR,
      [MINOR] = HD_CU_DEVICE_MINOR,
      [SMS] = HD_CU_DEVICE_SMS,
      [L2] = HD_CU_DEVICE_L2_BYTES,
      [MEMORY_KHZ] = HD_CU_DEVICE_MEMORY_KHZ,
      [MEMORY_BITS] = HD_CU_DEVICE_MEMORY_BITS,
      [MAX_SHARED] = HD_CU_DEVICE_MAX_SHARED_OPTIN,
      [SM_SHARED] = HD_CU_DEVICE_SM_SHARED,
      [RESERVED] = HD_CU_DEVICE_RESERVED_SHARED,
  };
  int values[COUNT];
  for (int i = 0; i < COUNT; i++)
    if (!hd_cuda_check(cuda, diags,
                       cuda->driver.device_attribute(&values[i], attributes[i],
                                                     cuda->device),
                       "cuDeviceGetAttribute"))
      return false;
  cuda->sm = values[MAJOR] * 10 + values[MINOR];
  cuda->sms = values[SMS];
  cuda->l2_bytes = values[L2];
  cuda->memory_gbs = 2e-6 * values[MEMORY_KHZ] * values[MEMORY_BITS] / 8;
  cuda->max_shared_bytes = values[MAX_SHARED];
  cuda->sm_shared_bytes = values[SM_SHARED];
  cuda->reserved_shared_bytes = values[RESERVED];
  return hd_cuda_check(
      cuda, diags,
      cuda->driver.device_name(cuda->name, sizeof(cuda->name), cuda->device),
      "cuDeviceGetName");
}

bool hd_cuda_enter(const hd_cuda_t *cuda, hd_diagnostics_t *diags,
                   bool *entered) {
  hd_cu_context_t current = NULL;
  *entered = false;
  if (cuda->driver.context_get(&current) == 0 && current == cuda->context)
    return true;
  *entered =
      hd_cuda_check(cuda, diags, cuda->driver.context_push(cuda->context),
                    "cuCtxPushCurrent");
  return *entered;
}

void hd_cuda_leave(const hd_cuda_t *cuda, bool entered) {
  hd_cu_context_t popped;
  if (entered)
    cuda->driver.context_pop(&popped);
}

hd_cuda_t *hd_cuda_open(hd_diagnostics_t *diags, int ordinal) {
  hd_cuda_t *cuda = calloc(1, sizeof(*cuda));
  if (!cuda) {
    hd_error(diags, nowhere, HD_E0904, "out of memory");
    return NULL;
  }
  if (open_driver(cuda, diags) && init_driver(cuda, diags) &&
      find_device(cuda, diags, ordinal) && read_attributes(cuda, diags) &&
      hd_cuda_check(cuda, diags,
                    cuda->driver.context_retain(&cuda->context, cuda->device),
                    "cuDevicePrimaryCtxRetain"))
    return cuda;
  hd_cuda_close(cuda);
  return NULL;
}

void hd_cuda_close(hd_cuda_t *cuda) {
  if (!cuda)
    return;
  if (cuda->context)
    cuda->driver.context_release(cuda->device);
  // The library stays open: the driver has threads of its own.
  free(cuda);
}

int hd_cuda_ordinal(const char *name) {
  if (strcmp(name, "cuda") == 0)
    return 0;
  if (strncmp(name, "cuda:", 5) != 0 || !isdigit((unsigned char)name[5]))
    return -1;
  char *end;
  long ordinal = strtol(name + 5, &end, 10);
  return *end || ordinal > 1023 ? -1 : (int)ordinal;
}

int hd_cuda_present_sm(void) {
  hd_cuda_t cuda = {0};
  int major = 0, minor = 0, count = 0;
  if (hd_cuda_driver_open(&cuda.driver, "libcuda.so.1"))
    return 0;
  const hd_cuda_driver_t *d = &cuda.driver;
  bool ok = d->init(0) == 0 && d->device_count(&count) == 0 && count > 0 &&
            d->device_get(&cuda.device, 0) == 0 &&
            d->device_attribute(&major, HD_CU_DEVICE_MAJOR, cuda.device) == 0 &&
            d->device_attribute(&minor, HD_CU_DEVICE_MINOR, cuda.device) == 0;
  return ok ? major * 10 + minor : 0;
}

// An integer as the driver takes one: in the place of a pointer.
static void *as_pointer(size_t value) {
  union {
    size_t value;
    void *pointer;
  } u = {.value = value};
  return u.pointer;
}

// An error while something of a kernel was done: "making machine code of".
static bool report_code(const hd_cuda_t *cuda, hd_diagnostics_t *diags,
                        const char *doing, const char *name, int error,
                        const char *log) {
  char what[160], text[256];
  snprintf(what, sizeof(what), "%s kernel '%.100s'", doing, name);
  // That is what there is to the kernel; all else is the driver's or the GPU's.
  if (error == HD_CU_INVALID_PTX || error == HD_CU_OUT_OF_RESOURCES)
    hd_error(diags, nowhere, HD_E0612, what,
             hd_cuda_error_text(cuda, error, text, sizeof(text)));
  else
    hd_cuda_check(cuda, diags, error, what);
  if (log[0])
    hd_note(diags, nowhere, "the driver says: %s", log);
  if (error == HD_CU_UNSUPPORTED_PTX) {
    snprintf(text, sizeof(text),
             "the driver is of CUDA %d.%d; a newer one "
             "knows this version of PTX",
             cuda->version / 1000, cuda->version % 1000 / 10);
    hd_note(diags, nowhere, "%s", text);
  }
  return false;
}

// What the driver says of a link.
typedef struct link_log {
  char error[4096], info[8192];
} link_log_t;

// One try. target: a CUjit_target, or 0 for that of the context.
static int try_link(hd_cuda_t *cuda, const char *name, size_t target,
                    const char *ptx, size_t size, link_log_t *log,
                    hd_buffer_t *cubin) {
  int options[] = {HD_CU_JIT_ERROR_LOG,   HD_CU_JIT_ERROR_LOG_SIZE,
                   HD_CU_JIT_INFO_LOG,    HD_CU_JIT_INFO_LOG_SIZE,
                   HD_CU_JIT_LOG_VERBOSE, HD_CU_JIT_TARGET};
  void *values[] = {log->error,    as_pointer(sizeof(log->error)),
                    log->info,     as_pointer(sizeof(log->info)),
                    as_pointer(1), as_pointer(target)};
  hd_cu_link_t link = NULL;
  log->error[0] = log->info[0] = '\0';
  int error = cuda->driver.link_create(target ? 6 : 5, options, values, &link);
  if (error)
    return error;
  // The driver does not write to its input, whose type lacks the const. The
  // final zero is part of what it wants.
  union {
    const char *text;
    void *data;
  } input = {.text = ptx};
  error = cuda->driver.link_add(link, HD_CU_JIT_INPUT_PTX, input.data, size + 1,
                                name, 0, NULL, NULL);
  void *image = NULL;
  size_t bytes = 0;
  if (!error)
    error = cuda->driver.link_complete(link, &image, &bytes);
  if (!error)
    hd_buffer_write(cubin, image, bytes); // It belongs to the link.
  cuda->driver.link_destroy(link);
  return error;
}

// Whether products of warpgroups would wait for each other, as the driver says
// of it by C7509: but of code that it has in its own cache it says nothing.
// These instructions have a path that is a call where functions may be added.
static bool calls_beside_products(const char *ptx) {
  static const char *const calls[] = {"div.rn.f32",  "rcp.rn.f32",
                                      "sqrt.rn.f32", "div.rn.f64",
                                      "rcp.rn.f64",  "sqrt.rn.f64"};
  bool any = false;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    any |= strstr(ptx, calls[i]) != NULL;
  return any && strstr(ptx, "wgmma.mma_async");
}

static bool link_here(hd_cuda_t *cuda, hd_diagnostics_t *diags,
                      const char *name, int sm, const char *ptx, size_t size,
                      hd_buffer_t *cubin, bool *is_slow) {
  link_log_t log, second;
  bool accelerated = sm > 120;
  size_t target =
      accelerated ? (size_t)(sm / 10) + HD_CU_TARGET_ACCELERATED : (size_t)sm;
  // The target is left to the context where it is that of the device. A driver
  // that then thinks of the plain architecture is told of the accelerated one.
  bool same = (accelerated ? sm / 10 : sm) == cuda->sm;
  int error = try_link(cuda, name, same ? 0 : target, ptx, size, &log, cubin);
  bool ok = !error;
  // What is loaded as PTX is made code for the context's target.
  *is_slow = ok && (strstr(log.info, "Performance Loss") ||
                    calls_beside_products(ptx));
  if (!ok && same && accelerated)
    ok = try_link(cuda, name, target, ptx, size, &second, cubin) == 0;
  return ok || report_code(cuda, diags, "making machine code of", name, error,
                           log.error);
}

bool hd_cuda_load_code(hd_cuda_t *cuda, hd_diagnostics_t *diags,
                       const char *name, const void *code,
                       hd_cu_library_t *library) {
  char log[4096] = "";
  int options[] = {HD_CU_JIT_ERROR_LOG, HD_CU_JIT_ERROR_LOG_SIZE};
  void *values[] = {log, as_pointer(sizeof(log))};
  int error = cuda->driver.library_load(library, code, options, values, 2, NULL,
                                        NULL, 0);
  return error == 0 || report_code(cuda, diags, "loading", name, error, log);
}

bool hd_cuda_link(hd_cuda_t *cuda, hd_diagnostics_t *diags, const char *name,
                  int sm, const char *ptx, size_t size, hd_buffer_t *cubin,
                  bool *is_slow) {
  bool entered;
  bool ok = hd_cuda_enter(cuda, diags, &entered) &&
            link_here(cuda, diags, name, sm, ptx, size, cubin, is_slow);
  hd_cuda_leave(cuda, entered);
  return ok;
}
