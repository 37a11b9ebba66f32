/* Says which fault strikes this process, and lets it. */
#include "common/service/strike.h"

#include "common/base/log.h"
#include "common/transport/partition.h"

enum status strike_fault(const struct fault *fault, const char *who)
{
    static const char *const does[] = {
        [FAULT_KILL] = "kills itself",
        [FAULT_STOP] = "stands still",
        [FAULT_PARTITION] = "neither sends nor receives",
    };
    char text[FAULT_TEXT_BYTES];
    fault_format(fault, text);
    log_warn("--fault %s: this %s %s", text, who, does[fault->kind]); // deploy/launch/log_tail.c
    if (fault->kind == FAULT_PARTITION) {
        partition_begin(fault->seconds);
        return STATUS_OK;
    }
    enum status status = fault_strike(fault->kind, fault->seconds);
    if (status != STATUS_OK) {
        log_error("--fault %s: cannot start the process that would continue it", text);
    }
    return status;
}
