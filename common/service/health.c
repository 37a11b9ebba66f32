/* Answers probes and scrapes over HTTP. */
#include "common/service/health.h"

#include "common/base/clock.h"
#include "common/service/web.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct health {
    struct web *web;
    _Atomic bool is_ready;
    _Atomic uint64_t alive_ms;

    pthread_mutex_t mutex;        // of the two below
    health_metrics *make_metrics; // NULL: there are none
    void *context;
};

static bool is_good(const struct health *health, const char *path)
{
    if (strcmp(path, "/ready") == 0) {
        return health->is_ready;
    }
    return clock_now_ms() - health->alive_ms < HEALTH_SILENCE_MS;
}

static void answer_metrics(struct health *health, struct web_answer *ret_answer)
{
    pthread_mutex_lock(&health->mutex);
    bool has_metrics = health->make_metrics != NULL;
    char *text = has_metrics ? health->make_metrics(health->context) : NULL;
    pthread_mutex_unlock(&health->mutex);
    ret_answer->code = text != NULL ? 200 : 503;
    ret_answer->made_text = text;
    ret_answer->type = text != NULL ? HEALTH_METRICS_TYPE : ret_answer->type;
    ret_answer->text = has_metrics ? "out of memory\n"
                                   : "no measurements: they are with the coordinator of the job\n";
}

static void answer(void *context, const struct web_request *request, struct web_answer *ret_answer)
{
    struct health *health = context;
    const char *path = request->path;
    bool is_ready_path = strcmp(path, "/ready") == 0;
    if (strcmp(path, "/metrics") == 0) {
        answer_metrics(health, ret_answer);
        return;
    }
    if (!is_ready_path && strcmp(path, "/alive") != 0) {
        ret_answer->code = 404;
        ret_answer->text = "/ready or /alive, or /metrics\n";
        return;
    }
    bool is_true = is_good(health, path);
    ret_answer->code = is_true ? 200 : 503;
    if (is_ready_path) {
        ret_answer->text = is_true ? "ready\n" : "not ready\n";
    } else {
        ret_answer->text = is_true ? "alive\n" : "not alive\n";
    }
}

enum status health_create(const char *address, uint32_t port, struct health **ret_health)
{
    struct health *health = calloc(1, sizeof(*health));
    if (health == NULL) {
        return STATUS_NO_MEMORY;
    }
    health->alive_ms = clock_now_ms();
    pthread_mutex_init(&health->mutex, NULL);
    const struct web_options options = {
        .address = address,
        .port = port,
        .what = "health probes",
        .option = "--health-port",
        .answer = answer,
        .context = health,
    };
    enum status status = web_create(&options, &health->web);
    if (status != STATUS_OK) {
        health_destroy(health);
        return status;
    }
    *ret_health = health;
    return STATUS_OK;
}

void health_destroy(struct health *health)
{
    if (health != NULL) {
        web_destroy(health->web);
        pthread_mutex_destroy(&health->mutex);
        free(health);
    }
}

void health_ready(struct health *health)
{
    if (health != NULL) {
        health->is_ready = true;
    }
}

void health_alive(struct health *health, uint64_t now_ms)
{
    if (health != NULL) {
        health->alive_ms = now_ms;
    }
}

void health_set_metrics(struct health *health, health_metrics *make, void *context)
{
    if (health != NULL) {
        pthread_mutex_lock(&health->mutex);
        health->make_metrics = make;
        health->context = context;
        pthread_mutex_unlock(&health->mutex);
    }
}
