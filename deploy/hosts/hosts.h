/* Lists the hosts of a job in their order, and how many workers each takes: from -H or a host
 * file. */
#ifndef DEPLOY_HOSTS_HOSTS_H
#define DEPLOY_HOSTS_HOSTS_H

#include "common/base/status.h"
#include "common/options/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTS_MAX       256
#define HOST_NAME_BYTES 128
#define HOSTS_SLOTS_MAX 4096 // of one host

struct host {
    char name[HOST_NAME_BYTES]; // as ssh takes it: "node1", "ada@node1"
    uint32_t slots;             // workers that it takes
    bool is_away;               // it was lost, and takes nobody until it is back
};

struct hosts {
    struct host list[HOSTS_MAX];
    size_t count;
};

/* Adds "host1:2,host2:4". A host without a number has one slot. Returns STATUS_INVALID with a
 * sentence if a host is there already, or if the text is not a list. Pure. */
enum status hosts_parse(struct hosts *hosts, const char *text, char ret_error[OPTION_ERROR_BYTES]);

/* Adds the lines of a host file: "host", "host:2" or "host slots=2". A # begins a comment. Returns
 * STATUS_INVALID with a sentence that names the path and the line. */
enum status hosts_read(struct hosts *hosts, const char *path, char ret_error[OPTION_ERROR_BYTES]);

/* Returns the index of a host, or hosts->count if it is not there. Pure. */
size_t hosts_find(const struct hosts *hosts, const char *name);

/* Adds a host that takes no workers, unless it is there. Pure. */
enum status hosts_add_idle(struct hosts *hosts, const char *name,
                           char ret_error[OPTION_ERROR_BYTES]);

uint32_t hosts_slots(const struct hosts *hosts); // of all hosts that are not away; pure

#endif
