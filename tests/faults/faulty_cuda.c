/* SPDX-License-Identifier: BSD-3-Clause */
/* What CUDA refuses: a card's doorbell register, as without rights or PeerMappingOverride. */
#include <stddef.h>

#include <driver_types.h>

#include "knobs.h"

#define REGISTER_PAGE 4096u /* no other memory is so small */

cudaError_t __real_cudaHostRegister(void *at, size_t bytes, unsigned int flags);
cudaError_t __wrap_cudaHostRegister(void *at, size_t bytes, unsigned int flags);

cudaError_t __wrap_cudaHostRegister(void *at, size_t bytes, unsigned int flags)
{
	if (bytes == REGISTER_PAGE && fault_of(KNOB_REGISTER_REFUSED))
		return cudaErrorNotSupported;
	return __real_cudaHostRegister(at, bytes, flags);
}
