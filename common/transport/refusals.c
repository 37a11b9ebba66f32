/* Counts refusals by host and reason, and logs them. */
#include "common/transport/refusals.h"

#include "common/base/log.h"

#include <stdio.h>
#include <string.h>

#define LIST_BYTES 2048

/* "10.0.0.9:40113" -> "10.0.0.9" */
static void copy_host(const char *address, char ret_host[REFUSALS_HOST_BYTES])
{
    const char *colon = strrchr(address, ':');
    int size = colon != NULL ? (int)(colon - address) : (int)strlen(address);
    snprintf(ret_host, REFUSALS_HOST_BYTES, "%.*s", size, address);
}

/* Finds or adds the kind. Returns NULL if there are too many others. */
static struct refusals_kind *find_kind(struct refusals *refusals, const char *address,
                                       const char *why)
{
    char host[REFUSALS_HOST_BYTES];
    copy_host(address, host);
    for (uint32_t i = 0; i < refusals->kind_count; i++) {
        struct refusals_kind *kind = &refusals->kinds[i];
        if (strcmp(kind->host, host) == 0 && strcmp(kind->why, why) == 0) {
            return kind;
        }
    }
    if (refusals->kind_count == REFUSALS_KINDS_MAX) {
        return NULL;
    }
    struct refusals_kind *kind = &refusals->kinds[refusals->kind_count++];
    *kind = (struct refusals_kind){.why = why};
    memcpy(kind->host, host, sizeof(host));
    return kind;
}

/* Refusals of kinds without a place are only in the sum. */
static void say_sum(struct refusals *refusals)
{
    char list[LIST_BYTES] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < refusals->kind_count; i++) {
        struct refusals_kind *kind = &refusals->kinds[i];
        if (kind->unsaid == 0) {
            continue;
        }
        int wrote =
            snprintf(list + used, sizeof(list) - used, "%s%s (%llu: %s)", used == 0 ? "" : ", ",
                     kind->host, (unsigned long long)kind->unsaid, kind->why);
        used += wrote > 0 && (size_t)wrote < sizeof(list) - used ? (size_t)wrote : 0;
        list[used] = '\0';
        kind->unsaid = 0;
    }
    log_warn("refused %llu more connections: refused_so_far=%llu from=%s",
             (unsigned long long)refusals->unsaid, (unsigned long long)refusals->count,
             used > 0 ? list : "other addresses");
    refusals->unsaid = 0;
}

void refusals_add(struct refusals *refusals, const char *address, const char *why, uint64_t count,
                  uint64_t now_ms)
{
    struct refusals_kind *kind = find_kind(refusals, address, why);
    refusals->count += count;
    if (kind != NULL) {
        kind->count += count;
        if (count == 1 && kind->count <= REFUSALS_SINGLE_MAX) {
            log_warn("refused a connection: from=%s refused_so_far=%llu reason=\"%s\"", address,
                     (unsigned long long)refusals->count, why);
            return;
        }
        kind->unsaid += count;
    }
    if (refusals->unsaid == 0) {
        refusals->said_ms = now_ms;
    }
    refusals->unsaid += count;
    refusals_tick(refusals, now_ms);
}

void refusals_tick(struct refusals *refusals, uint64_t now_ms)
{
    uint64_t pause_ms = refusals->pause_ms > 0 ? refusals->pause_ms : REFUSALS_SUMMARY_MS_MIN;
    if (refusals->unsaid == 0 || now_ms - refusals->said_ms < pause_ms) {
        return;
    }
    say_sum(refusals);
    refusals->said_ms = now_ms;
    refusals->pause_ms =
        2 * pause_ms < REFUSALS_SUMMARY_MS_MAX ? 2 * pause_ms : REFUSALS_SUMMARY_MS_MAX;
}

void refusals_finish(struct refusals *refusals)
{
    if (refusals->unsaid > 0) {
        say_sum(refusals);
    }
}
