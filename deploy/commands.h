/* The commands of `ringside`: a row in main.c's table and a file each. */
#ifndef DEPLOY_COMMANDS_H
#define DEPLOY_COMMANDS_H

#include "common/signals.h"

/* argv[0] is the command's name. Each returns the program's exit code. */
enum exit_code command_run(int argc, char **argv);
enum exit_code command_compare(int argc, char **argv);
enum exit_code command_sweep(int argc, char **argv);
enum exit_code command_report(int argc, char **argv);
enum exit_code command_check(int argc, char **argv);
enum exit_code command_agent(int argc, char **argv);

#endif
