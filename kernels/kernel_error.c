/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of the calling thread's last error in a back end. */
#include "kernels/kernels.h"

#include <stdarg.h>
#include <stdio.h>

static __thread char error_text[512];

const char *kernel_error(void)
{
	return error_text;
}

int kernel_fail(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error_text, sizeof(error_text), format, args);
	va_end(args);
	return code;
}
