/* Lists what lost workers have cost, for details.json. */
#include "ps-server/record/recoveries.h"

#include "ps-server/coordinator/generation.h"

static json_t *known(bool is_known, double number)
{
    return is_known ? json_real(number) : json_null();
}

/* How fast the job was before, until it had made up for what was lost, and after. */
static void add_rates(json_t *entry, const struct recovery *of)
{
    bool is_known = of->has_gone_on && of->is_measured;
    json_object_set_new(entry, "images_per_second_before", known(of->before > 0, of->before));
    json_object_set_new(entry, "images_per_second_during", known(is_known, of->during));
    json_object_set_new(entry, "images_per_second_after",
                        known(is_known && of->after > 0, of->after));
    json_object_set_new(entry, "seconds_behind", known(is_known, of->seconds_behind));
}

static json_t *entry_json(const struct recovery *of)
{
    // The job may have ended before it went on.
    bool has_redone = of->has_gone_on && of->lost_step > of->begin_step;
    uint64_t redone = has_redone ? of->lost_step - of->begin_step : 0;
    json_t *begin_step = of->has_gone_on ? json_integer((json_int_t)of->begin_step) : json_null();
    json_t *entry =
        json_pack("{s:s, s:i, s:i, s:I, s:o, s:b, s:I, s:I, s:o, s:b, s:I}", "reason", of->reason,
                  "processes", (int)of->processes, "ranks", (int)of->ranks, "lost_step",
                  (json_int_t)of->lost_step, "begin_step", begin_step, "in_place", of->is_in_place,
                  "steps_redone", (json_int_t)redone, "bytes", (json_int_t)of->bytes, "seconds",
                  known(of->has_gone_on, of->seconds), "trained_on", of->trained_on,
                  "steps_meanwhile", (json_int_t)of->steps_meanwhile);
    add_rates(entry, of);
    return entry;
}

json_t *recoveries_json(const struct coordinator *coordinator)
{
    const struct generation *generation = coordinator->generation;
    json_t *list = json_array();
    for (uint32_t i = 0; generation != NULL && i < generation->recovery_count; i++) {
        struct recovery of = generation->recoveries[i];
        if (i + 1 == generation->recovery_count) { // its generation is this one
            of.bytes = coordinator->fetched_bytes;
            generation_measure(coordinator, &of);
        }
        json_array_append_new(list, entry_json(&of));
    }
    return list;
}
