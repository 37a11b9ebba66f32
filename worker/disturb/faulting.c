/* Looks before each step for faults at the ranks of this process. */
#include "worker/disturb/faulting.h"

#include "common/service/strike.h"

void faulting_init(struct faulting *faulting, const struct job *job, struct rank_block ranks)
{
    *faulting = (struct faulting){.faults = faults_of(job), .ranks = ranks};
}

enum status faulting_strike(const struct faulting *faulting, uint64_t step)
{
    enum status status = STATUS_OK;
    if (faulting->faults.count == 0) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < faulting->ranks.count && status == STATUS_OK; i++) {
        const struct fault_seat seat = {.place = FAULT_AT_RANK,
                                        .number = faulting->ranks.first + i};
        const struct fault *fault = faults_next(&faulting->faults, &seat, step);
        if (fault != NULL && fault->step == step + 1) {
            status = strike_fault(fault, "worker");
        }
    }
    return status;
}
