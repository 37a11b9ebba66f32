/* Tests of what Slurm says of an allocation. */
#include "deploy/hosts/allocation.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static struct allocation allocation;
static char error[OPTION_ERROR_BYTES];

/* "NAME=VALUE" lines in the place of the environment. */
static const char *variables;

static char *get(const char *name)
{
    static char values[4][256];
    static unsigned turn;
    size_t size = strlen(name);
    for (const char *at = variables; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, name, size) == 0 && at[size] == '=') {
            char *value = values[turn++ % 4];
            snprintf(value, sizeof(values[0]), "%.*s", (int)strcspn(at + size + 1, "\n"),
                     at + size + 1);
            return value;
        }
    }
    return NULL;
}

#define JOB "SLURM_JOB_ID=12\nSLURM_JOB_NODELIST=n[1-3]\n"

static enum status make(const char *text, const char *names)
{
    variables = text;
    return allocation_make(get, names, false, &allocation, error);
}

static void a_job_with_its_nodes_is_an_allocation(void **state)
{
    (void)state;
    variables = JOB;
    assert_true(allocation_is_there(get));
    variables = "SLURM_PROCID=0\nSLURM_JOB_ID=12\n";
    assert_false(allocation_is_there(get));
    variables = "SLURM_JOB_ID=\nSLURM_JOB_NODELIST=\n";
    assert_false(allocation_is_there(get));
}

static void each_node_takes_as_many_workers_as_it_has_tasks(void **state)
{
    (void)state;
    assert_int_equal(make(JOB "SLURM_NTASKS=5\nSLURM_TASKS_PER_NODE=2(x2),1\n", "n1\nn2\nn3\n"),
                     STATUS_OK);
    assert_string_equal(allocation.job, "12");
    assert_string_equal(allocation.own, "");
    assert_int_equal(allocation.hosts.count, 3);
    assert_string_equal(allocation.hosts.list[2].name, "n3");
    assert_int_equal(allocation.hosts.list[0].slots, 2);
    assert_int_equal(allocation.hosts.list[1].slots, 2);
    assert_int_equal(allocation.hosts.list[2].slots, 1);
    assert_int_equal(make(JOB "SLURM_NTASKS_PER_NODE=4\nSLURM_TASKS_PER_NODE=4\n", "n1\n"),
                     STATUS_OK);
    assert_int_equal(hosts_slots(&allocation.hosts), 4);
}

static void tasks_in_all_may_be_fewer_than_those_that_nodes_have_room_for(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t slots[3];
    } cases[] = {
        {JOB "SLURM_NTASKS=4\nSLURM_TASKS_PER_NODE=2(x3)\n", {2, 1, 1}},
        {JOB "SLURM_NTASKS=5\nSLURM_TASKS_PER_NODE=4(x3)\n", {3, 1, 1}},
        {JOB "SLURM_NTASKS=3\nSLURM_TASKS_PER_NODE=9,1,2\n", {1, 1, 1}},
        {JOB "SLURM_NTASKS=11\nSLURM_TASKS_PER_NODE=4(x3)\n", {4, 4, 3}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(make(cases[i].text, "n1\nn2\nn3\n"), STATUS_OK);
        for (size_t node = 0; node < 3; node++) {
            assert_int_equal(allocation.hosts.list[node].slots, cases[i].slots[node]);
        }
    }
}

static void without_tasks_a_node_takes_a_worker_for_each_gpu_or_one(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t slots;
    } cases[] = {
        {JOB "SLURM_TASKS_PER_NODE=64(x3)\n", 1}, // its cores, which nobody asked tasks for
        {JOB "SLURM_GPUS_PER_NODE=4\nSLURM_TASKS_PER_NODE=64(x3)\n", 4},
        {JOB "SLURM_GPUS_PER_NODE=a100:2,v100:1\n", 3},
        {JOB "SLURM_GPUS_ON_NODE=2\n", 2},
        {JOB "SLURM_GPUS_PER_NODE=many\n", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(make(cases[i].text, "n1\nn2\nn3\n"), STATUS_OK);
        assert_int_equal(allocation.hosts.list[1].slots, cases[i].slots);
    }
}

static void the_node_that_we_run_on_is_known(void **state)
{
    (void)state;
    assert_int_equal(make(JOB "SLURMD_NODENAME=n2\n", "n1\nn2\n"), STATUS_OK);
    assert_string_equal(allocation.own, "n2");
    assert_int_equal(make(JOB "SLURMD_NODENAME=n7\n", "n1\nn2\n"), STATUS_OK);
    assert_string_equal(allocation.own, "");
}

static void gpus_that_are_not_given_by_node_must_be_asked_for(void **state)
{
    (void)state;
    assert_int_equal(make(JOB "SLURM_GPUS_ON_NODE=2\nSLURM_GPUS_PER_NODE=2\n", "n1\n"), STATUS_OK);
    assert_string_equal(allocation.gpus, "");
    assert_int_equal(make(JOB "SLURM_GPUS_ON_NODE=2\nSLURM_GPUS_PER_TASK=1\n", "n1\n"), STATUS_OK);
    assert_string_equal(allocation.gpus, "gpu:2");
    assert_int_equal(make(JOB "SLURM_GPUS_ON_NODE=4\nSLURM_GPUS=8\n", "n1\n"), STATUS_OK);
    assert_string_equal(allocation.gpus, "gpu:4");
}

