/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON object of an examination: schema gdrcap.doctor/1, docs/doctor.md. */
#include <jansson.h>

#include "doctor/doctor.h"
#include "base/json_line.h"

static const char *const severity_names[] = {
	[SEVERITY_FATAL] = "fatal",
	[SEVERITY_SLOW] = "slow",
	[SEVERITY_INFO] = "info",
};
static const char *const verdict_names[] = {
	[HEALTH_OK] = "ok",
	[HEALTH_WARN] = "warn",
	[HEALTH_FAIL] = "fail",
	[HEALTH_UNKNOWN] = "unknown",
	[HEALTH_NOT_APPLICABLE] = "not applicable",
};

static json_t *number_if(int number)
{
	return json_count_if(number >= 0, (uint64_t)number);
}

/* An item that is NULL fails, so that callers need one check. */
static int append(json_t *array, json_t *item)
{
	return json_array_append_new(array, item);
}

static json_t *machine_to_json(const struct machine *machine, int *rc)
{
	json_t *gpus = json_array(), *cards = json_array();

	for (uint32_t i = 0; i < machine->gpus; i++) {
		const struct machine_gpu *gpu = &machine->gpu[i];

		*rc |= append(gpus, json_pack("{s:s, s:o, s:o, s:o}", "pci", gpu->pci.address,
					      "name", json_text_if(gpu->name), "cuda_ordinal",
					      number_if(gpu->cuda_ordinal), "numa_node",
					      number_if(gpu->pci.numa_node)));
	}
	for (uint32_t i = 0; i < machine->cards; i++) {
		const struct machine_card *card = &machine->card[i];

		*rc |= append(cards,
			      json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "pci",
					card->pci.address, "model", json_text_if(card->model),
					"interface", json_text_if(card->interface), "rdma",
					json_text_if(card->rdma), "driver",
					json_text_if(card->pci.driver), "numa_node",
					number_if(card->pci.numa_node), "virtual_function",
					card->pci.virtual_function));
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "distribution",
			 json_text_if(machine->distribution_name), "kernel",
			 json_text_if(machine->kernel), "container",
			 json_text_if(machine->container), "virtual_machine",
			 json_text_if(machine->virtual_machine), "root", machine->root, "gpus",
			 gpus, "cards", cards);
}

static json_t *checks_to_json(const struct doctor *doctor, int *rc)
{
	json_t *checks = json_array();

	for (uint32_t i = 0; i < doctor->count; i++) {
		const struct finding *finding = &doctor->findings[i];
		const struct doctor_check *check = finding->check;

		*rc |= append(checks,
			      json_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:s}", "id", check->id,
					"group", check->group, "subject",
					json_text_if(finding->subject), "severity",
					severity_names[check->severity], "verdict",
					verdict_names[finding->verdict], "read", finding->read,
					"why", check->why, "remedy", finding->remedy));
	}
	return checks;
}

static json_t *pairs_to_json(const struct doctor *doctor, int *rc)
{
	json_t *pairs = json_array();

	for (uint32_t i = 0; i < doctor->pairs; i++) {
		const struct pair *pair = &doctor->pair[i];

		*rc |= append(pairs,
			      json_pack("{s:s, s:s, s:o, s:o, s:s, s:o, s:o}", "gpu",
					pair->gpu->pci.address, "card", pair->card->pci.address,
					"interface", json_text_if(pair->card->interface),
					"cuda_ordinal", number_if(pair->gpu->cuda_ordinal), "path",
					pair->path, "numa_node",
					number_if(pair->card->pci.numa_node), "cores",
					json_text_if(pair->cores)));
	}
	return pairs;
}

static json_t *doctor_to_json(const struct doctor *doctor)
{
	uint32_t unknown;
	const int able = doctor_able(doctor, &unknown);
	json_t *object;
	int rc = 0;

	object = json_pack("{s:s, s:s, s:b, s:I, s:o, s:o, s:o, s:n}", "schema", DOCTOR_SCHEMA,
			   "version", gdrcap_version(), "able", able, "unknown",
			   (json_int_t)unknown, "machine", machine_to_json(&doctor->machine, &rc),
			   "checks", checks_to_json(doctor, &rc), "pairs",
			   pairs_to_json(doctor, &rc), "error");
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

int doctor_print_json(FILE *to, const struct doctor *doctor)
{
	return json_line_print(to, doctor_to_json(doctor), 0);
}

int doctor_print_json_error(FILE *to, const char *why)
{
	return json_line_print(to,
			       json_pack("{s:s, s:s, s:n, s:n, s:n, s:[], s:[], s:o}", "schema",
					 DOCTOR_SCHEMA, "version", gdrcap_version(), "able",
					 "unknown", "machine", "checks", "pairs", "error",
					 json_text(why)),
			       0);
}
