/* Members that have outlasted their coordinator, as tests play them. */
#ifndef TESTS_SUPPORT_PS_SERVER_COMEBACK_H
#define TESTS_SUPPORT_PS_SERVER_COMEBACK_H

#include "ps-server/returning/returning.h"
#include "tests/support/ps-server/coordinator_story.h"

#include <stdbool.h>
#include <stdint.h>

#define COMEBACK_WORKERS 3

/* A coordinator that has just begun, and what the workers of a job say to it. */
struct comeback {
    struct story story;
    struct generation generation;
    struct returning returning;
    struct wire_back back;
    struct wire_start start;
    struct wire_member member;
    struct wire_sum sum;
    double sums[2];
};

extern const struct returning_past comeback_past; // of a coordinator that was started again

/* BACK of a worker. Borrows from the comeback until the next call. */
struct message comeback_say(struct comeback *back, uint32_t rank, uint64_t step);

/* Worker 0 knocks first, and is not taken in yet. */
void comeback_begin_in(struct comeback *back, const char *mode, uint32_t servers, uint64_t now_ms);
void comeback_begin(struct comeback *back, uint64_t now_ms);

/* Begins anew, with a job that had lost worker 1. So many workers are left: 0 and 2 (and 3), in
 * slots 0 and 1 (and 2). */
void comeback_begin_without_one(struct comeback *back, uint32_t left, uint64_t now_ms);

/* One of those comes back to its slot, and says its number. */
void comeback_take_numbered(struct comeback *back, uint32_t slot, uint32_t number, uint64_t now_ms);

/* One that joins anew, of a job with servers. */
bool comeback_take_anew(struct comeback *back, enum member_role role, uint32_t rank, uint64_t peer);

/* One that was not there, or does not know that it was. */
bool comeback_join(struct comeback *back, enum member_role role, uint32_t number, uint64_t peer,
                   uint64_t now_ms);

/* One that is back, and says so again as it is asked. */
bool comeback_hear(struct comeback *back, uint64_t peer, const struct message *message,
                   uint64_t now_ms);
bool comeback_take(struct comeback *back, uint32_t rank, uint64_t step, uint64_t now_ms);
void comeback_end(struct comeback *back);

/* Messages of a kind that the coordinator has sent; and the index of the first of them, UINT32_MAX:
 * there is none. */
uint32_t comeback_count_sent(const struct comeback *back, enum message_kind kind);
uint32_t comeback_first_sent(const struct comeback *back, enum message_kind kind);

#endif
