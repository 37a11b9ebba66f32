/* The places of members that come back. Of returning.c and returning_join.c alone. */
#ifndef PS_SERVER_RETURNING_RETURNING_PLACES_H
#define PS_SERVER_RETURNING_RETURNING_PLACES_H

#include "ps-server/returning/returning.h"

#include <stdint.h>

/* Notes the number of the member of a slot. A free slot for which that was guessed gets the guess
 * for this one in its place. */
void returning_note_number(struct generation *generation, const struct membership *membership,
                           const struct sender *at, uint32_t number);

/* Lets training go on, or the next generation begin, if all are back. */
void returning_look_for_all(const struct returning *returning, struct generation *generation,
                            struct coordinator *coordinator, uint64_t now_ms);

#endif
