/* Hands what the coordinator knows to those who look at it. */
#include "ps-server/live/live.h"

#include "common/live/live_board.h"
#include "common/live/live_metrics.h"
#include "common/live/live_page.h"
#include "common/live/live_request.h"
#include "ps-server/live/live_fill.h"

#include <stdio.h>
#include <stdlib.h>

#define PUBLISH_MS 500

struct live {
    struct live_options options;
    struct live_state state; // of the coordinator's thread
    struct live_board *board;
    struct live_page *page; // NULL: there is none
    uint64_t published_ms;

    struct live_state scraped; // of the health endpoint's thread
};

/* Called by the health endpoint's thread. */
static char *make_metrics(void *context)
{
    struct live *live = context;
    (void)live_board_look(live->board, &live->scraped);
    return live_metrics_text(&live->scraped);
}

static void publish(struct live *live)
{
    live_board_publish(live->board, &live->state);
    if (live->page != NULL) {
        live_page_wake(live->page);
    }
}

static enum status open_page(struct live *live)
{
    char address[LIVE_ADDRESS_BYTES], why[128];
    uint32_t port;
    if (!live_read_address(live->options.dashboard, address, &port, why, sizeof(why))) {
        return STATUS_INVALID; // the option's row has refused it
    }
    const struct live_page_options page = {
        .address = address,
        .port = port,
        .board = live->board,
        .workers = live->state.workers,
    };
    return live_page_create(&page, &live->page);
}

enum status live_create(const struct live_options *options, struct live **ret_live)
{
    bool has_page = options->dashboard[0] != '\0';
    if (options->health == NULL && !has_page) {
        *ret_live = NULL;
        return STATUS_OK;
    }
    struct live *live = calloc(1, sizeof(*live));
    if (live == NULL) {
        return STATUS_NO_MEMORY;
    }
    live->options = *options;
    enum status status = live_state_init(&live->state, options->job->workers);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = live_state_init(&live->scraped, options->job->workers);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = live_board_create(options->job->workers, &live->board);
    if (status != STATUS_OK) {
        goto fail;
    }
    live_fill_job(&live->state, options->job);
    publish(live);
    status = has_page ? open_page(live) : STATUS_OK;
    if (status != STATUS_OK) {
        goto fail;
    }
    health_set_metrics(options->health, make_metrics, live);
    *ret_live = live;
    return STATUS_OK;
fail:
    live_destroy(live);
    return status;
}

void live_destroy(struct live *live)
{
    if (live == NULL) {
        return;
    }
    health_set_metrics(live->options.health, NULL, NULL);
    live_page_destroy(live->page);
    live_board_destroy(live->board);
    live_state_finish(&live->state);
    live_state_finish(&live->scraped);
    free(live);
}

void live_print_url(const struct live *live)
{
    char url[LIVE_URL_BYTES];
    if (live != NULL && live->page != NULL) {
        live_page_url(live->page, url);
        printf("live page: %s\n", url);
        fflush(stdout);
    }
}

void live_started(struct live *live, const struct coordinator *coordinator)
{
    if (live != NULL) {
        live_fill_start(&live->state, coordinator);
        live_add_event(&live->state, "began", "training begins");
        publish(live);
    }
}

void live_switched(struct live *live, const struct coordinator *coordinator)
{
    if (live != NULL) {
        live_fill_start(&live->state, coordinator);
        live_add_event(&live->state, "switched", "on in %s", live->state.mode);
    }
}

void live_gone_on(struct live *live, const struct coordinator *coordinator)
{
    if (live != NULL) {
        live_fill_start(&live->state, coordinator);
        live_fill_go_on(&live->state, coordinator);
    }
}

void live_reported(struct live *live, uint32_t rank, const struct message *message)
{
    if (live != NULL) {
        live_fill_report(&live->state, rank, message);
    }
}

void live_period_closed(struct live *live, const struct coordinator *coordinator, uint32_t period)
{
    if (live != NULL) {
        live_fill_period(&live->state, coordinator, period);
    }
}

void live_tick(struct live *live, const struct coordinator *coordinator, uint64_t now_ms)
{
    if (live == NULL || now_ms - live->published_ms < PUBLISH_MS) {
        return;
    }
    live->published_ms = now_ms;
    live_fill_now(&live->state, coordinator, now_ms);
    publish(live);
}

void live_ended(struct live *live, const struct coordinator *coordinator)
{
    if (live != NULL) {
        live_fill_end(&live->state, coordinator);
        publish(live);
    }
}
