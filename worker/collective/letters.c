/* Sends and receives messages by a pipe for each pair of processes. */
#include "worker/collective/letters.h"

#include <string.h>

/* A message on its way in one direction. */
struct letter {
    struct team *team;
    uint32_t other;
    struct transfer header, body;
    const struct team_header *said; // what this process says that the message is
    struct team_header come;
    bool is_refused;
};

static bool send_more(void *context)
{
    struct letter *letter = context;
    struct pipe_end pipe =
        team_pipe(letter->team, TEAM_MESSAGES, team_rank(letter->team), letter->other);
    bool has_moved = pipe_put(pipe, &letter->header);
    if (transfer_left(&letter->header) == 0 && pipe_put(pipe, &letter->body)) {
        has_moved = true;
    }
    if (has_moved) {
        team_wake(letter->team, letter->other);
    }
    return has_moved;
}

static bool take_more(void *context)
{
    struct letter *letter = context;
    if (transfer_left(&letter->header) > 0) {
        bool has_moved = team_take_message(letter->team, letter->other, &letter->header);
        letter->is_refused = transfer_left(&letter->header) == 0 &&
                             memcmp(&letter->come, letter->said, sizeof(letter->come)) != 0;
        return has_moved;
    }
    return team_take_message(letter->team, letter->other, &letter->body);
}

static bool is_complete(const void *context)
{
    const struct letter *letter = context;
    return letter->is_refused ||
           (transfer_left(&letter->header) == 0 && transfer_left(&letter->body) == 0);
}

static enum team_need needs_room(const void *context, uint32_t rank)
{
    return ((const struct letter *)context)->other == rank ? TEAM_NEEDS_ROOM : TEAM_NEEDS_NOTHING;
}

static enum team_need needs_bytes(const void *context, uint32_t rank)
{
    return ((const struct letter *)context)->other == rank ? TEAM_NEEDS_BYTES : TEAM_NEEDS_NOTHING;
}

static enum status run(struct letter *letter, bool (*move)(void *context),
                       enum team_need (*needs)(const void *context, uint32_t rank),
                       struct team_fault *ret_fault)
{
    const struct team_work work = {move,   is_complete,   needs,
                                   letter, TEAM_MESSAGES, letter->said->label};
    enum status status = team_run(letter->team, &work, ret_fault);
    if (status == STATUS_OK && letter->is_refused) {
        *ret_fault = team_fault_of_call(letter->other, &letter->come);
        return STATUS_MISMATCH;
    }
    return status;
}

enum status letters_send(struct team *team, uint32_t to, const struct team_header *header,
                         const void *bytes, size_t size, struct team_fault *ret_fault)
{
    struct letter letter = {
        .team = team,
        .other = to,
        .said = header,
        .header = transfer_out(header, sizeof(*header)),
        .body = transfer_out(bytes, size),
    };
    return run(&letter, send_more, needs_room, ret_fault);
}

enum status letters_receive(struct team *team, uint32_t from, const struct team_header *header,
                            void *bytes, size_t size, struct team_fault *ret_fault)
{
    struct letter letter = {
        .team = team,
        .other = from,
        .said = header,
        .body = transfer_in(bytes, size),
    };
    letter.header = transfer_in(&letter.come, sizeof(letter.come));
    return run(&letter, take_more, needs_bytes, ret_fault);
}
