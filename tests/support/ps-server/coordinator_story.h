/* Stories of a coordinator: joining, training and losing, in virtual time. */
#ifndef TESTS_SUPPORT_PS_SERVER_COORDINATOR_STORY_H
#define TESTS_SUPPORT_PS_SERVER_COORDINATOR_STORY_H

#include "ps-server/coordinator/coordinator.h"

#include <stdint.h>

#define SENT_MAX 256

/* What the coordinator did, in order. */
struct transcript {
    struct {
        uint64_t peer;
        enum message_kind kind;
        enum status reason;
        bool is_enough; // of a PROCEED
        uint32_t rank, term;
        uint64_t bucket_bytes;
        uint32_t bucket_count; // of the layout; 0: it has none
        char text[512];
    } sent[SENT_MAX];
    uint32_t sent_count;
    uint32_t started_count, switched_count, report_count, period_count;
    uint32_t awaited_count, awaited_number; // that the launcher may start again; the last one
    char last_error[512], last_fact[512];   // that were logged
    uint64_t patience_ms;                   // that the last heartbeat told
    enum presence presence;                 // that is seen of members
};

struct story {
    struct job job;
    struct transcript transcript;
    struct coordinator coordinator;
    uint32_t cores; // of the host of those that join
};

extern struct layout story_layout;

void story_open(struct story *story, const char *mode, uint32_t workers, uint32_t servers);

/* A ring of `workers` that is training; the peers are 1, 2, ... */
void story_open_training(struct story *story, uint32_t workers);
void story_open_crowded(struct story *story, uint32_t workers, uint32_t cores); // of one host

/* What a peer says. */
void story_give(struct story *story, uint64_t peer, struct message message, uint64_t now_ms);
void story_join(struct story *story, uint64_t peer, enum member_role role, uint32_t rank);
/* JOIN of a certain process; launch: its number (launch_number.h), 0: it was started by hand. */
void story_join_process(struct story *story, uint64_t peer, uint32_t worker, uint64_t process_id,
                        uint32_t launch);
/* What the next worker that is ready says of NCCL; NULL: nothing. */
extern const struct wire_nccl *story_nccl;
/* What the next worker that is ready says of its optimizer, of its tensors; NULL: nothing. */
extern const char *story_optimizer, *story_tensors;
extern const struct optimizer_groups *story_groups; // that a worker says; or NULL
extern bool story_has_no_model; // what is ready from here on is a program of collectives alone

void story_ready(struct story *story, uint64_t peer, enum member_role role, const char *digest,
                 const struct layout *of);
void story_connected(struct story *story, uint64_t peer);
void story_done(struct story *story, uint64_t peer, const char *digest, uint64_t now_ms);
void story_answer_stop(struct story *story, uint64_t peer, uint64_t now_ms); // of a worker

/* What server.c does when its loop has gone round: all are told to join the next generation. */
void story_call_back(struct story *story, uint64_t now_ms);

/* The last message that was sent. */
const char *story_last_text(const struct story *story);
enum message_kind story_last_kind(const struct story *story);

#endif
