/* What happens to the disk of a job that writes checkpoints: while the job runs, and between its
 * end and its being resumed. */
#ifndef TESTS_SIM_DISK_PLAN_H
#define TESTS_SIM_DISK_PLAN_H

#include "tests/sim/disk.h"
#include "tests/sim/drawing.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_FAULTS_MAX 2

enum disk_fault_kind {
    DISK_FAULT_FULL,      // so many bytes still find room
    DISK_FAULT_ERRORS,    // some of what is written or synced does not arrive
    DISK_FAULT_READ_ONLY, // nothing can be changed
    DISK_FAULT_KINDS,
};

struct disk_fault {
    enum disk_fault_kind kind;
    uint64_t time_ns, duration_ns;
    uint64_t room; // of FULL: in bytes
};

/* Zeroed: nothing happens, and writing takes no time. */
struct disk_plan {
    uint64_t write_ns; // of a call that writes, at most
    struct disk_fault faults[DISK_FAULTS_MAX];
    uint32_t fault_count;

    // Between the job's end and its being resumed, in this order.
    bool loses_power;
    bool is_damaged; // a file of the newest checkpoint, for good
    enum disk_damage damage;
    bool damages_manifest;     // or else the parameters
    bool comes_back_read_only; // and is resumed so first
};

struct disk_plan disk_plan_draw(struct drawing *drawing, uint64_t last_ns);

/* In a world that has begun: an empty disk, and what happens to it. Borrows the plan. */
void disk_plan_begin(const struct disk_plan *plan);

/* The index-th plan that is a little smaller. False: there are not so many. */
bool disk_plan_shrink(const struct disk_plan *plan, uint32_t index, struct disk_plan *ret_smaller);

/* Returns the size of the text. */
int disk_plan_describe(const struct disk_plan *plan, char *ret_text, size_t size);

#endif
