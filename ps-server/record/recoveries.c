/* Lists what lost workers have cost, for details.json. */
#include "ps-server/record/recoveries.h"

#include "ps-server/coordinator/generation.h"

json_t *recoveries_json(const struct coordinator *coordinator)
{
    const struct generation *generation = coordinator->generation;
    json_t *list = json_array();
    for (uint32_t i = 0; generation != NULL && i < generation->recovery_count; i++) {
        const struct recovery *of = &generation->recoveries[i];
        // What was fetched since the last one.
        bool is_last = i + 1 == generation->recovery_count;
        uint64_t bytes = is_last ? coordinator->fetched_bytes : of->bytes;
        uint64_t redone = of->lost_step > of->begin_step ? of->lost_step - of->begin_step : 0;
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:b, s:I}", "reason",
                            of->reason, "processes", (int)of->processes, "ranks", (int)of->ranks,
                            "lost_step", (json_int_t)of->lost_step, "begin_step",
                            (json_int_t)of->begin_step, "steps_redone", (json_int_t)redone, "bytes",
                            (json_int_t)bytes, "seconds", of->seconds, "trained_on", of->trained_on,
                            "steps_meanwhile", (json_int_t)of->steps_meanwhile));
    }
    return list;
}
