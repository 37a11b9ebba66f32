/* Says which processes carry which ranks, and whether a job can do without one. */
#include "ps-server/record/progress_carriers.h"

#include "common/base/number.h"
#include "common/job/carriers.h"
#include "common/job/job_checks.h"
#include "common/job/job_values.h"
#include "ps-server/coordinator/coordinator.h"

#include <stdio.h>

static void print_ranks_left_out(const struct coordinator *coordinator)
{
    const struct rank_list *list = &coordinator->job->left_out;
    char text[OPTION_VALUE_BYTES];
    if (list->count > 0) {
        rank_list_format(list, text, sizeof(text));
        printf("without rank%s %s: %u images a step of %u\n", list->count == 1 ? "" : "s", text,
               job_batch_present(coordinator->job), coordinator->job->global_batch);
    }
}

void progress_say_carriers(const struct coordinator *coordinator)
{
    const struct carriers carriers = coordinator->carriers;
    uint32_t present = carriers_present(&carriers);
    print_ranks_left_out(coordinator);
    if (carriers.processes == present) {
        return;
    }
    // Those that take part are dealt evenly; those that are left out have vectors all the same.
    uint32_t least = present / carriers.processes;
    uint32_t most = least + (present % carriers.processes > 0);
    uint32_t vectors = carriers_gradient_count(coordinator->job, carriers_most(carriers));
    bool is_even = carriers_most(carriers) == carriers_least(carriers);
    char size[NUMBER_SIZE_BYTES];
    number_describe_size(coordinator->layout.value_count * sizeof(float), size);
    printf("%u process%s %s %u ranks, ", carriers.processes, carriers.processes == 1 ? "" : "es",
           carriers.processes == 1 ? "carries" : "carry", present);
    if (least != most) {
        printf("%u or ", least);
    }
    printf("%u each; gradients take %u x %s in %s\n", most, vectors, size,
           carriers.processes == 1   ? "it"
           : is_even || vectors == 1 ? "each"
                                     : "the largest");
}

void progress_say_bound(const struct job *job)
{
    char why[JOB_BOUND_BYTES];
    if (job_is_bound(job, why)) {
        printf("a lost process ends this job: %s\n", why);
    } else if (job_needs_servers(job) && job->servers > 1) {
        printf("a lost server ends this job: gradients are encoded for the part that it has\n");
    }
}
