/* A peer: MPI_Allreduce in place, float sum.
 *
 *     mpirun -n N mpi_allreduce BYTES WARMUP ROUNDS
 *
 * Measures as bench_exchange does: calls one after the other, each timed, values filled before the
 * first and the last, which are checked. Between those the vector is zero: sums of sums overflow.
 * Each rank prints a line of JSON. */
#include "bench/programs/pattern.h"
#include "bench/programs/rounds.h"
#include "common/base/clock.h"
#include "common/base/memory.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    int rank, world;
    float *values; // (count), owned
    uint64_t count;
    struct rounds rounds;
};

/* One call; its result is checked if the values were filled. False if it is wrong. */
static bool allreduce(struct bench *bench, uint64_t round, bool is_filled, uint64_t *ret_ns)
{
    if (is_filled) {
        pattern_fill(bench->values, bench->count, pattern_shift((uint32_t)bench->rank, round));
    }
    uint64_t start_ns = clock_now_ns();
    MPI_Allreduce(MPI_IN_PLACE, bench->values, (int)bench->count, MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    *ret_ns = clock_now_ns() - start_ns;
    if (!is_filled) {
        return true;
    }
    float sum[PATTERN_PERIOD];
    pattern_sum((uint32_t)bench->world, round, 1, sum);
    bool is_right = pattern_find_wrong(bench->values, bench->count, sum) == bench->count;
    memset(bench->values, 0, bench->count * sizeof(float));
    return is_right;
}

static bool run(struct bench *bench, uint64_t warmup, uint64_t round_count)
{
    bool is_right = true;
    for (uint64_t round = 0; round < warmup + round_count + 1; round++) {
        bool is_timed = round >= warmup && round < warmup + round_count;
        bool is_filled = round == 0 || round == warmup + round_count;
        uint64_t ns;
        if (round == warmup) {
            rounds_begin(&bench->rounds);
        }
        if (round == warmup + round_count) {
            rounds_end(&bench->rounds);
        }
        is_right = allreduce(bench, round, is_filled, &ns) && is_right;
        if (is_timed) {
            rounds_add(&bench->rounds, ns);
        }
    }
    return is_right;
}

static bool read_number(const char *text, uint64_t max, uint64_t *ret_number)
{
    char *end;
    errno = 0;
    *ret_number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *ret_number >= 1 && *ret_number <= max;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct bench bench = {0};
    uint64_t bytes, warmup, round_count;
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.world);
    if (argc != 4 || !read_number(argv[1], (uint64_t)INT_MAX * sizeof(float), &bytes) ||
        bytes % sizeof(float) != 0 || !read_number(argv[2], 1 << 30, &warmup) ||
        !read_number(argv[3], 1 << 30, &round_count)) {
        fprintf(stderr, "usage: mpi_allreduce BYTES WARMUP ROUNDS, each at least 1, BYTES a "
                        "multiple of 4\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    bench.count = bytes / sizeof(float);
    bench.values = memory_create_large(bytes);
    if (bench.values == NULL || rounds_init(&bench.rounds, round_count) != 0) {
        fprintf(stderr, "mpi_allreduce: no memory for %llu bytes\n", (unsigned long long)bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    bool is_right = run(&bench, warmup, round_count);
    printf("{\"library\":\"mpi\",\"workers\":%d,\"rank\":%d,\"bytes\":%llu,", bench.world,
           bench.rank, (unsigned long long)bytes);
    rounds_print(&bench.rounds, stdout);
    printf(",\"verified\":%s}\n", is_right ? "true" : "false");
    fflush(stdout);
    rounds_finish(&bench.rounds);
    memory_destroy_large(bench.values, bytes);
    MPI_Finalize();
    return is_right ? 0 : 1;
}
