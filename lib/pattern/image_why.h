/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a frame brought nothing to an image. The parser knows it, with two values of the frame; texts and JSON's names:
 * image/image_why.c. Compiles as C and CUDA.
 */
#ifndef GDRCAP_IMAGE_WHY_H
#define GDRCAP_IMAGE_WHY_H

/* In the order of image_why.c's table. */
enum image_why {
	IMAGE_WHY_NONE,
	/* filtered */
	IMAGE_WHY_RULE,
	IMAGE_WHY_NOT_UDP,
	IMAGE_WHY_IPV6_HEADER,
	IMAGE_WHY_TAG,
	IMAGE_WHY_FRAGMENT, /* its first one is a misfit */
	IMAGE_WHY_GVCP,
	IMAGE_WHY_GVSP_FORMAT,
	IMAGE_WHY_SPEAD_CONTROL,
	IMAGE_WHY_KIND,
	/* misfits */
	IMAGE_WHY_CUT,
	IMAGE_WHY_UNREADABLE,
	IMAGE_WHY_SHORT,
	IMAGE_WHY_UDP_LENGTH,
	IMAGE_WHY_GVSP_STATUS,
	IMAGE_WHY_NUMBER,
	IMAGE_WHY_RTP,
	IMAGE_WHY_RTP_FIELD,
	IMAGE_WHY_SPEAD,
	IMAGE_WHY_SPEAD_FLAVOUR,
	IMAGE_WHY_SPEAD_ITEM,
	IMAGE_WHY_SPEAD_HEAP,
	IMAGE_WHY_PIECES,
	IMAGE_WHY_PAYLOAD,
	IMAGE_WHY_PLACE,
	IMAGE_WHY_START,
	IMAGE_WHY_GROUP,
	IMAGE_WHYS
};

#endif
