/* How far a job has come since it began to train or went on after a loss, as signs of life tell.
 * Pure.
 *
 * After a loss a job first makes steps again. It has regained what it lost once it has made as many
 * as before. Signs of life are half a second apart, so that moment lies between two of them: steps
 * are taken to be equally long from one to the next. */
#ifndef COMMON_PLAN_HEADWAY_H
#define COMMON_PLAN_HEADWAY_H

#include <stdbool.h>
#include <stdint.h>

struct headway {
    uint64_t begin_step;         // steps that were made when it began
    uint64_t target_step;        // that were made before the loss
    uint64_t last_ms, last_step; // the last sign that told of more steps
    bool has_regained;           // target_step was reached
    uint64_t regained_ms;        // when that was; valid if has_regained
};

/* Steps up to target_step were made before. Not above begin_step: none is to be made again. */
void headway_begin(struct headway *headway, uint64_t begin_step, uint64_t target_step,
                   uint64_t now_ms);

/* A sign of life says that so many steps have been made. */
void headway_note(struct headway *headway, uint64_t step, uint64_t now_ms);

/* How many steps have been made again so far. */
uint64_t headway_repeated(const struct headway *headway);

#endif
