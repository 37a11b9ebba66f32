/* When a checkpoint is due that follows from time: those of --checkpoint-every MINUTESm, and those
 * for memory alone. Also how long the end of the job waits for its last one. Pure.
 *
 * The coordinator names a step ahead of everybody, by the pace so far. One that turns out to be too
 * near for somebody is named anew, further ahead. */
#ifndef PS_SERVER_COORDINATOR_CHECKPOINT_SCHEDULE_H
#define PS_SERVER_COORDINATOR_CHECKPOINT_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct checkpointing;
struct coordinator;
struct sender;

/* Training begins. */
void checkpoint_schedule_begin(struct coordinator *coordinator, uint64_t now_ms);

/* Several times a second: asks members for the next one, if it is due. */
void checkpoint_schedule_tick(struct coordinator *coordinator, uint64_t now_ms);

/* The checkpoint of a step has ended, well or not. */
void checkpoint_schedule_note(struct coordinator *coordinator, uint64_t step, uint64_t now_ms);

/* How many members have a share of the checkpoint of a step: workers, and servers where those hold
 * the parameters then. */
uint32_t checkpoint_schedule_shares(const struct coordinator *coordinator, uint64_t step);

/* Whether workers' steps are apart around a step of the job, and no order says which comes when:
 * servers count the steps. */
bool checkpoint_schedule_is_race(const struct coordinator *coordinator, uint64_t step);

/* Whether the checkpoint of a step waits with its members until the disk has nothing left. The last
 * one does, and so do others while it may soon be free. */
bool checkpoint_schedule_postpones(const struct checkpointing *checkpointing, uint64_t step);

/* Whether workers that have made this step, and no more, may wait for the disk. */
bool checkpoint_schedule_holds_up(const struct coordinator *coordinator, uint64_t step);

/* Whether the checkpoint of a step is one of those that --checkpoint-every asks for. */
bool checkpoint_schedule_is_for_disk(const struct checkpointing *checkpointing, uint64_t step);

/* Whether the end of the job has to wait for a checkpoint, which it does for half of --stall-fail
 * at most. */
bool checkpoint_schedule_awaits_last(struct coordinator *coordinator, uint64_t now_ms);

/* Several times a second, where the coordinator's own absence has been excused: ends that wait. */
void checkpoint_schedule_judge_last(struct coordinator *coordinator, uint64_t now_ms);

/* Whether the end of the job waits for something that this member has not sent. */
bool checkpoint_schedule_lacks(const struct coordinator *coordinator, const struct sender *member);

/* Says that the job ends without its last checkpoint, and ends the wait for it. */
void checkpoint_schedule_give_up_last(struct coordinator *coordinator, const char *why);

#endif
