/* What a command works with that launches jobs: options, hosts, their agents, keys, and the lock of
 * its folder. */
#ifndef DEPLOY_COMMAND_SESSION_H
#define DEPLOY_COMMAND_SESSION_H

#include "common/base/folder_lock.h"
#include "common/base/status.h"
#include "common/security/security.h"
#include "deploy/hosts/host_options.h"
#include "deploy/hosts/launcher.h"
#include "deploy/hosts/launcher_options.h"
#include "deploy/launch/preflight.h"
#include "deploy/watch/series_page.h"

/* Zeroed: nothing is open. Large: on the heap. */
struct session {
    struct launcher_options options;
    struct host_options hosts;
    struct launcher launcher;
    struct preflight preflight;
    struct security security;
    struct folder_lock lock;
    struct series_page *page; // NULL: nobody asked for it
};

/* After the options were parsed: names the folder after `what`, if they do not, takes its lock,
 * opens the keys and connects to the hosts. preflight_try is next, for each job. From here on
 * signals are blocked. */
enum status session_begin(struct session *session, const char *what);

/* Ends the preflight, and makes the folder where all is well; `inner` as of folder_make. */
enum status session_end_preflight(struct session *session, const char *inner);

/* With --dashboard: serves a page of the runs in the folder, and prints its address. */
enum status session_open_page(struct session *session);

void session_close(struct session *session); // zeroed is fine

#endif
