/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks: whether this machine's can be compared with another's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "doctor/facts.h"

/* Senders that begin together do so within this, or the check speaks up. */
#define ERROR_MOST_US 100000

/* A program of the list is a word of it. */
static bool runs(const char *programs, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = programs; (at = strstr(at, name)); at += length)
		if ((at == programs || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

/* Names that doctor knows, and only these. */
static void programs_of(struct doctor *doctor, char text[TREE_TEXT_MAX])
{
	static const char *const known[] = { FACTS_CLOCK_PROGRAMS };
	char all[TREE_TEXT_MAX];
	size_t used = 0;

	text[0] = '\0';
	if (tree_fact(doctor->tree, all, "clock/programs") < 0)
		return;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (runs(all, known[i]))
			used += (size_t)snprintf(text + used, TREE_TEXT_MAX - used, "%s%s",
						 used ? " " : "", known[i]);
}

/* Several that serve the same purpose and pull the clock to and fro. */
static bool programs_quarrel(const char *programs)
{
	return runs(programs, "chronyd") + runs(programs, "systemd-timesyn") +
		       runs(programs, "ntpd") >
	       1;
}

static void remedy_chrony(struct doctor *doctor)
{
	remedy_on_host(doctor);
	remedy_install(doctor, PACKAGE_CHRONY);
	remedy(doctor, "sudo systemctl enable --now %s",
	       doctor->machine.distribution == DISTRIBUTION_RHEL ? "chronyd" : "chrony");
}

/* The kernel's word on it: 0; -ENOENT: it was not asked; -EINVAL: that is none. */
static int state_of(struct doctor *doctor, bool *synchronized)
{
	char text[TREE_TEXT_MAX];
	const int ret = tree_fact(doctor->tree, text, "clock/state");

	if (ret < 0)
		return ret;
	*synchronized = strcmp(text, "synchronized") == 0;
	return *synchronized || strcmp(text, "unsynchronized") == 0 ? 0 : -EINVAL;
}

static void check_sync(struct doctor *doctor)
{
	char programs[TREE_TEXT_MAX];
	bool synchronized = false;
	const int ret = state_of(doctor, &synchronized);
	const char *by;

	programs_of(doctor, programs);
	by = programs[0] ? programs : "nobody that can be seen from here";
	if (ret < 0) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "adjtimex: %s; set by: %s", strerror(-ret),
			by);
		remedy(doctor, "timedatectl; chronyc tracking");
		return;
	}
	if (synchronized && !programs_quarrel(programs)) {
		finding(doctor, NULL, HEALTH_OK, "adjtimex: synchronized; set by: %s", by);
		return;
	}
	finding(doctor, NULL, HEALTH_WARN, "adjtimex: %s; set by: %s",
		synchronized ? "synchronized" : "unsynchronized", by);
	if (programs_quarrel(programs)) {
		remedy_on_host(doctor);
		remedy(doctor,
		       "# two programs set the clock; keep one: sudo systemctl disable --now "
		       "systemd-timesyncd, or the other");
	} else if (runs(programs, "chronyd")) {
		remedy(doctor,
		       "chronyc tracking; chronyc sources  # no server answers, or not yet");
	} else if (runs(programs, "systemd-timesyn")) {
		remedy(doctor, "timedatectl timesync-status  # no server answers, or not yet");
	} else if (runs(programs, "ntpd")) {
		remedy(doctor, "ntpq -p  # no server answers, or not yet");
	} else if (runs(programs, "ptp4l") && !runs(programs, "phc2sys")) {
		remedy(doctor,
		       "# ptp4l sets the card's clock; from there the system's: sudo phc2sys "
		       "-a -r");
	} else {
		remedy_chrony(doctor);
	}
}

static int number_of(struct doctor *doctor, const char *name, long *number)
{
	char text[TREE_TEXT_MAX], *end;
	const int ret = tree_fact(doctor->tree, text, "clock/%s", name);

	if (ret < 0)
		return ret;
	errno = 0;
	*number = strtol(text, &end, 10);
	return end == text || *end || errno ? -EINVAL : 0;
}

static void check_offset(struct doctor *doctor)
{
	bool synchronized = false;
	long offset = 0, error = 0;
	int ret = state_of(doctor, &synchronized);

	if (ret == 0 && !synchronized) {
		finding(doctor, NULL, HEALTH_NOT_APPLICABLE,
			"the clock is not synchronized: nobody knows how far it is off");
		return;
	}
	if (ret == 0)
		ret = number_of(doctor, "offset_ns", &offset);
	if (ret == 0)
		ret = number_of(doctor, "max_error_us", &error);
	if (ret < 0) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "adjtimex: %s", strerror(-ret));
		remedy(doctor, "chronyc tracking, or timedatectl timesync-status");
		return;
	}
	finding(doctor, NULL, error >= 0 && error <= ERROR_MOST_US ? HEALTH_OK : HEALTH_WARN,
		"adjtimex: offset still to be corrected %ld ns; error at most %ld us", offset,
		error);
	if (error >= 0 && error <= ERROR_MOST_US)
		return;
	remedy(doctor, "chronyc tracking; chronyc sources -v  # a nearer server, or PTP: ptp4l and "
		       "phc2sys (linuxptp)");
}

/* A card's own clock, which PTP sets. */
static void check_card_clock(struct doctor *doctor, const struct machine_card *card)
{
	char(*names)[64], programs[TREE_TEXT_MAX], clock[64] = "";
	const int count =
		tree_list(doctor->tree, &names, "/sys/bus/pci/devices/%s/ptp", card->pci.address);
	bool followed;

	for (int i = 0; i < count && !clock[0]; i++)
		if (strncmp(names[i], "ptp", 3) == 0 &&
		    names[i][3 + strspn(names[i] + 3, "0123456789")] == '\0')
			snprintf(clock, sizeof(clock), "%s", names[i]);
	free(names);
	if (!clock[0])
		return;
	programs_of(doctor, programs);
	followed = !runs(programs, "ptp4l") || runs(programs, "phc2sys");
	finding(doctor, card->pci.address, followed ? HEALTH_OK : HEALTH_WARN,
		"/sys/class/ptp/%s: there; ptp4l: %s; phc2sys: %s", clock,
		runs(programs, "ptp4l") ? "runs" : "not seen",
		runs(programs, "phc2sys") ? "runs" : "not seen");
	if (!followed)
		remedy(doctor, "# the system's clock after the card's: sudo phc2sys -a -r, or the "
			       "service phc2sys of linuxptp");
}

const struct doctor_check checks_clock[] = {
	{ "clock-sync", "clock", SEVERITY_INFO,
	  "senders on several machines begin together (--start-at), and arrival times of two "
	  "machines can be compared, only where somebody sets their clocks; one machine needs none "
	  "of it",
	  .run = check_sync },
	{ "clock-offset", "clock", SEVERITY_INFO,
	  "senders that begin together are as far apart as their machines' clocks",
	  .run = check_offset },
	{ "clock-card", "clock", SEVERITY_INFO,
	  "PTP sets a card's clock to some tens of ns, and phc2sys the system's after it",
	  .card = check_card_clock },
	{ 0 },
};
