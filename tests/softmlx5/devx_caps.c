/* SPDX-License-Identifier: BSD-3-Clause */
/* What the card says of itself by QUERY_HCA_CAP. Whatever is not named here, it has not. */
#include <errno.h>

#include "bits.h"
#include "device.h"

#define OP_MOD SOFT_FIELD(48, 16)
#define CAPABILITY 16 /* byte in the answer */

enum capability {
	CAP_GENERAL = 0,
	CAP_ETHERNET = 1,
	CAP_FLOW_TABLE = 7,
};

struct value {
	struct soft_field field;
	uint32_t value;
};

static const struct value general[] = {
	{ { 136, 8 }, 15 },	   /* log_max_qp_sz */
	{ { 155, 5 }, 12 },	   /* log_max_qp */
	{ { 200, 8 }, 22 },	   /* log_max_cq_sz */
	{ { 219, 5 }, 12 },	   /* log_max_cq */
	{ { 232, 1 }, 1 },	   /* relaxed_ordering_write */
	{ { 233, 1 }, 1 },	   /* relaxed_ordering_read */
	{ { 265, 7 }, 30 },	   /* log_max_mrw_sz */
	{ { 422, 1 }, 1 },	   /* nic_flow_table */
	{ { 540, 1 }, 1 },	   /* eth_net_offloads */
	{ { 656, 16 }, 1024 },	   /* max_wqe_sz_sq */
	{ { 704, 16 }, 0 },	   /* max_flow_counter, high half */
	{ { 811, 5 }, 16 },	   /* log_max_pd */
	{ { 848, 16 }, 4095 },	   /* max_flow_counter, low half */
	{ { 915, 5 }, 9 },	   /* log_max_rqt_size */
	{ { 987, 5 }, 15 },	   /* log_max_wq_sz */
	{ { 1088, 2 }, 1 },	   /* sq_ts_format: real time */
	{ { 1090, 2 }, 1 },	   /* rq_ts_format: real time */
	{ { 1248, 32 }, 1000000 }, /* device_frequency_khz: stands for real time, too */
	{ { 1471, 1 }, 1 },	   /* cqe_compression */
};

static const struct value ethernet[] = {
	{ { 0, 1 }, 1 },  /* csum_cap */
	{ { 1, 1 }, 1 },  /* vlan_cap */
	{ { 7, 1 }, 1 },  /* wqe_vlan_insert */
	{ { 18, 2 }, 2 }, /* wqe_inline_mode: no byte of a frame need be inline */
	{ { 20, 4 }, 9 }, /* rss_ind_tbl_cap */
};

static void put_values(void *to, const struct value *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bits_set(to, values[i].field, values[i].value);
}

int devx_query_caps(struct soft_device *device, const void *in, void *out, size_t out_length)
{
	uint8_t *capability = (uint8_t *)out + CAPABILITY;

	if (out_length < CAPABILITY + 256)
		return EINVAL;
	memset(out, 0, out_length);
	switch (bits_get(in, OP_MOD) >> 1) {
	case CAP_GENERAL:
		put_values(capability, general, sizeof(general) / sizeof(general[0]));
		return 0;
	case CAP_ETHERNET:
		put_values(capability, ethernet, sizeof(ethernet) / sizeof(ethernet[0]));
		return 0;
	case CAP_FLOW_TABLE:
		return 0;
	default:
		return EOPNOTSUPP;
	}
}
