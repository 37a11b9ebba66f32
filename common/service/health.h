/* A health endpoint, for probes of cluster managers and for Prometheus: plain HTTP.
 *
 *     GET /ready    200 "ready" once the program does what it is for, 503 before
 *     GET /alive    200 "alive" while the loop that matters goes round, 503 when it has not for
 *                   HEALTH_SILENCE_MS
 *     GET /metrics  200 and the measurements of the job, in the process that has the coordinator;
 *                   503 elsewhere, and before there are any
 *
 * The answers come from the web server's thread. It shares two numbers with the loop, and asks for
 * the text of the measurements. */
#ifndef COMMON_SERVICE_HEALTH_H
#define COMMON_SERVICE_HEALTH_H

#include "common/base/status.h"

#include <stdint.h>

#define HEALTH_SILENCE_MS   30000
#define HEALTH_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct health;

/* Makes the text of /metrics, of malloc; NULL if there is no memory. Called by the server's thread.
 */
typedef char *health_metrics(void *context);

/* Listens at the address (IPv4 or IPv6) and port. Logs why not; STATUS_UNSUPPORTED in a build
 * without libmicrohttpd. */
enum status health_create(const char *address, uint32_t port, struct health **ret_health);
void health_destroy(struct health *health);

/* From any thread. NULL is fine. */
void health_ready(struct health *health);
void health_alive(struct health *health, uint64_t now_ms);

/* Says who makes the measurements; NULL: nobody any more, and no call is under way when this
 * returns. Borrows the context until then. */
void health_set_metrics(struct health *health, health_metrics *make, void *context);

#endif
