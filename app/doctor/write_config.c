/* SPDX-License-Identifier: BSD-3-Clause */
/* A configuration for this machine, as somebody who knows it would write it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "base/log.h"
#include "doctor/tree.h"

#define QUEUES_MAX 4u

/* How much speaks for a card as the one that sends into `card`; 0: it cannot. */
static int sender_rank(const struct doctor *doctor, const struct machine_card *card,
		       const struct machine_card *sender)
{
	const char *a = card->pci.address, *b = sender->pci.address;
	const size_t board = strcspn(a, ".");
	int rank = 1;

	if (sender == card || !sender->connectx || pairs_infiniband(doctor->tree, sender) ||
	    sender->pci.virtual_function != card->pci.virtual_function)
		return 0;
	/* A cable that is plugged in at both ends may well be this one. */
	rank += 4 * (pairs_up(doctor->tree, sender) && pairs_up(doctor->tree, card));
	rank += 2 * (strncmp(a, b, board + 1) == 0);
	rank += sender->pci.device == card->pci.device;
	return rank;
}

static void cards_choose(const struct doctor *doctor, struct doctor_choice *choice)
{
	int best = 0;

	if (doctor->pairs) {
		choice->card = doctor->pair[0].card;
		choice->gpu = doctor->pair[0].gpu;
		choice->path = doctor->pair[0].path;
	}
	for (uint32_t i = 0; !choice->card && i < doctor->machine.cards; i++)
		if (doctor->machine.card[i].connectx &&
		    !pairs_infiniband(doctor->tree, &doctor->machine.card[i]))
			choice->card = &doctor->machine.card[i];
	if (!choice->gpu && doctor->machine.gpus)
		choice->gpu = &doctor->machine.gpu[0];
	for (uint32_t i = 0; choice->card && i < doctor->machine.cards; i++) {
		const struct machine_card *sender = &doctor->machine.card[i];
		const int rank = sender_rank(doctor, choice->card, sender);

		if (rank > best) {
			best = rank;
			choice->sender = sender;
		}
	}
}

