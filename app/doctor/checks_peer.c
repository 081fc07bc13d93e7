/* SPDX-License-Identifier: BSD-3-Clause */
/* How a card comes to GPU memory: nvidia-peermem and what stands in its way, or a dma-buf. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

#define PARAMETERS "/sys/module/nvidia_peermem/parameters"

/* The network driver's version: of NVIDIA's OFED it has two parts, "5.4-1.0.3"; of the kernel's own
 * at most "5.0-0". */
struct ofed {
	enum answer is; /* OFED at all */
	unsigned int version[5];
	char text[64]; /* as it was read */
};

static struct ofed ofed_read(struct doctor *doctor)
{
	struct ofed ofed = { .is = ANSWER_NO };
	unsigned int *v = ofed.version;
	char text[TREE_TEXT_MAX];
	const int ret = tree_text(doctor->tree, text, "/sys/module/mlx5_core/version");
	int parts = 0;

	snprintf(ofed.text, sizeof(ofed.text), "%.60s", ret < 0 ? strerror(-ret) : text);
	if (ret == 0)
		parts = sscanf(text, "%u.%u-%u.%u.%u", &v[0], &v[1], &v[2], &v[3], &v[4]);
	if (parts >= 4)
		ofed.is = ANSWER_YES;
	else if (parts < 2 && ret != -ENOENT)
		ofed.is = ANSWER_UNKNOWN;
	return ofed;
}

static bool ofed_before(const struct ofed *ofed, const unsigned int than[5])
{
	for (int i = 0; i < 5; i++)
		if (ofed->version[i] != than[i])
			return ofed->version[i] < than[i];
	return false;
}

/* ---- either way ---- */

static void check_registration(struct doctor *doctor)
{
	char read[READ_TEXT];
	enum answer peer, dmabuf;

	if (doctor->gpus == 0)
		return;
	peer = peer_client(doctor, read);
	dmabuf = dmabuf_way(doctor);
	if (peer == ANSWER_YES || dmabuf == ANSWER_YES) {
		finding(doctor, NULL, HEALTH_OK, "by address: %s; as dma-buf: %s",
			peer == ANSWER_YES ? read : "no", answer_word(dmabuf));
		return;
	}
	if (peer == ANSWER_NO && dmabuf == ANSWER_NO) {
		finding(doctor, NULL, HEALTH_FAIL, "by address: %s; as dma-buf: no", read);
		remedy_load_peermem(doctor);
		remedy(doctor, "# or, for GPUs since Turing, NVIDIA's open kernel "
			       "modules, which make dma-bufs: see dma-buf");
		return;
	}
	finding(doctor, NULL, HEALTH_UNKNOWN, "by address: %s; as dma-buf: %s", read,
		answer_word(dmabuf));
	remedy(doctor, "sudo gdrcap doctor --live  # registers GPU memory with each card");
}

/* ---- by address ---- */

/* True, and told: what `read` lacks is not needed. */
static bool dmabuf_serves(struct doctor *doctor, const char *read)
{
	if (dmabuf_way(doctor) != ANSWER_YES)
		return false;
	finding(doctor, NULL, HEALTH_NOT_APPLICABLE, "%s; not needed, cards take dma-bufs", read);
	return true;
}

static void check_peermem(struct doctor *doctor)
{
	char read[READ_TEXT], version[TREE_TEXT_MAX];
	enum answer client;

	if (doctor->gpus == 0)
		return;
	client = peer_client(doctor, read);
	if (client == ANSWER_YES) {
		const char *module =
			module_loaded(doctor, "nvidia_peermem") == ANSWER_NO &&
					module_loaded(doctor, "nv_peer_mem") == ANSWER_YES
				? "nv_peer_mem"
				: "nvidia_peermem";
		const int ret = tree_text(doctor->tree, version, "/sys/module/%s/version", module);

		finding(doctor, NULL, HEALTH_OK, "%s; /sys/module/%s/version: %.60s", read, module,
			ret < 0 ? strerror(-ret) : version);
		return;
	}
	if (client == ANSWER_UNKNOWN) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "%s", read);
		remedy(doctor, "sudo gdrcap doctor --live  # registers GPU memory with "
			       "each card");
		return;
	}
	if (module_loaded(doctor, "nvidia_peermem") == ANSWER_YES) {
		finding(doctor, NULL, HEALTH_FAIL, "/sys/module/nvidia_peermem: loaded; %s", read);
		remedy_on_host(doctor);
		remedy(doctor, "sudo modprobe -r nvidia-peermem");
		remedy(doctor, "sudo modprobe nvidia-peermem; sudo dmesg | grep -e "
			       "peermem -e peer_mem");
		return;
	}
	if (dmabuf_serves(doctor, read))
		return;
	finding(doctor, NULL, HEALTH_WARN, "%s", read);
	remedy_load_peermem(doctor);
}

