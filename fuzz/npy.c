// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes are read as a .npy file, or refused with a diagnostic, within the
// bound on memory. The first byte says which element type is wanted.

#include "Runtime/Npy.h"
#include "IR/Graph/HostTensor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  hd_scalar_t wanted = (hd_scalar_t)(data[0] % HD_MBARRIER);
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  hd_budget_t budget = {.bytes_limit = (size_t)256 << 20};
  hd_host_tensor_t tensor = {0};
  if (hd_npy_decode(&diags, &budget, "fuzz", data + 1, size - 1, wanted,
                    &tensor)) {
    for (int64_t k = 0; k < tensor.count && k < 100; k++)
      (void)hd_host_tensor_get(&tensor, k);
  } else if (diags.num_errors == 0) {
    abort(); // Refused, but nothing said.
  }
  hd_host_tensor_fini(&tensor);
  hd_diagnostics_fini(&diags);
  return 0;
}
