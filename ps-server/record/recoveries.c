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
        // The job may have ended before it went on.
        bool has_redone = of->has_gone_on && of->lost_step > of->begin_step;
        uint64_t redone = has_redone ? of->lost_step - of->begin_step : 0;
        json_t *begin_step =
            of->has_gone_on ? json_integer((json_int_t)of->begin_step) : json_null();
        json_t *seconds = of->has_gone_on ? json_real(of->seconds) : json_null();
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:I, s:o, s:I, s:I, s:o, s:b, s:I}", "reason",
                            of->reason, "processes", (int)of->processes, "ranks", (int)of->ranks,
                            "lost_step", (json_int_t)of->lost_step, "begin_step", begin_step,
                            "steps_redone", (json_int_t)redone, "bytes", (json_int_t)bytes,
                            "seconds", seconds, "trained_on", of->trained_on, "steps_meanwhile",
                            (json_int_t)of->steps_meanwhile));
    }
    return list;
}
