/* What encoding and decoding take, from a run with codes beside one without. */
#include "deploy/calibrate/calibration_codes.h"

#include "deploy/calibrate/calibration_cores.h"
#include "deploy/calibrate/fit.h"
#include "deploy/predict/basis/fields.h"

/* The run without codes that is like one with them. */
static const struct calibration_run *find_plain(struct calibration_run *const *runs, size_t count,
                                                const struct calibration_run *coded)
{
    for (size_t i = 0; i < count; i++) {
        const struct calibration_run *run = runs[i];
        if (run->observation.exchange.params_s > 0 && run->workers == coded->workers &&
            run->bucket_mb == coded->bucket_mb) {
            return run;
        }
    }
    return NULL;
}

/* By how much a step's messages of a worker took longer than without codes: it encodes and decodes
 * all values once. 0: no longer. */
static double take_code(struct calibration *made, const char *name, double coded_s, double plain_s,
                        const struct calibration_run *run)
{
    char text[QUANTITY_BYTES];
    double bandwidth = 4.0 * (double)run->parameters / (coded_s - plain_s);
    if (coded_s <= plain_s) {
        calibration_add_note(&made->cost_notes, name, true,
                             "no time: messages of %s took no longer with it", run->name);
        return 0;
    }
    quantity_format(bandwidth, QUANTITY_BANDWIDTH, text);
    calibration_add_note(&made->cost_notes, name, false,
                         "%s: %s, by what messages of workers took longer", text, run->compress);
    return bandwidth;
}

static bool knows_both(const struct calibration_run *run)
{
    return calibration_knows_cores(run) && run->observation.cores.servers.processes > 0;
}

/* How much longer a core worked for the messages of a step than without codes, of which fewer bytes
 * are to be handled. */
static double more_s(const struct calibration *made, const struct observed_cpu *with,
                     const struct observed_cpu *without, double left_out)
{
    double bandwidth = made->costs.message_bandwidth;
    double saved_s = bandwidth > 0 ? left_out * without->bytes / bandwidth : 0;
    return with->messages_s - without->messages_s + saved_s;
}

static double note_code(struct calibration *made, const char *name, double seconds,
                        const struct calibration_run *run)
{
    char text[QUANTITY_BYTES];
    double bandwidth = 4.0 * (double)run->parameters / seconds;
    if (seconds <= 0) {
        calibration_add_note(&made->cost_notes, name, true,
                             "no time: cores worked no longer with it for messages of %s",
                             run->name);
        return 0;
    }
    quantity_format(bandwidth, QUANTITY_BANDWIDTH, text);
    calibration_add_note(&made->cost_notes, name, false,
                         "%s: %s, by how much longer cores worked for messages of workers and "
                         "servers",
                         text, run->compress);
    return bandwidth;
}

/* A worker encodes all values once, and decodes them once. Its servers decode those of all workers,
 * and encode what has changed, which they decode as well. */
static void take_by_cores(struct calibration *made, const struct calibration_run *coded,
                          const struct calibration_run *plain)
{
    const struct observed_cores *with = &coded->observation.cores,
                                *without = &plain->observation.cores;
    double servers = with->servers.processes, left_out = 1 - calibration_run_coded_share(coded);
    const struct fit_load loads[2] = {
        {1, 1, more_s(made, &with->workers, &without->workers, left_out)},
        {1 / servers, (1 + coded->workers) / servers,
         more_s(made, &with->servers, &without->servers, left_out)}};
    const struct fit_share share = fit_share(loads, 2);
    made->costs.encode_bandwidth = note_code(made, "encode", share.part_s, coded);
    made->costs.decode_bandwidth = note_code(made, "decode", share.byte_s, coded);
}

void calibration_take_codes(struct calibration_run *const *coded_runs, size_t coded_count,
                            struct calibration_run *const *runs, size_t count,
                            struct calibration *made)
{
    if (coded_count == 0) {
        return;
    }
    const struct calibration_run *coded = coded_runs[0], *plain = find_plain(runs, count, coded);
    if (plain == NULL) {
        calibration_add_note(
            &made->cost_notes, "encode and decode", true,
            "no time: there is no run in ps-sync without --compress to compare %s with",
            coded->name);
        return;
    }
    if (knows_both(coded) && knows_both(plain)) {
        take_by_cores(made, coded, plain);
        return;
    }
    const struct observed_exchange *with = &coded->observation.exchange,
                                   *without = &plain->observation.exchange;
    double steps = (double)with->worker_steps, plain_steps = (double)without->worker_steps;
    made->costs.encode_bandwidth =
        take_code(made, "encode", with->post_s / steps, without->post_s / plain_steps, coded);
    made->costs.decode_bandwidth =
        take_code(made, "decode", with->params_s / steps, without->params_s / plain_steps, coded);
}
