/* Adds up what servers do, and sets it beside runs. */
#include "deploy/calibrate/calibration_service.h"

#include "deploy/calibrate/calibration_cores.h"
#include "deploy/predict/basis/fields.h"

#include <stdio.h>

#define MB 1e6

static double byte_s(double bandwidth)
{
    return bandwidth > 0 ? 1 / bandwidth : 0;
}

struct calibrated_service calibration_service(const struct costs *costs, bool lends)
{
    double value_byte_s = lends ? 0 : byte_s(costs->message_bandwidth);
    return (struct calibrated_service){.push_s = costs->message_s,
                                       .push_byte_s = value_byte_s + byte_s(costs->sum_bandwidth),
                                       .answer_s = costs->message_s,
                                       .answer_byte_s = value_byte_s,
                                       .update_s = costs->optimizer_s};
}

bool calibration_service_step(const struct calibration_run *run, const struct costs *costs,
                              double *ret_said_s, double *ret_was_s)
{
    const struct observation *seen = &run->observation;
    const struct observed_cpu *servers = &seen->cores.servers;
    if (!calibration_knows_cores(run) || calibration_run_has_codes(run) ||
        servers->processes == 0 || servers->messages_s <= 0 || seen->job_steps == 0) {
        return false;
    }
    const struct calibrated_service service =
        calibration_service(costs, calibration_run_lends(run));
    // Half of the messages are pushes. Their bytes are known; all others are of answers.
    double pushed = seen->served.bytes / (double)seen->job_steps / servers->processes;
    double answered = servers->bytes > pushed ? servers->bytes - pushed : 0;
    *ret_said_s = servers->ends / 2 * (service.push_s + service.answer_s) +
                  pushed * service.push_byte_s + answered * service.answer_byte_s +
                  service.update_s / servers->processes;
    *ret_was_s = servers->messages_s;
    return true;
}

void calibration_note_service(struct calibration_run *const *runs, size_t run_count,
                              struct calibration *calibration)
{
    const struct calibrated_service service =
        calibration_service(&calibration->costs, run_count > 0 && calibration_run_lends(runs[0]));
    char push[QUANTITY_BYTES], push_mb[QUANTITY_BYTES], answer_mb[QUANTITY_BYTES],
        update[QUANTITY_BYTES], beside[2 * QUANTITY_BYTES + 32] = "";
    double said_s = 0, was_s = 0, one_s = 0, other_s = 0;
    for (size_t i = 0; i < run_count; i++) {
        if (calibration_service_step(runs[i], &calibration->costs, &one_s, &other_s)) {
            said_s += one_s;
            was_s += other_s;
        }
    }
    if (was_s > 0) {
        char said[QUANTITY_BYTES], was[QUANTITY_BYTES];
        quantity_format(said_s, QUANTITY_TIME, said);
        quantity_format(was_s, QUANTITY_TIME, was);
        snprintf(beside, sizeof(beside), "; of a step %s, and %s in runs", said, was);
    }
    quantity_format(service.push_s, QUANTITY_TIME, push);
    quantity_format(MB * service.push_byte_s, QUANTITY_TIME, push_mb);
    quantity_format(MB * service.answer_byte_s, QUANTITY_TIME, answer_mb);
    quantity_format(service.update_s, QUANTITY_TIME, update);
    calibration_add_note(&calibration->cost_notes, "service", false,
                         "follows: servers take %s and %s a MB for a push, %s and %s a MB for an "
                         "answer, %s for an update%s",
                         push, push_mb, push, answer_mb, update, beside);
}
