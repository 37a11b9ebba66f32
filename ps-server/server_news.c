/* Takes what the launcher says of members that have ended, and tells it that the job goes on. */
#include "common/base/clock.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/server_state.h"

#include <stdio.h>

/* Whether a coordinator before this one, which did not go on, has counted the loss of the process.
 */
static bool was_counted(const struct server *server, uint32_t launch)
{
    const struct history_entry *past = &server->restart;
    bool is_known = false;
    for (uint32_t i = 0; launch != 0 && i < past->counted_count; i++) {
        is_known |= past->counted[i] == launch;
    }
    return is_known;
}

/* The launcher starts another process in the place of this one, and tells no later coordinator of
 * it. */
static void note_loss(struct server *server, const struct launcher_news *news)
{
    if (news->launch == 0 || server->recorder == NULL) {
        return;
    }
    struct history_entry entry = {.lost_launch = news->launch,
                                  .workers_lost = server->coordinator.workers_lost};
    snprintf(entry.reason, sizeof(entry.reason), "%s", news->sentence);
    recorder_note_restart(server->recorder, &entry);
}

static void take(struct server *server, struct launcher_news *news)
{
    struct coordinator *coordinator = &server->coordinator;
    uint32_t lost = coordinator->workers_lost;
    news->is_counted = was_counted(server, news->launch);
    if (!ended_take(&server->ended, &server->returning, coordinator, news)) {
        launcher_news_apply(news, coordinator, clock_now_ms());
    }
    if (news->is_counted) {
        coordinator->workers_lost = lost;
    } else if (news->kind == LAUNCHER_AGAIN && coordinator->workers_lost > lost) {
        ended_note_counted(&server->ended, news);
        note_loss(server, news);
    }
}

/* Tells the launcher that the job goes on without the processes of whose ends it has told. That is
 * so if this generation still has all of its members: it does not count on those that have ended.
 */
static void say_renewed(struct server *server)
{
    const struct coordinator *coordinator = &server->coordinator;
    const struct membership *membership = &coordinator->membership;
    if (server->launcher.taken <= server->signs.renewed) {
        return; // it has been said
    }
    bool is_whole =
        membership_count(membership->workers, membership->worker_count, SLOT_GONE) == 0 &&
        membership_count(membership->servers, membership->server_count, SLOT_GONE) == 0;
    if (coordinator->generation != NULL && is_whole && coordinator->state < COORDINATOR_RENEWING &&
        !coordinator_takes_back(coordinator)) {
        signs_renewed(&server->signs, server->launcher.taken);
    }
}

void server_take_news(struct server *server)
{
    struct launcher_news news;
    while (launcher_pipe_next(&server->launcher, &news)) {
        take(server, &news);
    }
    say_renewed(server);
}
