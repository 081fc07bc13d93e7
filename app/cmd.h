/* SPDX-License-Identifier: BSD-3-Clause */
/* The subcommands. Each parses its arguments (argv[0] is its name); returns the exit status. */
#ifndef GDRCAP_APP_CMD_H
#define GDRCAP_APP_CMD_H

int cmd_loopback(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_report(int argc, char **argv);

#endif
