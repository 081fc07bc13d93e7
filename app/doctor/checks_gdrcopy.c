/* SPDX-License-Identifier: BSD-3-Clause */
/* GDRCopy, which is needed where CPU threads work on GPU memory. */
#include <string.h>

#include "doctor/doctor.h"

static void check_gdrcopy(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	struct tree *tree = doctor->tree;
	const enum answer module = module_loaded(doctor, "gdrdrv");
	char text[TREE_TEXT_MAX];
	bool device, library, asked;

	if (doctor->gpus == 0)
		return;
	device = tree_exists(tree, "/dev/gdrdrv");
	asked = tree_fact(tree, text, "library/libgdrapi.so.2") == 0;
	library = asked && strcmp(text, "yes") == 0;
	if (device && (library || !asked)) {
		finding(doctor, NULL, asked ? HEALTH_OK : HEALTH_UNKNOWN,
			"/dev/gdrdrv: there; libgdrapi.so.2: %s", asked ? "loads" : "not known");
		if (!asked)
			remedy(doctor, "ldconfig -p | grep libgdrapi");
		return;
	}
	if (!device && !library && module != ANSWER_YES) {
		finding(doctor, NULL, HEALTH_NOT_APPLICABLE,
			"/dev/gdrdrv: not there; libgdrapi.so.2: %s; needed only where CPU threads "
			"work on GPU memory",
			asked ? "does not load" : "not known");
		return;
	}
	finding(doctor, NULL, HEALTH_WARN, "/dev/gdrdrv: %s; libgdrapi.so.2: %.200s",
		device ? "there" : "not there", asked ? text : "not known");
	if (!library)
		remedy_install(doctor, PACKAGE_GDRCOPY_LIBRARY);
	if (device)
		return;
	if (machine->container[0])
		remedy(doctor, "# docker run --device /dev/gdrdrv; and on the host:");
	if (module == ANSWER_YES) {
		/* Loading it makes no device file; GDRCopy's own script does. */
		remedy(doctor, "sudo mknod /dev/gdrdrv c $(awk '$2 == \"gdrdrv\" { print "
			       "$1 }' /proc/devices) 0");
		remedy(doctor, "sudo chmod a+rw /dev/gdrdrv");
		return;
	}
	remedy_install(doctor, PACKAGE_GDRCOPY);
	remedy(doctor, "sudo modprobe gdrdrv");
}

const struct doctor_check checks_gdrcopy[] = {
	{ "gdrcopy", "gpu", SEVERITY_INFO,
	  "CPU threads reach GPU memory through GDRCopy; with workers on the GPU nothing needs it",
	  .run = check_gdrcopy },
	{ 0 },
};
