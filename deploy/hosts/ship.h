/* Copies the programs to hosts that lack them. The hosts need nothing but ssh. */
#ifndef DEPLOY_HOSTS_SHIP_H
#define DEPLOY_HOSTS_SHIP_H

#include "common/base/status.h"
#include "deploy/hosts/findings.h"
#include "deploy/hosts/hosts.h"

#define SHIP_PLACE_BYTES 256

/* Copies ringside, ps, worker and, if there is one, the CUDA module to every other host that does
 * not have these very files yet. They go into a folder below ~/.cache/ringside that is named by
 * version and digest. Then tries whether they start there. ret_place gets the path of ringside on
 * all hosts, beginning with $HOME. What fails on a host becomes a finding, except that ssh does not
 * reach it: the next attempt will say so. Returns STATUS_INTERRUPTED after a signal, which must be
 * blocked. Logs what is wrong on this host. */
enum status ship_programs(const struct hosts *hosts, const char *ssh,
                          char ret_place[SHIP_PLACE_BYTES], struct findings *findings);

#endif
