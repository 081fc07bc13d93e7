/* SPDX-License-Identifier: BSD-3-Clause */
/* The structs of DLPack 1.x, as its specification lays them out in memory. */
#ifndef GDRCAP_PYTHON_DLPACK_H
#define GDRCAP_PYTHON_DLPACK_H

#include <stdint.h>

#define DLPACK_MAJOR 1u
#define DLPACK_MINOR 0u
#define DLPACK_FLAG_READ_ONLY (UINT64_C(1) << 0)
#define DLPACK_FLAG_IS_COPIED (UINT64_C(1) << 1)

enum dlpack_device_type { DLPACK_CPU = 1, DLPACK_CUDA = 2 };
enum dlpack_code {
	DLPACK_INT = 0,
	DLPACK_UINT = 1,
	DLPACK_FLOAT = 2,
	DLPACK_COMPLEX = 5,
	DLPACK_BOOL = 6
};

struct dlpack_device {
	int32_t type; /* enum dlpack_device_type */
	int32_t id;
};

struct dlpack_dtype {
	uint8_t code; /* enum dlpack_code */
	uint8_t bits;
	uint16_t lanes;
};

struct dlpack_tensor {
	void *data;
	struct dlpack_device device;
	int32_t ndim;
	struct dlpack_dtype dtype;
	int64_t *shape;
	int64_t *strides; /* in elements */
	uint64_t byte_offset;
};

/* Capsules named "dltensor". */
struct dlpack_managed {
	struct dlpack_tensor tensor;
	void *context;
	void (*deleter)(struct dlpack_managed *self);
};

/* Capsules named "dltensor_versioned". */
struct dlpack_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct dlpack_versioned *self);
	uint64_t flags; /* DLPACK_FLAG_* */
	struct dlpack_tensor tensor;
};

#endif
