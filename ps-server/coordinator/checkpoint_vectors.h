/* The vectors of a checkpoint that is being collected, and what members may send of them. Pure. */
#ifndef PS_SERVER_COORDINATOR_CHECKPOINT_VECTORS_H
#define PS_SERVER_COORDINATOR_CHECKPOINT_VECTORS_H

#include "common/channel/piece_name.h"
#include "common/channel/wire.h"

#include <stdbool.h>
#include <stdint.h>

struct coordinator;
struct sender;

struct checkpoint_total {
    char name[PIECE_NAME_BYTES];
    uint64_t total, received; // floats
};

/* Zeroed is empty. */
struct checkpoint_vectors {
    struct checkpoint_total *list; // (count), owned
    uint32_t count, capacity;
};

/* The vector of this name, which is new if there was none; NULL: there is no room. */
struct checkpoint_total *checkpoint_vectors_find(struct checkpoint_vectors *vectors,
                                                 const char *name);

/* Whether a member may send this piece: a name of the grammar, of a rank only if it carries that,
 * of a size that the layout allows. */
bool checkpoint_piece_is_sound(const struct coordinator *coordinator, const struct sender *from,
                               const struct message *message);

#endif
