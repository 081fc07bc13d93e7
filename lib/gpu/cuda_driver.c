/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place that asks for functions of the NVIDIA driver. */
#include "gpu/cuda_driver.h"

#include <stddef.h>

cudaError_t cuda_driver_call(const char *symbol, unsigned int abi, void **call)
{
	enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
	cudaError_t error;

	*call = NULL;
#if CUDART_VERSION >= 12050
	error = cudaGetDriverEntryPointByVersion(symbol, call, abi, cudaEnableDefault, &found);
#elif CUDART_VERSION >= 12000
	error = cudaGetDriverEntryPoint(symbol, call, cudaEnableDefault, &found);
#else
	error = cudaGetDriverEntryPoint(symbol, call, cudaEnableDefault);
#endif
	if (error != cudaSuccess)
		(void)cudaGetLastError(); /* the application's own check would find it */
	if (error != cudaSuccess || found != cudaDriverEntryPointSuccess)
		*call = NULL;
	return error;
}
