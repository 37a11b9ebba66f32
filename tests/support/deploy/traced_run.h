/* Run folders of jobs whose costs are known. Their timelines are written by the product's own
 * trace, each process's by a process. */
#ifndef TESTS_SUPPORT_DEPLOY_TRACED_RUN_H
#define TESTS_SUPPORT_DEPLOY_TRACED_RUN_H

#include <stdbool.h>
#include <stdint.h>

#define TRACED_US      UINT64_C(1000)
#define TRACED_MS      UINT64_C(1000000)
#define TRACED_STEPS   24
#define TRACED_STEP_NS (10 * TRACED_MS) // from the beginning of a step to that of the next one

// What was put in.
#define TRACED_REST_NS          (30 * TRACED_US)
#define TRACED_FORWARD_1_NS     (400 * TRACED_US)
#define TRACED_FORWARD_2_NS     (100 * TRACED_US)
#define TRACED_BACKWARD_1_NS    (700 * TRACED_US)
#define TRACED_BACKWARD_2_NS    (150 * TRACED_US)
#define TRACED_HANDOVER_NS      (5 * TRACED_US)  // of a bucket
#define TRACED_UPDATE_NS        (60 * TRACED_US) // of a bucket, of which there are two
#define TRACED_SEND_NS          (8 * TRACED_US)
#define TRACED_POST_NS          (2 * TRACED_US) // besides the send
#define TRACED_RECEIVE_NS       (6 * TRACED_US)
#define TRACED_LATENCY_NS       (40 * TRACED_US)
#define TRACED_SUM_BYTES_PER_NS 4                // 4 GB/s
#define TRACED_ENCODE_NS        (80 * TRACED_US) // of a bucket
#define TRACED_DECODE_NS        (20 * TRACED_US)
#define TRACED_GROUP_NS         (260 * TRACED_US) // sums of a step in shared memory
#define TRACED_LATE_NS          (500 * TRACED_US) // that worker 1 waits for worker 0
#define TRACED_WAY_BYTES_PER_NS 1                 // 1 GB/s
#define TRACED_INTERRUPT_NS     (4 * TRACED_MS)

extern const uint64_t traced_bucket_bytes[2]; // of a message, which is half a bucket

/* A job as the tests tell it. */
struct traced_story {
    const char *mode, *model;
    uint32_t workers, servers, steps;
    bool has_layers, has_noise; // noise: steps take 0 to 1.1 ms longer, in twelve equal parts
    const char *option;         // one more of job.json: "seed": 1
    bool has_group;             // ring: sums in shared memory, no messages
    bool has_codes;             // ps-sync: workers encode and decode
    const char *transport;      // NULL: none is told
    const char *security;       // likewise
    bool has_hosts;             // each process is on a host of its own
    bool is_interrupted;        // in three steps of four, the first layer's forward is
};

/* Makes the run folder, of a model of two layers (conv2d 1, linear 2) and two buckets, on the host
 * "node", or on several. The caller gives it to temp_folder_destroy. */
char *traced_run_write(const struct traced_story *story);

#endif
