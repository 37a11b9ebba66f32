/* Fuzzes the lines between the launcher and its agents. What is taken encodes to a line that
 * decodes to the same again; what is refused has a reason. */
#include "deploy/agent/agent_message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_again(const struct agent_message *message)
{
    struct agent_message again;
    char error[256];
    char *line = agent_message_encode(message);
    if (line == NULL) {
        return; // escapes have made it too long
    }
    enum status status = agent_message_decode(line, &again, error, sizeof(error));
    assert(status == STATUS_OK && again.kind == message->kind);
    char *same = agent_message_encode(&again);
    assert(same != NULL && strcmp(line, same) == 0);
    agent_message_finish(&again);
    free(same);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct agent_message message;
    char error[256] = "";
    char *line = malloc(size + 1);
    if (line == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(line, bytes, size);
    }
    line[size] = '\0';
    if (agent_message_decode(line, &message, error, sizeof(error)) == STATUS_OK) {
        check_again(&message);
        agent_message_finish(&message);
    } else {
        assert(error[0] != '\0');
    }
    free(line);
    return 0;
}
