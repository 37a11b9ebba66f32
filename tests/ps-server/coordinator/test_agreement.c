/* Tests of what workers have to agree on: NCCL, and the optimizers of their own programs. */
#include "tests/support/common/sample_job.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void expect_all_reduce(const struct story *story, const char *expected)
{
    char text[128];
    assert_true(coordinator_all_reduce(&story->coordinator, text, sizeof(text)));
    assert_string_equal(text, expected);
}

/* Two workers that are to go by NCCL; the first is ready, with version 2.27.7 on GPU 1. */
static void open_nccl(struct story *story)
{
    static const struct wire_nccl first = {
        .version = 22707, .has_id = true, .id = {1, 2, 3}, .has_gpu = true, .gpu = {1}};
    story_open(story, "ring", 2, 0);
    story->job.all_reduce = ALL_REDUCE_CHOICE_NCCL;
    for (uint32_t i = 0; i < 2; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
    }
    story_nccl = &first;
    story_ready(story, 1, ROLE_WORKER, "first", &story_layout);
}

/* The second one says something of NCCL. */
static void give_second(struct story *story, const struct wire_nccl *second)
{
    story_nccl = second;
    story_ready(story, 2, ROLE_WORKER, "first", &story_layout);
    story_nccl = NULL;
}

static void the_id_of_rank_0_goes_to_all_workers_with_their_start(void **state)
{
    (void)state;
    struct story story;
    open_nccl(&story);
    give_second(&story, &(const struct wire_nccl){.version = 22707, .has_gpu = true, .gpu = {2}});
    assert_int_equal(story_last_kind(&story), MESSAGE_START); // nobody was to try anything
    assert_string_equal(story_last_text(&story), "");
    expect_all_reduce(&story, "nccl 2.27.7");
    assert_true(story.coordinator.topology.nccl.has_id);
    assert_int_equal(story.coordinator.topology.nccl.id[2], 3);
    coordinator_finish(&story.coordinator);
}

