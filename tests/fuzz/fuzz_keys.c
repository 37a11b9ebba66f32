/* What a key file may hold. Properties beyond not crashing: what is taken has a text that is taken
 * for the same; what is refused is so with a reason, which shows no byte of it. */
#include "common/security/keys.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data,
                           size_t size); // NOLINT(readability-identifier-naming)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct keys first, second;
    static char text[KEYS_TEXT_MAX];
    char error[KEYS_ERROR_BYTES] = "";
    memset(&first, 0, sizeof(first));
    memset(&second, 0, sizeof(second));
    enum status status = keys_parse((const char *)data, size, &first, error, sizeof(error));
    if (status != STATUS_OK) {
        assert(status == STATUS_MALFORMED && error[0] != '\0');
        for (size_t i = 0; error[i] != '\0'; i++) {
            assert(error[i] >= ' ' && error[i] <= '~');
        }
        return 0;
    }
    assert(first.server.has_public && first.allowed_count <= KEYS_ALLOWED_MAX);
    for (uint32_t i = 0; i < first.allowed_count; i++) {
        assert(keys_allow(&first, first.allowed[i]));
    }
    keys_format(&first, text);
    status = keys_parse(text, strlen(text), &second, error, sizeof(error));
    assert(status == STATUS_OK);
    assert(memcmp(&first, &second, sizeof(first)) == 0);
    return 0;
}
