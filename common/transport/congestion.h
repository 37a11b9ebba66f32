/* Which congestion control a connection has.
 *
 * BBR (Cardwell et al., CACM 2017) sends as fast as it has seen the way deliver. A server answers
 * many at once over one link, and is silent in between: what a connection has seen is its share of
 * then, and it takes round trips to find out that it may have more; four hosts behind links of
 * 1 Gbit/s had stalls of 30 to 90 ms in a step of 98. On a short way CUBIC (RFC 9438) takes its
 * place, where the system allows it: a loss costs little there, and means that the link is full. On
 * a long one what the system has chosen stays, as does anything that is not BBR, which serves those
 * well who send all the time, and to one peer, as in a ring: there it is steadier than CUBIC. */
#ifndef COMMON_TRANSPORT_CONGESTION_H
#define COMMON_TRANSPORT_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

// A round trip within one site.
#define CONGESTION_SHORT_US 10000

/* Whether CUBIC is to take the place of `name`, on a way whose round trip takes so long. */
bool congestion_is_unfit(const char *name, uint32_t rtt_us);

/* Fits a connection. False if nothing was changed: it has what it should have, it is not of TCP, or
 * the system does not allow it. */
bool congestion_fit(int descriptor);

#endif
