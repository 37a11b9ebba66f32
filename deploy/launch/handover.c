/* Makes the keys of a job, and the arguments and input that hand them to its processes. */
#include "deploy/launch/handover.h"

#include "common/base/log.h"

#include <sodium.h>

#include <string.h>

enum status handover_check(const struct security_options *security, const struct job *job)
{
    if (security->insecure && job->security == SECURITY_AUTH_ONLY) {
        log_error(
            "--insecure and --security auth-only contradict each other: the key that authenticates "
            "data is handed out under keys; without --insecure the job gets keys of its own");
        return STATUS_INVALID;
    }
    return security_check_options(security);
}

bool handover_is_needless(const struct launcher *launcher, const struct launch_options *options)
{
    const struct host_options *hosts = launcher->host_options;
    bool asks_for_tcp = strcmp(launcher->options->bind, "127.0.0.1") != 0 || options->port != 0 ||
                        hosts->port_range[0] != '\0' || hosts->network_interface[0] != '\0' ||
                        options->job->transport == TRANSPORT_TCP;
    bool asks_for_keys = options->security->keys != NULL || options->security->is_insecure ||
                         options->job->security == SECURITY_AUTH_ONLY;
    return !launcher->has_others && !asks_for_tcp && !asks_for_keys;
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
