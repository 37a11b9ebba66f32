/* Serves the live page. */
#include "common/live/live_page.h"

#include "common/live/live_json.h"
#include "common/live/live_metrics.h"
#include "common/live/live_request.h"
#include "common/service/health.h"
#include "common/service/web.h"
#include "live_page_text.h" // made from the folder page

#include <sodium.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LAST_STATE_MS 500 // for those who still read when the page closes

struct live_page {
    struct web *web;
    struct live_board *board;
    char token[LIVE_TOKEN_BYTES];
    char host[256];          // name of this host
    struct live_state state; // of the web server's thread
    pthread_mutex_t mutex;   // of what follows
    pthread_cond_t has_closed;
    uint32_t viewer_count;
};

/* A connection that reads events. */
struct viewer {
    struct live_page *page;
    uint64_t version; // of the state that was sent last
    bool has_all;     // that was the last one
    char *text;       // owned; the event that is being sent
    size_t size, sent;
};

/* Makes the next event, if there is a new state. False if there is no memory. */
static bool make_event(struct viewer *viewer)
{
    struct live_page *page = viewer->page;
    if (viewer->version == live_board_version(page->board)) {
        return true;
    }
    viewer->version = live_board_look(page->board, &page->state);
    viewer->has_all = live_is_over(&page->state);
    char *json = live_json_text(&page->state);
    free(viewer->text);
    viewer->text = NULL;
    viewer->size = viewer->sent = 0;
    int size = json != NULL ? asprintf(&viewer->text, "data: %s\n\n", json) : -1;
    free(json);
    if (size < 0) {
        viewer->text = NULL;
        return false;
    }
    viewer->size = (size_t)size;
    return true;
}

static ssize_t read_events(void *context, char *text, size_t size)
{
    struct viewer *viewer = context;
    if (viewer->sent == viewer->size) {
        if (viewer->has_all || !make_event(viewer)) {
            return -1;
        }
    }
    size_t rest = viewer->size - viewer->sent;
    size_t taken = rest < size ? rest : size;
    if (taken > 0) {
        memcpy(text, viewer->text + viewer->sent, taken);
        viewer->sent += taken;
    }
    return (ssize_t)taken;
}

static void count_viewers(struct live_page *page, int change)
{
    pthread_mutex_lock(&page->mutex);
    page->viewer_count += (uint32_t)change;
    pthread_cond_broadcast(&page->has_closed);
    pthread_mutex_unlock(&page->mutex);
}

static void close_events(void *context)
{
    struct viewer *viewer = context;
    count_viewers(viewer->page, -1);
    free(viewer->text);
    free(viewer);
}

static void answer_events(struct live_page *page, struct web_answer *ret_answer)
{
    struct viewer *viewer = calloc(1, sizeof(*viewer));
    if (viewer == NULL) {
        ret_answer->code = 503;
        ret_answer->text = "out of memory\n";
        return;
    }
    viewer->page = page;
    count_viewers(page, 1);
    ret_answer->code = 200;
    ret_answer->type = "text/event-stream; charset=utf-8";
    ret_answer->stream = (struct web_stream){viewer, read_events, close_events};
}

static void answer_metrics(struct live_page *page, struct web_answer *ret_answer)
{
    (void)live_board_look(page->board, &page->state);
    ret_answer->made_text = live_metrics_text(&page->state);
    ret_answer->code = ret_answer->made_text != NULL ? 200 : 503;
    ret_answer->text = "out of memory\n";
    ret_answer->type = HEALTH_METRICS_TYPE;
}

static void answer(void *context, const struct web_request *request, struct web_answer *ret_answer)
{
    struct live_page *page = context;
    const struct live_asker asker = {request->host, request->token, request->authorization};
    ret_answer->code = live_admit(&asker, page->host, page->token, &ret_answer->text);
    if (ret_answer->code != 200) {
        return;
    }
    ret_answer->is_trusted = true;
    if (strcmp(request->path, "/events") == 0) {
        answer_events(page, ret_answer);
    } else if (strcmp(request->path, "/metrics") == 0) {
        answer_metrics(page, ret_answer);
    } else if (strcmp(request->path, "/") == 0) {
        ret_answer->code = 200;
        ret_answer->type = "text/html; charset=utf-8";
        ret_answer->policy = live_page_policy;
        ret_answer->text = live_page_text;
    } else {
        ret_answer->code = 404;
        ret_answer->text = "/, /events or /metrics\n";
    }
}

enum status live_page_create(const struct live_page_options *options, struct live_page **ret_page)
{
    struct live_page *page = calloc(1, sizeof(*page));
    if (page == NULL || live_state_init(&page->state, options->workers) != STATUS_OK) {
        free(page);
        return STATUS_NO_MEMORY;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&page->has_closed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&page->mutex, NULL);
    page->board = options->board;
    unsigned char secret[(LIVE_TOKEN_BYTES - 1) / 2];
    randombytes_buf(secret, sizeof(secret));
    sodium_bin2hex(page->token, sizeof(page->token), secret, sizeof(secret));
    if (gethostname(page->host, sizeof(page->host) - 1) != 0) {
        page->host[0] = '\0'; // then it is asked by its address
    }
    const struct web_options web = {
        .address = options->address,
        .port = options->port,
        .what = "the live page",
        .option = "--dashboard",
        .answer = answer,
        .context = page,
    };
    enum status status = web_create(&web, &page->web);
    if (status != STATUS_OK) {
        live_page_destroy(page);
        return status;
    }
    *ret_page = page;
    return STATUS_OK;
}

/* Connections that read events end after the last one. */
static void await_viewers(struct live_page *page)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LAST_STATE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&page->mutex);
    int error = 0;
    while (page->viewer_count > 0 && error == 0) {
        error = pthread_cond_timedwait(&page->has_closed, &page->mutex, &until);
    }
    pthread_mutex_unlock(&page->mutex);
}

void live_page_destroy(struct live_page *page)
{
    if (page == NULL) {
        return;
    }
    if (page->web != NULL) {
        live_page_wake(page);
        await_viewers(page);
    }
    web_destroy(page->web);
    live_state_finish(&page->state);
    pthread_cond_destroy(&page->has_closed);
    pthread_mutex_destroy(&page->mutex);
    free(page);
}

void live_page_wake(struct live_page *page)
{
    web_wake(page->web);
}

void live_page_url(const struct live_page *page, char ret_url[LIVE_URL_BYTES])
{
    char address[WEB_ADDRESS_BYTES];
    web_address(page->web, address);
    snprintf(ret_url, LIVE_URL_BYTES, "http://%s/?token=%s", address, page->token);
}
