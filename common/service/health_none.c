/* The health endpoint of a build without libmicrohttpd: there is none. */
#include "common/base/log.h"
#include "common/service/health.h"

enum status health_create(const char *address, uint32_t port, struct health **ret_health)
{
    (void)address;
    (void)port;
    (void)ret_health;
    log_error("this build has no health endpoint (--health-port): it was built without "
              "libmicrohttpd");
    return STATUS_UNSUPPORTED;
}

void health_destroy(struct health *health)
{
    (void)health;
}

void health_ready(struct health *health)
{
    (void)health;
}

void health_alive(struct health *health, uint64_t now_ms)
{
    (void)health;
    (void)now_ms;
}
