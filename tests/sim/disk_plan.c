/* Draws what happens to a disk, and lets it happen. */
#include "tests/sim/disk_plan.h"

#include "tests/sim/scenario.h"
#include "tests/sim/story.h"
#include "tests/sim/world.h"

#include <stdio.h>

#define MS_NS    UINT64_C(1000000)
#define ROOM_MAX 6000 // a checkpoint of the simulated jobs has less

struct disk_plan disk_plan_draw(struct drawing *drawing, uint64_t last_ns)
{
    struct disk_plan plan = {
        .write_ns = draw(drawing, 2) * draw(drawing, 3 * MS_NS),
        .fault_count = (uint32_t)draw(drawing, DISK_FAULTS_MAX + 1),
        .loses_power = draw(drawing, 2) == 0,
        .is_damaged = draw(drawing, 3) == 0,
        .damage = (enum disk_damage)draw(drawing, DISK_DAMAGES),
        .damages_manifest = draw(drawing, 2) == 0,
        .comes_back_read_only = draw(drawing, 6) == 0,
    };
    for (uint32_t i = 0; i < plan.fault_count; i++) {
        bool is_short = draw(drawing, 2) == 0;
        plan.faults[i] = (struct disk_fault){
            .kind = (enum disk_fault_kind)draw(drawing, DISK_FAULT_KINDS),
            .time_ns = draw(drawing, last_ns),
            .duration_ns = is_short ? draw(drawing, 20 * MS_NS) : SCENARIO_FOR_GOOD_NS,
            .room = draw(drawing, ROOM_MAX),
        };
    }
    return plan;
}

static void begin_fault(void *data)
{
    const struct disk_fault *fault = data;
    struct disk_health *health = disk_health();
    switch (fault->kind) {
    case DISK_FAULT_FULL:
        story_say("the disk has room for %llu more bytes", (unsigned long long)fault->room);
        health->room = fault->room;
        break;
    case DISK_FAULT_ERRORS:
        story_say("the disk begins to fail");
        health->fails = true;
        break;
    case DISK_FAULT_READ_ONLY:
        story_say("the disk can only be read");
        health->is_read_only = true;
        break;
    case DISK_FAULT_KINDS:
        break;
    }
}

static void end_fault(void *data)
{
    const struct disk_fault *fault = data;
    struct disk_health *health = disk_health();
    story_say("the disk is well again");
    health->room = fault->kind == DISK_FAULT_FULL ? DISK_UNLIMITED : health->room;
    health->fails = health->fails && fault->kind != DISK_FAULT_ERRORS;
    health->is_read_only = health->is_read_only && fault->kind != DISK_FAULT_READ_ONLY;
}

void disk_plan_begin(const struct disk_plan *plan)
{
    disk_format();
    disk_health()->write_ns = plan->write_ns;
    for (uint32_t i = 0; i < plan->fault_count; i++) {
        const struct disk_fault *fault = &plan->faults[i];
        const union {
            const struct disk_fault *in;
            void *out; // nobody writes to it
        } cast = {fault};
        world_at(fault->time_ns, begin_fault, cast.out);
        world_at(fault->time_ns + fault->duration_ns, end_fault, cast.out);
    }
}

bool disk_plan_shrink(const struct disk_plan *plan, uint32_t index, struct disk_plan *ret_smaller)
{
    struct disk_plan smaller = *plan;
    if (index < plan->fault_count) {
        smaller.fault_count--;
        smaller.faults[index] = smaller.faults[smaller.fault_count];
        smaller.faults[smaller.fault_count] = (struct disk_fault){.kind = DISK_FAULT_FULL};
    } else if (index == plan->fault_count) {
        smaller.loses_power = false;
    } else if (index == plan->fault_count + 1) {
        smaller.is_damaged = smaller.damages_manifest = false;
        smaller.damage = DISK_DAMAGE_CUT;
    } else if (index == plan->fault_count + 2) {
        smaller.comes_back_read_only = false;
    } else if (index == plan->fault_count + 3) {
        smaller.write_ns = 0;
    } else {
        return false;
    }
    *ret_smaller = smaller;
    return true;
}

static int describe_fault(const struct disk_fault *fault, char *ret_text, size_t size)
{
    static const char *const names[] = {"full", "failing", "read-only"};
    char room[48] = "";
    if (fault->kind == DISK_FAULT_FULL) {
        snprintf(room, sizeof(room), " (%llu bytes left)", (unsigned long long)fault->room);
    }
    return snprintf(ret_text, size, "; disk %s%s at %.3f ms for %.3f ms", names[fault->kind], room,
                    (double)fault->time_ns / 1e6, (double)fault->duration_ns / 1e6);
}

int disk_plan_describe(const struct disk_plan *plan, char *ret_text, size_t size)
{
    static const char *const damages[] = {"cut", "changed in a bit", "gone"};
    int used = 0;
    for (uint32_t i = 0; i < plan->fault_count && used < (int)size; i++) {
        used += describe_fault(&plan->faults[i], ret_text + used, size - (size_t)used);
    }
    if (used < (int)size) {
        used += snprintf(ret_text + used, size - (size_t)used, "%s%s%s%s%s",
                         plan->loses_power ? "; then the power is lost" : "",
                         !plan->is_damaged        ? ""
                         : plan->damages_manifest ? "; the newest manifest is "
                                                  : "; the newest parameters are ",
                         plan->is_damaged ? damages[plan->damage] : "",
                         plan->comes_back_read_only ? "; the disk comes back read-only" : "",
                         plan->write_ns > 0 ? "; writing takes time" : "");
    }
    return used;
}