static void workers_that_cannot_go_together_by_nccl_are_named(void **state)
{
    (void)state;
    static const struct {
        struct wire_nccl second;
        const char *sentence;
    } cases[] = {
        {{.version = 22707, .has_gpu = true, .gpu = {1}},
         "worker 1 (host node): it is on the same GPU as worker 0"},
        {{.version = 21903, .has_gpu = true, .gpu = {2}},
         "worker 1 (host node): it has NCCL 2.19.3, and worker 0 has 2.27.7"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct story story;
        open_nccl(&story);
        give_second(&story, &cases[i].second);
        assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
        if (strstr(story_last_text(&story), cases[i].sentence) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", cases[i].sentence, story_last_text(&story));
        }
        coordinator_finish(&story.coordinator);
    }
}

/* None of ours does that: another one is waited for, until the deadline. */
static void a_worker_without_what_nccl_needs_is_not_ready(void **state)
{
    (void)state;
    static const struct wire_nccl cases[] = {
        {.version = 22707},
        {.version = 22707, .has_id = true, .has_gpu = true, .gpu = {2}}, // which is rank 0's to say
    };
    for (size_t i = 0; i <= sizeof(cases) / sizeof(cases[0]); i++) {
        struct story story;
        open_nccl(&story);
        give_second(&story, i < 2 ? &cases[i] : NULL);
        assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
        assert_int_equal(story.coordinator.membership.workers[1].state, SLOT_JOINED);
        coordinator_finish(&story.coordinator);
    }
}

/* Two workers with a program of its own; each says something of its optimizer. */
static void give_optimizers(struct story *story, const char *mode, const char *first,
                            const char *second)
{
    story_open(story, mode, 2, strcmp(mode, "ring") != 0);
    char setting[32];
    snprintf(setting, sizeof(setting), "mode=%s", mode);
    story->job = sample_job_resolved(SAMPLE_JOB("model=external:mine", "workers=2", setting));
    for (uint32_t i = 0; i < 2; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
    }
    story_optimizer = first;
    story_ready(story, 1, ROLE_WORKER, "first", &story_layout);
    story_optimizer = second;
    if (story->coordinator.state == COORDINATOR_GATHERING) {
        story_ready(story, 2, ROLE_WORKER, "first", &story_layout);
    }
    story_optimizer = NULL;
}

/* The text of the last START that a peer got. */
static const char *start_of(const struct story *story, uint64_t peer)
{
    for (uint32_t i = story->transcript.sent_count; i-- > 0;) {
        if (story->transcript.sent[i].peer == peer &&
            story->transcript.sent[i].kind == MESSAGE_START) {
            return story->transcript.sent[i].text;
        }
    }
    return "";
}

#define SGD "optimizer=sgd\nlr=0.1\nmomentum=0.9\n"

static void servers_start_with_the_optimizer_that_all_programs_say(void **state)
{
    (void)state;
    struct story story;
    give_optimizers(&story, "ps-sync", SGD, SGD);
    story_join(&story, 3, ROLE_SERVER, 0);
    story_ready(&story, 3, ROLE_SERVER, "", &story_layout);
    assert_int_equal(story.coordinator.state, COORDINATOR_CONNECTING);
    assert_string_equal(start_of(&story, 3), SGD);
    assert_int_equal(story.coordinator.job->optimizer, OPTIMIZER_SGD);
    assert_int_equal(story.job.optimizer, OPTIMIZER_AUTO); // which is borrowed
    coordinator_finish(&story.coordinator);
}

/* Each line of it is one that an option could have. */
static void an_optimizer_of_too_many_lines_is_refused_in_words(void **state)
{
    (void)state;
    char text[640] = "optimizer=sgd\n";
    for (size_t used = strlen(text); used + 7 < sizeof(text); used += 7) {
        snprintf(text + used, sizeof(text) - used, "lr=0.1\n");
    }
    struct story story;
    give_optimizers(&story, "ps-sync", text, NULL);
    assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
    assert_string_equal(story_last_text(&story),
                        "worker 0 (host node): what its program says of its optimizer is too long");
    coordinator_finish(&story.coordinator);
}

static void programs_whose_optimizers_differ_are_named_with_the_value(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *first, *second, *sentence;
    } cases[] = {
        {"ps-sync", SGD, "optimizer=sgd\nlr=0.1\nmomentum=0.8\n",
         "worker 1 (host node): its optimizer differs: it has momentum=0.8, and the others have "
         "momentum=0.9"},
        {"ring", SGD, "optimizer=adam\nlr=0.1\nmomentum=0.9\n",
         "it has optimizer=adam, and the others have optimizer=sgd"},
        {"ring", JOB_OPTIMIZER_OWN, SGD,
         "it has an optimizer that the program has named, and the others have updates that the "
         "program makes itself"},
        {"ring", SGD, "",
         "it has the optimizer of the job's options, and the others have an optimizer that the "
         "program has named"},
        {"ring", SGD, SGD "beta1=0.5\n",
         "it has beta1=0.5, and the others have an optimizer that the program has named"},
        {"ring", SGD, "optimizer=\x1b[2J\n", "it has optimizer=?[2J, and"},
        {"ps-sync", JOB_OPTIMIZER_OWN, NULL,
         "worker 0 (host node): its program makes the updates itself, and in mode ps-sync servers "
         "do, unless --server-optimizer is none"},
        {"ps-async", JOB_OPTIMIZER_OWN, NULL, "itself, and in mode ps-async servers do"},
        {"ring", JOB_OPTIMIZER_OWN "compress=fp16\n", JOB_OPTIMIZER_OWN,
         "worker 1 (host node): its compression of gradients differs: it has none, and the others "
         "have fp16"},
        {"ps-sync", SGD "compress=fp16\n", SGD "compress=\x1b[2J\n",
         "it has ?[2J, and the others have fp16"},
        {"ps-sync", SGD "compress=fp16\n", "optimizer=sgd\nlr=0.1\nmomentum=0.8\n",
         "its optimizer differs: it has momentum=0.8, and the others have momentum=0.9"},
        {"ps-sync", NULL, NULL, "worker 0 (host node): neither --optimizer nor its program says"},
        {"ps-sync", "optimizer=\x1b[2J\n", NULL, "worker 0 (host node): "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct story story;
        give_optimizers(&story, cases[i].mode, cases[i].first, cases[i].second);
        assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
        if (strstr(story_last_text(&story), cases[i].sentence) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", cases[i].sentence, story_last_text(&story));
        }
        assert_null(strchr(story_last_text(&story), '\x1b'));
        coordinator_finish(&story.coordinator);
    }
}

/* Two workers with these tensors; the layouts have other digests. */
static void check_models(const char *first, const char *second, const char *sentence)
{
    struct story story;
    struct layout other = story_layout;
    other.digest++;
    story_open(&story, "ring", 2, 0);
    for (uint32_t i = 0; i < 2; i++) {
        story_join(&story, 1 + i, ROLE_WORKER, i);
    }
    story_tensors = first;
    story_ready(&story, 1, ROLE_WORKER, "first", &story_layout);
    story_tensors = second;
    story_ready(&story, 2, ROLE_WORKER, "first", &other);
    story_tensors = NULL;
    assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
    if (strstr(story_last_text(&story), sentence) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", sentence, story_last_text(&story));
    }
    assert_null(strchr(story_last_text(&story), '\x1b'));
    coordinator_finish(&story.coordinator);
}

static void models_that_differ_are_told_by_their_first_tensor(void **state)
{
    (void)state;
    check_models("8 a\n60 fc.weight\n", "8 a\n80 fc.weight\n",
                 "; the first to differ is tensor 2: it has fc.weight of 80 values, and the others "
                 "have fc.weight of 60 values");
    check_models("8 a\n", "8 a\n9 b c\n",
                 "in 2 tensors, and the others have 10 in 1; the first to differ is tensor 2: it "
                 "has b c of 9 values, and the others have none");
    check_models("8 a\n", "8 \x1b[2J\n", "it has ?[2J of 8 values, and the others have a of 8");
    check_models("8 a\n", "\n", "tensor 1: it has another one, and the others have a of 8 values");
    check_models("8 a\n", "8 a\n",
                 "in 1 tensor, and the others have 10 in 1; they differ further on, in the name, "
                 "size or order of a tensor");
    check_models("8 a\n", NULL, "(layout digest ");
    char name[400] = "7 ";
    memset(name + 2, 'x', sizeof(name) - 4);
    name[sizeof(name) - 2] = '\n';
    name[sizeof(name) - 1] = '\0';
    check_models("8 a\n", name, "xxx of 7 values, and the others have a of 8 values");
    char other[sizeof(name)];
    memcpy(other, name, sizeof(other));
    other[sizeof(other) - 3] = 'y';
    check_models(other, name, "; the first to differ is tensor 1, by the end of its name: xxx");
    // A list that ends before the tensors do: of its own, there are as many as it has lines.
    check_models("8 a\n9 b\n", "8 a\n\n", "it has another one, and the others have b of 9 values");
}

/* Groups of the parameters of a model of story_layout. */
static struct optimizer_groups groups_of(const struct optimizer_group *rows, const uint64_t *ends)
{
    static const uint32_t members[2] = {0, 1};
    return (struct optimizer_groups){.groups = rows,
                                     .group_count = 2,
                                     .run_count = 2,
                                     .run_ends = ends,
                                     .run_groups = members,
                                     .is_relative = true};
}

/* Two workers of ps-sync that say SGD, and groups. */
static void give_groups(struct story *story, const struct optimizer_groups *first,
                        const struct optimizer_groups *second)
{
    story_open(story, "ps-sync", 2, 1);
    story->job =
        sample_job_resolved(SAMPLE_JOB("model=external:mine", "workers=2", "mode=ps-sync"));
    story_optimizer = SGD;
    for (uint32_t i = 0; i < 2; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
    }
    story_groups = first;
    story_ready(story, 1, ROLE_WORKER, "first", &story_layout);
    story_groups = second;
    if (story->coordinator.state == COORDINATOR_GATHERING) {
        story_ready(story, 2, ROLE_WORKER, "first", &story_layout);
    }
    story_optimizer = NULL;
    story_groups = NULL;
}

static void programs_whose_groups_differ_are_named_with_the_value(void **state)
{
    (void)state;
    const uint64_t count = story_layout.value_count;
    const uint64_t ends[2] = {2, count}, others[2] = {1, count}, beyond[2] = {2, count + 1};
    const struct optimizer_group rows[2] = {{1, {0}}, {0.5, {0}}},
                                 slow[2] = {{1, {0}}, {0.25, {0}}},
                                 wild[2] = {{1, {0}}, {0.5, {.weight_decay = -1}}};
    const struct optimizer_groups same = groups_of(rows, ends), other = groups_of(slow, ends),
                                  moved = groups_of(rows, others), longer = groups_of(rows, beyond),
                                  unfit = groups_of(wild, ends);
    const struct {
        const struct optimizer_groups *first, *second;
        const char *sentence; // "": they agree
    } cases[] = {
        {&same, &same, ""},
        {&same, &other,
         "worker 1 (host node): its optimizer differs: in group 1 it has lr=0.025, "
         "and the others have lr=0.05"},
        {&same, &moved, "its groups have other parameters than those of the others, from value 1"},
        {&same, NULL, "it has 1 group of parameters, and the others have 2"},
        {NULL, &same, "it has 2 groups of parameters, and the others have 1"},
        {&longer, NULL, "worker 0 (host node): what its program says is no groups of its"},
        {&unfit, NULL, "what its program says is no groups of its parameters"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct story story;
        give_groups(&story, cases[i].first, cases[i].second);
        if (cases[i].sentence[0] == '\0') {
            assert_int_equal(story.coordinator.state, COORDINATOR_GATHERING);
            assert_int_equal(story.coordinator.groups->group_count, 2);
        } else if (strstr(story_last_text(&story), cases[i].sentence) == NULL) {
            fail_msg("'%s' is not '%s'", story_last_text(&story), cases[i].sentence);
        }
        coordinator_finish(&story.coordinator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_id_of_rank_0_goes_to_all_workers_with_their_start),
        cmocka_unit_test(workers_that_cannot_go_together_by_nccl_are_named),
        cmocka_unit_test(a_worker_without_what_nccl_needs_is_not_ready),
        cmocka_unit_test(models_that_differ_are_told_by_their_first_tensor),
        cmocka_unit_test(servers_start_with_the_optimizer_that_all_programs_say),
        cmocka_unit_test(an_optimizer_of_too_many_lines_is_refused_in_words),
        cmocka_unit_test(programs_whose_optimizers_differ_are_named_with_the_value),
        cmocka_unit_test(programs_whose_groups_differ_are_named_with_the_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
