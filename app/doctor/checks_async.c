/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUDirect Async and GDRCopy: others need them; gdrcap needs GDRCopy where CPU threads work on
 * GPU memory, and nothing else of this. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/checks.h"
#include "doctor/registration.h"

#define PARAMETERS "/proc/driver/nvidia/params"
#define FOLDER "/etc/modprobe.d"
#define DOORBELLS "PeerMappingOverride=1"

/* The file in /etc/modprobe.d that names a parameter; false: there is none. */
static bool named_in(struct gdrcap_doctor *doctor, const char *parameter, char path[128])
{
	/* One capture answers all checks. */
	static const char *const wanted[] = { "PeerMappingOverride", "NVreg_EnableStreamMemOPs",
					      NULL };
	struct tree *tree = doctor_tree(doctor);
	char(*names)[64], text[TREE_TEXT_MAX];
	const int count = tree_list(tree, &names, FOLDER);
	bool found = false;

	for (int i = 0; i < count && i < 256 && !found; i++) {
		snprintf(path, 128, "%s/%s", FOLDER, names[i]);
		found = tree_grep(tree, path, wanted, text, sizeof(text)) > 0 &&
			strstr(text, parameter);
	}
	free(names);
	return found;
}

/* What the driver that runs was started with: -ENOENT, -EACCES, ... */
static int driver_parameters(struct gdrcap_doctor *doctor, char text[TREE_TEXT_MAX])
{
	static const char *const wanted[] = { "RegistryDwords", "EnableStreamMemOPs", NULL };
	const int ret = tree_grep(doctor_tree(doctor), PARAMETERS, wanted, text, TREE_TEXT_MAX);

	return ret < 0 ? ret : ret == 0 ? -EINVAL : 0;
}

static void parameters_unknown(struct gdrcap_doctor *doctor, int ret)
{
	if (ret == -ENOENT) {
		finding(doctor, NULL, GDRCAP_HEALTH_NOT_APPLICABLE, "%s: not there", PARAMETERS);
		return;
	}
	finding(doctor, NULL, GDRCAP_HEALTH_UNKNOWN, "%s: %s", PARAMETERS,
		ret == -EINVAL ? "no such lines" : strerror(-ret));
	finding_remedy(doctor, "sudo cat %s", PARAMETERS);
}

void check_peer_mapping(struct gdrcap_doctor *doctor)
{
	struct gpu_seen gpus[MACHINE_GPUS_MAX];
	char text[TREE_TEXT_MAX], path[128];
	int ret;

	if (gpus_seen(doctor, gpus) == 0)
		return;
	ret = driver_parameters(doctor, text);
	if (ret < 0) {
		parameters_unknown(doctor, ret);
		return;
	}
	if (strstr(text, DOORBELLS)) {
		finding(doctor, NULL, GDRCAP_HEALTH_OK, "%s: RegistryDwords has %s", PARAMETERS,
			DOORBELLS);
		return;
	}
	if (named_in(doctor, DOORBELLS, path)) {
		finding(doctor, NULL, GDRCAP_HEALTH_WARN,
			"%s: RegistryDwords without %s; %s has it", PARAMETERS, DOORBELLS, path);
		finding_host(doctor);
		finding_remedy(doctor, "sudo reboot  # a module reads its options when it is "
				       "loaded, maybe from the initial RAM disk");
		return;
	}
	finding(doctor, NULL, GDRCAP_HEALTH_NOT_APPLICABLE,
		"%s: RegistryDwords without %s; gdrcap does not need it", PARAMETERS, DOORBELLS);
}

void check_stream_memory(struct gdrcap_doctor *doctor)
{
	struct gpu_seen gpus[MACHINE_GPUS_MAX];
	const uint32_t count = gpus_seen(doctor, gpus);

	for (uint32_t i = 0; i < count; i++) {
		unsigned int supported, first = 0;

		if (cuda_number(doctor, gpus[i].ordinal, "can_use_64_bit_stream_mem_ops",
				&supported) < 0) {
			finding(doctor, gpus[i].pci, GDRCAP_HEALTH_UNKNOWN,
				"CAN_USE_64_BIT_STREAM_MEM_OPS: not known");
			finding_remedy(doctor, "gdrcap doctor  # once libcuda and gpu-found are "
					       "well");
			continue;
		}
		cuda_number(doctor, gpus[i].ordinal, "can_use_stream_mem_ops_v1", &first);
		finding(doctor, gpus[i].pci,
			supported ? GDRCAP_HEALTH_OK : GDRCAP_HEALTH_NOT_APPLICABLE,
			"CAN_USE_64_BIT_STREAM_MEM_OPS: %u; those of the first version: %u%s",
			supported, first, supported ? "" : "; gdrcap does not need them");
	}
}

void check_gdrcopy(struct gdrcap_doctor *doctor)
{
	const struct machine *machine = doctor_machine(doctor);
	struct tree *tree = doctor_tree(doctor);
	const enum answer module = module_loaded(doctor, "gdrdrv");
	struct gpu_seen gpus[MACHINE_GPUS_MAX];
	char text[TREE_TEXT_MAX];
	bool device, library, asked;

	if (gpus_seen(doctor, gpus) == 0)
		return;
	device = tree_exists(tree, "/dev/gdrdrv");
	asked = tree_fact(tree, text, "library/libgdrapi.so.2") == 0;
	library = asked && strcmp(text, "yes") == 0;
	if (device && (library || !asked)) {
		finding(doctor, NULL, asked ? GDRCAP_HEALTH_OK : GDRCAP_HEALTH_UNKNOWN,
			"/dev/gdrdrv: there; libgdrapi.so.2: %s", asked ? "loads" : "not known");
		if (!asked)
			finding_remedy(doctor, "ldconfig -p | grep libgdrapi");
		return;
	}
	if (!device && !library && module != ANSWER_YES) {
		finding(doctor, NULL, GDRCAP_HEALTH_NOT_APPLICABLE,
			"/dev/gdrdrv: not there; libgdrapi.so.2: %s; needed only where CPU threads "
			"work on GPU memory",
			asked ? "does not load" : "not known");
		return;
	}
	finding(doctor, NULL, GDRCAP_HEALTH_WARN, "/dev/gdrdrv: %s; libgdrapi.so.2: %.200s",
		device ? "there" : "not there", asked ? text : "not known");
	if (!library)
		finding_install(doctor, PACKAGE_GDRCOPY_LIBRARY);
	if (device)
		return;
	if (machine->container[0])
		finding_remedy(doctor, "# docker run --device /dev/gdrdrv; and on the host:");
	if (module == ANSWER_YES) {
		/* Loading it makes no device file; GDRCopy's own script does. */
		finding_remedy(doctor, "sudo mknod /dev/gdrdrv c $(awk '$2 == \"gdrdrv\" { print "
				       "$1 }' /proc/devices) 0");
		finding_remedy(doctor, "sudo chmod a+rw /dev/gdrdrv");
		return;
	}
	finding_install(doctor, PACKAGE_GDRCOPY);
	finding_remedy(doctor, "sudo modprobe gdrdrv");
}
