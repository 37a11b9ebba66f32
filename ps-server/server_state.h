/* The coordinator's process: what its loop has, and what it does for the coordinator. Of server.c
 * and the other server_*.c alone. */
#ifndef PS_SERVER_SERVER_STATE_H
#define PS_SERVER_SERVER_STATE_H

#include "common/base/attention.h"
#include "common/base/departures.h"
#include "common/base/folder_lock.h"
#include "common/channel/channel.h"
#include "common/job/job_text.h"
#include "common/thread/slow_disk.h"
#include "ps-server/checkpoint/keeper.h"
#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/launcher/launcher_news.h"
#include "ps-server/launcher/signs.h"
#include "ps-server/live/live.h"
#include "ps-server/record/history.h"
#include "ps-server/record/progress.h"
#include "ps-server/record/recorder/recorder.h"
#include "ps-server/returning/ended.h"
#include "ps-server/returning/returning.h"
#include "ps-server/server.h"
#include "ps-server/shard/shard_service.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct server {
    const struct server_options *options;
    struct job job;   // of this generation: fewer processes may carry it than it asks for
    struct job given; // as somebody has asked for it, with all of --fault
    struct generation generation; // zeroed: the first
    json_t *in_place_part;        // what a generation that begins in place begins with; or NULL
    struct vault *vault;          // what a next generation goes on from; NULL: there is none
    struct mirror *mirror;        // of that, for a next coordinator; NULL: there is none
    bool has_left_mirror;         // there was one, and the run goes on without it
    struct job_part begun;        // what those had when their generation began; or zeroed
    struct returning returning;   // members that have outlasted the coordinator before
    struct ended ended;           // and those that have not
    struct history_entry restart; // to be noted, if is_again
    bool is_restart_noted;
    bool has_looked;          // at the past in the folders
    bool has_run;             // somebody has begun the run that goes on in its folder
    bool was_completed;       // that run
    const char *other_option; // of that one if it was: see recorded_job_other_option
    bool was_lost;            // the run that it resumes: it has begun, and was not completed
    bool is_again;            // somebody has begun the job in its run folder before
    bool has_started;         // some generation has trained
    bool is_replaced; // another coordinator has taken over: this one writes nothing any more
    struct channel *channel;
    struct coordinator coordinator;
    struct attention attention;
    struct departures *departures; // of the transport
    struct recorder *recorder;     // NULL: no run folder
    struct folder_lock lock;       // on the run folder; a launcher has its own
    struct keeper *keeper;
    struct saver *saver; // of all keepers; NULL: nothing was written so far
    struct disk_watch disk_watch;
    bool has_disk_failed; // it was said to hang, or could not be waited for: it gets less time
    struct progress progress;
    struct live *live; // NULL: nobody looks
    struct launcher_pipe launcher;
    struct signs signs;        // of life, to the launcher
    enum status record_status; // of the first file that could not be written
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    char job_text[JOB_TEXT_BYTES];
    unsigned char seal_key[WIRE_SEAL_KEY_BYTES]; // of a job whose data travel in clear

    pthread_t shard_thread;
    bool has_shard_thread;
    atomic_int is_shard_forsaken; // its shard ends: nobody is there any more to tell it so
    struct shard_service_options shard;
};

/* How long the job waits for a disk. Meanwhile the server says that it is alive. */
struct slow_disk_wait server_disk_wait(struct server *server);

/* What the coordinator asks for, done for the server: messages, the log, the run folder, progress
 * and checkpoints. */
struct coordinator_port server_port(struct server *server);

/* Takes the lock of the run folder, unless a launcher has it: nobody else writes there meanwhile,
 * such as a coordinator before this one that has been stopped, and goes on later. This function and
 * those up to server_read_beginning return STATUS_IO if the disk hangs, and STATUS_INTERRUPTED
 * after a signal. Log. */
enum status server_hold_folder(struct server *server);

/* Gives the lock back, if it was taken. A disk that hangs keeps it until the process ends. Logs. */
void server_release_folder(struct server *server);

/* Once, before the job trains: what has become of the runs in the folders. */
enum status server_look_at_past(struct server *server);

