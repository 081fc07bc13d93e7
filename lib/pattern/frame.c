/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of our own and custom layouts: headers written, frames checked by the CPU. */
#include <errno.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#endif

#include "pattern/frame.h"
#include "pattern/pattern_fast.h"

#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_VLAN 0x8100u
#define ETHERTYPE_QINQ 0x88a8u

/* One byte's step of the reflected polynomial 0x82f63b78. */
const uint32_t frame_crc32c_table[256] = {
	0x00000000, 0xf26b8303, 0xe13b70f7, 0x1350f3f4, 0xc79a971f, 0x35f1141c, 0x26a1e7e8,
	0xd4ca64eb, 0x8ad958cf, 0x78b2dbcc, 0x6be22838, 0x9989ab3b, 0x4d43cfd0, 0xbf284cd3,
	0xac78bf27, 0x5e133c24, 0x105ec76f, 0xe235446c, 0xf165b798, 0x030e349b, 0xd7c45070,
	0x25afd373, 0x36ff2087, 0xc494a384, 0x9a879fa0, 0x68ec1ca3, 0x7bbcef57, 0x89d76c54,
	0x5d1d08bf, 0xaf768bbc, 0xbc267848, 0x4e4dfb4b, 0x20bd8ede, 0xd2d60ddd, 0xc186fe29,
	0x33ed7d2a, 0xe72719c1, 0x154c9ac2, 0x061c6936, 0xf477ea35, 0xaa64d611, 0x580f5512,
	0x4b5fa6e6, 0xb93425e5, 0x6dfe410e, 0x9f95c20d, 0x8cc531f9, 0x7eaeb2fa, 0x30e349b1,
	0xc288cab2, 0xd1d83946, 0x23b3ba45, 0xf779deae, 0x05125dad, 0x1642ae59, 0xe4292d5a,
	0xba3a117e, 0x4851927d, 0x5b016189, 0xa96ae28a, 0x7da08661, 0x8fcb0562, 0x9c9bf696,
	0x6ef07595, 0x417b1dbc, 0xb3109ebf, 0xa0406d4b, 0x522bee48, 0x86e18aa3, 0x748a09a0,
	0x67dafa54, 0x95b17957, 0xcba24573, 0x39c9c670, 0x2a993584, 0xd8f2b687, 0x0c38d26c,
	0xfe53516f, 0xed03a29b, 0x1f682198, 0x5125dad3, 0xa34e59d0, 0xb01eaa24, 0x42752927,
	0x96bf4dcc, 0x64d4cecf, 0x77843d3b, 0x85efbe38, 0xdbfc821c, 0x2997011f, 0x3ac7f2eb,
	0xc8ac71e8, 0x1c661503, 0xee0d9600, 0xfd5d65f4, 0x0f36e6f7, 0x61c69362, 0x93ad1061,
	0x80fde395, 0x72966096, 0xa65c047d, 0x5437877e, 0x4767748a, 0xb50cf789, 0xeb1fcbad,
	0x197448ae, 0x0a24bb5a, 0xf84f3859, 0x2c855cb2, 0xdeeedfb1, 0xcdbe2c45, 0x3fd5af46,
	0x7198540d, 0x83f3d70e, 0x90a324fa, 0x62c8a7f9, 0xb602c312, 0x44694011, 0x5739b3e5,
	0xa55230e6, 0xfb410cc2, 0x092a8fc1, 0x1a7a7c35, 0xe811ff36, 0x3cdb9bdd, 0xceb018de,
	0xdde0eb2a, 0x2f8b6829, 0x82f63b78, 0x709db87b, 0x63cd4b8f, 0x91a6c88c, 0x456cac67,
	0xb7072f64, 0xa457dc90, 0x563c5f93, 0x082f63b7, 0xfa44e0b4, 0xe9141340, 0x1b7f9043,
	0xcfb5f4a8, 0x3dde77ab, 0x2e8e845f, 0xdce5075c, 0x92a8fc17, 0x60c37f14, 0x73938ce0,
	0x81f80fe3, 0x55326b08, 0xa759e80b, 0xb4091bff, 0x466298fc, 0x1871a4d8, 0xea1a27db,
	0xf94ad42f, 0x0b21572c, 0xdfeb33c7, 0x2d80b0c4, 0x3ed04330, 0xccbbc033, 0xa24bb5a6,
	0x502036a5, 0x4370c551, 0xb11b4652, 0x65d122b9, 0x97baa1ba, 0x84ea524e, 0x7681d14d,
	0x2892ed69, 0xdaf96e6a, 0xc9a99d9e, 0x3bc21e9d, 0xef087a76, 0x1d63f975, 0x0e330a81,
	0xfc588982, 0xb21572c9, 0x407ef1ca, 0x532e023e, 0xa145813d, 0x758fe5d6, 0x87e466d5,
	0x94b49521, 0x66df1622, 0x38cc2a06, 0xcaa7a905, 0xd9f75af1, 0x2b9cd9f2, 0xff56bd19,
	0x0d3d3e1a, 0x1e6dcdee, 0xec064eed, 0xc38d26c4, 0x31e6a5c7, 0x22b65633, 0xd0ddd530,
	0x0417b1db, 0xf67c32d8, 0xe52cc12c, 0x1747422f, 0x49547e0b, 0xbb3ffd08, 0xa86f0efc,
	0x5a048dff, 0x8ecee914, 0x7ca56a17, 0x6ff599e3, 0x9d9e1ae0, 0xd3d3e1ab, 0x21b862a8,
	0x32e8915c, 0xc083125f, 0x144976b4, 0xe622f5b7, 0xf5720643, 0x07198540, 0x590ab964,
	0xab613a67, 0xb831c993, 0x4a5a4a90, 0x9e902e7b, 0x6cfbad78, 0x7fab5e8c, 0x8dc0dd8f,
	0xe330a81a, 0x115b2b19, 0x020bd8ed, 0xf0605bee, 0x24aa3f05, 0xd6c1bc06, 0xc5914ff2,
	0x37faccf1, 0x69e9f0d5, 0x9b8273d6, 0x88d28022, 0x7ab90321, 0xae7367ca, 0x5c18e4c9,
	0x4f48173d, 0xbd23943e, 0xf36e6f75, 0x0105ec76, 0x12551f82, 0xe03e9c81, 0x34f4f86a,
	0xc69f7b69, 0xd5cf889d, 0x27a40b9e, 0x79b737ba, 0x8bdcb4b9, 0x988c474d, 0x6ae7c44e,
	0xbe2da0a5, 0x4c4623a6, 0x5f16d052, 0xad7d5351,
};

