/* SPDX-License-Identifier: BSD-3-Clause */
/* What earlier versions left in EAL's run-time directory. */
#ifndef GDRCAP_OLD_DIRS_H
#define GDRCAP_OLD_DIRS_H

/* After EAL's start: removes folders "gdrcap-PID" of this user whose process is gone. */
void old_dirs_remove(void);

#endif
