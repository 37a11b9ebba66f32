/* Options of the commands that start jobs. */
#ifndef DEPLOY_HOSTS_LAUNCHER_OPTIONS_H
#define DEPLOY_HOSTS_LAUNCHER_OPTIONS_H

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/job/job.h"
#include "common/options/options.h"
#include "common/security/security.h"

#include <stdbool.h>
#include <stdint.h>

struct launcher_options {
    char out[1024];
    char resume[1024];    // run folder to go on from; "": none; "auto": launcher_resumes_itself
    char mirror[1024];    // folder of the coordinator's host, or "memory"; "": none
    uint32_t restarts;    // of what was lost, at most
    uint32_t health_port; // of the coordinator; 0: none
    bool tensorboard;
    char dashboard[80]; // where the live page is served; "": nowhere
    bool shows_ranks;   // on a terminal
    char bind[128];
    uint32_t port;
    enum log_level log_level;
    struct security_options security; // its rows are a separate set: security_option_set
};

struct option_set launcher_option_set(struct launcher_options *options);

/* Of `ringside run` alone. */
struct option_set launcher_run_option_set(struct launcher_options *options);

/* Of `ringside sweep` and `ringside compare`. */
struct option_set launcher_series_option_set(struct launcher_options *options);

/* Whether the run goes on in the folder of --out, if that has a checkpoint, and begins otherwise.
 */
bool launcher_resumes_itself(const struct launcher_options *options);

/* A job that is resumed goes on in its folder, if --out names no other. STATUS_INVALID if that is
 * none of a run. Logs. */
enum status launcher_resume_folder(struct launcher_options *options);

/* Whether --mirror asks for a folder in this host's memory that is made for the command. */
bool launcher_mirror_is_memory(const char *mirror);

/* Whether the job that is run can have the --mirror that was asked for. STATUS_INVALID if not. The
 * job is resolved. Logs. */
enum status launcher_check_mirror(const struct launcher_options *options, const struct job *job);

/* "runs/20261120-210411-ring-cnn" if --out was not given. */
void launcher_default_folder(struct launcher_options *options, const char *what);

#endif
