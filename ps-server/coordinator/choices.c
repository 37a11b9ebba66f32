/* Hands the choices of worker 0 to the others. */
#include "ps-server/coordinator/choices.h"

#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/coordinator_port.h"

#include <stdio.h>
#include <string.h>

static void answer(struct coordinator *coordinator, struct slot *slot)
{
    const struct message message = {.kind = MESSAGE_CHOICES, .text = coordinator->choices.text};
    slot->asks_choices = false;
    coordinator_port_send(&coordinator->port, slot->peer, &message);
}

/* Now they are known: answers whoever has asked. */
static void settle(struct coordinator *coordinator, const char *text)
{
    struct choices *choices = &coordinator->choices;
    const struct membership *membership = &coordinator->membership;
    choices->are_known = true;
    snprintf(choices->text, sizeof(choices->text), "%s", text);
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        if (membership->workers[i].asks_choices) {
            answer(coordinator, &membership->workers[i]);
        }
    }
}

void choices_take(struct coordinator *coordinator, const struct sender *from, const char *text,
                  uint64_t now_ms)
{
    bool is_due = from->role == ROLE_WORKER && from->slot->state == SLOT_JOINED &&
                  coordinator->state == COORDINATOR_GATHERING;
    if (!is_due) {
        return;
    }
    if (from->index == 0) {
        if (!coordinator->choices.are_known) {
            settle(coordinator, text);
            coordinator->membership.arrived_ms = now_ms;
        }
        return;
    }
    from->slot->asks_choices = true;
    if (coordinator->choices.are_known) {
        answer(coordinator, from->slot);
    }
}

void choices_note_ready(struct coordinator *coordinator, const struct sender *from)
{
    if (from->role == ROLE_WORKER && from->index == 0 && !coordinator->choices.are_known) {
        settle(coordinator, "");
    }
}

bool choices_differ(const struct coordinator *coordinator, char *ret_ranks, size_t ranks_size)
{
    const struct membership *membership = &coordinator->membership;
    uint32_t last = 0, count = 0, listed = 0;
    size_t used = 0;
    for (uint32_t i = 1; i < membership->worker_count; i++) {
        bool differs =
            membership->workers[i].choices_digest != membership->workers[0].choices_digest;
        last = differs ? i : last;
        count += differs ? 1 : 0;
    }
    for (uint32_t i = 1; i <= last && used < ranks_size; i++) {
        if (membership->workers[i].choices_digest != membership->workers[0].choices_digest) {
            const char *between = listed == 0 ? "" : i == last ? " and " : ", ";
            int length = snprintf(ret_ranks + used, ranks_size - used, "%s%u", between,
                                  membership->workers[i].number);
            used += length > 0 ? (size_t)length : 0;
            listed++;
        }
    }
    return count > 0;
}
