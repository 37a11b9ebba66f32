/* Tells what manages this program that it is ready, and that it is alive: the service manager that
 * started it, and whoever asks its health endpoint (common/service/health.h).
 *
 * The service manager's protocol is systemd's (sd_notify(3)): datagrams of lines to the socket that
 * NOTIFY_SOCKET names. libsystemd has it, too, but with a library and its dependencies for what is
 * one sendto; the protocol is declared stable, and documented for those who implement it
 * themselves.
 *
 * Nobody may listen: without NOTIFY_SOCKET, or with one that is not good, and without an endpoint,
 * there is no struct notify, and NULL is fine wherever one is asked for. Belongs to one thread: the
 * one whose going round means that the program is alive. */
#ifndef COMMON_SERVICE_NOTIFY_H
#define COMMON_SERVICE_NOTIFY_H

#include "common/service/health.h"

#include <stdint.h>

struct notify;

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID by `get` (getenv, or a test's own), and takes
 * `health`, which may be NULL. Returns NULL if nobody listens. Signs of life are due twice in the
 * time after which the program would be taken for dead. */
struct notify *notify_create(char *(*get)(const char *name), struct health *health);
void notify_destroy(struct notify *notify);

/* The program does now what it is for. `status` is a short sentence for people. */
void notify_ready(struct notify *notify, const char *status);

/* A loop went round. Cheap: says so only when it is due. */
void notify_alive(struct notify *notify, uint64_t now_ms);

/* The program ends, on its own or because it was told to. */
void notify_stopping(struct notify *notify);

#endif