static void what_contradicts_itself_is_refused_with_what_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {JOB "SLURM_NTASKS=4\nSLURM_TASKS_PER_NODE=2(x2)\n", "does not fit the 3 nodes"},
        {JOB "SLURM_NTASKS=1\nSLURM_TASKS_PER_NODE=1\nSLURM_STEP_ID=0\n", "this step of srun"},
        {JOB "SLURM_NTASKS=4\n", "SLURM_TASKS_PER_NODE (not set)"},
        {JOB "SLURM_NTASKS=4\nSLURM_TASKS_PER_NODE=2(x3\n", "SLURM_TASKS_PER_NODE (2(x3)"},
        {JOB "SLURM_NTASKS=4\nSLURM_TASKS_PER_NODE=2(x300)\n", "SLURM_TASKS_PER_NODE"},
        {JOB "SLURM_NTASKS=4\nSLURM_TASKS_PER_NODE=0(x3)\n", "SLURM_TASKS_PER_NODE"},
        {JOB "SLURM_NTASKS=4\nSLURM_TASKS_PER_NODE=2x,1,1\n", "SLURM_TASKS_PER_NODE"},
        {JOB "SLURM_NTASKS=7\nSLURM_TASKS_PER_NODE=2(x3)\n", "SLURM_NTASKS is 7"},
        {JOB "SLURM_NTASKS=2\nSLURM_TASKS_PER_NODE=2(x3)\n", "SLURM_NTASKS is 2"},
        {JOB "SLURM_NTASKS=all\nSLURM_TASKS_PER_NODE=2(x3)\n", "SLURM_NTASKS is all"},
        {JOB "SLURM_HET_SIZE=2\n", "heterogeneous Slurm job"},
        {JOB "SLURM_STEP_ID=0\nSLURM_STEP_NUM_TASKS=4\n", "started this launcher 4 times"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(make(wrong[i].text, "n1\nn2\nn3\n"), STATUS_INVALID);
        if (strstr(error, wrong[i].says) == NULL) {
            fail_msg("'%s': %s", wrong[i].text, error);
        }
    }
    // Who names hosts says what each takes.
    variables = JOB "SLURM_NTASKS=1\nSLURM_TASKS_PER_NODE=1\nSLURM_STEP_ID=0\n";
    assert_int_equal(allocation_make(get, "n1\nn2\nn3\n", true, &allocation, error), STATUS_OK);
    // The shell that salloc may run in a step of its own has the job's tasks.
    assert_int_equal(make(JOB "SLURM_STEP_ID=4294967290\nSLURM_STEP_NUM_TASKS=1\nSLURM_NTASKS=5\n"
                              "SLURM_TASKS_PER_NODE=3,1(x2)\n",
                          "n1\nn2\nn3\n"),
                     STATUS_OK);
    assert_int_equal(allocation.hosts.list[0].slots, 3);
}

static void names_that_are_none_or_too_many_are_refused(void **state)
{
    (void)state;
    assert_int_equal(make(JOB, "n1\n-oProxyCommand\n"), STATUS_INVALID);
    static char names[(HOSTS_MAX + 1) * 8];
    size_t used = 0;
    for (unsigned i = 0; i <= HOSTS_MAX; i++) {
        used += (size_t)snprintf(names + used, sizeof(names) - used, "n%u\n", i);
    }
    assert_int_equal(make(JOB "SLURM_NTASKS=257\nSLURM_TASKS_PER_NODE=1(x256),1\n", names),
                     STATUS_INVALID);
    assert_non_null(strstr(error, "more than 256 hosts"));
}

static void a_host_outside_of_the_allocation_is_named(void **state)
{
    (void)state;
    static struct hosts hosts;
    assert_int_equal(make(JOB, "n1\nn2\nn3\n"), STATUS_OK);
    hosts.count = 0;
    assert_int_equal(hosts_parse(&hosts, "n3:4,n1", error), STATUS_OK);
    assert_int_equal(allocation_check(&allocation, &hosts, error), STATUS_OK);
    assert_int_equal(hosts_add_idle(&hosts, "head", error), STATUS_OK);
    assert_int_equal(allocation_check(&allocation, &hosts, error), STATUS_INVALID);
    assert_non_null(strstr(error, "head is not a node of this Slurm job, 12, which has 3 from n1 "
                                  "to n3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_with_its_nodes_is_an_allocation),
        cmocka_unit_test(each_node_takes_as_many_workers_as_it_has_tasks),
        cmocka_unit_test(tasks_in_all_may_be_fewer_than_those_that_nodes_have_room_for),
        cmocka_unit_test(without_tasks_a_node_takes_a_worker_for_each_gpu_or_one),
        cmocka_unit_test(the_node_that_we_run_on_is_known),
        cmocka_unit_test(gpus_that_are_not_given_by_node_must_be_asked_for),
        cmocka_unit_test(what_contradicts_itself_is_refused_with_what_it_is),
        cmocka_unit_test(names_that_are_none_or_too_many_are_refused),
        cmocka_unit_test(a_host_outside_of_the_allocation_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
