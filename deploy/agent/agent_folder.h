/* A folder that an agent keeps for a process that runs there, and sends back piece by piece: the
 * run folder of a coordinator on another host. Gone with the agent. */
#ifndef DEPLOY_AGENT_AGENT_FOLDER_H
#define DEPLOY_AGENT_AGENT_FOLDER_H

#include "deploy/agent/agent_children.h"

#include <fts.h>
#include <stdbool.h>

#define AGENT_FOLDER_BYTES 1024

struct agent_folder {
    struct agent_port port;
    char path[AGENT_FOLDER_BYTES]; // "": none
    FTS *walk;                     // while it is sent; NULL otherwise
    int file;                      // being sent; -1: none
    char name[AGENT_FOLDER_BYTES]; // of that file, below the folder
    uint64_t offset;
};

/* Makes a new one in the place of the one before, below TMPDIR or /tmp, and says where it is. */
void agent_folder_make(struct agent_folder *folder);

/* Begins to send it. */
void agent_folder_fetch(struct agent_folder *folder);

/* Something is left to be sent. */
bool agent_folder_is_sending(const struct agent_folder *folder);

/* Sends the next piece. */
void agent_folder_send(struct agent_folder *folder);

void agent_folder_finish(struct agent_folder *folder); // removes it

#endif
