/* Tests of a coordinator whose process holds no shard (--coordinator-role alone). */
#include "ps-server/coordinator/generation.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

/* Its servers are processes 1 and 2. */
static void a_server_of_its_own_is_done_without_as_long_as_there_is_another(void **state)
{
    (void)state;
    for (uint32_t servers = 1; servers <= 2; servers++) {
        struct story story;
        struct generation next;
        story_open(&story, "ps-sync", 2, servers);
        struct coordinator_port port = story.coordinator.port;
        coordinator_finish(&story.coordinator);
        story.job.on_loss = ON_LOSS_REDEAL;
        story.job.min_workers = 1;
        story.job.coordinator_role = COORDINATOR_APART;
        assert_int_equal(coordinator_init(&story.coordinator, &story.job, "the job", &port, 0),
                         STATUS_OK);
        for (uint32_t i = 0; i < servers; i++) {
            story_join(&story, 10 + i, ROLE_SERVER, 1 + i);
            story_ready(&story, 10 + i, ROLE_SERVER, "", NULL);
        }
        for (uint32_t i = 0; i < 2; i++) {
            story_join(&story, 1 + i, ROLE_WORKER, i);
            story_ready(&story, 1 + i, ROLE_WORKER, "first", &story_layout);
        }
        assert_int_equal(story.coordinator.state, COORDINATOR_CONNECTING);
        const struct message leave = {
            .kind = MESSAGE_LEAVE, .reason = STATUS_IO, .text = "it has a reason"};
        story_give(&story, 10, leave, 100);
        if (servers == 2) {
            assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
            assert_int_equal(next.server_count, 1);
            assert_int_equal(next.servers[0].number, 2);
            generation_finish(&next);
        }
        assert_int_equal(story.coordinator.verdict, servers == 2 ? STATUS_AGAIN : STATUS_IO);
        assert_non_null(
            strstr(story.coordinator.reason, servers == 2 ? "server 1" : "no server is left"));
        coordinator_finish(&story.coordinator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_of_its_own_is_done_without_as_long_as_there_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
