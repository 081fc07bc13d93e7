/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the NVIDIA driver, asked of the CUDA Runtime: libcuda is not linked. */
#ifndef GPU_CUDA_DRIVER_H
#define GPU_CUDA_DRIVER_H

#include <cuda_runtime_api.h>

/* *call becomes the function with the signature that CUDA `abi` has (11040: 11.4), or NULL where the
 * driver lacks it. An error means that CUDA does not start; it is not left for cudaGetLastError(). */
cudaError_t cuda_driver_call(const char *symbol, unsigned int abi, void **call);

#endif
