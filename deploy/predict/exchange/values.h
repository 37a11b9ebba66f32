/* What values take that processes send to each other: bytes, and time for their encoding. */
#ifndef DEPLOY_PREDICT_EXCHANGE_VALUES_H
#define DEPLOY_PREDICT_EXCHANGE_VALUES_H

#include "deploy/predict/course.h"

#include <stdbool.h>
#include <stdint.h>

/* As they are. */
double values_bytes(uint64_t floats);

/* As gradients travel, which --compress says; each span is encoded by itself. */
double values_encoded_bytes(const struct course *course, uint64_t floats);

/* What adding received values up takes, and what a process needs for encoding gradients and for
 * decoding them, into a sum or alone: 0 without --compress. */
double values_sum_s(const struct course *course, double floats);
double values_encode_s(const struct course *course, double floats);
double values_decode_s(const struct course *course, double floats);

/* For adding received gradients to others: codes are decoded into the sum. */
double values_add_s(const struct course *course, double floats);

#endif