static void check_peer_interface(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	char read[READ_TEXT];
	enum answer there;

	if (machine->cards == 0)
		return;
	there = peer_interface(doctor, read);
	if (there == ANSWER_YES) {
		finding(doctor, NULL, HEALTH_OK, "%s", read);
		return;
	}
	if (there == ANSWER_UNKNOWN) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "%s", read);
		remedy(doctor, "sudo modprobe mlx5_ib; grep ib_register_peer_memory_client "
			       "/proc/kallsyms");
		return;
	}
	if (dmabuf_serves(doctor, read))
		return;
	finding(doctor, NULL, HEALTH_WARN, "%s", read);
	remedy_on_host(doctor);
	remedy(doctor, "# first NVIDIA's DOCA-OFED, from NVIDIA's repository:");
	if (machine->distribution == DISTRIBUTION_RHEL)
		remedy(doctor, "sudo dnf install doca-ofed");
	else
		remedy(doctor, "sudo apt-get install doca-ofed");
	remedy(doctor, "# then NVIDIA's driver once more, so that nvidia-peermem is built "
		       "against it (else modprobe says \"Invalid argument\"):");
	remedy(doctor, "sudo dkms status");
	remedy(doctor,
	       "# sudo dkms install --force MODULE/VERSION -k %s, with nvidia's "
	       "line from there",
	       machine->kernel);
}

static void check_nv_peer_mem(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	const enum answer loaded = module_loaded(doctor, "nv_peer_mem");

	if (loaded == ANSWER_UNKNOWN) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "/sys/module: cannot be read");
		remedy(doctor, "lsmod | grep nv_peer_mem");
		return;
	}
	if (loaded == ANSWER_NO) {
		finding(doctor, NULL, HEALTH_OK, "/sys/module/nv_peer_mem: not loaded");
		return;
	}
	finding(doctor, NULL, HEALTH_FAIL, "/sys/module/nv_peer_mem: loaded");
	remedy_on_host(doctor);
	remedy(doctor, "sudo service nv_peer_mem stop; sudo rmmod nv_peer_mem");
	if (machine->distribution == DISTRIBUTION_RHEL)
		remedy(doctor, "sudo rpm -e nvidia_peer_memory");
	else
		remedy(doctor, "sudo dpkg -P nvidia-peer-memory nvidia-peer-memory-dkms");
	remedy(doctor, "sudo modprobe nvidia-peermem");
}

/* ---- nvidia-peermem's parameters ---- */

static void parameter_remedy(struct doctor *doctor, const char *name, unsigned int value)
{
	remedy_on_host(doctor);
	remedy(doctor,
	       "echo 'options nvidia-peermem %s=%u' | sudo tee "
	       "/etc/modprobe.d/nvidia-peermem-%s.conf",
	       name, value, name);
	remedy(doctor, "sudo modprobe -r nvidia-peermem; sudo modprobe nvidia-peermem");
}

/* One of them, which should be `right`; `also` is what else was read for that. */
static void parameter_check(struct doctor *doctor, const char *name, unsigned int right, bool known,
			    const char *also)
{
	uint64_t value;
	const int ret = tree_number(doctor->tree, &value, 10, PARAMETERS "/%s", name);

	if (ret == -ENOENT) {
		finding(doctor, name, HEALTH_NOT_APPLICABLE,
			PARAMETERS "/%s: this driver has no such parameter", name);
	} else if (ret < 0 || !known) {
		finding(doctor, name, HEALTH_UNKNOWN, PARAMETERS "/%s: %s%s", name,
			ret < 0 ? strerror(-ret) : "there", also);
		remedy(doctor, "sudo cat " PARAMETERS "/%s%s", name,
		       also[0] ? " /sys/module/mlx5_core/version" : "");
	} else {
		finding(doctor, name, value == right ? HEALTH_OK : HEALTH_WARN,
			PARAMETERS "/%s: %u%s", name, (unsigned int)value, also);
		if (value != right)
			parameter_remedy(doctor, name, right);
	}
}

static void check_peermem_mode(struct doctor *doctor)
{
	const struct ofed ofed = ofed_read(doctor);
	char also[112];

	if (module_loaded(doctor, "nvidia_peermem") != ANSWER_YES)
		return;
	snprintf(also, sizeof(also), "; /sys/module/mlx5_core/version: %s", ofed.text);
	parameter_check(doctor, "peerdirect_support", ofed.is == ANSWER_YES && ofed.version[0] == 4,
			ofed.is != ANSWER_UNKNOWN, also);
	parameter_check(doctor, "persistent_api_support", 1, true, "");
}

