/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of frames, from what gdrcap.headers() has made of its arguments. */
#include <errno.h>
#include <string.h>

#include "native.h"

/* headers(dst_mac, src_mac, ethertype, vlan or -1, src_port, dst_port, ttl, tos, src_ip, dst_ip, data or
 * None, bytes) */
PyObject *headers_write(PyObject *module, PyObject *args)
{
	struct gdrcap_tx_headers headers = { 0 };
	uint8_t to[GDRCAP_TX_HEADERS_MAX];
	Py_ssize_t dst_bytes, src_bytes;
	const char *dst, *src;
	PyObject *object;
	Py_buffer data = { 0 };
	unsigned int bytes;
	int vlan, ret;

	if (!PyArg_ParseTuple(args, "y#y#HiHHbbIIOI:headers", &dst, &dst_bytes, &src, &src_bytes,
			      &headers.ethertype, &vlan, &headers.src_port, &headers.dst_port,
			      &headers.ttl, &headers.tos, &headers.src_ip, &headers.dst_ip, &object,
			      &bytes))
		return NULL;
	if (object != Py_None && PyObject_GetBuffer(object, &data, PyBUF_SIMPLE) < 0)
		return NULL;
	ret = -EINVAL;
	if (dst_bytes == sizeof(headers.dst_mac) && src_bytes == sizeof(headers.src_mac) &&
	    data.len <= UINT32_MAX) {
		memcpy(headers.dst_mac, dst, sizeof(headers.dst_mac));
		memcpy(headers.src_mac, src, sizeof(headers.src_mac));
		headers.tagged = vlan >= 0;
		headers.vlan = vlan >= 0 ? (uint16_t)vlan : 0;
		ret = gdrcap_tx_write_headers(to, &headers, data.buf,
					      data.buf ? (uint32_t)data.len : bytes);
	}
	if (data.obj)
		PyBuffer_Release(&data);
	if (ret < 0) {
		PyErr_SetString(
			PyExc_ValueError,
			"headers: addresses of 6 bytes, data that one datagram can have (65507 "
			"bytes), and an ethertype of 0x600 or more");
		return NULL;
	}
	return PyBytes_FromStringAndSize((const char *)to, ret);
}
