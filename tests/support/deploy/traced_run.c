/* Writes what each process of a told job does. */
#include "tests/support/deploy/traced_run.h"

#include "common/trace/trace.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const uint64_t traced_bucket_bytes[2] = {60000, 200000};

/* What a process writes. */
struct author {
    const struct traced_story *story;
    struct trace *trace;
    struct trace_tape *compute, *talk, *shard;
    uint32_t number;
};

static void put(struct trace_tape *tape, uint64_t begin_ns, uint64_t length_ns,
                struct trace_tag tag)
{
    trace_record(tape, begin_ns, begin_ns + length_ns, &tag);
}

static struct trace_tag tag_of(enum trace_kind kind, uint32_t bucket, uint64_t step)
{
    return (struct trace_tag){.kind = kind, .bucket = bucket, .step = step};
}

static struct trace_tag layer_of(enum trace_kind kind, uint32_t bucket, uint64_t step,
                                 const char *name)
{
    struct trace_tag tag = tag_of(kind, bucket, step);
    tag.layers = name;
    return tag;
}

static struct trace_tag message_of(enum trace_kind kind, uint32_t bucket, uint64_t step,
                                   const char *name, uint32_t hop)
{
    struct trace_tag tag = tag_of(kind, bucket, step);
    tag.message = name;
    tag.hop = hop;
    tag.bytes = traced_bucket_bytes[bucket];
    return tag;
}

static uint64_t noise_of(const struct traced_story *story, uint64_t step, uint32_t worker)
{
    return story->has_noise ? (step * 7 + (uint64_t)worker * 3) % 12 * 100 * TRACED_US : 0;
}

/* For how long something else has the core. */
static uint64_t interrupt_of(const struct traced_story *story, uint64_t step)
{
    return story->is_interrupted && step % 4 != 0 ? TRACED_INTERRUPT_NS : 0;
}

/* A step's computing: the rest, forward with a wait in it, backward of two buckets, and a wait in
 * which both are updated. */
static void compute(const struct author *author, uint64_t step, uint64_t at)
{
    struct trace_tape *tape = author->compute;
    bool has_layers = author->story->has_layers;
    uint64_t begin_ns = at;
    at += TRACED_REST_NS + noise_of(author->story, step, author->number);
    uint64_t forward_ns = at, wait_ns = 50 * TRACED_US;
    uint64_t first_ns = TRACED_FORWARD_1_NS + interrupt_of(author->story, step);
    if (has_layers) {
        put(tape, at, first_ns + wait_ns,
            layer_of(TRACE_LAYER_FORWARD, TRACE_NO_BUCKET, step, "conv2d 1"));
    }
    put(tape, at + first_ns, wait_ns, tag_of(TRACE_EXCHANGE, TRACE_NO_BUCKET, step));
    at += first_ns + wait_ns;
    if (has_layers) {
        put(tape, at, TRACED_FORWARD_2_NS,
            layer_of(TRACE_LAYER_FORWARD, TRACE_NO_BUCKET, step, "linear 2"));
    }
    at += TRACED_FORWARD_2_NS;
    put(tape, forward_ns, at - forward_ns, tag_of(TRACE_FORWARD, TRACE_NO_BUCKET, step));
    for (uint32_t bucket = 0; bucket < 2; bucket++) {
        uint64_t length_ns = bucket == 0 ? TRACED_BACKWARD_2_NS : TRACED_BACKWARD_1_NS;
        put(tape, at, length_ns, tag_of(TRACE_BACKWARD, bucket, step));
        if (has_layers) {
            put(tape, at, length_ns,
                layer_of(TRACE_LAYER_BACKWARD, bucket, step,
                         bucket == 0 ? "linear 2" : "conv2d 1"));
        }
        at += length_ns;
        if (author->story->has_group) {
            continue;
        }
        put(tape, at, TRACED_HANDOVER_NS, tag_of(TRACE_EXCHANGE, TRACE_NO_BUCKET, step));
        put(tape, at + TRACED_US, 0, tag_of(TRACE_READY, bucket, step));
        at += TRACED_HANDOVER_NS;
    }
    uint64_t end_ns = begin_ns + TRACED_STEP_NS - TRACED_US;
    if (author->story->has_group) {
        at += TRACED_LATE_NS * (1 - author->number); // one computes longer, the other waits
        wait_ns = TRACED_GROUP_NS - wait_ns + TRACED_LATE_NS * author->number;
        end_ns = at + wait_ns + 2 * TRACED_UPDATE_NS;
    }
    put(tape, at, end_ns - at, tag_of(TRACE_EXCHANGE, TRACE_NO_BUCKET, step));
    if (author->story->servers == 0) {
        put(tape, at + TRACED_US, TRACED_UPDATE_NS, tag_of(TRACE_OPTIMIZER, 0, step));
        put(tape, at + TRACED_US + TRACED_UPDATE_NS, TRACED_UPDATE_NS,
            tag_of(TRACE_OPTIMIZER, 1, step));
    }
    // What lies behind it is of the step, too, and the rest.
    put(tape, begin_ns, end_ns - begin_ns, tag_of(TRACE_STEP, TRACE_NO_BUCKET, step));
}

