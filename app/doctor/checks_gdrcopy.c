/* SPDX-License-Identifier: BSD-3-Clause */
/* GDRCopy, which is needed where CPU threads work on GPU memory. */
#include <string.h>

#include "doctor/checks.h"
#include "doctor/registration.h"

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
