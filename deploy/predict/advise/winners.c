/* Predicts the designs of a study over a grid of bandwidths. */
#include "deploy/predict/advise/winners.h"

#include "deploy/predict/study/parallel.h"

#include <stdio.h>
#include <stdlib.h>

const double winners_factors[WINNERS_FACTORS] = {0.125, 0.25, 0.5, 1, 2, 4, 8};

struct grid {
    const struct study *study;
    double *speeds; // (workers, factors, designs); 0: not known
};

static double speed_of(const struct study *study, const struct study_point *point)
{
    struct target target;
    if (study->convergence == NULL) {
        return point->made.images_per_s;
    }
    study_find_target(study, point->design, point->workers, &point->made, &target);
    return target.seconds > 0 ? 1 / target.seconds : 0;
}

static enum status predict(const struct study *study, double factor, struct study_point *point)
{
    struct what_if change;
    char text[WHAT_IF_TEXT_BYTES], why[256];
    struct basis *basis = NULL;
    snprintf(text, sizeof(text), "link=%gx", factor);
    enum status status =
        what_if_parse(text, &change, why, sizeof(why)) ? STATUS_OK : STATUS_INVALID;
    if (status == STATUS_OK) {
        status = study_make_basis(study, point, &basis);
    }
    if (status == STATUS_OK) {
        status = what_if_apply(&change, basis);
    }
    if (status == STATUS_OK) {
        status = study_predict(study, basis, &point->made);
    }
    basis_destroy(basis);
    return status;
}

static enum status make_speed(void *context, size_t index)
{
    const struct grid *grid = context;
    const struct study *study = grid->study;
    size_t design = index % study->design_count, cell = index / study->design_count;
    double factor = winners_factors[cell % WINNERS_FACTORS];
    size_t workers = cell / WINNERS_FACTORS;
    struct study_point point = {.design = study->designs[design],
                                .workers = study->workers[workers]};
    enum status status = STATUS_OK;
    const struct study_point *made = &study->points[workers * study->design_count + design];
    grid->speeds[index] = 0;
    if (made->is_too_large) {
        return STATUS_OK;
    }
    if (factor == 1) {
        point.made = made->made;
    } else {
        status = predict(study, factor, &point);
    }
    if (status == STATUS_NO_MEMORY) {
        return STATUS_OK; // not known
    }
    grid->speeds[index] = status == STATUS_OK ? speed_of(study, &point) : 0;
    return status;
}

static struct winner find_winner(const double *speeds, size_t count)
{
    struct winner winner = {WINNERS_NONE, 0};
    double most = 0, next = 0;
    for (size_t i = 0; i < count; i++) {
        if (speeds[i] > most) {
            next = most;
            most = speeds[i];
            winner.design = i;
        } else if (speeds[i] > next) {
            next = speeds[i];
        }
    }
    winner.lead = next > 0 ? most / next - 1 : 0;
    return winner;
}

enum status winners_make(const struct study *study, struct winners *ret_winners)
{
    size_t cells = study->worker_count * WINNERS_FACTORS;
    struct grid grid = {study, calloc(cells * study->design_count, sizeof(double))};
    if (grid.speeds == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status =
        parallel_run(cells * study->design_count, study->threads, make_speed, &grid);
    for (size_t i = 0; i < cells && status == STATUS_OK; i++) {
        ret_winners->cells[i / WINNERS_FACTORS][i % WINNERS_FACTORS] =
            find_winner(&grid.speeds[i * study->design_count], study->design_count);
    }
    free(grid.speeds);
    return status;
}

double winners_bandwidth(const struct study *study, size_t factor)
{
    const struct network *network = study->network;
    return winners_factors[factor] * network->links[network->hosts[0].up].bandwidth;
}
