/* SPDX-License-Identifier: BSD-3-Clause */
/* How a card comes to GPU memory: nvidia-peermem and what stands in its way, or a dma-buf. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/checks.h"
#include "doctor/registration.h"

#define PARAMETERS "/sys/module/nvidia_peermem/parameters"

/* The network driver's version: of NVIDIA's OFED it has two parts, "5.4-1.0.3"; of the kernel's own
 * at most "5.0-0". */
struct ofed {
	enum answer is; /* OFED at all */
	unsigned int version[5];
	char text[64]; /* as it was read */
};

static struct ofed ofed_read(struct gdrcap_doctor *doctor)
{
	struct ofed ofed = { .is = ANSWER_NO };
	unsigned int *v = ofed.version;
	char text[TREE_TEXT_MAX];
	const int ret = tree_text(doctor_tree(doctor), text, "/sys/module/mlx5_core/version");
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

void check_registration(struct gdrcap_doctor *doctor)
{
	struct gpu_seen gpus[MACHINE_GPUS_MAX];
	const uint32_t count = gpus_seen(doctor, gpus);
	char read[READ_TEXT];
	enum answer peer, dmabuf;

	if (count == 0)
		return;
	peer = peer_client(doctor, read);
	dmabuf = dmabuf_way(doctor);
	if (peer == ANSWER_YES || dmabuf == ANSWER_YES) {
		finding(doctor, NULL, GDRCAP_HEALTH_OK, "by address: %s; as dma-buf: %s",
			peer == ANSWER_YES ? read : "no",
			dmabuf == ANSWER_YES  ? "yes"
			: dmabuf == ANSWER_NO ? "no"
					      : "not known");
		return;
	}
	if (peer == ANSWER_NO && dmabuf == ANSWER_NO) {
		finding(doctor, NULL, GDRCAP_HEALTH_FAIL, "by address: %s; as dma-buf: no", read);
		finding_load_peermem(doctor);
		finding_remedy(doctor, "# or, for GPUs since Turing, NVIDIA's open kernel "
				       "modules, which make dma-bufs: see dma-buf");
		return;
	}
	finding(doctor, NULL, GDRCAP_HEALTH_UNKNOWN, "by address: %s; as dma-buf: %s", read,
		dmabuf == ANSWER_NO ? "no" : "not known");
	finding_remedy(doctor, "sudo gdrcap doctor --live  # registers GPU memory with each card");
}

/* ---- by address ---- */

/* True, and told: what `read` lacks is not needed. */
static bool dmabuf_serves(struct gdrcap_doctor *doctor, const char *read)
{
	if (dmabuf_way(doctor) != ANSWER_YES)
		return false;
	finding(doctor, NULL, GDRCAP_HEALTH_NOT_APPLICABLE, "%s; not needed, cards take dma-bufs",
		read);
	return true;
}

void check_peermem(struct gdrcap_doctor *doctor)
{
	struct gpu_seen gpus[MACHINE_GPUS_MAX];
	char read[READ_TEXT], version[TREE_TEXT_MAX];
	enum answer client;

	if (gpus_seen(doctor, gpus) == 0)
		return;
	client = peer_client(doctor, read);
	if (client == ANSWER_YES) {
		const char *module =
			module_loaded(doctor, "nvidia_peermem") == ANSWER_NO &&
					module_loaded(doctor, "nv_peer_mem") == ANSWER_YES
				? "nv_peer_mem"
				: "nvidia_peermem";
		const int ret =
			tree_text(doctor_tree(doctor), version, "/sys/module/%s/version", module);

		finding(doctor, NULL, GDRCAP_HEALTH_OK, "%s; /sys/module/%s/version: %.60s", read,
			module, ret < 0 ? strerror(-ret) : version);
		return;
	}
	if (client == ANSWER_UNKNOWN) {
		finding(doctor, NULL, GDRCAP_HEALTH_UNKNOWN, "%s", read);
		finding_remedy(doctor, "sudo gdrcap doctor --live  # registers GPU memory with "
				       "each card");
		return;
	}
	if (module_loaded(doctor, "nvidia_peermem") == ANSWER_YES) {
		finding(doctor, NULL, GDRCAP_HEALTH_FAIL, "/sys/module/nvidia_peermem: loaded; %s",
			read);
		finding_host(doctor);
		finding_remedy(doctor, "sudo modprobe -r nvidia-peermem");
		finding_remedy(doctor, "sudo modprobe nvidia-peermem; sudo dmesg | grep -e "
				       "peermem -e peer_mem");
		return;
	}
	if (dmabuf_serves(doctor, read))
		return;
	finding(doctor, NULL, GDRCAP_HEALTH_WARN, "%s", read);
	finding_load_peermem(doctor);
}

void check_peer_interface(struct gdrcap_doctor *doctor)
{
	const struct machine *machine = doctor_machine(doctor);
	char read[READ_TEXT];
	enum answer there;

	if (machine->cards == 0)
		return;
	there = peer_interface(doctor, read);
	if (there == ANSWER_YES) {
		finding(doctor, NULL, GDRCAP_HEALTH_OK, "%s", read);
		return;
	}
	if (there == ANSWER_UNKNOWN) {
		finding(doctor, NULL, GDRCAP_HEALTH_UNKNOWN, "%s", read);
		finding_remedy(doctor, "sudo modprobe mlx5_ib; grep ib_register_peer_memory_client "
				       "/proc/kallsyms");
		return;
	}
	if (dmabuf_serves(doctor, read))
		return;
	finding(doctor, NULL, GDRCAP_HEALTH_WARN, "%s", read);
	finding_host(doctor);
	finding_remedy(doctor, "# first NVIDIA's DOCA-OFED, from NVIDIA's repository:");
	if (machine->distribution == DISTRIBUTION_RHEL)
		finding_remedy(doctor, "sudo dnf install doca-ofed");
	else
		finding_remedy(doctor, "sudo apt-get install doca-ofed");
	finding_remedy(doctor, "# then NVIDIA's driver once more, so that nvidia-peermem is built "
			       "against it (else modprobe says \"Invalid argument\"):");
	finding_remedy(doctor, "sudo dkms status");
	finding_remedy(doctor,
		       "# sudo dkms install --force MODULE/VERSION -k %s, with nvidia's "
		       "line from there",
		       machine->kernel);
}

void check_nv_peer_mem(struct gdrcap_doctor *doctor)
{
	const struct machine *machine = doctor_machine(doctor);
	const enum answer loaded = module_loaded(doctor, "nv_peer_mem");

	if (loaded == ANSWER_UNKNOWN) {
		finding(doctor, NULL, GDRCAP_HEALTH_UNKNOWN, "/sys/module: cannot be read");
		finding_remedy(doctor, "lsmod | grep nv_peer_mem");
		return;
	}
	if (loaded == ANSWER_NO) {
		finding(doctor, NULL, GDRCAP_HEALTH_OK, "/sys/module/nv_peer_mem: not loaded");
		return;
	}
	finding(doctor, NULL, GDRCAP_HEALTH_FAIL, "/sys/module/nv_peer_mem: loaded");
	finding_host(doctor);
	finding_remedy(doctor, "sudo service nv_peer_mem stop; sudo rmmod nv_peer_mem");
	if (machine->distribution == DISTRIBUTION_RHEL)
		finding_remedy(doctor, "sudo rpm -e nvidia_peer_memory");
	else
		finding_remedy(doctor, "sudo dpkg -P nvidia-peer-memory nvidia-peer-memory-dkms");
	finding_remedy(doctor, "sudo modprobe nvidia-peermem");
}

/* ---- nvidia-peermem's parameters ---- */

static void parameter_remedy(struct gdrcap_doctor *doctor, const char *name, unsigned int value)
{
	finding_host(doctor);
	finding_remedy(doctor,
		       "echo 'options nvidia-peermem %s=%u' | sudo tee "
		       "/etc/modprobe.d/nvidia-peermem-%s.conf",
		       name, value, name);
	finding_remedy(doctor, "sudo modprobe -r nvidia-peermem; sudo modprobe nvidia-peermem");
}

static void peerdirect_support(struct gdrcap_doctor *doctor)
{
	static const char name[] = "peerdirect_support";
	const struct ofed ofed = ofed_read(doctor);
	const bool old = ofed.is == ANSWER_YES && ofed.version[0] == 4;
	uint64_t value;
	const int ret = tree_number(doctor_tree(doctor), &value, 10, "%s/%s", PARAMETERS, name);

	if (ret == -ENOENT) {
		finding(doctor, name, GDRCAP_HEALTH_NOT_APPLICABLE,
			"%s/%s: this driver has no such parameter", PARAMETERS, name);
		return;
	}
	if (ret < 0 || ofed.is == ANSWER_UNKNOWN) {
		finding(doctor, name, GDRCAP_HEALTH_UNKNOWN,
			"%s/%s: %s; /sys/module/mlx5_core/version: %s", PARAMETERS, name,
			ret < 0 ? strerror(-ret) : "there", ofed.text);
		finding_remedy(doctor, "sudo cat %s/%s /sys/module/mlx5_core/version", PARAMETERS,
			       name);
		return;
	}
	finding(doctor, name, value == old ? GDRCAP_HEALTH_OK : GDRCAP_HEALTH_WARN,
		"%s/%s: %u; /sys/module/mlx5_core/version: %s", PARAMETERS, name,
		(unsigned int)value, ofed.text);
	if (value != old)
		parameter_remedy(doctor, name, old);
}

static void persistent_api_support(struct gdrcap_doctor *doctor)
{
	static const char name[] = "persistent_api_support";
	uint64_t value;
	const int ret = tree_number(doctor_tree(doctor), &value, 10, "%s/%s", PARAMETERS, name);

	if (ret == -ENOENT) {
		finding(doctor, name, GDRCAP_HEALTH_NOT_APPLICABLE,
			"%s/%s: this driver has no such parameter", PARAMETERS, name);
		return;
	}
	if (ret < 0) {
		finding(doctor, name, GDRCAP_HEALTH_UNKNOWN, "%s/%s: %s", PARAMETERS, name,
			strerror(-ret));
		finding_remedy(doctor, "sudo cat %s/%s", PARAMETERS, name);
		return;
	}
	finding(doctor, name, value == 1 ? GDRCAP_HEALTH_OK : GDRCAP_HEALTH_WARN, "%s/%s: %u",
		PARAMETERS, name, (unsigned int)value);
	if (value != 1)
		parameter_remedy(doctor, name, 1);
}

void check_peermem_mode(struct gdrcap_doctor *doctor)
{
	if (module_loaded(doctor, "nvidia_peermem") != ANSWER_YES)
		return;
	peerdirect_support(doctor);
	persistent_api_support(doctor);
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

static void deadlock_nvidia_peermem(struct gdrcap_doctor *doctor, const struct ofed *ofed)
{
	uint64_t persistent = 0;
	const int ret = tree_number(doctor_tree(doctor), &persistent, 10,
				    "%s/persistent_api_support", PARAMETERS);
	/* The parameter came with the driver's half of the remedy. */
	const bool old = !tree_exists(doctor_tree(doctor), "%s/peerdirect_support", PARAMETERS);

	if (ret == 0 && persistent == 1) {
		finding(doctor, NULL, GDRCAP_HEALTH_OK,
			"%s/persistent_api_support: 1, so nothing is called back", PARAMETERS);
		return;
	}
	if ((ret < 0 && ret != -ENOENT) || (ofed->is == ANSWER_UNKNOWN && !old)) {
		finding(doctor, NULL, GDRCAP_HEALTH_UNKNOWN,
			"%s/persistent_api_support: %s; /sys/module/mlx5_core/version: %s",
			PARAMETERS, ret < 0 ? strerror(-ret) : "not 1", ofed->text);
		finding_remedy(doctor,
			       "sudo cat %s/persistent_api_support "
			       "/sys/module/mlx5_core/version",
			       PARAMETERS);
		return;
	}
	if (!ofed_inverts(ofed) && !(old && ofed->is == ANSWER_YES && ofed->version[0] > 4)) {
		finding(doctor, NULL,
			ofed->is == ANSWER_YES ? GDRCAP_HEALTH_OK : GDRCAP_HEALTH_UNKNOWN,
			"/sys/module/mlx5_core/version: %s%s", ofed->text,
			ofed->is == ANSWER_YES ? "" : ", not of NVIDIA's OFED");
		if (ofed->is != ANSWER_YES)
			finding_remedy(doctor, "# no release note says; a driver whose "
					       "persistent_api_support is 1 is safe");
		return;
	}
	finding(doctor, NULL, GDRCAP_HEALTH_WARN, "/sys/module/mlx5_core/version: %s; %s/%s",
		ofed->text, PARAMETERS,
		old	  ? "peerdirect_support: not there, an early driver"
		: ret < 0 ? "persistent_api_support: not there"
			  : "persistent_api_support: not 1");
	finding_host(doctor);
	if (ret == 0)
		parameter_remedy(doctor, "persistent_api_support", 1);
	else
		finding_remedy(doctor, "# NVIDIA's OFED 5.4-3.0.3.0 or later, and a driver whose "
				       "nvidia-peermem has the parameter persistent_api_support");
}

void check_peermem_deadlock(struct gdrcap_doctor *doctor)
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
	ret = tree_text(doctor_tree(doctor), text, "/sys/module/nv_peer_mem/version");
	if (ret < 0 || sscanf(text, "%u.%u", &major, &minor) != 2 || ofed.is == ANSWER_UNKNOWN) {
		finding(doctor, NULL, GDRCAP_HEALTH_UNKNOWN,
			"/sys/module/nv_peer_mem/version: %.60s; /sys/module/mlx5_core/version: "
			"%s",
			ret < 0 ? strerror(-ret) : text, ofed.text);
		finding_remedy(doctor, "modinfo -F version nv_peer_mem mlx5_core");
		return;
	}
	if (ofed.is != ANSWER_YES || ofed.version[0] == 4 ||
	    (!ofed_inverts(&ofed) && (major > 1 || minor >= 2))) {
		finding(doctor, NULL, GDRCAP_HEALTH_OK,
			"/sys/module/nv_peer_mem/version: %.60s; /sys/module/mlx5_core/version: "
			"%s",
			text, ofed.text);
		return;
	}
	finding(doctor, NULL, GDRCAP_HEALTH_WARN,
		"/sys/module/nv_peer_mem/version: %.60s; /sys/module/mlx5_core/version: %s", text,
		ofed.text);
	finding_remedy(doctor, "# NVIDIA's OFED 5.4-3.0.3.0 or later, and nvidia-peermem: see "
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

void check_module_symbols(struct gdrcap_doctor *doctor)
{
	static const char path[] = "the kernel's messages";
	const struct machine *machine = doctor_machine(doctor);
	char text[TREE_TEXT_MAX], error[TREE_TEXT_MAX], name[64], *line, *rest = text;
	int ret = tree_fact(doctor_tree(doctor), text, "kernel/messages");

	if (ret < 0 || tree_fact(doctor_tree(doctor), error, "kernel/messages_error") == 0) {
		finding(doctor, NULL, GDRCAP_HEALTH_UNKNOWN, "%s: %.200s", path,
			ret == 0 || ret == -ENOENT ? "cannot be read" : strerror(-ret));
		finding_remedy(doctor, "sudo dmesg | grep 'disagrees about version of symbol'");
		return;
	}
	while ((line = strsep(&rest, "\n")) != NULL) {
		/* What has been loaded since has been repaired. */
		if (!module_of(line, name) || module_loaded(doctor, name) == ANSWER_YES)
			continue;
		finding(doctor, NULL, GDRCAP_HEALTH_FAIL, "%s: %.300s", path, line);
		finding_host(doctor);
		finding_remedy(doctor, "sudo dkms status");
		finding_remedy(doctor,
			       "# %s was built against other modules than those that run: "
			       "sudo dkms install --force MODULE/VERSION -k %s",
			       name, machine->kernel);
		if (machine->distribution == DISTRIBUTION_UBUNTU)
			finding_remedy(doctor, "# Ubuntu's ready-made linux-modules-nvidia-* know "
					       "nothing of OFED: take nvidia-dkms-* in their "
					       "place");
		finding_remedy(doctor, "sudo modprobe %s", name);
		return;
	}
	finding(doctor, NULL, GDRCAP_HEALTH_OK, "%s: no module that does not fit", path);
}
