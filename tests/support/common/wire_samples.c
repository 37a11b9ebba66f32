/* A message of each kind, and its journey over the wire. */
#include "tests/support/common/wire_samples.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

struct wire_scratch wire_sample_scratch;
unsigned char wire_sample_header[WIRE_HEADER_BYTES];

static const float values[4] = {1.0f, -2.0f, 3.5f, 0.25f};
static const struct wire_member member = {
    .role = ROLE_SERVER,
    .has_rank = true,
    .rank = 3,
    .host_id = 0xABCDEF0123456789,
    .host = "node-7",
    .process_id = 4711,
    .endpoints = "0123456789abcdef tcp://127.0.0.1:4000",
    .params_digest = "00ff",
    .train_samples = 50000,
    .test_samples = 10000,
    .device = "cpu",
    .optimizer = "optimizer=sgd",
    .figures = "0.5,0.25,1/0.5,1,2",
    .loopback = "127.0.0.1",
    .launch = 17,
    .data_digest = 0x1234,
    .parameters = 61706,
    .cores = 64,
    .choices_digest = 0x5678,
    .tensor_count = 2,
    .tensors = "8 weight\n2 bias\n",
};
static const struct wire_report report = {
    .steps = 10,
    .images = 320,
    .loss_sum = 12.5,
    .compute_ns = 1,
    .exchange_wait_ns = 2,
    .input_wait_ns = 3,
    .loader_threads = 4,
    .total_ns = 6,
    .copy_ns = 4,
    .wire_ns = 5,
    .bytes_sent = 7,
    .bytes_received = 8,
    .epoch = 13,
    .closes_period = true,
    .period = 14,
    .test_images = 100,
    .test_correct = 60,
    .test_loss_sum = 99.5,
    .warm_images = 11,
    .warm_ns = 12,
    .staleness_sum = 1300.5,
    .staleness_max = 1300,
    .rate = 0.04,
    .images_dropped = 3.5,
    .transports = WIRE_TRANSPORT_SHM | WIRE_TRANSPORT_TCP,
};
static const uint64_t images[2] = {5, 1ull << 40};
static const double loss_sums[2] = {0.1, -7};
static const struct wire_slices slices = {.count = 2, .images = images, .loss_sums = loss_sums};
static struct layout layout = {
    .value_count = 30,
    .bucket_count = 2,
    .buckets = {{10, 20}, {0, 10}},
    .digest = 0x1122334455667788,
};

static const struct optimizer_group group_rows[2] = {
    {.rate = 1},
    {0.5, {.momentum = 1, .beta1 = 2, .beta2 = 3, .decay = 4, .epsilon = 5, .weight_decay = 6}},
};
static const uint64_t run_ends[3] = {7, 8, 30};
static const uint32_t run_groups[3] = {1, 0, 1};
static const struct optimizer_groups groups_of_model = {
    .groups = group_rows,
    .group_count = 2,
    .run_count = 3,
    .run_ends = run_ends,
    .run_groups = run_groups,
    .is_relative = true,
};
static const struct optimizer_groups groups_of_push = {.groups = group_rows, .group_count = 2};
static const struct wire_start start = {
    .phase = 6,
    .train_samples = 60000,
    .all_reduce = ALL_REDUCE_DIRECT,
    .limits = {12, UINT64_MAX},
    .bucket_bytes = 13,
};
static const struct wire_nccl nccl_of_member = {
    .version = 22707,
    .has_id = true,
    .id = {5, 6, 7, [WIRE_NCCL_ID_BYTES - 1] = 8},
    .has_gpu = true,
    .gpu = {9, [WIRE_NCCL_GPU_BYTES - 1] = 10},
};
static const struct wire_nccl nccl_of_job = {.version = 22707, .has_id = true, .id = {11}};
static const struct all_reduce_path path = {9, 11, 10};
static const struct wire_passed passed = {.phase = 7, .step_ns = 14};
static const struct wire_back back = {
    .begin_step = 30,
    .sum_round = 31,
    .snapshot_step = 32,
    .trained_ms = UINT64_MAX,
    .alone_ms = 33,
    .alone_step = 34,
    .commit_step = 35,
    .term = 36,
    .has_commit = true,
};
static const struct wire_decision decision = {.period = 5, .is_enough = true};
static const double numbers[2] = {0.5, -3};
static const struct wire_sum sum = {.round = 19, .count = 2, .values = numbers};
static const struct wire_outcome outcome = {.staleness = 8, .rate = 0.25, .is_late = true};
static const struct wire_clock clock_sample = {.asked_ns = 1u << 20, .told_ns = UINT64_MAX};
static const struct wire_hello hello = {.lane = 16, .is_far = true};
static const struct wire_probe probe = {.round = 18, .is_answer = true};
static const struct wire_offer offer = {
    .region = {4712, 9, 1 << 20, 0xFEDCBA9876543210},
    .has_mail = true,
    .has_share = true,
    .share = {1, 2, 3, [VECTOR_SHARE_BYTES - 1] = 4},
    .mail = {.region = {1, 2, 3, 4}, .index = 63},
};
static const struct wire_piece piece = {.vector = "rank-3/statistics", .total = 44};
static const struct wire_collect collect = {.credits = 5};
static const uint64_t given[3] = {1, 0, UINT64_MAX};
static const struct wire_wait wait_of_member = {
    .role = ROLE_SERVER,
    .index = 22,
    .what = WIRE_WAIT_GRADIENTS,
    .waited_ms = 23,
    .taken = 24,
    .given_count = 3,
    .given = given,
    .is_broken = true,
};
static const struct wire_loan loan = {.offset = 4096, .ticket = 17};
static const unsigned char seal_key[WIRE_SEAL_KEY_BYTES] = {1, 0, 255, 4};

