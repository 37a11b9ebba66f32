/* Waits for a drawn delay in pieces, so that a job that ends does not wait for it. */
#include "worker/disturb/straggling.h"

#include "common/base/clock.h"

#include <assert.h>
#include <time.h>

#define PIECE_NS UINT64_C(20000000)

void straggling_init(struct straggling *straggling, const struct job *job, uint32_t rank)
{
    char why[128];
    *straggling = (struct straggling){.seed = job->seed, .rank = rank};
    enum status status = straggler_parse(job->straggler, &straggling->straggler, why, sizeof(why));
    assert(status == STATUS_OK); // the job was checked
    (void)status;
}

void straggling_wait(struct straggling *straggling, struct exchange *exchange, uint64_t step)
{
    // The time of this step is not known yet; that of those before it is about the same.
    uint64_t delay_ns = straggler_delay_ns(&straggling->straggler, straggling->seed,
                                           straggling->rank, step, straggling->compute_ns);
    uint64_t start_ns = clock_now_ns(), waited_ns = 0;
    while (waited_ns < delay_ns && exchange_stopped(exchange) == STATUS_OK) {
        uint64_t left_ns = delay_ns - waited_ns;
        uint64_t piece_ns = left_ns < PIECE_NS ? left_ns : PIECE_NS;
        const struct timespec piece = {.tv_nsec = (long)piece_ns};
        nanosleep(&piece, NULL);
        // A busy machine wakes late: counted as computing, that would be waited for again.
        waited_ns = clock_now_ns() - start_ns;
    }
    straggling->waited_ns = waited_ns;
}

void straggling_note(struct straggling *straggling, uint64_t compute_ns)
{
    uint64_t alone_ns = compute_ns > straggling->waited_ns ? compute_ns - straggling->waited_ns : 0;
    uint64_t last_ns = straggling->last_ns;
    straggling->compute_ns = alone_ns < last_ns ? alone_ns : last_ns;
    straggling->last_ns = alone_ns;
}