/* True when another thread of this CPU's core is taken. */
static bool core_shared(const struct doctor *doctor, const struct doctor_choice *choice,
			uint32_t cpu)
{
	char text[TREE_TEXT_MAX], *piece, *rest = text;

	if (tree_text(doctor->tree, text,
		      "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu) < 0)
		return false;
	while ((piece = strsep(&rest, ",")) != NULL) {
		unsigned int first, last;
		const int got = sscanf(piece, "%u-%u", &first, &last);

		for (uint32_t i = 0; got >= 1 && i < choice->cores; i++)
			if (choice->core[i] != cpu && choice->core[i] >= first &&
			    choice->core[i] <= (got == 2 ? last : first))
				return true;
	}
	return false;
}

/* Isolated CPUs first, threads of different cores first. */
static void cores_choose(struct doctor *doctor, struct doctor_choice *choice, uint32_t wanted,
			 uint32_t least)
{
	struct pairs_cpus cpus;
	bool taken[PAIRS_CPUS_MAX] = { false };

	pairs_cpus(doctor,
		   choice->card	 ? &choice->card->pci
		   : choice->gpu ? &choice->gpu->pci
				 : NULL,
		   &cpus);
	for (int turn = 0; turn < 4; turn++)
		for (uint32_t cpu = 0; cpu < PAIRS_CPUS_MAX && choice->cores < wanted; cpu++) {
			if (!cpus.near[cpu] || taken[cpu] ||
			    cpus.isolated[cpu] != (turn % 2 == 0) ||
			    (turn < 2 && core_shared(doctor, choice, cpu)))
				continue;
			taken[cpu] = true;
			choice->core[choice->cores++] = cpu;
			choice->isolated |= cpus.isolated[cpu];
		}
	/* Better the kernel's than one for two workers. */
	if (choice->cores && choice->cores < least && cpus.zero && !taken[0])
		choice->core[choice->cores++] = 0;
}

/* A queue for each 25 Gbit/s, a core for each queue and direction. */
static void queues_choose(struct doctor *doctor, struct doctor_choice *choice)
{
	char text[TREE_TEXT_MAX];
	uint32_t each = choice->sender || !choice->card ? 2 : 1;

	choice->queues = 1;
	if (choice->card &&
	    tree_fact(doctor->tree, text, "ethtool/%s/speed", choice->card->interface) == 0)
		choice->mbits = strtoull(text, NULL, 10);
	if (choice->mbits > 1000000)
		choice->mbits = 0;
	while (choice->queues < QUEUES_MAX && choice->queues * UINT64_C(25000) < choice->mbits)
		choice->queues *= 2;
	cores_choose(doctor, choice, choice->queues * each, each);
	while (choice->queues > 1 && choice->queues * each > choice->cores)
		choice->queues /= 2;
	if (choice->cores > choice->queues * each)
		choice->cores = choice->queues * each;
}

void doctor_choose(struct doctor *doctor)
{
	cards_choose(doctor, &doctor->choice);
	queues_choose(doctor, &doctor->choice);
}

/* ---- the file ---- */

static void write_head(FILE *to, const struct doctor *doctor, const struct doctor_choice *choice,
		       const char *path)
{
	const bool loopback = choice->sender || !choice->card;
	/* Without one of them it is not about GPU memory. */
	const bool gpu_memory = choice->card && choice->gpu;
	bool first = true;

	fprintf(to,
		"# Written by gdrcap doctor for this machine. Try it:\n#\n"
		"#   gdrcap %s --config ",
		loopback ? "loopback" : "capture");
	/* A comment ends with its line, and YAML is UTF-8. */
	for (const char *c = path; *c; c++)
		fputc((unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7f ? *c : '?', to);
	fprintf(to, "\n#\n");
	for (uint32_t i = 0; gpu_memory && i < doctor->count; i++) {
		const struct finding *finding = &doctor->findings[i];

		if (finding->check->severity != SEVERITY_FATAL || finding->verdict != HEALTH_FAIL)
			continue;
		if (first)
			fprintf(to, "# It will not work before this is mended (gdrcap doctor says "
				    "how):\n");
		first = false;
		fprintf(to, "#   %s%s%s\n", finding->check->id, finding->subject[0] ? " " : "",
			finding->subject);
	}
	if (!first)
		fprintf(to, "#\n");
	fprintf(to, "# Every option: docs/configuration.md\n\n");
}

static void write_port(FILE *to, const struct doctor *doctor, const char *key,
		       const struct machine_card *card)
{
	fprintf(to, "# %s%s%s, %s, %s\n", card->model, card->interface[0] ? ", " : "",
		card->interface, card->rdma[0] ? card->rdma : "no RDMA device",
		pairs_up(doctor->tree, card) ? "link up" : "its link is not up");
	fprintf(to, "%s: %s\n", key, card->pci.address);
}

static void write_ports(FILE *to, const struct doctor *doctor, const struct doctor_choice *choice)
{
	if (!choice->card) {
		fprintf(to, "# There is no ConnectX: a wire inside the process.\n"
			    "port: ring:wire\ntx_port: ring:wire\n");
		return;
	}
	write_port(to, doctor, "port", choice->card);
	if (choice->sender) {
		fprintf(to, "# Sends into it: connect the two by a cable, or by a switch.\n");
		write_port(to, doctor, "tx_port", choice->sender);
		return;
	}
	fprintf(to, "# There is no second port to send from: frames come from another machine\n"
		    "# (gdrcap replay), or this one gets a second ConnectX port.\n"
		    "# tx_port: 0000:00:00.0\n");
}

static void write_gpu(FILE *to, const struct doctor_choice *choice)
{
	if (!choice->gpu) {
		fprintf(to, "\n# There is no GPU: CPU threads check the frames.\n"
			    "gpu: host\nmemory: host\n");
		return;
	}
	fprintf(to, "\n# %s %s", choice->gpu->name[0] ? choice->gpu->name : "GPU",
		choice->gpu->pci.address);
	if (choice->path)
		fprintf(to, ", %s from the card", choice->path);
	if (choice->gpu->cuda_ordinal >= 0)
		fprintf(to, "\ngpu: %d\n", choice->gpu->cuda_ordinal);
	else
		fprintf(to, "; CUDA did not say its ordinal\ngpu: auto\n");
	if (choice->card)
		fprintf(to, "# The card writes into the GPU's own memory; pinned would be the "
			    "host's.\nmemory: device\n");
}

static void write_cores(FILE *to, const struct doctor_choice *choice)
{
	const int node = choice->card ? choice->card->pci.numa_node : -1;

	fprintf(to, "\n# ");
	if (choice->mbits)
		fprintf(to, "The link has %llu Gbit/s. ", (unsigned long long)choice->mbits / 1000);
	fprintf(to, "Each queue takes a core%s.\nqueues: %u\n",
		choice->sender || !choice->card ? " to receive and one to send" : "",
		choice->queues);
	if (!choice->cores)
		return;
	if (node >= 0)
		fprintf(to, "# Of the card's NUMA node %d.\n", node);
	if (choice->isolated)
		fprintf(to, "# Isolated CPUs come first.\n");
	fprintf(to, "cores: \"");
	for (uint32_t i = 0; i < choice->cores; i++)
		fprintf(to, "%s%u", i ? "," : "", choice->core[i]);
	fprintf(to, "\"\n");
}

int doctor_write_config(const struct doctor *doctor, const char *path, struct gdrcap_error *error)
{
	const struct doctor_choice *choice = &doctor->choice;
	int fd, ret;
	FILE *to;

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	to = fd < 0 ? NULL : fdopen(fd, "w");
	if (!to) {
		ret = errno == EEXIST
			      ? error_set(error, -EEXIST,
					  "%s is there already; give another name, or remove it",
					  path)
			      : error_set(error, -errno, "%s cannot be written: %s", path,
					  strerror(errno));
		if (fd >= 0)
			close(fd);
		return ret;
	}
	write_head(to, doctor, choice, path);
	write_ports(to, doctor, choice);
	write_gpu(to, choice);
	write_cores(to, choice);
	fprintf(to, "\nframe:\n  size: 1518\nseconds: 10\n");
	ret = ferror(to) ? -EIO : 0;
	if (fclose(to) != 0)
		ret = -errno;
	if (ret < 0) {
		unlink(path);
		return error_set(error, ret, "%s cannot be written: %s", path, strerror(-ret));
	}
	return 0;
}
