/* Options of the commands that start jobs. */
#ifndef DEPLOY_HOSTS_LAUNCHER_OPTIONS_H
#define DEPLOY_HOSTS_LAUNCHER_OPTIONS_H

#include "common/base/log.h"
#include "common/options/options.h"
#include "common/security/security.h"

#include <stdint.h>

struct launcher_options {
    char out[1024];
    char bind[128];
    uint32_t port;
    enum log_level log_level;
    struct security_options security; // its rows are a set of their own: security_option_set
};

struct option_set launcher_option_set(struct launcher_options *options);

/* "runs/20261120-210411-ring-cnn" if --out was not given. */
void launcher_default_folder(struct launcher_options *options, const char *what);

#endif
