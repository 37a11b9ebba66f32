/* Decodes JPEG files by libturbojpeg and nothing else: how fast the input of a worker could be. */
#ifndef BENCH_PROGRAMS_BARE_DECODE_H
#define BENCH_PROGRAMS_BARE_DECODE_H

#include "common/base/status.h"

#include <stdint.h>

struct bare_decode;

/* Reads the first `count` images of the training folders of DIR into memory, all if there are
 * fewer, and starts threads that decode one after the other, over and over, at the scale at which
 * the dataset `images` would for this size. Says on standard error what is wrong. */
enum status bare_decode_start(const char *folder, uint32_t size, uint32_t threads, uint32_t count,
                              struct bare_decode **ret_decode);

/* Images so far, of all threads. */
uint64_t bare_decode_count(const struct bare_decode *decode);
void bare_decode_stop(struct bare_decode *decode);

#endif
