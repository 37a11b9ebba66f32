/* Which images are for validation where data do not say it: of each class a tenth, drawn from the
 * seed; at least one, if it has two. Pure. */
#ifndef WORKER_DATA_VALIDATION_H
#define WORKER_DATA_VALIDATION_H

#include <stdbool.h>
#include <stdint.h>

/* Marks those of a class that are held back, by their places (count), whose order is lost. */
void validation_draw(uint64_t seed, uint32_t class, uint32_t *places, uint64_t count,
                     bool *held_back);

#endif
