/* The options of `worker`. */
#ifndef WORKER_OPTIONS_H
#define WORKER_OPTIONS_H

#include "common/base/log.h"
#include "common/options/options.h"
#include "common/security/security.h"
#include "worker/link/rank.h"

#include <stdbool.h>
#include <stdint.h>

struct worker_options {
    char server[256];
    uint32_t rank, local_rank, local_size;
    bool has_rank, has_local_rank, has_local_size; // from any source
    enum rank_launcher launcher;
    uint32_t rank_offset; // of what a launcher says
    char bind[128];
    char port_range[16]; // "": any
    char data[1024];     // "": the job's
    char device[32];     // "": the job's
    uint32_t threads;    // 0: the job's
    double join_timeout, stall_warn;
    uint32_t health_port;                  // 0: none
    char timeline_dir[1024];               // "": none
    char evaluate[1024];                   // folder of checkpoints; "": none
    char pack[1024];                       // file to write; "": none
    uint32_t pack_jpeg;                    // quality of what it has; 0: pixels
    char preview[1024];                    // file to write; "": none
    uint32_t preview_epoch, preview_sheet; // from 1
    uint32_t preview_zoom;                 // 0: as it fits
    bool probe, backends, describe_model;
    enum log_level log_level;
    struct security_options security;
};

/* Parses, and finds the rank. Logs what is wrong. */
enum status worker_options_parse(int argc, char *const *argv, struct worker_options *ret_options,
                                 bool *ret_is_done);

#endif
