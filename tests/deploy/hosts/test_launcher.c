/* Tests of what a launcher refuses before any host hears of the job. */
#include "deploy/hosts/launcher.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

/* Why a job of these hosts, none of which could be reached, does not begin. */
static const char *refusal_of(const char *mirror, const char *resume, const char *hosts,
                              const char *coordinator)
{
    static struct launcher launcher;
    static struct findings findings;
    static struct launcher_options options;
    static struct host_options host_options;
    options = (struct launcher_options){.bind = "127.0.0.1"};
    host_options = (struct host_options){.reach = REACH_SSH, .ssh = "no-such-program-for-ssh"};
    snprintf(options.mirror, sizeof(options.mirror), "%s", mirror);
    snprintf(options.resume, sizeof(options.resume), "%s", resume);
    snprintf(host_options.hosts, sizeof(host_options.hosts), "%s", hosts);
    snprintf(host_options.coordinator, sizeof(host_options.coordinator), "%s", coordinator);
    captured_log_begin();
    assert_int_equal(launcher_open(&launcher, &options, &host_options, &findings), STATUS_INVALID);
    return captured_log_end();
}

static const char *refusal(const char *mirror, const char *hosts, const char *coordinator)
{
    return refusal_of(mirror, "", hosts, coordinator);
}

static void a_mirror_in_memory_is_refused_where_the_coordinator_is_elsewhere(void **state)
{
    (void)state;
    const char *log = refusal("memory", "node1:1,localhost:1", "");
    assert_non_null(strstr(log, "--mirror memory needs the coordinator on this host"));
    assert_non_null(strstr(log, "it is on node1"));
    assert_non_null(strstr(log, "--mirror /dev/shm/NAME"));
    assert_non_null(strstr(log, "--coordinator localhost"));
}

static void a_mirror_in_memory_may_have_workers_elsewhere(void **state)
{
    static const char next[] = "there is no program no-such-program-for-ssh";
    (void)state;
    assert_non_null(strstr(refusal("memory", "node1:1,localhost:1", "localhost"), next));
    assert_non_null(strstr(refusal("memory", "node1:1", "localhost"), next));
    assert_non_null(strstr(refusal("/dev/shm/job", "node1:1,localhost:1", ""), next));
}

static void to_resume_is_refused_where_the_coordinator_is_elsewhere(void **state)
{
    static const char next[] = "there is no program no-such-program-for-ssh";
    (void)state;
    const char *log = refusal_of("", "auto", "node1:1,localhost:1", "");
    assert_non_null(strstr(log, "--resume auto needs the coordinator on this host"));
    assert_non_null(strstr(log, "it is on node1"));
    assert_non_null(strstr(log, "--coordinator localhost"));
    assert_non_null(
        strstr(refusal_of("", "runs/a", "localhost:1,node1:1", "node1"), "--resume runs/a"));
    assert_non_null(strstr(refusal_of("", "auto", "node1:1,localhost:1", "localhost"), next));
    assert_non_null(strstr(refusal_of("", "auto", "localhost:1,node1:1", ""), next));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_mirror_in_memory_is_refused_where_the_coordinator_is_elsewhere,
                                  captured_log_drop),
        cmocka_unit_test_teardown(a_mirror_in_memory_may_have_workers_elsewhere, captured_log_drop),
        cmocka_unit_test_teardown(to_resume_is_refused_where_the_coordinator_is_elsewhere,
                                  captured_log_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
