/* Makes the keys of a job, and the arguments and input that hand them to its processes. */
#include "deploy/launch/handover.h"

#include "common/base/log.h"

#include <sodium.h>

#include <string.h>

enum status handover_check(const struct security_options *security, const struct job *job)
{
    if (security->insecure && job->security == SECURITY_AUTH_ONLY) {
        log_error("--insecure and --security auth-only contradict each other: what authenticates "
                  "data is handed out under keys; leave --insecure out, and the job gets some");
        return STATUS_INVALID;
    }
    return security_check_options(security);
}

enum status handover_begin(struct handover *handover, const struct security *security)
{
    const struct keys *keys = security->keys;
    *handover = (struct handover){0};
    if (security->is_insecure) {
        handover->arguments[0] = "--insecure";
        return STATUS_OK;
    }
    if (keys == NULL) {
        security_forbid_core_dumps();
        enum status status = keys_generate(&handover->made);
        if (status != STATUS_OK) {
            log_error("cannot make keys: %s", status_text(status));
            return status;
        }
        keys = handover->made;
    }
    handover->text = sodium_malloc(KEYS_TEXT_MAX);
    if (handover->text == NULL) {
        log_error("no memory for keys");
        handover_end(handover);
        return STATUS_NO_MEMORY;
    }
    keys_format(keys, handover->text);
    handover->arguments[0] = "--keys";
    handover->arguments[1] = "-";
    return STATUS_OK;
}

void handover_end(struct handover *handover)
{
    sodium_free(handover->text);
    keys_destroy(handover->made);
    *handover = (struct handover){0};
}
