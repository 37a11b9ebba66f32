/* What a shard does when the coordinator of its job is lost: it knocks where the next one will
 * listen. Workers have the parameters of some shards and not of others then, so nobody goes on from
 * there. */
#include "common/job/job_modes.h"
#include "ps-server/shard/service_state.h"

void service_await_coordinator(struct service *service)
{
    service->member.outlast_ms = job_outlast_ms(&service->job);
}

void service_knock(struct service *service)
{
    struct member *member = &service->member;
    if (!member->must_knock) {
        return;
    }
    const struct wire_back back = {.begin_step = member->begin_step};
    struct message message = {
        .kind = MESSAGE_BACK,
        .rank = service->index,
        .step = service->shard != NULL ? shard_version(service->shard) : 0,
        .generation = member->generation,
        .back = &back,
    };
    member_knock(member, &service->job, &message);
}