/* Ethernet .. UDP header; lengths and checksums stay 0. */
static void template_write(struct frame_layout *layout, const struct frame_config *config)
{
	static const uint8_t src_mac[6] = { 2, 0, 0, 0, 0, 1 }, dst_mac[6] = { 2, 0, 0, 0, 0, 2 };
	static const uint8_t unset[6];
	uint8_t *at = layout->templ;

	memcpy(at, memcmp(config->dst_mac, unset, 6) ? config->dst_mac : dst_mac, 6);
	memcpy(at + 6, memcmp(config->src_mac, unset, 6) ? config->src_mac : src_mac, 6);
	at += 12;
	if (layout->vlan) {
		frame_put16(at, ETHERTYPE_VLAN);
		frame_put16(at + 2, layout->vlan);
		at += 4;
	}
	frame_put16(at, layout->ethertype);
	at += 2;
	if (layout->format != FRAME_IPV4_UDP)
		return;
	at[0] = 0x45;		     /* version 4, 20 bytes */
	frame_put16(at + 6, 0x4000); /* do not fragment, so that id 0 is allowed (RFC 6864) */
	at[8] = 64;		     /* time to live */
	at[9] = 17;		     /* UDP */
	frame_put32(at + 12, config->src_ip ? config->src_ip : 0xc0000201u);
	frame_put32(at + 16, config->dst_ip ? config->dst_ip : 0xc0000202u);
	frame_put16(at + 20, config->src_port ? config->src_port : 12345);
	frame_put16(at + 22, layout->udp_port);
}