static uint64_t way_ns(uint32_t bucket)
{
    return TRACED_LATENCY_NS + traced_bucket_bytes[bucket] / TRACED_WAY_BYTES_PER_NS;
}

/* A number for a message that both of its ends know. */
static uint64_t flow_of(uint64_t step, uint32_t bucket, uint32_t from, uint32_t hop)
{
    return 1 + hop + 8 * (from + 8 * (bucket + 8 * step));
}

/* Ring of two: each sends a half of a bucket, adds up what comes, and sends it back. Times are
 * those of the slower worker, so that both know them. */
static void talk_in_ring(const struct author *author, uint64_t step, const uint64_t ready_ns[2])
{
    for (uint32_t bucket = 0; bucket < 2; bucket++) {
        uint64_t at = ready_ns[bucket],
                 sum_ns = traced_bucket_bytes[bucket] / TRACED_SUM_BYTES_PER_NS;
        put(author->talk, at, TRACED_POST_NS + TRACED_SEND_NS, tag_of(TRACE_POSTED, bucket, step));
        for (uint32_t hop = 1; hop <= 2; hop++) {
            uint32_t other = 1 - author->number;
            struct trace_tag tag = message_of(TRACE_SEND, bucket, step, "CHUNK", hop);
            tag.flow = flow_of(step, bucket, author->number, hop);
            put(author->talk, at, TRACED_SEND_NS, tag);
            at += TRACED_SEND_NS + way_ns(bucket);
            tag = message_of(TRACE_RECEIVE, bucket, step, "CHUNK", hop);
            tag.flow = flow_of(step, bucket, other, hop);
            uint64_t own_ns = TRACED_RECEIVE_NS + (hop == 1 ? sum_ns : 0);
            // What is added up is sent on before the receive is over.
            put(author->talk, at, own_ns + (hop == 1 ? TRACED_SEND_NS : 0), tag);
            at += own_ns;
        }
    }
}

/* ps-sync: a worker pushes, and its server answers once both have. */
static void talk_to_server(const struct author *author, uint64_t step, const uint64_t ready_ns[2])
{
    for (uint32_t bucket = 0; bucket < 2; bucket++) {
        uint64_t at = ready_ns[bucket];
        uint64_t codes = author->story->has_codes;
        put(author->talk, at, TRACED_POST_NS + TRACED_SEND_NS + codes * TRACED_ENCODE_NS,
            tag_of(TRACE_POSTED, bucket, step));
        struct trace_tag tag = message_of(TRACE_SEND, bucket, step, "PUSH", 0);
        tag.flow = flow_of(step, bucket, author->number, 0);
        put(author->talk, at, TRACED_SEND_NS, tag);
        at += TRACED_MS; // for the server
        tag = message_of(TRACE_RECEIVE, bucket, step, "PARAMS", 0);
        tag.flow = flow_of(step, bucket, author->number, 1);
        put(author->talk, at, TRACED_RECEIVE_NS + codes * TRACED_DECODE_NS, tag);
    }
}

/* Both pushes of a bucket, of which the second one is summed with the first, updates, and is
 * answered. */
static void serve(const struct author *author, uint64_t step, const uint64_t ready_ns[2])
{
    for (uint32_t bucket = 0; bucket < 2; bucket++) {
        uint64_t came_ns = ready_ns[bucket] + TRACED_SEND_NS + way_ns(bucket);
        struct trace_tag tag = message_of(TRACE_SHARD_RECEIVE, bucket, step, "PUSH", 0);
        tag.flow = flow_of(step, bucket, 0, 0);
        put(author->shard, came_ns, TRACED_RECEIVE_NS, tag);
        uint64_t work_ns =
            TRACED_UPDATE_NS + 2 * traced_bucket_bytes[bucket] / TRACED_SUM_BYTES_PER_NS;
        uint64_t answered_ns = ready_ns[bucket] + TRACED_MS - way_ns(bucket) - TRACED_SEND_NS;
        came_ns += 10 * TRACED_US;
        tag.flow = flow_of(step, bucket, 1, 0);
        put(author->shard, came_ns, TRACED_RECEIVE_NS + work_ns, tag);
        put(author->shard, came_ns, work_ns, tag_of(TRACE_SUM_AND_UPDATE, bucket, step));
        for (uint32_t worker = 0; worker < 2; worker++) {
            tag = message_of(TRACE_SEND, bucket, step, "PARAMS", 0);
            tag.flow = flow_of(step, bucket, worker, 1);
            put(author->shard, answered_ns - UINT64_C(10) * worker * TRACED_US, TRACED_SEND_NS,
                tag);
        }
    }
}

