/* A health endpoint, for probes of cluster managers: plain HTTP, two paths, a word each.
 *
 *     GET /ready    200 "ready" once the program does what it is for, 503 before
 *     GET /alive    200 "alive" while the loop that matters goes round, 503 when it has not for
 *                   HEALTH_SILENCE_MS
 *
 * The answers come from a thread of libmicrohttpd, which shares two numbers with the loop. */
#ifndef COMMON_SERVICE_HEALTH_H
#define COMMON_SERVICE_HEALTH_H

#include "common/base/status.h"

#include <stdint.h>

#define HEALTH_SILENCE_MS 30000

struct health;

/* Listens at the address (IPv4 or IPv6) and port. Logs why not; STATUS_UNSUPPORTED in a build
 * without libmicrohttpd. */
enum status health_create(const char *address, uint32_t port, struct health **ret_health);
void health_destroy(struct health *health);

/* From any thread. NULL is fine. */
void health_ready(struct health *health);
void health_alive(struct health *health, uint64_t now_ms);

#endif
