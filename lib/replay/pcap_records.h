/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of a pcap file (versions up to 2.4, in us and ns, and Kuznetzov's) or a pcapng file, in either byte order,
 * as its bytes come. Every file is hostile. Nothing is judged here but the file's own form: a packet may be of any
 * interface, cut, or at an impossible time.
 */
#ifndef GDRCAP_PCAP_RECORDS_H
#define GDRCAP_PCAP_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/pcap_stream.h"

/* Of a packet; the most that other tools read, too. */
#define PCAP_SNAP_MAX 262144u
#define PCAP_LINK_ETHERNET 1u

enum pcap_kind { PCAP_NONE, PCAP_PLAIN, PCAP_NG };

/* What a packet was captured on; in a pcap file there is one. */
struct pcap_interface {
	uint32_t link, snap; /* snap: bytes of a packet at most; PCAP_SNAP_MAX: no limit */
	int64_t offset;	     /* s, of times */
	uint32_t fcs_bytes;
	uint8_t resolution; /* of times, as if_tsresol has it */
};

struct pcap_record {
	const uint8_t *bytes; /* until the next call */
	uint32_t bytes_here, bytes_sent;
	uint32_t fcs_bytes; /* of those sent, the last */
	uint32_t link, snap;
	int64_t seconds; /* since the Unix epoch; of a simple packet block 0: it has no time */
	uint64_t ns;
};

struct pcap_records {
	struct pcap_stream stream;
	enum pcap_kind kind;
	uint8_t magic[4]; /* the file's first bytes */
	bool swapped;	  /* its byte order, or the section's, is not this machine's */
	bool nano;
	bool old;	     /* lengths may be the other way round */
	uint32_t head_bytes; /* of a record of pcap */
	struct pcap_interface *interfaces;
	uint32_t count, room;
	/* Of a block that is passed over: its length, and how much of it is left. */
	uint32_t block_bytes, block_left;
	char why[160]; /* -EINVAL, -ENOTSUP: what is wrong */
};

/*
 * The stream is open. Reads the head; of pcapng up to the first interface. 0; -ENODATA: the file is empty; -EBADMSG: it ends in
 * its head; -EINVAL: it is broken, or where `kind` is PCAP_NONE something else; -ENOTSUP; -EAGAIN, to be called again; or
 * what read() says.
 */
int pcap_records_begin(struct pcap_records *records);
/* 1; 0: the end; -EBADMSG: the file ends in the middle of a packet or block, of which what is left in the stream is there;
 * -EINVAL: it is broken; -ENOTSUP; -EAGAIN; or what read() says. */
int pcap_records_next(struct pcap_records *records, struct pcap_record *record);
int pcap_records_rewind(struct pcap_records *records);
void pcap_records_close(struct pcap_records *records);

#endif