/* ---- the lock inversion ---- */

/* NVIDIA's reference 2696789: with MLNX_OFED from 5.0 on, a process that ends while a card still
 * has its GPU memory can hang for good, two locks being taken in both orders. Remedied
 * in 5.4-3.0.3.0 and in 5.3-1.0.0.1.43; 4.9 never had it. It takes a client that is called back
 * when memory goes, which nvidia-peermem with persistent_api_support=1 is not. */
static const unsigned int ofed_remedied[5] = { 5, 4, 3, 0, 3 };
static const unsigned int ofed_first[5] = { 5, 0, 0, 0, 0 };

static bool ofed_inverts(const struct ofed *ofed)
{
	return ofed->is == ANSWER_YES && !ofed_before(ofed, ofed_first) &&
	       ofed_before(ofed, ofed_remedied) && strncmp(ofed->text, "5.3-1.0.0.1.43", 14) != 0;
}

static void deadlock_nvidia_peermem(struct doctor *doctor, const struct ofed *ofed)
{
	uint64_t persistent = 0;
	const int ret =
		tree_number(doctor->tree, &persistent, 10, "%s/persistent_api_support", PARAMETERS);
	/* The parameter came with the driver's half of the remedy. */
	const bool old = !tree_exists(doctor->tree, "%s/peerdirect_support", PARAMETERS);

	if (ret == 0 && persistent == 1) {
		finding(doctor, NULL, HEALTH_OK,
			PARAMETERS "/persistent_api_support: 1, so nothing is called back");
		return;
	}
	if ((ret < 0 && ret != -ENOENT) || (ofed->is == ANSWER_UNKNOWN && !old)) {
		finding(doctor, NULL, HEALTH_UNKNOWN,
			"%s/persistent_api_support: %s; /sys/module/mlx5_core/version: %s",
			PARAMETERS, ret < 0 ? strerror(-ret) : "not 1", ofed->text);
		remedy(doctor,
		       "sudo cat %s/persistent_api_support "
		       "/sys/module/mlx5_core/version",
		       PARAMETERS);
		return;
	}
	if (!ofed_inverts(ofed) && !(old && ofed->is == ANSWER_YES && ofed->version[0] > 4)) {
		finding(doctor, NULL, ofed->is == ANSWER_YES ? HEALTH_OK : HEALTH_UNKNOWN,
			"/sys/module/mlx5_core/version: %s%s", ofed->text,
			ofed->is == ANSWER_YES ? "" : ", not of NVIDIA's OFED");
		if (ofed->is != ANSWER_YES)
			remedy(doctor, "# no release note says; a driver whose "
				       "persistent_api_support is 1 is safe");
		return;
	}
	finding(doctor, NULL, HEALTH_WARN, "/sys/module/mlx5_core/version: %s; %s/%s", ofed->text,
		PARAMETERS,
		old	  ? "peerdirect_support: not there, an early driver"
		: ret < 0 ? "persistent_api_support: not there"
			  : "persistent_api_support: not 1");
	remedy_on_host(doctor);
	if (ret == 0)
		parameter_remedy(doctor, "persistent_api_support", 1);
	else
		remedy(doctor, "# NVIDIA's OFED 5.4-3.0.3.0 or later, and a driver whose "
			       "nvidia-peermem has the parameter persistent_api_support");
}

static void check_peermem_deadlock(struct doctor *doctor)
{
	const struct ofed ofed = ofed_read(doctor);
	char text[TREE_TEXT_MAX];
	unsigned int major, minor;
	int ret;

	if (module_loaded(doctor, "nvidia_peermem") == ANSWER_YES) {
		deadlock_nvidia_peermem(doctor, &ofed);
		return;
	}
	if (module_loaded(doctor, "nv_peer_mem") != ANSWER_YES)
		return;
	/* "1.1-0" and earlier are of the old kind, for OFED 4.9. */
	ret = tree_text(doctor->tree, text, "/sys/module/nv_peer_mem/version");
	if (ret < 0 || sscanf(text, "%u.%u", &major, &minor) != 2 || ofed.is == ANSWER_UNKNOWN) {
		finding(doctor, NULL, HEALTH_UNKNOWN,
			"/sys/module/nv_peer_mem/version: %.60s; /sys/module/mlx5_core/version: "
			"%s",
			ret < 0 ? strerror(-ret) : text, ofed.text);
		remedy(doctor, "modinfo -F version nv_peer_mem mlx5_core");
		return;
	}
	if (ofed.is != ANSWER_YES || ofed.version[0] == 4 ||
	    (!ofed_inverts(&ofed) && (major > 1 || minor >= 2))) {
		finding(doctor, NULL, HEALTH_OK,
			"/sys/module/nv_peer_mem/version: %.60s; /sys/module/mlx5_core/version: "
			"%s",
			text, ofed.text);
		return;
	}
	finding(doctor, NULL, HEALTH_WARN,
		"/sys/module/nv_peer_mem/version: %.60s; /sys/module/mlx5_core/version: %s", text,
		ofed.text);
	remedy(doctor, "# NVIDIA's OFED 5.4-3.0.3.0 or later, and nvidia-peermem: see "
		       "nv-peer-mem");
}

