/* What a person reads of a period that is over: losses, accuracy, speed. Pure. */
#ifndef PS_SERVER_RECORD_PERIOD_LINE_H
#define PS_SERVER_RECORD_PERIOD_LINE_H

#include "ps-server/coordinator/coordinator.h"

#include <stdint.h>

#define PERIOD_LINE_BYTES 256

/* "epoch 2: train loss 0.6931, test loss 0.5, test accuracy 81.20 %, 5300 images/s, 4.1 s". Of a
 * program of its own: "step 200: ...", with what it has told. */
void period_line_format(const struct coordinator *coordinator, uint32_t period,
                        char ret_line[PERIOD_LINE_BYTES]);

#endif
