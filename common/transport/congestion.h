/* Chooses the congestion control of a connection.
 *
 * BBR (Cardwell et al., CACM 2017) sends as fast as it has seen the path deliver. A server answers
 * many peers at once over one link, and is silent in between. So a connection has only seen its
 * share of that moment, and needs round trips to find out that it may have more: four hosts behind
 * links of 1 Gbit/s had stalls of 30 to 90 ms in a step of 98. On a short path, CUBIC (RFC 9438)
 * replaces BBR where the system allows it: a loss costs little there, and means that the link is
 * full. On a long path the system's choice stays, and so does anything other than BBR. BBR serves
 * senders well that send to one peer all the time, as in a ring; there it is steadier than
 * CUBIC. */
#ifndef COMMON_TRANSPORT_CONGESTION_H
#define COMMON_TRANSPORT_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

// A round trip within one site.
#define CONGESTION_SHORT_US 10000

/* Whether CUBIC should replace `name` on a path with this round trip. */
bool congestion_is_unfit(const char *name, uint32_t rtt_us);

/* Fits a connection. Returns false if nothing was changed: it has what it should have, it is not a
 * TCP connection, or the system does not allow it. */
bool congestion_fit(int descriptor);

#endif
