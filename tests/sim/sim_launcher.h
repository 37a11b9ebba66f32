/* A launcher for a job in virtual time: tells the coordinator who was killed, offers to start it
 * again where the coordinator has to say for whom it waits, and starts members again, as
 * `ringside run --restarts` does (deploy/launch/restart.h). What it and the coordinator say to each
 * other goes through real pipes, which both read without waiting. What the launcher says may be on
 * its way for longer than what the members say. */
#ifndef TESTS_SIM_SIM_LAUNCHER_H
#define TESTS_SIM_SIM_LAUNCHER_H

#include "tests/sim/cluster.h"

#include <stdbool.h>
#include <stdint.h>

#define SIM_LAUNCHER_MEMBERS_MAX (CLUSTER_SERVERS_MAX + CLUSTER_WORKERS_MAX)
#define SIM_LAUNCHER_LINES_MAX   256

/* One that is on its way to the coordinator. */
struct sim_line {
    struct sim_launcher *launcher; // borrowed
    uint32_t pipe;                 // of which coordinator: without that, it arrives nowhere
    char text[128];
};

struct sim_launcher {
    struct cluster *cluster;                       // borrowed
    uint64_t look_ns;                              // after which it looks again
    uint64_t late_ns;                              // that each of its lines is on its way
    struct sim_line lines[SIM_LAUNCHER_LINES_MAX]; // that were, the newest of them
    uint32_t line_count, pipe_count;
    uint32_t restarts;                             // that are left
    uint32_t returns;                              // of the coordinator that are left
    uint64_t return_after_ns, return_ns;           // its pause; when it comes back; 0: it is there
    bool has_begun;                                // the job, to train
    bool is_returning;                             // members come back to it
    int told, heard;                               // its ends of the two pipes
    bool is_ending;                                // the coordinator has said so
    uint64_t over_ns;                              // when the coordinator had ended; 0: it has not
    uint32_t workers_killed;                       // of those that the coordinator was told of
    uint32_t late_count;                           // members that had to be killed in the end
    bool is_noted[SIM_LAUNCHER_MEMBERS_MAX];       // the end of the process that there was
    bool is_counted[SIM_LAUNCHER_MEMBERS_MAX];     // among workers_killed
    uint32_t told_count;                           // lines that the coordinator was told
    uint32_t told_by[SIM_LAUNCHER_MEMBERS_MAX];    // those when the end was noted
    bool is_settled[SIM_LAUNCHER_MEMBERS_MAX];     // the job has gone on without that one
    bool is_offered[SIM_LAUNCHER_MEMBERS_MAX];     // to be started again; no answer yet
    uint64_t restart_ns[SIM_LAUNCHER_MEMBERS_MAX]; // when it is started again; 0: it is not
};

/* Begins to look after the cluster, which has just begun. A coordinator that is killed is started
 * again only if `returns` is set after that, and lines are late only if `late_ns` is. */
void sim_launcher_begin(struct sim_launcher *launcher, struct cluster *cluster, uint64_t look_ns,
                        uint32_t restarts);
void sim_launcher_end(struct sim_launcher *launcher);

/* Whether nothing is left to be done: all have ended, and nobody is started again. */
bool sim_launcher_is_over(void *launcher);

#endif
