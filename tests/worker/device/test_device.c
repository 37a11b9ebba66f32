/* The table of backends: which one a name means, and what is refused. */
#include "worker/device/device.h"

#include <stdio.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static const struct device_options options = {.threads = 1};

static bool build_has(const char *name)
{
    for (const struct device_ops *const *ops = device_backends(); *ops != NULL; ops++) {
        if (strcmp((*ops)->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void every_build_has_ref_as_its_slowest(void **state)
{
    (void)state;
    const struct device_ops *const *ops = device_backends();
    size_t count = 0;
    while (ops[count] != NULL) {
        count++;
    }
    assert_true(count >= 1);
    assert_string_equal(ops[count - 1]->name, "ref");
}

static void every_backend_is_complete_and_says_what_it_is(void **state)
{
    (void)state;
    for (const struct device_ops *const *ops = device_backends(); *ops != NULL; ops++) {
        assert_true((*ops)->name[0] != '\0' && (*ops)->summary[0] != '\0');
        assert_non_null((*ops)->is_available);
        assert_non_null((*ops)->open);
        assert_non_null((*ops)->compile);
        assert_non_null((*ops)->describe);
        assert_non_null((*ops)->close);
    }
}

static void every_available_backend_opens_by_its_name(void **state)
{
    (void)state;
    for (const struct device_ops *const *ops = device_backends(); *ops != NULL; ops++) {
        char why[256];
        if (!(*ops)->is_available(why, sizeof(why))) {
            assert_true(why[0] != '\0');
            continue;
        }
        struct device *device;
        assert_int_equal(device_open((*ops)->name, &options, &device), STATUS_OK);
        assert_ptr_equal(device->ops, *ops);
        device_close(device);
    }
}

static void auto_is_the_first_available(void **state)
{
    (void)state;
    const struct device_ops *const *first = device_backends();
    char why[256];
    while (!(*first)->is_available(why, sizeof(why))) {
        first++;
    }
    struct device *device;
    assert_int_equal(device_open("auto", &options, &device), STATUS_OK);
    assert_ptr_equal(device->ops, *first);
    device_close(device);
}

static void an_unknown_name_is_refused_and_writes_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "gpu",
        "REF",
        "ref ",
        "re",
        "reff",
        ":",
        ":0",
        "ref:",
        "ref:0",
        "cpu:1",
        "cuda:",
        "cuda:x",
        "cuda:-1",
        "cuda:1x",
        "auto:0",
        "cuda:0:1",
        "cuda:99999",
        "a-name-that-is-longer-than-any-backends",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct device *device = NULL;
        assert_int_equal(device_open(names[i], &options, &device), STATUS_INVALID);
        assert_null(device);
    }
}

static void a_backend_that_is_not_built_is_not_supported(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "cuda", "cuda:0", "cuda:15"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char backend[16];
        snprintf(backend, sizeof(backend), "%.*s", (int)strcspn(names[i], ":"), names[i]);
        struct device *device = NULL;
        if (!build_has(backend)) {
            assert_int_equal(device_open(names[i], &options, &device), STATUS_UNSUPPORTED);
            assert_null(device);
        }
    }
}

static void nothing_is_closed_and_destroyed_without_harm(void **state)
{
    (void)state;
    device_close(NULL);
    program_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_build_has_ref_as_its_slowest),
        cmocka_unit_test(every_backend_is_complete_and_says_what_it_is),
        cmocka_unit_test(every_available_backend_opens_by_its_name),
        cmocka_unit_test(auto_is_the_first_available),
        cmocka_unit_test(an_unknown_name_is_refused_and_writes_nothing),
        cmocka_unit_test(a_backend_that_is_not_built_is_not_supported),
        cmocka_unit_test(nothing_is_closed_and_destroyed_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
