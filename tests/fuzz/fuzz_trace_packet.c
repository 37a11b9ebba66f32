/* What a timeline's file holds. Property beyond not crashing: what decodes to a packet of ours
 * encodes again, if it is not too long, to something that decodes to the same. */
#include "common/trace/trace_packet.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data,
                           size_t size); // NOLINT(readability-identifier-naming)

static struct trace_scratch first_scratch, second_scratch;

static int is_same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static void check_again(const struct trace_packet *first)
{
    unsigned char bytes[TRACE_PACKET_BYTES];
    struct trace_packet second;
    size_t used, size = trace_packet_encode(first, bytes);
    if (size == 0) {
        return;
    }
    enum status status = trace_packet_decode(bytes, size, &second_scratch, &used, &second);
    assert(status == STATUS_OK && used == size);
    assert(second.type == first->type && second.track == first->track);
    assert(second.flow == first->flow && second.note_count == first->note_count);
    assert(second.sequence == first->sequence && is_same_text(second.name, first->name));
    for (uint32_t i = 0; i < first->note_count; i++) {
        assert(is_same_text(second.notes[i].name, first->notes[i].name));
        assert(is_same_text(second.notes[i].text, first->notes[i].text));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_packet packet;
    size_t used;
    for (size_t at = 0; at < size; at += used) {
        if (trace_packet_decode(data + at, size - at, &first_scratch, &used, &packet) !=
            STATUS_OK) {
            break;
        }
        assert(used > 0 && used <= size - at);
        if (packet.type != TRACE_PACKET_OTHER) {
            check_again(&packet);
        }
    }
    return 0;
}