struct message wire_sample(enum message_kind kind)
{
    struct message message = {
        .kind = kind,
        .job_id = 99,
        .rank = 2,
        .step = 1234567890123,
        .bucket = 1,
        .hop = 3,
        .vector = 7,
        .params_version = 15,
        .mark = 20,
        .patience_ms = 21,
        .reason = STATUS_MISMATCH,
        .text = "a sentence",
        .span = {40, kind == MESSAGE_RETURN ? 0 : 4},
    };
    if (kind == MESSAGE_JOIN || kind == MESSAGE_READY || kind == MESSAGE_DONE ||
        kind == MESSAGE_BACK) {
        message.member = &member;
    }
    if (kind == MESSAGE_READY || kind == MESSAGE_START || kind == MESSAGE_BACK) {
        message.layout = &layout;
    }
    if (kind == MESSAGE_REPORT || kind == MESSAGE_DONE || kind == MESSAGE_SNAPSHOT) {
        message.report = &report;
    }
    bool says_groups = kind == MESSAGE_READY || kind == MESSAGE_START || kind == MESSAGE_BACK;
    message.groups = says_groups ? &groups_of_model : kind == MESSAGE_PUSH ? &groups_of_push : NULL;
    message.slices = kind == MESSAGE_SNAPSHOT ? &slices : NULL;
    if (kind == MESSAGE_SEED || kind == MESSAGE_PUSH || kind == MESSAGE_PARAMS ||
        kind == MESSAGE_CHUNK || kind == MESSAGE_PROBE || kind == MESSAGE_PIECE) {
        message.values = values;
    }
    bool has_start = kind == MESSAGE_START || kind == MESSAGE_TRY || kind == MESSAGE_BACK;
    message.start = has_start ? &start : NULL;
    message.back = kind == MESSAGE_BACK ? &back : NULL;
    message.nccl = kind == MESSAGE_READY   ? &nccl_of_member
                   : kind == MESSAGE_START ? &nccl_of_job
                                           : NULL;
    message.path = kind == MESSAGE_TRIED ? &path : NULL;
    message.passed = kind == MESSAGE_PASSED ? &passed : NULL;
    message.decision = kind == MESSAGE_PROCEED ? &decision : NULL;
    message.sum = kind == MESSAGE_SUM || kind == MESSAGE_BACK ? &sum : NULL;
    message.outcome = kind == MESSAGE_PARAMS ? &outcome : NULL;
    message.clock = kind == MESSAGE_HEARTBEAT ? &clock_sample : NULL;
    message.hello = kind == MESSAGE_HELLO ? &hello : NULL;
    message.probe = kind == MESSAGE_PROBE ? &probe : NULL;
    message.offer = kind == MESSAGE_OFFER ? &offer : NULL;
    message.piece = kind == MESSAGE_PIECE || kind == MESSAGE_FETCH ? &piece : NULL;
    message.collect = kind == MESSAGE_COLLECT ? &collect : NULL;
    message.wait = kind == MESSAGE_HEARTBEAT ? &wait_of_member : NULL;
    message.loan = kind == MESSAGE_RETURN ? &loan : NULL;
    message.seal_key = kind == MESSAGE_WELCOME ? seal_key : NULL;
    return message;
}

size_t wire_sample_encode(const struct message *message)
{
    size_t size = 0;
    assert_int_equal(wire_encode(message, wire_sample_header, sizeof(wire_sample_header), &size),
                     STATUS_OK);
    return size;
}

enum status wire_sample_decode_as(size_t size, const void *payload, size_t payload_size,
                                  struct message *ret_message)
{
    uint32_t version;
    const struct wire_frames frames = {wire_sample_header, size, payload, payload_size};
    return wire_decode(&frames, &wire_sample_scratch, &version, ret_message);
}

enum status wire_sample_decode(const struct message *sent, size_t size, struct message *ret_message)
{
    const struct wire_payload payload = wire_payload(sent);
    return wire_sample_decode_as(size, payload.bytes, payload.size, ret_message);
}

struct message wire_sample_send(const struct message *sent)
{
    struct message got;
    assert_int_equal(wire_sample_decode(sent, wire_sample_encode(sent), &got), STATUS_OK);
    return got;
}
