/* What a shard does when the coordinator of its job is lost: it serves its workers, if they can go
 * on, and knocks where the next one will listen. */
#include "common/base/clock.h"
#include "common/job/job_modes.h"
#include "ps-server/shard/service_state.h"

void service_prepare_alone(struct service *service)
{
    bool may_stay = job_may_begin_anew(&service->job) || service->is_running;
    service->member.outlast_ms = may_stay ? job_outlast_ms(&service->job) : 0;
}

/* Whether a coordinator can take it in as it is. If one shard was lost with the coordinator,
 * workers have the parameters of some shards and not of others, and nobody goes on from there. */
static bool may_go_on(const struct service *service)
{
    return job_trains_alone(&service->job) && service->is_running;
}

void service_knock(struct service *service)
{
    struct member *member = &service->member;
    if (!member->must_knock) {
        return;
    }
    bool goes_on = may_go_on(service);
    struct wire_back back = {
        .begin_step = service->begin_step > 0 ? service->begin_step : member->begin_step,
        .snapshot_step = service_checkpoint_let_go(service),
    };
    member_describe(member, service->running_ms, clock_now_ms(), &back);
    const struct wire_start start = {.phase = goes_on ? service->next_phase - 1 : 0};
    struct message message = {
        .kind = MESSAGE_BACK,
        .rank = service->index,
        .step = service->shard != NULL ? shard_version(service->shard) : 0,
        .generation = member->generation,
        .start = goes_on ? &start : NULL,
        .back = &back,
    };
    member_knock(member, &service->job, &message);
}

void service_go(struct service *service, const struct message *go)
{
    service->is_running = true;
    service->running_ms = service->running_ms > 0 ? service->running_ms : clock_now_ms();
    kept_shard_finish(service->options->kept); // the shard has it, and goes on
    if (service->member.is_alone) {
        member_return(&service->member, go);
        service_checkpoint_offer_again(service);
    }
}
