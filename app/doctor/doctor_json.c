/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON object of an examination: schema gdrcap.doctor/1, docs/doctor.md. */
#include "doctor/doctor_report.h"
#include "json_line.h"

/* The library's texts are ASCII. */
static json_t *text_if(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *number_if(int number)
{
	return number >= 0 ? json_integer(number) : json_null();
}

static const char *severity_name(enum gdrcap_severity severity)
{
	static const char *const names[] = {
		[GDRCAP_SEVERITY_FATAL] = "fatal",
		[GDRCAP_SEVERITY_SLOW] = "slow",
		[GDRCAP_SEVERITY_INFO] = "info",
	};

	return names[severity];
}

static const char *verdict_name(enum gdrcap_health verdict)
{
	static const char *const names[] = {
		[GDRCAP_HEALTH_OK] = "ok",
		[GDRCAP_HEALTH_WARN] = "warn",
		[GDRCAP_HEALTH_FAIL] = "fail",
		[GDRCAP_HEALTH_UNKNOWN] = "unknown",
		[GDRCAP_HEALTH_NOT_APPLICABLE] = "not applicable",
	};

	return names[verdict];
}

/* An item that is NULL fails, so that callers need one check. */
static int append(json_t *array, json_t *item)
{
	return json_array_append_new(array, item);
}

static json_t *machine_to_json(const struct gdrcap_machine *machine, int *rc)
{
	json_t *gpus = json_array(), *cards = json_array();

	for (uint32_t i = 0; i < machine->gpus; i++) {
		const struct gdrcap_machine_gpu *gpu = &machine->gpu[i];

		*rc |= append(gpus, json_pack("{s:s, s:o, s:o, s:o}", "pci", gpu->pci, "name",
					      text_if(gpu->name), "cuda_ordinal",
					      number_if(gpu->cuda_ordinal), "numa_node",
					      number_if(gpu->numa_node)));
	}
	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct gdrcap_machine_card *card = &machine->card[i];

		*rc |= append(cards, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "pci",
					       card->pci, "model", text_if(card->model),
					       "interface", text_if(card->interface), "rdma",
					       text_if(card->rdma), "driver", text_if(card->driver),
					       "numa_node", number_if(card->numa_node),
					       "virtual_function", card->virtual_function));
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "distribution",
			 text_if(machine->distribution), "kernel", text_if(machine->kernel),
			 "container", text_if(machine->container), "virtual_machine",
			 text_if(machine->virtual_machine), "root", machine->root, "gpus", gpus,
			 "cards", cards);
}

static json_t *checks_to_json(const struct gdrcap_doctor *doctor, int *rc)
{
	json_t *checks = json_array();
	const struct gdrcap_finding *finding;

	for (uint32_t i = 0; (finding = gdrcap_doctor_finding(doctor, i)); i++)
		*rc |= append(checks,
			      json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:s}", "id",
					finding->id, "group", finding->group, "subject",
					text_if(finding->subject), "severity",
					severity_name(finding->severity), "verdict",
					verdict_name(finding->verdict), "read", finding->read,
					"why", finding->why, "remedy", finding->remedy));
	return checks;
}

static json_t *pairs_to_json(const struct gdrcap_doctor *doctor, int *rc)
{
	json_t *pairs = json_array();
	struct gdrcap_pair pair;

	for (uint32_t i = 0; gdrcap_doctor_pair(doctor, i, &pair) == 0; i++)
		*rc |= append(pairs,
			      json_pack("{s:s, s:s, s:o, s:o, s:s, s:o, s:o}", "gpu", pair.gpu,
					"card", pair.card, "interface", text_if(pair.interface),
					"cuda_ordinal", number_if(pair.cuda_ordinal), "path",
					pair.path, "numa_node", number_if(pair.numa_node), "cores",
					text_if(pair.cores)));
	return pairs;
}

json_t *doctor_to_json(const struct gdrcap_doctor *doctor)
{
	uint32_t unknown;
	const int able = gdrcap_doctor_able(doctor, &unknown);
	json_t *object;
	int rc = 0;

	object = json_pack(
		"{s:s, s:s, s:b, s:I, s:o, s:o, s:o, s:n}", "schema", DOCTOR_SCHEMA, "version",
		gdrcap_version(), "able", able, "unknown", (json_int_t)unknown, "machine",
		machine_to_json(gdrcap_doctor_machine(doctor), &rc), "checks",
		checks_to_json(doctor, &rc), "pairs", pairs_to_json(doctor, &rc), "error");
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

/* The texts of an error may name a file as it is; JSON is UTF-8. */
static json_t *error_text(const char *text)
{
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return json_string(copy);
}

int doctor_print_json(FILE *to, const struct gdrcap_doctor *doctor)
{
	return json_line_print(to, doctor_to_json(doctor), 0);
}

int doctor_print_json_error(FILE *to, const char *why)
{
	return json_line_print(to,
			       json_pack("{s:s, s:s, s:n, s:n, s:n, s:[], s:[], s:o}", "schema",
					 DOCTOR_SCHEMA, "version", gdrcap_version(), "able",
					 "unknown", "machine", "checks", "pairs", "error",
					 error_text(why)),
			       0);
}
