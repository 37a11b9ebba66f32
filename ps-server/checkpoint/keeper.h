/* The checkpoints of a coordinator's process: the one that the job goes on from, and those that it
 * writes. Does what checkpointing.h asks for. */
#ifndef PS_SERVER_CHECKPOINT_KEEPER_H
#define PS_SERVER_CHECKPOINT_KEEPER_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "ps-server/checkpoint/beginning.h"
#include "ps-server/checkpoint/disk_watch.h"
#include "ps-server/checkpoint/job_part.h"
#include "ps-server/checkpoint/mirror.h"
#include "ps-server/checkpoint/origin.h"
#include "ps-server/checkpoint/saver.h"
#include "ps-server/checkpoint/vault.h"
#include "ps-server/coordinator/coordinator.h"

#include <stdbool.h>
#include <stdint.h>

struct keeper;

struct keeper_options {
    struct origin_options origin; // what it borrows stays with the keeper
    const json_t *in_place_part;  // borrowed; the job's part of what servers have kept; NULL: they
                                  // have nothing to go on from
    uint64_t in_place_step;       // of that
    struct vault *vault;          // borrowed; where it has a checkpoint, that is the one to go on
                                  // from otherwise. NULL: none is kept in memory
    struct mirror *mirror;        // borrowed; of what the vault has; NULL: there is none
    struct saver **saver;         // borrowed; that writes, of the whole process: NULL until writing
                                  // begins
    struct disk_watch *watch;     // borrowed; of the disk that this goes to, likewise
    uint32_t member_count;        // of all generations
    void (*wake)(void *context);  // there are news; on another thread
    void *context;
};

/* Opens the checkpoint to go on from, and checks that it is of this job; writes nothing. Logs.
 * STATUS_END_OF_DATA, without a word: it goes on in a folder in which nothing is left to do.
 * STATUS_IO: the disk hangs; STATUS_INTERRUPTED: a turn has said so (see origin_find). */
enum status keeper_create(const struct keeper_options *options, struct keeper **ret_keeper);
void keeper_destroy(struct keeper *keeper); // what is queued stays with the saver; NULL is fine

/* Whether the mirror's disk hung, or failed, so that the job goes on without what is there. If that
 * was when members fetched it, they have been told to join the next generation. */
bool keeper_lacks_mirror(const struct keeper *keeper);

/* How many steps of the job are behind what it goes on from; 0: it begins. */
uint64_t keeper_begin_step(const struct keeper *keeper);

/* Training begins: what is to be noted in the run folder of what it goes on from, for a coordinator
 * that might have to take over. NULL: nothing. The caller ends it. */
struct beginning *keeper_beginning(const struct keeper *keeper);

/* What the coordinator begins with: hands the results so far over to it. Of a job that begins:
 * nothing. */
void keeper_hand_over(struct keeper *keeper, struct coordinator *coordinator);

/* Training begins: gets ready to write, if the job wants checkpoints. Logs. */
enum status keeper_begin_writing(struct keeper *keeper, struct coordinator *coordinator);

/* Port's checkpoint. */
void keeper_do(struct keeper *keeper, struct coordinator *coordinator, enum checkpoint_task task,
               uint64_t peer, const struct message *message, uint64_t now_ms);

/* Several times a second: tells the coordinator what was done, and gives members what was read. */
void keeper_take_news(struct keeper *keeper, struct coordinator *coordinator, uint64_t now_ms);

#endif
