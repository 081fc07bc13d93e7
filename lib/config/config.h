/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a configuration: what the caller has given so far. */
#ifndef GDRCAP_CONFIG_H
#define GDRCAP_CONFIG_H

#include <stdbool.h>

#include "base/input_list.h"
#include "config/option_table.h"
#include "config/settings.h"

struct gdrcap_config {
	struct settings settings; /* each option's own value; what follows from them is not there */
	/* By the option's place in the table: how many values were given (0: the default holds), and
	 * their texts, one after the other, each with its ending zero. */
	uint8_t given[GDRCAP_OPTIONS_MAX];
	char *text[GDRCAP_OPTIONS_MAX];
	struct input_list read; /* files that options came from */
	bool is_image_file;	/* holds layouts of images, and names no further file of them */
	void (*log)(void *context, enum gdrcap_log_level level, const char *line);
	void *log_context;
};

/* NULL: no memory. */
struct gdrcap_config *config_copy(const struct gdrcap_config *config);
/* Puts `from` in the place of what `to` was, and frees it. */
void config_replace(struct gdrcap_config *to, struct gdrcap_config *from);

/*
 * Gives the row's option a value; a list, where `add`, one more. The empty text stands for the default
 * where the row says so. 0, -EINVAL ("NAME: what is wrong; allowed: ...", with `name` as the caller wrote
 * it) or -ENOMEM; then nothing has changed.
 */
int config_give(struct gdrcap_config *config, const struct option_row *row, const char *name,
		const char *value, bool add, struct gdrcap_error *error);

/* The first `before` texts of the row's option and `count` more, one after the other with their ending
 * zeros. NULL: no memory. */
char *config_texts(const struct gdrcap_config *config, const struct option_row *row,
		   unsigned int before, const char *more, unsigned int count);
/* The option has these texts; it frees them. */
void config_keep(struct gdrcap_config *config, const struct option_row *row, char *texts,
		 unsigned int count);
/* Of OPTION_IMAGES: config_give() behind the first `before` layouts, and the same with one that was read
 * already. */
int config_give_images(struct gdrcap_config *config, const struct option_row *row, const char *name,
		       const char *value, unsigned int before, struct gdrcap_error *error);
int config_give_image(struct gdrcap_config *config, const struct option_row *row,
		      const struct image_settings *image, unsigned int before,
		      struct gdrcap_error *error);

/*
 * Gives `config` the options of a YAML text; `name` stands for it in error texts. 0 or a negative errno;
 * then those before the wrong one are given.
 */
int config_read_yaml(struct gdrcap_config *config, const char *name, const char *text, size_t bytes,
		     struct gdrcap_error *error);

/* True where no option says what frames should be: those checked are gdrcap's own by default. */
bool config_says_no_frames(const struct gdrcap_config *config);

/* What a session of this configuration does: settings_settle(). 0 or -EINVAL. */
int config_settle(const struct gdrcap_config *config, struct settings *settings,
		  struct gdrcap_error *error);

#endif