static void describe(const struct author *author, const char *role)
{
    char host[24] = "node";
    if (author->story->has_hosts) {
        snprintf(host, sizeof(host), "%s-%u", role, author->number);
    }
    const struct trace_process process = {.role = role,
                                          .number = author->number,
                                          .host = host,
                                          .host_id = 7,
                                          .is_coordinator = strcmp(role, "ps") == 0};
    trace_describe(author->trace, &process);
}

/* All steps of a worker, or of the server, which computes nothing but knows when others do. */
static void write_steps(struct author *author, const char *role)
{
    bool is_server = strcmp(role, "ps") == 0;
    const struct trace_window window = {0, UINT64_MAX};
    describe(author, role);
    enum status status =
        trace_open_tape(author->trace, is_server ? TRACE_SHARD : TRACE_COMPUTE, author->number,
                        &window, is_server ? &author->shard : &author->compute);
    if (!is_server && status == STATUS_OK) {
        status = trace_open_tape(author->trace, TRACE_COMMUNICATION, author->number, &window,
                                 &author->talk);
    }
    assert_int_equal(status, STATUS_OK);
    for (uint64_t step = 0; step < author->story->steps; step++) {
        uint64_t at = TRACED_MS + step * TRACED_STEP_NS, ready_ns[2];
        if (!is_server) {
            compute(author, step, at);
        }
        ready_ns[0] = at + 3 * TRACED_MS;
        ready_ns[1] = at + 6 * TRACED_MS;
        if (is_server && author->story->servers > 0) {
            serve(author, step, ready_ns);
        } else if (!is_server && author->story->servers > 0) {
            talk_to_server(author, step, ready_ns);
        } else if (!is_server && author->story->workers == 2 && !author->story->has_group) {
            talk_in_ring(author, step, ready_ns);
        } else if (!is_server && !author->story->has_group) { // which has nobody to send to
            put(author->talk, ready_ns[0], TRACED_POST_NS, tag_of(TRACE_POSTED, 0, step));
            put(author->talk, ready_ns[1], TRACED_POST_NS, tag_of(TRACE_POSTED, 1, step));
        }
    }
}

static void write_part(const struct traced_story *story, const char *folder, const char *role,
                       uint32_t number)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char path[600];
        struct author author = {.story = story, .number = number};
        snprintf(path, sizeof(path), "%s/timeline", folder);
        bool is_written = trace_create(path, &author.trace) == STATUS_OK;
        if (is_written) {
            write_steps(&author, role);
            is_written = trace_write(author.trace) == STATUS_OK;
        }
        trace_destroy(author.trace);
        _exit(is_written ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

char *traced_run_write(const struct traced_story *story)
{
    char text[1024], *folder = temp_folder_create();
    snprintf(text, sizeof(text),
             "{\"outcome\": \"completed\", \"mode\": \"%s\", \"workers\": %u, \"servers\": %u, "
             "\"model\": \"%s\", \"parameters\": 130000, \"batch_per_worker\": 16, "
             "\"steps\": %u, \"transport\": \"%s\"}",
             story->mode, story->workers, story->servers, story->model, story->steps,
             story->transport != NULL ? story->transport : "none");
    temp_folder_write(folder, "summary.json", text, strlen(text));
    snprintf(text, sizeof(text),
             "{\"options\": {\"model\": \"%s\", \"bucket-mb\": 0.3, \"processes\": 0, %s}, "
             "\"security\": \"%s\"}",
             story->model, story->option, story->security != NULL ? story->security : "");
    temp_folder_write(folder, "job.json", text, strlen(text));
    snprintf(text, sizeof(text), "{\"all_reduce\": \"ring\"}");
    temp_folder_write(folder, "details.json", text, strlen(text));
    write_part(story, folder, "ps", 0);
    for (uint32_t i = 0; i < story->workers; i++) {
        write_part(story, folder, "worker", i);
    }
    return folder;
}