/* Whether the run in the folder can go on, once there is a keeper. One that was completed and has
 * left no checkpoint cannot: STATUS_END_OF_DATA, without a word, if it is this job, of which
 * nothing is left to do; otherwise STATUS_INVALID, which logs. */
enum status server_check_completed(const struct server *server);

/* See history_complete_entry. */
enum status server_complete_entry(struct server *server, const char *folder,
                                  struct history_entry *entry);

/* See beginning_read. */
enum status server_read_beginning(struct server *server, uint64_t step, struct job_part *ret_part);

/* Opens the run folder, if there is one, once the coordinator knows what it begins with. Logs. */
enum status server_open_record(struct server *server);

/* Completes the run folder, as far as it can be written. */
void server_finish_record(struct server *server);

/* Notes in the run folder that the job goes on at a step with this process, if somebody had begun
 * it before; once. */
void server_note_restart(struct server *server, uint64_t step);

/* Opens the mirror, if there is to be one. If it cannot be used, a job that begins fails, and one
 * that is under way leaves it (server_leave_mirror). Logs. */
enum status server_open_mirror(struct server *server);

/* Whether the job is under way, so that a mirror that cannot be used does not end it. */
bool server_may_lack_mirror(const struct server *server);

/* How long the mirror's disk may hang: as server_disk_wait, but less if the job is under way. Its
 * members wait for a coordinator that is started again for --outlast, and no longer. */
struct slow_disk_wait server_mirror_wait(struct server *server);

/* Whether the job may go on from what is in the mirror. */
bool server_may_use_mirror(const struct server *server);

/* The job goes on without its mirror from here on. The run folder says so, as what is in the mirror
 * is old by the next time. If that cannot be written, the job must not go on: an error. Logs. */
enum status server_leave_mirror(struct server *server);

/* Once there is a run folder: gets ready to write to the mirror, which is left if it cannot be
 * used, as by server_open_mirror. Without one, the folder forgets the mirror that the run had
 * before. Logs. */
enum status server_begin_mirror(struct server *server);

/* Ends the mirror. Removes it if nobody goes on from it: `is_over`, the job was completed, or
 * nothing is left of it. If the disk hangs, server->vault is its thread's from then on. Logs. */
void server_end_mirror(struct server *server, bool is_over);

/* Finds what the coordinator begins with, as server->keeper, which stays NULL if that fails: then
 * nothing is kept, and the job ends. in_place_step: the step of server->in_place_part, if that is
 * it; 0: it is not. Logs. */
enum status server_open_keeper(struct server *server, uint64_t in_place_step);

/* Gets ready for members of a generation. Each generation has a job id of its own, so messages of
 * the one before belong to no job. */
enum status server_open_job(struct server *server);

/* For when the loop of a generation has ended. Whether it goes on: with the next generation, or
 * until all members know that there is none. */
bool server_goes_on(struct server *server);

/* Takes what the launcher has said since the last turn, and tells it what the job goes on without.
 */
void server_take_news(struct server *server);

/* BACK of a member: the job may be under way without a coordinator. */
void server_take_back(struct server *server, uint64_t peer, const struct message *back);

/* JOIN while members come back: whether that takes it. */
bool server_take_join(struct server *server, uint64_t peer, const struct message *join);

/* Makes the job what it was, where another coordinator could not be made of a changed one. */
void server_restore_job(struct server *server, const struct job *own);

/* Notes how writing to the run folder went; the first failure ends the job. */
void server_note_record(struct server *server, enum status status);

/* For how long the disk may take what is on its way to it, at the end of the job. */
uint64_t server_disk_patience_ms(const struct server *server);

/* Ends the job if writing to the run folder has failed. */
void server_check_record(struct server *server);

/* Opens the lane of the loop, if the job has a timeline. */
enum status server_open_trace(struct server *server);

/* A member asks what time it is here, for a timeline. Answered at once: the shorter the way there
 * and back takes, the more the answer tells. */
void server_tell_clock(struct server *server, uint64_t peer, const struct message *message);

#endif
