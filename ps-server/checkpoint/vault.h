/* The newest checkpoint of a job, in memory: what a job goes on from that has lost a worker.
 *
 * One is being collected while the one before is whole; the new one takes its place when it is
 * whole, too. So memory has at most two, and a third one while an older one is held (vault_hold).
 * The buffers of an older one are used again. Belongs to the coordinator's thread. */
#ifndef PS_SERVER_CHECKPOINT_VAULT_H
#define PS_SERVER_CHECKPOINT_VAULT_H

#include "common/base/status.h"
#include "common/channel/wire.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

struct vault;

enum status vault_create(struct vault **ret_vault);
void vault_destroy(struct vault *vault); // NULL is fine

/* Begins to collect the checkpoint of a step; one that is not whole is given up. */
void vault_begin(struct vault *vault, uint64_t step);

/* Copies a PIECE of it, which the coordinator has found sound. STATUS_NO_MEMORY: it will not become
 * whole. */
enum status vault_store(struct vault *vault, const struct message *piece);

/* All pieces have come: it takes the place of the one before. Takes job_part. STATUS_NO_MEMORY: a
 * piece found no room, and the one before stays. */
enum status vault_commit(struct vault *vault, json_t *job_part);
void vault_abandon(struct vault *vault);

/* Steps of the one that is whole; 0: there is none. */
uint64_t vault_step(const struct vault *vault);

/* What it says of the job: job_part.h. Borrowed; NULL: there is none. */
const json_t *vault_job_part(const struct vault *vault);

/* A copy of it, which is the caller's and may be another thread's. NULL: no memory. */
json_t *vault_copy_job_part(const struct vault *vault);

/* Holds the one that is whole, and no other: it stays where it is, for a thread that reads it,
 * until vault_let_go. */
void vault_hold(struct vault *vault);
void vault_let_go(struct vault *vault);

/* A vector of the one that is whole, as long as that is held, or until the next vault_commit. */
struct vault_vector {
    const char *name;    // NULL: there is none of this number
    const float *values; // (total)
    uint64_t total;
};
struct vault_vector vault_vector(const struct vault *vault, uint32_t index);

/* Its vector of this name; *ret_total: its floats. NULL: it has none. Borrowed until the next
 * vault_commit. */
const float *vault_find(const struct vault *vault, const char *name, uint64_t *ret_total);

#endif
