// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices, tensors in their memory, and programs that run on them.

#ifndef HIDET_DEVICE_H
#define HIDET_DEVICE_H

#include "hidet/Module.h"

HIDET_C_BEGIN

typedef struct hidet_device hidet_device_t;
typedef struct hidet_tensor hidet_tensor_t;
typedef struct hidet_program hidet_program_t;

// name: "cuda", "cuda:N" (GPU number N), "sim" (the simulator on the CPU),
// "sim:sanitize" (the same under its checks, docs/SIMULATOR.md: slow, and no
// kernel accesses what it may not), "auto" (the first GPU where there is one,
// else the simulator). On HIDET_OK *device is new and ended by
// hidet_device_close(), after everything made for it but models, whose own part
// of it ends with them. Of the context it takes the limits, and who watches
// and cancels, as models and sessions do of that which they are made under. Any
// thread may use a device, and several at once; a tensor is one thread's at a
// time.
HIDET_API hidet_status_t hidet_device_open(hidet_context_t *context,
                                           const char *name,
                                           hidet_device_t **device);
HIDET_API void hidet_device_close(hidet_device_t *device);
// Has the device's memory, for tensors and for everything that models and
// sessions keep there, come from the caller: allocate(argument, bytes) returns
// an address in it (for "sim" a pointer) that is a multiple of 256, NULL where
// there is none left; release(argument, address, bytes) takes it back. Any
// thread calls them, several at once, on "cuda" with the device's primary
// context current. They call nothing of the library, and
// hidet_context_limit() does not count what they give. To be called before the
// device is used, while nobody else uses it: HIDET_USAGE where it has a tensor
// or a model already.
typedef void *(*hidet_allocate_t)(void *argument, size_t bytes);
typedef void (*hidet_release_t)(void *argument, void *address, size_t bytes);
HIDET_API hidet_status_t hidet_device_set_allocator(hidet_device_t *device,
                                                    hidet_allocate_t allocate,
                                                    hidet_release_t release,
                                                    void *argument);
// Code that is made for the device, and what graphs become there, are kept in
// a folder from then on, and found again there, by other processes, too.
// folder: NULL for hidet-run's ($HIDET_CACHE_DIR, $XDG_CACHE_HOME/hidet,
// ~/.cache/hidet; none where none of them is set, or, which a warning tells,
// where that cannot be). max_bytes: what it holds at the most, the least
// recently used removed first; 0 for $HIDET_CACHE_SIZE (such as 512M; "0":
// nothing is kept), or 4 GiB. HIDET_USAGE where that variable is no size, where
// max_bytes is negative, where a folder that is given cannot be, and where the
// device has a cache or memory already, or a model is on it. A device that is
// opened has none; "sim:sanitize" never has.
HIDET_API hidet_status_t hidet_device_set_cache(hidet_device_t *device,
                                                const char *folder,
                                                int64_t max_bytes);
// "cuda" or "sim"; static.
HIDET_API const char *hidet_device_kind(const hidet_device_t *device);

// For the host program's handler of SIGSEGV and SIGBUS. The library installs
// none, and a kernel with a wrong index that "sim" runs may read and write any
// memory of the process. Where that faults, this call ends the kernel and does
// not return; hidet_program_run() returns HIDET_DEVICE. For any other fault it
// does nothing. Safe in a signal handler, and in any thread.
HIDET_API void hidet_handle_fault(void);

// A row-major tensor in the device's memory. type is an element type of the
// language of one byte or more: "f32", "f16", "i8". Its elements are
// uninitialized. shape is copied; sizes are 0 or more; rank is at most 16.
HIDET_API hidet_status_t hidet_tensor_create(hidet_device_t *device,
                                             const char *type,
                                             const int64_t *shape,
                                             unsigned rank,
                                             hidet_tensor_t **tensor);
// The same of memory of the caller's in the device's memory, from address on
// (for "sim" a pointer), which stays while the tensor is there.
HIDET_API hidet_status_t hidet_tensor_wrap(hidet_device_t *device,
                                           const char *type,
                                           const int64_t *shape, unsigned rank,
                                           void *address,
                                           hidet_tensor_t **tensor);
HIDET_API void hidet_tensor_destroy(hidet_tensor_t *tensor);
// The address of its first element.
HIDET_API void *hidet_tensor_data(const hidet_tensor_t *tensor);
// In bytes.
HIDET_API size_t hidet_tensor_size(const hidet_tensor_t *tensor);
// Copies all elements, of hidet_tensor_size() bytes, to and from the device.
// Returns when the copy is done.
HIDET_API hidet_status_t hidet_tensor_write(hidet_tensor_t *tensor,
                                            const void *data);
HIDET_API hidet_status_t hidet_tensor_read(hidet_tensor_t *tensor, void *data);

// The argument for one parameter: a tensor, an integer (also bool) or a float;
// the parameter says which.
typedef struct hidet_argument {
  hidet_tensor_t *tensor;
  int64_t integer;
  double real;
} hidet_argument_t;

// Compiles a kernel or plan of the module for the device (entry NULL: the last
// plan, else the last kernel; "k[BM = 64]" is the instance of one with
// compile-time parameters), for the sizes that the arguments have.
// arguments: one for each parameter, in order. The module is left as it is, but
// for such an instance (so there is none of a module that models are made of):
// several programs, for several sizes, may come from one.
// The program is ended by hidet_program_destroy(), before the module and the
// device.
HIDET_API hidet_status_t hidet_program_create(hidet_device_t *device,
                                              hidet_module_t *module,
                                              const char *entry,
                                              const hidet_argument_t *arguments,
                                              size_t num_arguments,
                                              hidet_program_t **program);
HIDET_API void hidet_program_destroy(hidet_program_t *program);

// Runs it, on these tensors. Shapes and scalars are those it was compiled for:
// HIDET_USAGE where they are not.
// A tensor that is written is given once: HIDET_USAGE otherwise.
// Returns when the run is done.
HIDET_API hidet_status_t hidet_program_run(hidet_program_t *program,
                                           const hidet_argument_t *arguments,
                                           size_t num_arguments);

HIDET_C_END

#endif
