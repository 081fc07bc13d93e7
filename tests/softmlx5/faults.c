/* SPDX-License-Identifier: BSD-3-Clause */
#include "faults.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft.h"

#define FILE_MAX 16384

#define KNOB(name)                                                                                 \
	{                                                                                          \
#name, offsetof(struct soft_faults, name), true, 0                                 \
	}
#define SETTING(name, initial)                                                                     \
	{                                                                                          \
#name, offsetof(struct soft_faults, name), false, initial                          \
	}

static const struct {
	const char *name;
	size_t offset;
	bool knob;
	uint64_t initial;
} names[] = {
	KNOB(drop),
	KNOB(corrupt),
	KNOB(duplicate),
	KNOB(reorder),
	KNOB(link_down),
	KNOB(tx_error),
	KNOB(crc),
	KNOB(discard),
	KNOB(no_buffers),
	KNOB(rx_error),
	KNOB(revoke),
	KNOB(late),
	KNOB(stale),
	KNOB(wrong_owner),
	KNOB(wrong_entry),
	KNOB(wrong_stride),
	KNOB(filler),
	KNOB(torn),
	KNOB(flip),
	KNOB(refuse_peer),
	KNOB(refuse_dmabuf),
	KNOB(refuse),
	KNOB(refuse_umem),
	KNOB(refuse_object),
	KNOB(refuse_rule),
	KNOB(refuse_channel),
	SETTING(link, 1),
	SETTING(link_ms, 0),
	SETTING(late_us, 1000),
	SETTING(stale_us, 1000),
	SETTING(torn_us, 1000),
	SETTING(corrupt_at, UINT64_MAX),
	SETTING(pause, 0),
	SETTING(play, 0),
	SETTING(gone, 0),
	SETTING(log_strides_min, 3),
	SETTING(strict_states, 0),
	SETTING(no_key_check, 0),
	SETTING(loose_match, 0),
	SETTING(ignore_doorbells, 0),
	SETTING(ignore_records, 0),
};
#define NAMES (sizeof(names) / sizeof(names[0]))

static const char *fault_file;
static struct timespec fault_file_time;

static int parse_knob(const char *text, struct soft_knob *knob)
{
	unsigned long long part[3] = { 0, 1, 1 };
	char *end;

	if (strcmp(text, "off") == 0) {
		*knob = (struct soft_knob){ 0 };
		return 0;
	}
	for (unsigned int i = 0; i < 3; i++) {
		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		part[i] = strtoull(text, &end, 10);
		if (*end == '\0') {
			if (part[0] == 0 || part[1] == 0)
				return -EINVAL;
			/* Repeated in the file: the knob goes on from where it is. */
			if (knob->start == part[0] && knob->step == part[1] &&
			    knob->count == part[2])
				return 0;
			*knob = (struct soft_knob){ .start = part[0],
						    .step = part[1],
						    .count = part[2] };
			return 0;
		}
		if (*end != '/')
			return -EINVAL;
		text = end + 1;
	}
	return -EINVAL;
}

static int parse_number(const char *text, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	*number = strtoull(text, &end, 10);
	return *end == '\0' ? 0 : -EINVAL;
}

static int set_one(struct soft_device *device, unsigned int name, const char *value)
{
	void *field = (char *)&device->faults + names[name].offset;

	return names[name].knob ? parse_knob(value, field) : parse_number(value, field);
}

static int parse_item(char *item)
{
	char *value = strchr(item, '=');
	unsigned int first = 0, end = SOFT_DEVICES_MAX;
	int ret;

	if (value == NULL)
		return -EINVAL;
	*value++ = '\0';
	if (isdigit((unsigned char)item[0]) && item[1] == '.') {
		first = (unsigned int)(item[0] - '0');
		end = first + 1;
		item += 2;
		if (end > SOFT_DEVICES_MAX)
			return -EINVAL;
	}
	for (unsigned int name = 0; name < NAMES; name++) {
		if (strcmp(item, names[name].name) != 0)
			continue;
		for (unsigned int i = first; i < end; i++) {
			ret = set_one(&soft_devices[i], name, value);
			if (ret < 0)
				return ret;
		}
		return 0;
	}
	return -EINVAL;
}

int soft_faults_parse(const char *text)
{
	char *copy = strdup(text);
	char *save, *item, shown[64];
	int ret = 0;

	if (copy == NULL)
		return -ENOMEM;
	for (item = strtok_r(copy, ", \t\r\n", &save); item != NULL;
	     item = strtok_r(NULL, ", \t\r\n", &save)) {
		snprintf(shown, sizeof(shown), "%s", item);
		if (parse_item(item) == 0)
			continue;
		fprintf(stderr, "softmlx5: no such fault: %s\n", shown);
		ret = -EINVAL;
	}
	free(copy);
	return ret;
}

void soft_faults_init(void)
{
	const char *text = getenv("SOFTMLX5_FAULTS");

	for (unsigned int i = 0; i < SOFT_DEVICES_MAX; i++)
		for (unsigned int name = 0; name < NAMES; name++)
			if (!names[name].knob)
				memcpy((char *)&soft_devices[i].faults + names[name].offset,
				       &names[name].initial, sizeof(names[name].initial));
	if (text != NULL)
		soft_faults_parse(text);
	fault_file = getenv("SOFTMLX5_FAULTS_FILE");
	soft_faults_poll();
}

void soft_faults_watch(const char *path)
{
	fault_file = path;
}

void soft_faults_poll(void)
{
	struct stat info;
	char *text;
	ssize_t got;
	int file;

	if (fault_file == NULL || stat(fault_file, &info) < 0)
		return;
	if (info.st_mtim.tv_sec == fault_file_time.tv_sec &&
	    info.st_mtim.tv_nsec == fault_file_time.tv_nsec)
		return;
	fault_file_time = info.st_mtim;
	text = malloc(FILE_MAX);
	file = open(fault_file, O_RDONLY | O_CLOEXEC);
	if (text != NULL && file >= 0) {
		got = read(file, text, FILE_MAX - 1);
		if (got >= 0) {
			text[got] = '\0';
			soft_faults_parse(text);
		}
	}
	if (file >= 0)
		close(file);
	free(text);
}
