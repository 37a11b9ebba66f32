/* What the coordinator's process shows of its job while it runs: a page, and measurements. The
 * coordinator's loop says what happens, and waits for nobody who looks. */
#ifndef PS_SERVER_LIVE_LIVE_H
#define PS_SERVER_LIVE_LIVE_H

#include "common/service/health.h"
#include "ps-server/coordinator/coordinator.h"

struct live;

struct live_options {
    const struct job *job;
    struct health *health; // that gets /metrics; NULL: none
    const char *dashboard; // where the page is served, as live_read_address takes it; "": nowhere
};

/* *ret_live is NULL if nobody looks, which is fine wherever one is asked for. Logs. */
enum status live_create(const struct live_options *options, struct live **ret_live);
void live_destroy(struct live *live);

/* Prints the page's address on standard output, if there is a page. */
void live_print_url(const struct live *live);

/* Training begins for the first time, or goes on in another phase. */
void live_started(struct live *live, const struct coordinator *coordinator);
void live_switched(struct live *live, const struct coordinator *coordinator);

/* Training goes on from a checkpoint, in the next generation. */
void live_gone_on(struct live *live, const struct coordinator *coordinator);

void live_reported(struct live *live, uint32_t rank, const struct message *message);
void live_period_closed(struct live *live, const struct coordinator *coordinator, uint32_t period);

/* The coordinator's loop went round: hands over the state, if that is due. */
void live_tick(struct live *live, const struct coordinator *coordinator, uint64_t now_ms);

/* The verdict is known. */
void live_ended(struct live *live, const struct coordinator *coordinator);

#endif
