/* Programs for hosts that lack them: copied through ssh, which is all that it takes there. */
#ifndef DEPLOY_HOSTS_SHIP_H
#define DEPLOY_HOSTS_SHIP_H

#include "common/base/status.h"
#include "deploy/hosts/findings.h"
#include "deploy/hosts/hosts.h"

#define SHIP_PLACE_BYTES 256

/* Copies ringside, ps, worker and, if there is one, the CUDA module to every other host that does
 * not have these very files yet, into a folder below ~/.cache/ringside that is named by version and
 * digest, and tries that they start there. ret_place gets where ringside is on all of them,
 * beginning with $HOME. What fails on a host is a finding, unless ssh does not reach it: whoever
 * tries next will say that. STATUS_INTERRUPTED after a signal, which must be blocked. Logs what is
 * wrong here. */
enum status ship_programs(const struct hosts *hosts, const char *ssh,
                          char ret_place[SHIP_PLACE_BYTES], struct findings *findings);

#endif
