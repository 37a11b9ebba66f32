/* Calls take turns; errors become sentences. What a process has besides its handle is here: whether
 * there is one, and the last sentences. */
#include "worker/library/handle.h"

#include "common/base/log.h"
#include "common/job/job_modes.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SENTENCE_BYTES 1024

static atomic_bool is_claimed = false;
static pthread_mutex_t sentences = PTHREAD_MUTEX_INITIALIZER; // of the two texts
static char logged[SENTENCE_BYTES];                           // the last error that was logged
static char sentence[SENTENCE_BYTES];                         // ringside_error

bool handle_claim(void)
{
    return !atomic_exchange(&is_claimed, true);
}

void handle_unclaim(void)
{
    atomic_store(&is_claimed, false);
}

static void hear(enum log_level level, const char *text)
{
    if (level == LOG_ERROR) {
        pthread_mutex_lock(&sentences);
        snprintf(logged, sizeof(logged), "%s", text);
        pthread_mutex_unlock(&sentences);
    }
}

void handle_listen(uint32_t log_level)
{
    pthread_mutex_lock(&sentences);
    logged[0] = '\0';
    pthread_mutex_unlock(&sentences);
    log_init("worker", log_level == 0 ? LOG_SILENT : (enum log_level)(log_level - 1));
    log_divert(hear);
}

void handle_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&sentences);
    vsnprintf(sentence, sizeof(sentence), format, args);
    pthread_mutex_unlock(&sentences);
    va_end(args);
}

const char *ringside_error(const struct ringside *ringside)
{
    (void)ringside;
    return sentence;
}

bool handle_servers_update(const struct ringside *ringside)
{
    return job_servers_update(&ringside->job);
}

static enum ringside_status public_status(enum status status)
{
    static const enum ringside_status of[STATUS_COUNT] = {
        [STATUS_OK] = RINGSIDE_OK,
        [STATUS_NO_MEMORY] = RINGSIDE_NO_MEMORY,
        [STATUS_INVALID] = RINGSIDE_INVALID,
        [STATUS_MISMATCH] = RINGSIDE_MISMATCH,
        [STATUS_TIMED_OUT] = RINGSIDE_TIMED_OUT,
        [STATUS_UNREACHABLE] = RINGSIDE_LOST,
        [STATUS_UNSUPPORTED] = RINGSIDE_UNSUPPORTED,
        [STATUS_DENIED] = RINGSIDE_DENIED,
        [STATUS_AGAIN] = RINGSIDE_AGAIN,
    };
    enum ringside_status is = of[status];
    return status != STATUS_OK && is == RINGSIDE_OK ? RINGSIDE_FAILED : is;
}

enum ringside_status handle_fail(struct link *link, enum status status)
{
    const char *reason = link != NULL ? link_reason(link) : "";
    pthread_mutex_lock(&sentences);
    const char *text = reason[0] != '\0'   ? reason
                       : logged[0] != '\0' ? logged
                                           : status_text(status);
    snprintf(sentence, sizeof(sentence), "%s", text);
    pthread_mutex_unlock(&sentences);
    return public_status(status);
}

static const char *state_name(enum handle_state state)
{
    switch (state) {
    case HANDLE_JOINED:
        return "it has joined, and has not described its tensors";
    case HANDLE_DESCRIBED:
        return "its tensors are described, and it has not started";
    case HANDLE_BETWEEN:
        return "no step is begun";
    case HANDLE_FORWARD:
        return "a step is begun, and its gradients are not";
    case HANDLE_GRADIENTS:
        return "the gradients of a step are begun";
    case HANDLE_ENDED:
        return "the job has had its steps";
    case HANDLE_BROKEN:
        break;
    }
    return "the job has failed";
}

enum ringside_status handle_enter(struct ringside *ringside, unsigned states, const char *call)
{
    if (ringside == NULL) {
        handle_say("%s: there is no handle; ringside_join makes it", call);
        return RINGSIDE_MISUSE;
    }
    pthread_mutex_lock(&ringside->turn);
    if (((unsigned)ringside->state & states) != 0) {
        return RINGSIDE_OK;
    }
    if (ringside->state == HANDLE_BROKEN) { // the sentence of that is there
        enum ringside_status broken = ringside->broken;
        pthread_mutex_unlock(&ringside->turn);
        return broken;
    }
    return handle_refuse(ringside, RINGSIDE_MISUSE, "%s is out of order: %s", call,
                         state_name(ringside->state));
}

enum ringside_status handle_exit(struct ringside *ringside, enum status status)
{
    enum ringside_status is = RINGSIDE_OK;
    if (status != STATUS_OK) {
        // The coordinator's verdict says more than what a call met; it has come if the job is over.
        enum status stopped =
            ringside->exchange != NULL ? exchange_stopped(ringside->exchange) : STATUS_OK;
        is = handle_fail(ringside->link, stopped == status ? link_verdict(ringside->link) : status);
        if (is == RINGSIDE_OK || is == RINGSIDE_INVALID || is == RINGSIDE_UNSUPPORTED) {
            is = RINGSIDE_FAILED; // those leave a handle as it was
        }
        ringside->state = HANDLE_BROKEN;
        ringside->broken = is;
    }
    pthread_mutex_unlock(&ringside->turn);
    return is;
}

enum ringside_status handle_refuse(struct ringside *ringside, enum ringside_status status,
                                   const char *format, ...)
{
    char text[SENTENCE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    handle_say("%s", text);
    pthread_mutex_unlock(&ringside->turn);
    return status;
}