int frame_layout_init(struct frame_layout *layout, const struct frame_config *config)
{
	const uint32_t ethertype = config->ethertype ? config->ethertype : FRAME_ETHERTYPE;

	memset(layout, 0, sizeof(*layout));
	if (config->format == FRAME_CUSTOM) {
		layout->format = FRAME_CUSTOM;
		return 0;
	}
	if (config->format != FRAME_ETHERNET && config->format != FRAME_IPV4_UDP)
		return -EINVAL;
	/* VID 4095 is reserved; a source address cannot be a group */
	if ((config->vlan & 0x0fff) == 0x0fff || (config->src_mac[0] & 1))
		return -EINVAL;
	layout->format = config->format;
	layout->vlan = config->vlan;
	layout->own_offset = config->vlan ? 18 : 14;
	if (config->format == FRAME_IPV4_UDP) {
		layout->ethertype = ETHERTYPE_IPV4;
		layout->udp_port = config->dst_port ? config->dst_port : 12345;
		layout->own_offset += 28;
	} else {
		/* below 0x600 it is a length; a tag's would hide the own header */
		if (ethertype < 0x600 || ethertype == ETHERTYPE_VLAN || ethertype == ETHERTYPE_QINQ)
			return -EINVAL;
		layout->ethertype = (uint16_t)ethertype;
	}
	template_write(layout, config);
	return 0;
}

void frame_layout_proof(struct frame_layout *layout)
{
	const struct frame_config config = { .format = FRAME_IPV4_UDP };

	frame_layout_init(layout, &config);
	layout->raw = 1;
	layout->raw_payload = 32;
}

/* A big-endian field of 16 bits at byte `at`, of which the bits of `mask` are asked. */
static void look_at(struct frame_look *look, uint32_t at, uint32_t mask, uint32_t want)
{
	for (uint32_t b = 0; b < 2; b++, at++) {
		const uint32_t shift = 8 * (at % 4), bits = b ? mask : mask >> 8;

		look->mask[at / 4] |= (bits & 0xff) << shift;
		look->want[at / 4] |= ((b ? want : want >> 8) & bits & 0xff) << shift;
	}
}

void frame_look_init(struct frame_look *look, const struct frame_layout *layout)
{
	const uint32_t l3 = layout->vlan ? 18 : 14;

	memset(look, 0, sizeof(*look));
	if (layout->vlan) {
		look_at(look, 12, 0xffff, 0x8100);
		look_at(look, 14, 0x0fff, layout->vlan);
	}
	look_at(look, l3 - 2, 0xffff, layout->ethertype);
	if (layout->format != FRAME_IPV4_UDP)
		return;
	look_at(look, l3, 0xff00, 0x4500); /* no options */
	look_at(look, l3 + 6, 0x3fff, 0);  /* no fragment */
	look_at(look, l3 + 8, 0x00ff, 17); /* UDP */
	look_at(look, l3 + 22, 0xffff, layout->udp_port);
}

