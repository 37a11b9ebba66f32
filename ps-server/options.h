/* The options of `ps`. */
#ifndef PS_SERVER_OPTIONS_H
#define PS_SERVER_OPTIONS_H

#include "common/base/log.h"
#include "common/checkpoint/run_number.h"
#include "common/job/job.h"
#include "common/options/options.h"
#include "common/security/security.h"

#include <stdbool.h>
#include <stdint.h>

/* What to show of the job. */
enum progress_choice { PROGRESS_AUTO, PROGRESS_RANKS, PROGRESS_NONE };

struct ps_options {
    uint32_t health_port; // 0: none
    uint32_t shard;
    char server[256]; // endpoint of the coordinator; shards beyond 0
    char bind[128];
    bool is_local; // the coordinator listens on an ipc endpoint: see security.h
    uint32_t port;
    char port_range[16]; // "": any
    char out[1024];
    char resume[1024];          // folder to go on from; "": none
    bool goes_on;               // from the newest checkpoint of `out`, if there is one
    char mirror[1024];          // folder; "": none
    char run[RUN_NUMBER_BYTES]; // its number for that, by a launcher; "": none
    char restarted[512];
    char given_fault[JOB_PATH_BYTES]; // "": as --fault
    char program[JOB_PROGRAM_BYTES];  // "": not known
    char timeline_dir[1024];          // "": none
    double join_timeout;              // seconds; of shards beyond 0
    uint32_t announce_fd;             // 0: none
    uint32_t listen_fd;               // a socket that listens; 0: none
    char listen_at[256];              // where; "": where it chooses
    uint32_t launcher_fd;             // 0: none
    enum progress_choice progress;
    bool tensorboard;
    char dashboard[80]; // where the live page is served; "": nowhere
    enum log_level log_level;
    struct security_options security;
};

/* Parses the command line. Logs what is wrong with it. */
enum status ps_options_parse(int argc, char *const *argv, struct ps_options *ret_options,
                             struct job *ret_job, bool *ret_is_done);

#endif
