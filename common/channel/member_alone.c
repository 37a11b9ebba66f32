/* Notices when the coordinator is gone, and knocks where the next one will listen. */
#include "common/channel/member_alone.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/job_text.h"

#include <stdio.h>
#include <stdlib.h>

void member_mark_stopped(struct member *member, enum status status, const char *text)
{
    if (!member->is_stopped) {
        member->is_stopped = true;
        member->stop_status = status;
        snprintf(member->stop_text, sizeof(member->stop_text), "%s", text);
    }
}

bool member_reconnect(struct member *member)
{
    struct transport *transport = member->channel->transport;
    if (transport_reconnect(transport, member->endpoint, &member->coordinator) != STATUS_OK) {
        return false;
    }
    (void)transport_has_left(transport, member->coordinator); // from now on
    member->closed_ms = 0;
    return true;
}

/* Keeps the step at the coordinator's last sign: those made since are made without it. */
static void note_sign(struct member *member)
{
    if (member->sign_ms != 0 &&
        member->coordinator_heard_ms - member->sign_ms >= MEMBER_SILENCE_MS) {
        member->silent_since_ms = member->sign_ms;
        member->silent_step = member->alone_step;
        member->silent_until_ms = member->coordinator_heard_ms;
    }
    member->sign_ms = member->coordinator_heard_ms;
    member->alone_step = member->step;
}

/* The coordinator was killed, or is silent, and this member goes on. */
static void begin_alone(struct member *member, uint64_t lost_ms, uint64_t now_ms)
{
    member->is_alone = true;
    member->lost_ms = lost_ms;
    member->alone_ms = now_ms;
}

/* A member does not know what was lost with it: shards that nobody else has, maybe. */
static void say_alone(const struct member *member, const char *how)
{
    log_warn("the coordinator was lost: %s; training goes on if it needs nothing that was lost "
             "with it, and waits up to %g s (--outlast) for the next one, which --restarts, or ps "
             "--resume auto, starts",
             how, (double)member->outlast_ms / 1000);
}

void member_come_back(struct member *member, uint64_t now_ms)
{
    if (member->outlast_ms == 0 || member->is_stopped) {
        return; // it has no place there any more, and is told so
    }
    if (!member->is_alone) {
        log_info("the coordinator was away, and asks who is there");
        // Signs that had waited in a network, or came before it knew, do not end its absence.
        bool was_silent =
            member->silent_until_ms != 0 && now_ms - member->silent_until_ms < MEMBER_RECENT_MS;
        member->alone_step = was_silent ? member->silent_step : member->alone_step;
        begin_alone(member, was_silent ? member->silent_since_ms : member->sign_ms, now_ms);
    }
    member->must_knock = true;
}

/* Whether the connection is closed, or has not come about: while a network is cut, the system waits
 * ever longer before it tries again. */
static bool must_reconnect(const struct member *member, uint64_t now_ms)
{
    struct transport *transport = member->channel->transport;
    return member->closed_ms != 0 || transport_has_left(transport, member->coordinator) ||
           (now_ms - member->knocked_ms >= MEMBER_KNOCK_MS &&
            transport_handshake(transport, member->coordinator) != HANDSHAKE_DONE);
}

static void knock_or_give_up(struct member *member, uint64_t now_ms)
{
    char text[sizeof(member->stop_text)];
    if (now_ms - member->alone_ms >= member->outlast_ms) {
        snprintf(text, sizeof(text),
                 "the coordinator was lost, and none has come back within %g s (--outlast)",
                 (double)member->outlast_ms / 1000);
        log_error("%s", text);
        member_mark_stopped(member, STATUS_UNREACHABLE, text);
    } else if (must_reconnect(member, now_ms) && member_reconnect(member)) {
        member->must_knock = true;
        member->knocked_ms = now_ms;
    }
}

bool member_reaches(const struct member *member)
{
    return !member->is_alone && member->closed_ms == 0;
}

void member_knock(struct member *member, const struct job *job, struct message *back)
{
    char(*text)[JOB_TEXT_BYTES] = malloc(sizeof(*text));
    if (text == NULL || job_encode(job, *text, sizeof(*text)) != STATUS_OK) {
        free(text);
        return; // at the next turn, maybe
    }
    member->must_knock = false;
    back->member = &member->self;
    back->text = *text;
    if (channel_send(member->channel, member->coordinator, back, NULL, NULL) != STATUS_OK) {
        log_debug("BACK not sent");
    }
    free(text);
}

void member_describe(const struct member *member, uint64_t running_ms, uint64_t now_ms,
                     struct wire_back *back)
{
    back->trained_ms = running_ms > 0 ? 1 + now_ms - running_ms : 0; // 0 would be: not yet
    back->alone_ms = now_ms - member->lost_ms;
    back->alone_step = member->alone_step;
    back->term = member->term;
}

void member_return(struct member *member, const struct message *go)
{
    log_info("there is a coordinator again");
    member->is_alone = false;
    member->silent_until_ms = 0;
    member->term = go->term;
    member->coordinator_heard_ms = clock_now_ms();
}

/* The coordinator is gone, or this member is cut off from it, which comes to the same. */
static void lose_coordinator(struct member *member, bool is_closed, uint64_t now_ms)
{
    char how[80] = "its connection was closed";
    uint64_t heard_ms = member->coordinator_heard_ms;
    if (!is_closed) {
        snprintf(how, sizeof(how), "nothing heard for %.1f s", (double)(now_ms - heard_ms) / 1000);
    }
    if (member->outlast_ms > 0) {
        say_alone(member, how);
        begin_alone(member, is_closed ? member->closed_ms : heard_ms, now_ms);
        member->closed_ms = now_ms; // whatever still comes by this connection is not heard
        return;
    }
    log_error("the coordinator was lost: %s", how);
    member_mark_stopped(member, STATUS_UNREACHABLE, "the coordinator was lost");
}

void member_judge(struct member *member, uint64_t now_ms)
{
    uint64_t away_ms = attention_away_ms(&member->attention, now_ms, MEMBER_TURN_MS);
    if (member->is_alone) {
        member->alone_ms = attention_excuse(member->alone_ms, away_ms, now_ms);
        if (!member->is_stopped) {
            knock_or_give_up(member, now_ms);
        }
        return;
    }
    member->coordinator_heard_ms = attention_excuse(member->coordinator_heard_ms, away_ms, now_ms);
    if (member->sign_ms != 0) {
        member->sign_ms = attention_excuse(member->sign_ms, away_ms, now_ms); // no silence either
    }
    if (member->closed_ms != 0) {
        member->closed_ms = attention_excuse(member->closed_ms, away_ms, now_ms);
    } else if (transport_has_left(member->channel->transport, member->coordinator)) {
        member->closed_ms = now_ms;
        note_sign(member);
    } else if (member->coordinator_heard_ms != member->sign_ms) {
        note_sign(member);
    }
    bool is_closed = member->closed_ms != 0 && now_ms - member->closed_ms >= MEMBER_CLOSED_MS;
    bool is_silent = now_ms - member->coordinator_heard_ms >= member->patience_ms;
    if (!member->is_stopped && (is_closed || is_silent)) {
        lose_coordinator(member, is_closed, now_ms);
    }
}
