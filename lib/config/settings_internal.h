/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of settings_settle(). Each returns 0 or a negative errno. */
#ifndef GDRCAP_SETTINGS_INTERNAL_H
#define GDRCAP_SETTINGS_INTERNAL_H

#include "config/settings.h"

/* A PRBS that runs on through the stream: each frame's phase is in its own data. */
bool settings_phase_is_own(const struct settings *settings);
/* How frames are received, who takes them and where they are kept. */
int settings_settle_receiver(struct settings *settings, struct gdrcap_error *error);
/* Queues of our own in place of the driver's. */
int settings_check_own_queues(const struct settings *settings, struct gdrcap_error *error);
/* What makes no sense with frames of the caller's to be sent. */
int settings_check_sender(const struct settings *settings, struct gdrcap_error *error);
/* What the caller's own consumer cannot have. */
int settings_check_consumer(const struct settings *settings, struct gdrcap_error *error);
/* Images in the place of frames; after `match` has its place in the layout of frames. */
int settings_settle_images(struct settings *settings, struct gdrcap_error *error);
/* Frames of format custom. */
int settings_check_custom(const struct settings *settings, struct gdrcap_error *error);
/* Files, rates, and what would mean nothing here. */
int settings_settle_files(struct settings *settings, struct gdrcap_error *error);

#endif
