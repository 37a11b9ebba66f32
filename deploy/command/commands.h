/* The commands of `ringside`: a row in main.c's table and a file each. */
#ifndef DEPLOY_COMMAND_COMMANDS_H
#define DEPLOY_COMMAND_COMMANDS_H

#include "common/base/signals.h"

/* argv[0] is the command's name. Each returns the program's exit code. */
enum exit_code command_run(int argc, char **argv);
enum exit_code command_compare(int argc, char **argv);
enum exit_code command_sweep(int argc, char **argv);
enum exit_code command_predict(int argc, char **argv);
enum exit_code command_calibrate(int argc, char **argv);
enum exit_code command_watch(int argc, char **argv);
enum exit_code command_report(int argc, char **argv);
enum exit_code command_timeline(int argc, char **argv);
enum exit_code command_check(int argc, char **argv);
enum exit_code command_evaluate(int argc, char **argv);
enum exit_code command_export(int argc, char **argv);
enum exit_code command_pack(int argc, char **argv);
enum exit_code command_preview(int argc, char **argv);
enum exit_code command_agent(int argc, char **argv);
enum exit_code command_join(int argc, char **argv);
enum exit_code command_keygen(int argc, char **argv);

/* The programs that take part in a job, by way of the one that is on PATH: same process, same
 * options, same environment. They return only if they cannot be started. */
enum exit_code command_ps(int argc, char **argv);
enum exit_code command_worker(int argc, char **argv);

#endif
