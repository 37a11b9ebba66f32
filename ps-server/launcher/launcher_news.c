/* Reads the lines that the launcher writes, and applies them to the job. */
#include "ps-server/launcher/launcher_news.h"

#include "common/job/carriers.h"
#include "ps-server/coordinator/coordinator_handshake.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/generation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void launcher_pipe_init(struct launcher_pipe *pipe, int fd)
{
    *pipe = (struct launcher_pipe){.fd = fd};
    if (fd >= 0) {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
}

/* Takes the next whole line from the buffer; NULL if there is none. */
static char *take_line(struct launcher_pipe *pipe)
{
    char *line = pipe->bytes + pipe->begin;
    char *end = memchr(line, '\n', pipe->end - pipe->begin);
    if (end != NULL) {
        *end = '\0';
        pipe->begin = (size_t)(end + 1 - pipe->bytes);
        pipe->taken++;
        return line;
    }
    if (pipe->begin == 0 && pipe->end == sizeof(pipe->bytes)) {
        pipe->end = 0; // too long for a line of the launcher
    }
    return NULL;
}

/* False: the pipe has ended. */
static bool fill(struct launcher_pipe *pipe)
{
    memmove(pipe->bytes, pipe->bytes + pipe->begin, pipe->end - pipe->begin);
    pipe->end -= pipe->begin;
    pipe->begin = 0;
    ssize_t got = read(pipe->fd, pipe->bytes + pipe->end, sizeof(pipe->bytes) - pipe->end);
    pipe->end += got > 0 ? (size_t)got : 0;
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* "launch 17 SENTENCE", or the sentence alone. */
static void parse_launch(const char *text, struct launcher_news *news)
{
    static const char word[] = "launch ";
    news->sentence = text;
    if (strncmp(text, word, strlen(word)) == 0) {
        char *end;
        unsigned long launch = strtoul(text + strlen(word), &end, 10);
        if (*end == ' ' && launch <= UINT32_MAX) {
            news->launch = (uint32_t)launch;
            news->sentence = end + 1;
        }
    }
}

/* "worker 3 launch 17 SENTENCE" */
static bool parse_member(const char *text, struct launcher_news *news)
{
    static const struct {
        const char *word;
        enum member_role role;
    } roles[] = {{"worker ", ROLE_WORKER}, {"server ", ROLE_SERVER}};
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        size_t size = strlen(roles[i].word);
        if (strncmp(text, roles[i].word, size) == 0) {
            char *end;
            unsigned long index = strtoul(text + size, &end, 10);
            news->role = roles[i].role;
            news->index = (uint32_t)index;
            if (end == text + size || *end != ' ' || index >= JOB_WORKERS_MAX) {
                return false;
            }
            parse_launch(end + 1, news);
            return true;
        }
    }
    return false;
}

static bool parse(const char *line, struct launcher_news *news)
{
    static const struct {
        const char *word;
        enum launcher_news_kind kind;
        bool has_member;
    } kinds[] = {
        {"interrupted ", LAUNCHER_INTERRUPTED, false},
        {"failed ", LAUNCHER_FAILED, false},
        {"ended ", LAUNCHER_ENDED, true},
        {"killed ", LAUNCHER_KILLED, true},
        {"again ", LAUNCHER_AGAIN, true},
        {"newcomer ", LAUNCHER_NEWCOMER, true},
        {"lost ", LAUNCHER_LOST, true},
        {"over ", LAUNCHER_OVER, true},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t size = strlen(kinds[i].word);
        if (strncmp(line, kinds[i].word, size) == 0) {
            news->kind = kinds[i].kind;
            news->sentence = line + size;
            return !kinds[i].has_member || parse_member(line + size, news);
        }
    }
    return false;
}

bool launcher_pipe_next(struct launcher_pipe *pipe, struct launcher_news *ret_news)
{
    bool has_more = pipe->fd >= 0;
    while (has_more) {
        struct launcher_news news = {.kind = LAUNCHER_GONE};
        const char *line = take_line(pipe);
        if (line != NULL && parse(line, &news)) {
            *ret_news = news;
            return true;
        }
        if (line != NULL) {
            continue;
        }
        size_t before = pipe->end - pipe->begin;
        if (!fill(pipe)) {
            close(pipe->fd);
            pipe->fd = -1;
            news.sentence = "the launcher is gone: was it killed?";
            *ret_news = news;
            return true;
        }
        has_more = pipe->end > before;
    }
    return false;
}

bool launcher_news_find(const struct launcher_news *news, const struct coordinator *coordinator,
                        struct sender *ret_member)
{
    const struct membership *membership = &coordinator->membership;
    struct sender called = membership_called(membership, news->role, news->index);
    struct sender started =
        membership_started(membership, news->role, news->launch, coordinator->job->servers);
    bool is_other = news->launch != 0 && started.slot == NULL && called.slot != NULL &&
                    (called.slot->launch != 0 || called.slot->state != SLOT_FREE);
    *ret_member = started.slot != NULL ? started : called;
    if (is_other) {
        ret_member->slot = NULL;
    }
    return !is_other;
}

static void apply_end(const struct launcher_news *news, struct coordinator *coordinator,
                      uint64_t now_ms)
{
    enum status verdict = coordinator->verdict;
    bool is_over = coordinator->state >= COORDINATOR_CLOSING;
    struct sender culprit;
    newcomers_note_ended(&coordinator->newcomers, news->launch);
    bool is_late = !launcher_news_find(news, coordinator, &culprit);
    bool has_failed = news->kind == LAUNCHER_ENDED && job_may_commit(coordinator->job);
    if (is_late && !has_failed) {
        return; // whoever has the place now has nothing to do with it
    }
    bool knows_better =
        news->kind != LAUNCHER_ENDED && verdict != STATUS_OK && verdict != STATUS_INTERRUPTED;
    if (is_over && !knows_better) {
        if (culprit.slot != NULL) {
            membership_note_ended(&coordinator->membership, &culprit, coordinator->job->servers);
        }
        return;
    }
    if (news->kind == LAUNCHER_AGAIN &&
        handshake_vacate(coordinator, &culprit, news->sentence, now_ms)) {
        culprit.slot->is_awaited = true;
        coordinator_port_await_again(&coordinator->port, culprit.role, culprit.slot->number);
        return;
    }
    if (culprit.slot == NULL && coordinator->generation != NULL && !has_failed) {
        return; // the job goes on without it already
    }
    if (has_failed) { // a program's own failure is no loss that others go on from
        generation_note_lost(coordinator, &culprit, now_ms);
        coordinator_close(coordinator, STATUS_UNREACHABLE, news->sentence,
                          culprit.slot != NULL ? &culprit : NULL, now_ms);
    } else if (is_over) {
        generation_note_lost(coordinator, &culprit, now_ms);
        coordinator_amend(coordinator, verdict, news->sentence, &culprit);
    } else if (news->kind == LAUNCHER_ENDED) {
        generation_lose(coordinator, STATUS_UNREACHABLE, news->sentence, &culprit, now_ms);
    } else {
        generation_lose_killed(coordinator, news->sentence, &culprit, now_ms);
    }
}

/* A program's own failure ends the job, as its others may fail likewise: but not that of one which
 * was never ready, and has done nothing that they need. */
static void apply_newcomer(const struct launcher_news *news, struct coordinator *coordinator,
                           uint64_t now_ms)
{
    const struct sender started = membership_started(&coordinator->membership, news->role,
                                                     news->launch, coordinator->job->servers);
    bool is_over = coordinator->state >= COORDINATOR_CLOSING;
    if (started.slot != NULL && (!started.slot->is_new || is_over)) {
        struct launcher_news ended = *news;
        ended.kind = LAUNCHER_ENDED;
        apply_end(&ended, coordinator, now_ms);
        return;
    }
    newcomers_note_ended(&coordinator->newcomers, news->launch);
    if (started.slot != NULL) {
        generation_lose(coordinator, STATUS_UNREACHABLE, news->sentence, &started, now_ms);
    } else if (!is_over) {
        coordinator_port_say(&coordinator->port, true,
                             "%s; it had no part in the job, which goes on without it",
                             news->sentence);
    }
}

void launcher_news_apply(const struct launcher_news *news, struct coordinator *coordinator,
                         uint64_t now_ms)
{
    switch (news->kind) {
    case LAUNCHER_INTERRUPTED:
        coordinator_stop(coordinator, STATUS_INTERRUPTED, news->sentence, now_ms);
        break;
    case LAUNCHER_FAILED:
    case LAUNCHER_GONE:
        coordinator_stop(coordinator, STATUS_UNREACHABLE, news->sentence, now_ms);
        break;
    case LAUNCHER_ENDED:
    case LAUNCHER_KILLED:
    case LAUNCHER_AGAIN:
    case LAUNCHER_LOST:
        apply_end(news, coordinator, now_ms);
        break;
    case LAUNCHER_NEWCOMER:
        apply_newcomer(news, coordinator, now_ms);
        break;
    case LAUNCHER_OVER: // nobody counts on it
        break;
    }
}