/* ---- modules that do not fit each other ---- */

/* "[   12.3] nvidia_peermem: disagrees about ...": the module; false: none of those that matter. */
static bool module_of(const char *line, char name[64])
{
	static const char *const ours[] = { "nvidia", "nv_peer_mem", "mlx5",	  "ib_",
					    "rdma",   "gdrdrv",	     "mlx_compat" };
	const char *end = strstr(line, ": disagrees about version of symbol"), *start = end;

	if (!end)
		return false;
	while (start > line && start[-1] != ' ' && start[-1] != ']')
		start--;
	snprintf(name, 64, "%.*s", (int)(end - start < 63 ? end - start : 63), start);
	if (!machine_is_name(name))
		return false;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strncmp(name, ours[i], strlen(ours[i])) == 0)
			return true;
	return false;
}

static void check_module_symbols(struct doctor *doctor)
{
	static const char path[] = "the kernel's messages";
	const struct machine *machine = &doctor->machine;
	char text[TREE_TEXT_MAX], error[TREE_TEXT_MAX], name[64], *line, *rest = text;
	int ret = tree_fact(doctor->tree, text, "kernel/messages");

	if (ret < 0 || tree_fact(doctor->tree, error, "kernel/messages_error") == 0) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "%s: %.200s", path,
			ret == 0 || ret == -ENOENT ? "cannot be read" : strerror(-ret));
		remedy(doctor, "sudo dmesg | grep 'disagrees about version of symbol'");
		return;
	}
	while ((line = strsep(&rest, "\n")) != NULL) {
		/* What has been loaded since has been repaired. */
		if (!module_of(line, name) || module_loaded(doctor, name) == ANSWER_YES)
			continue;
		finding(doctor, NULL, HEALTH_FAIL, "%s: %.300s", path, line);
		remedy_on_host(doctor);
		remedy(doctor, "sudo dkms status");
		remedy(doctor,
		       "# %s was built against other modules than those that run: "
		       "sudo dkms install --force MODULE/VERSION -k %s",
		       name, machine->kernel);
		if (machine->distribution == DISTRIBUTION_UBUNTU)
			remedy(doctor, "# Ubuntu's ready-made linux-modules-nvidia-* know "
				       "nothing of OFED: take nvidia-dkms-* in their "
				       "place");
		remedy(doctor, "sudo modprobe %s", name);
		return;
	}
	finding(doctor, NULL, HEALTH_OK, "%s: no module that does not fit", path);
}

const struct doctor_check checks_peer[] = {
	{ "gpu-memory-registration", "peer-memory", SEVERITY_FATAL,
	  "a card must be given GPU memory in one of two ways, by address through nvidia-peermem or as a dma-buf",
	  .run = check_registration },
	{ "peermem-loaded", "peer-memory", SEVERITY_INFO,
	  "nvidia-peermem tells the card's driver where GPU memory lies, and no service loads it",
	  .run = check_peermem },
	{ "peermem-interface", "peer-memory", SEVERITY_INFO,
	  "without this interface in the RDMA core nvidia-peermem cannot be loaded: \"Invalid argument\"",
	  .run = check_peer_interface },
	{ "nv-peer-mem", "peer-memory", SEVERITY_SLOW,
	  "nv_peer_mem is nvidia-peermem's ancestor; only one of both can be loaded, and nobody repairs the old one",
	  .run = check_nv_peer_mem },
	{ "peermem-mode", "peer-memory", SEVERITY_SLOW,
	  "nvidia-peermem must speak as the card's driver does: peerdirect_support is 1 with MLNX_OFED 4.9 LTS only, and persistent_api_support is 1 but for old drivers",
	  .run = check_peermem_mode },
	{ "peermem-deadlock", "peer-memory", SEVERITY_SLOW,
	  "early releases take two locks in both orders, so that a process that ends while a card has its GPU memory can hang for good",
	  .run = check_peermem_deadlock },
	{ "module-symbols", "peer-memory", SEVERITY_SLOW,
	  "a module that was built against another OFED than the one that runs does not load",
	  .run = check_module_symbols },
	{ 0 },
};
