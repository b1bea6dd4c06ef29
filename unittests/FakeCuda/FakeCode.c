// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of the fake device, which is the text of its PTX; linked, behind a mark.
#include "FakeCuda.h"

#define LINKED "linked\n"

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

FAKE(cuLinkCreate_v2, unsigned count, int *options, void **values,
     hd_cu_link_t *link) {
  MAY_FAIL("cuLinkCreate_v2");
  NEEDS(fake_context());
  *link = calloc(1, sizeof(**link));
  fake.links++;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == HD_CU_JIT_ERROR_LOG)
      (*link)->error_log = values[i];
    if (options[i] == HD_CU_JIT_ERROR_LOG_SIZE)
      (*link)->error_log_size = (size_t)values[i];
    const char *says = getenv("FAKE_CUDA_SAYS");
    if (options[i] == HD_CU_JIT_INFO_LOG && says)
      strcpy(values[i], says);
    if (options[i] == HD_CU_JIT_TARGET)
      fake_note("link for target %zu\n", (size_t)values[i]);
  }
  return 0;
}
FAKE(cuLinkAddData_v2, hd_cu_link_t link, int type, void *data, size_t size,
     const char *name, unsigned count, int *options, void **values) {
  (void)count, (void)options, (void)values;
  int error = fake_fault("cuLinkAddData_v2");
  const char *text = data;
  if (type != HD_CU_JIT_INPUT_PTX || size == 0 || text[size - 1] != '\0')
    return HD_CU_INVALID_VALUE;
  if (!error && !strstr(text, ".entry"))
    error = HD_CU_INVALID_PTX;
  const char *refused = getenv("FAKE_CUDA_REFUSES");
  if (!error && refused && strstr(text, refused))
    error = HD_CU_INVALID_PTX;
  if (error)
    snprintf(link->error_log, link->error_log_size, "ptxas says no");
  link->ptx = strdup(text);
  fake_note("link %s\n", name);
  keep(name, text);
  return error;
}
FAKE(cuLinkComplete, hd_cu_link_t link, void **cubin, size_t *size) {
  MAY_FAIL("cuLinkComplete");
  *size = sizeof(LINKED) + strlen(link->ptx);
  char *code = malloc(*size);
  if (!code)
    abort();
  snprintf(code, *size, LINKED "%s", link->ptx);
  free(link->ptx);
  *cubin = link->ptx = code;
  return 0;
}
FAKE(cuLinkDestroy, hd_cu_link_t link) {
  free(link->ptx);
  free(link);
  fake.links--;
  return 0;
}

static int load(hd_cu_library_t *library, const char *text) {
  NEEDS(fake_context());
  *library = calloc(1, sizeof(**library));
  (*library)->text = strdup(text);
  fake.libraries++;
  return 0;
}
FAKE(cuLibraryLoadData, hd_cu_library_t *library, const void *image,
     int *options, void **values, unsigned count, int *library_options,
     void **library_values, unsigned library_count) {
  ENDS_CAPTURES();
  (void)options, (void)values, (void)count;
  (void)library_options, (void)library_values;
  MAY_FAIL("cuLibraryLoadData");
  if (library_count)
    return HD_CU_INVALID_VALUE;
  const char *text = image;
  if (strncmp(text, LINKED, sizeof(LINKED) - 1) == 0)
    text += sizeof(LINKED) - 1;
  else
    fake_note("compile\n");
  return load(library, text);
}
FAKE(cuLibraryUnload, hd_cu_library_t library) {
  ENDS_CAPTURES();
  while (library->kernels) {
    hd_cu_kernel_t kernel = library->kernels;
    library->kernels = kernel->next;
    free(kernel);
  }
  free(library->text);
  free(library);
  fake.libraries--;
  return 0;
}
FAKE(cuLibraryGetKernel, hd_cu_kernel_t *kernel, hd_cu_library_t library,
     const char *name) {
  MAY_FAIL("cuLibraryGetKernel");
  char entry[160];
  snprintf(entry, sizeof(entry), ".entry %s(", name);
  if (!strstr(library->text, entry))
    return 500;
  *kernel = calloc(1, sizeof(**kernel));
  snprintf((*kernel)->name, sizeof((*kernel)->name), "%s", name);
  (*kernel)->library = library;
  (*kernel)->next = library->kernels;
  library->kernels = *kernel;
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

// By FAKE_CUDA_LOCAL=TEXT=BYTES.
static int local_of(const char *ptx) {
  const char *wish = getenv("FAKE_CUDA_LOCAL");
  char text[200];
  size_t size = wish ? strcspn(wish, "=") : 0;
  if (!size || size >= sizeof(text))
    return 0;
  memcpy(text, wish, size);
  text[size] = '\0';
  return strstr(ptx, text) ? atoi(wish + size + 1) : 0;
}

FAKE(cuKernelGetFunction, hd_cu_function_t *function, hd_cu_kernel_t kernel) {
  MAY_FAIL("cuKernelGetFunction");
  NEEDS(fake_context());
  char entry[160];
  snprintf(entry, sizeof(entry), ".entry %s(", kernel->name);
  *function = calloc(1, sizeof(**function));
  (*function)->context = fake_context();
  snprintf((*function)->name, sizeof((*function)->name), "%s", kernel->name);
  count_params(*function, strstr(kernel->library->text, entry));
  (*function)->local = local_of(kernel->library->text);
  pthread_mutex_lock(&fake.lock);
  (*function)->next = fake.functions;
  fake.functions = *function;
  pthread_mutex_unlock(&fake.lock);
  return 0;
}

// Strangers load PTX as modules, which are libraries here.
FAKE(cuModuleLoadData, hd_cu_library_t *module, const void *image) {
  return load(module, image);
}
FAKE(cuModuleGetFunction, hd_cu_function_t *function, hd_cu_library_t module,
     const char *name) {
  hd_cu_kernel_t kernel;
  int error = cuLibraryGetKernel(&kernel, module, name);
  return error ? error : cuKernelGetFunction(function, kernel);
}
FAKE(cuFuncGetAttribute, int *value, int attribute, hd_cu_function_t function) {
  MAY_FAIL("cuFuncGetAttribute");
  *value = attribute == HD_CU_FUNCTION_REGISTERS     ? 40
           : attribute == HD_CU_FUNCTION_LOCAL_BYTES ? function->local
           : attribute == HD_CU_FUNCTION_MAX_THREADS
               ? fake_number("FAKE_CUDA_"
                             "MAX_THREADS",
                             1024)
               : 0;
  return 0;
}
FAKE(cuFuncSetAttribute, hd_cu_function_t function, int attribute, int value) {
  MAY_FAIL("cuFuncSetAttribute");
  if (attribute == HD_CU_FUNCTION_MAX_DYNAMIC_SHARED)
    function->dynamic_shared = value;
  fake_note("set attribute %d of %s to %d\n", attribute, function->name, value);
  return 0;
}