uint32_t frame_min_bytes(const struct frame_layout *layout)
{
	const uint32_t tag = layout->vlan ? 4 : 0;
	const uint32_t whole = frame_payload_offset(layout) + FRAME_FCS_BYTES +
			       (layout->raw ? layout->raw_payload : 0);

	/* a tagged frame is 68 at least, so that a switch may take the tag off */
	return whole > FRAME_MIN_BYTES + tag ? whole : FRAME_MIN_BYTES + tag;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_instruction(const uint8_t *own)
{
	uint64_t crc = 0xffffffffu, word;

	for (unsigned int i = 0; i < 4; i++) {
		memcpy(&word, own + 8 * i, 8);
		crc = _mm_crc32_u64(crc, word);
	}
	return ~(uint32_t)crc;
}
#elif defined(__aarch64__)
__attribute__((target("+crc"))) static uint32_t crc32c_instruction(const uint8_t *own)
{
	uint32_t crc = 0xffffffffu;
	uint64_t word;

	for (unsigned int i = 0; i < 4; i++) {
		memcpy(&word, own + 8 * i, 8);
		crc = __crc32cd(crc, word);
	}
	return ~crc;
}
#endif

/* CRC32C of an own header. */
static uint32_t header_crc(const uint8_t *own)
{
#if defined(__x86_64__) || defined(__aarch64__)
	if (fast_cpu_now().crc)
		return crc32c_instruction(own);
#endif
	return frame_crc32c(frame_crc32c_table, own, 32);
}

/* The same of a header that was just written: reading it back would wait for the stores. */
static uint32_t header_crc_new(const struct frame_header *header, uint32_t payload_bytes)
{
	uint64_t own[4];

	frame_own_words(header, payload_bytes, own);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	for (unsigned int i = 0; i < 4; i++)
		own[i] = __builtin_bswap64(own[i]);
#endif
	return header_crc((const uint8_t *)own);
}

/* The ones' complement sum of a whole datagram, folded; big-endian words, odd byte padded. */
static uint32_t datagram_sum(const uint8_t *at, uint32_t n)
{
	uint64_t sum = 0;
	uint32_t word, i;

	/* 2^32 = 1 modulo 65535, and 2^16 = 1 too: wider words give the same sum */
	for (i = 0; i + 4 <= n; i += 4) {
		memcpy(&word, at + i, 4);
		sum += word;
	}
	if (i < n) {
		word = 0;
		memcpy(&word, at + i, n - i);
		sum += word;
	}
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16((uint16_t)sum);
#else
	return (uint32_t)sum;
#endif
}

static void udp_checksum_write(uint8_t *ip)
{
	const uint32_t udp_bytes = frame_be16(ip + 24);
	uint32_t sum;

	/* pseudo header: addresses, protocol, length */
	sum = frame_sum16(ip + 12, 8) + 17 + udp_bytes + datagram_sum(ip + 20, udp_bytes);
	sum = ~frame_fold16(sum) & 0xffff;
	frame_put16(ip + 26, sum ? sum : 0xffff); /* 0 says that there is none */
}

void frame_write(const struct frame_layout *layout, const struct pattern *pattern, uint8_t *frame,
		 uint32_t len, const struct frame_header *header)
{
	struct pattern_place place = {
		.position = header->position,
		.sequence = header->sequence,
		.stream = header->stream,
	};
	uint8_t *own = frame + layout->own_offset;
	uint32_t payload_bytes, start;

	if (len > FRAME_LEN_MAX)
		len = FRAME_LEN_MAX;
	start = frame_write_fields(layout, frame, len, header, &payload_bytes);
	if (layout->raw)
		place = (struct pattern_place){ 0 };
	else if (start)
		frame_put32(own + 32, header_crc_new(header, payload_bytes));
	if (start)
		pattern_fill(pattern, &place, frame + start, payload_bytes);
	memset(frame + start + payload_bytes, 0, len - start - payload_bytes);
	if (start && layout->format == FRAME_IPV4_UDP)
		udp_checksum_write(own - 28);
}

/* What the header says. Returns the payload bytes to compare. */
static inline uint32_t header_check(const struct frame_layout *layout,
				    const struct pattern *pattern, const uint8_t *frame,
				    uint32_t len, struct frame_header *header,
				    struct frame_result *result)
{
	enum frame_verdict verdict = frame_recognise(layout, frame, len);
	uint32_t crc = 0;
	int header_ok = 0;

	if (verdict == FRAME_VALID) {
		if (frame_has_header(layout))
			crc = header_crc(frame + layout->own_offset);
		verdict = frame_read_header(layout, frame, len, crc, header, &header_ok);
	} else {
		frame_header_clear(header);
	}
	return frame_result_begin(layout, pattern, verdict, header, header_ok, result);
}

static inline void payload_check(const struct pattern *pattern, const struct pattern_place *place,
				 const uint8_t *frame, uint32_t start, uint32_t bytes,
				 const struct pattern_ahead *ahead, struct frame_result *result)
{
	struct pattern_mismatch mismatch;

	if (!pattern_check_ahead(pattern, place, frame + start, bytes, ahead, &mismatch))
		return;
	result->verdict = FRAME_DAMAGED_PAYLOAD;
	result->wrong_bits = mismatch.wrong_bits;
	result->offset = (uint16_t)(start + mismatch.offset);
	result->expected = mismatch.expected;
	result->got = mismatch.got;
}

/* Frames of a custom layout, and those that rules sort out: apart, since own frames must not pay for them. */
__attribute__((noinline)) static void
check_others(const struct frame_layout *layout, const struct pattern *pattern, const uint8_t *frame,
	     uint32_t len, const struct pattern_ahead *ahead, struct frame_result *result)
{
	const uint32_t start = frame_payload_offset(layout);
	struct frame_header header;
	struct pattern_place place;
	const uint32_t bytes = header_check(layout, pattern, frame, len, &header, result);

	if (!bytes) {
		ahead_all(ahead);
		return;
	}
	if (frame_is_self_phase(layout, pattern)) {
		phase_check_ahead(pattern, frame + start, bytes, start, ahead, result);
		return;
	}
	frame_place(layout, &header, &place);
	payload_check(pattern, &place, frame, start, bytes, ahead, result);
}

/* The payload of a frame in two parts, of which it begins in the first. */
static void payload_check_span(const struct pattern *pattern, const struct pattern_place *place,
			       const struct frame_span *payload, uint32_t start, uint32_t bytes,
			       struct frame_result *result)
{
	const uint32_t part = bytes < payload->first_bytes ? bytes : payload->first_bytes;
	struct pattern_mismatch mismatch, behind;

	pattern_check_part(pattern, place, 0, payload->first, part, &mismatch);
	pattern_check_part(pattern, place, part, payload->rest, bytes - part, &behind);
	result->wrong_bits = mismatch.wrong_bits + behind.wrong_bits;
	if (!mismatch.wrong_bits)
		mismatch = behind;
	if (!mismatch.wrong_bits)
		return;
	result->verdict = FRAME_DAMAGED_PAYLOAD;
	result->offset = (uint16_t)(start + mismatch.offset);
	result->expected = mismatch.expected;
	result->got = mismatch.got;
}

void frame_check_span(const struct frame_layout *layout, const struct pattern *pattern,
		      const struct frame_span *frame, uint32_t len, struct frame_result *result)
{
	const uint32_t start = frame_payload_offset(layout);
	struct frame_header header;
	struct pattern_place place;
	const uint32_t bytes = header_check(layout, pattern, frame->first, len, &header, result);
	struct frame_span payload;

	if (!bytes)
		return;
	payload = frame_span_from(frame, start);
	if (frame_is_self_phase(layout, pattern)) {
		phase_check_span_fast(pattern, &payload, bytes, start, result);
		return;
	}
	frame_place(layout, &header, &place);
	payload_check_span(pattern, &place, &payload, start, bytes, result);
}

/* Flattened: a call costs as much here as the reading that it does. */
__attribute__((flatten)) void frame_check_ahead(const struct frame_layout *layout,
						const struct pattern *pattern, const uint8_t *frame,
						uint32_t len, const struct pattern_ahead *ahead,
						struct frame_result *result)
{
	struct frame_header header;
	struct pattern_place place;
	uint32_t bytes;

	if (layout->format == FRAME_CUSTOM || layout->match.count) {
		check_others(layout, pattern, frame, len, ahead, result);
		return;
	}
	bytes = header_check(layout, pattern, frame, len, &header, result);
	if (!bytes) {
		ahead_all(ahead);
		return;
	}
	frame_place(layout, &header, &place);
	payload_check(pattern, &place, frame, frame_payload_offset(layout), bytes, ahead, result);
}
