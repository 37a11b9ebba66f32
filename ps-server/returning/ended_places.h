/* What is kept about the numbers of processes that have ended, and how their members are given up.
 * Only ended.c and ended_leave.c include this. */
#ifndef PS_SERVER_RETURNING_ENDED_PLACES_H
#define PS_SERVER_RETURNING_ENDED_PLACES_H

#include "ps-server/returning/ended.h"

#include <stdbool.h>
#include <stdint.h>

/* What is kept about a number; NULL: there is no such number. */
struct ended_place *ended_place_of(struct ended *ended, enum member_role role, uint32_t number);

/* Whether the job has all the members that it began with, so that numbers are those of slots. */
bool ended_is_certain(const struct returning *returning, enum member_role role);

/* Slots of processes of a role: those of further threads come behind them. */
uint32_t ended_count_processes(const struct coordinator *coordinator, enum member_role role);

/* The numbers of the launcher's processes, and the one behind the last. */
uint32_t ended_first_number(const struct job *own, enum member_role role);
uint32_t ended_end_number(const struct job *own, enum member_role role);

/* Whether the launcher's process with the number may be a member: it has not ended, and does not
 * ask for a place. */
bool ended_may_be_member(struct ended *ended, const struct coordinator *coordinator,
                         enum member_role role, uint32_t number);

/* How many of a role may be missing. */
uint32_t ended_count_lost(struct ended *ended, enum member_role role);

/* Gives a member up. A loss that was counted before, by this coordinator or by an earlier one, is
 * not counted again. Where numbers are not certain, any loss of the role that was counted before
 * stands for this one, once. */
void ended_lose(struct ended *ended, bool are_certain, struct coordinator *coordinator,
                const struct sender *lost, uint64_t now_ms);

/* Marks members of a role as gone: those that have ended, or, if numbers are not certain, all that
 * are not there. The first of them becomes *culprit, unless there is one. */
void ended_give_up(struct ended *ended, bool are_certain, struct coordinator *coordinator,
                   enum member_role role, struct sender *culprit, uint64_t now_ms);

/* All are back, or the job goes on without the others: nobody is lost or awaited any more. */
void ended_settle(struct ended *ended);

#endif
