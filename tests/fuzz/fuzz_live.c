/* Fuzzes what the live page and `ringside watch` read: a state that is taken comes back the same
 * from the text that is written of it, and a request's host that is taken has no other name in it.
 *
 * The first byte of an input says whether the rest is a state or a host. */
#include "common/live/live_json.h"
#include "common/live/live_request.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_state(const char *text, size_t size)
{
    static struct live_state first, second;
    if (live_json_read(text, size, &first) != STATUS_OK) {
        return;
    }
    char *once = live_json_text(&first);
    assert(once != NULL);
    assert(live_json_read(once, strlen(once), &second) == STATUS_OK);
    char *twice = live_json_text(&second);
    assert(twice != NULL && strcmp(once, twice) == 0);
    free(once);
    free(twice);
    live_state_finish(&first);
    live_state_finish(&second);
}

static void check_host(const char *host)
{
    static const char name[] = "node7";
    if (live_host_is_ours(host, name)) {
        size_t size = strcspn(host, host[0] == '[' ? "]" : ":");
        bool is_address = host[0] == '[' || strspn(host, "0123456789.") == size;
        bool is_name = (size == 9 && strncasecmp(host, "localhost", 9) == 0) ||
                       (size == 5 && strncasecmp(host, name, 5) == 0);
        assert(is_address || is_name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *text = malloc(size);
    assert(text != NULL);
    memcpy(text, bytes + 1, size - 1);
    text[size - 1] = '\0';
    if (bytes[0] == 'h') {
        check_host(text);
    } else {
        check_state(text, size - 1);
    }
    free(text);
    return 0;
}
