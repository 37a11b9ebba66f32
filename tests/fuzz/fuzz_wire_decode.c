/* What a peer sends as a header. Property beyond not crashing: what decodes encodes again, to
 * something that decodes to the same. The first byte says how many floats the payload has. The
 * version, where a header begins with one, is made that of now: a corpus outlives versions. */
#include "common/channel/wire.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define VERSION_TAG 0x08 // field 1, a varint

int LLVMFuzzerTestOneInput(const uint8_t *data,
                           size_t size); // NOLINT(readability-identifier-naming)

/* What may go into a file as it is. */
static int is_lines(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '\n' && (text[i] < 0x20 || text[i] > 0x7e)) {
            return 0;
        }
    }
    return length < WIRE_CHOICES_BYTES;
}

static struct wire_scratch first_scratch, second_scratch;
static unsigned char header[WIRE_HEADER_BYTES], received[WIRE_HEADER_BYTES + 1];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const float payload[256];
    if (size == 0 || size > sizeof(received)) {
        return 0;
    }
    memcpy(received, data, size);
    if (size > 2 && received[1] == VERSION_TAG && received[2] < 0x80) {
        received[2] = WIRE_VERSION;
    }
    size_t payload_size = data[0] * sizeof(float);
    uint32_t version;
    struct message first, second;
    struct wire_frames frames = {received + 1, size - 1, payload_size > 0 ? payload : NULL,
                                 payload_size};
    if (wire_decode(&frames, &first_scratch, &version, &first) != STATUS_OK) {
        return 0;
    }
    size_t header_size;
    enum status status = wire_encode(&first, header, sizeof(header), &header_size);
    assert(status == STATUS_OK);
    frames = (struct wire_frames){header, header_size, wire_payload(&first).bytes, payload_size};
    status = wire_decode(&frames, &second_scratch, &version, &second);
    assert(status == STATUS_OK);
    assert(first.kind == second.kind && first.step == second.step && first.rank == second.rank);
    assert(first.span.offset == second.span.offset && first.span.count == second.span.count);
    assert(strcmp(first.text, second.text) == 0);
    assert(first.kind != MESSAGE_CHOICES || is_lines(first.text));
    assert(first.kind != MESSAGE_CLASSES || first.span.count <= WIRE_CLASSES_BYTES);
    assert((first.member != NULL) == (second.member != NULL));
    assert((first.layout != NULL) == (second.layout != NULL));
    assert((first.groups != NULL) == (second.groups != NULL));
    assert(first.groups == NULL || (first.groups->group_count == second.groups->group_count &&
                                    first.groups->run_count == second.groups->run_count));
    assert((first.report != NULL) == (second.report != NULL));
    assert((first.slices != NULL) == (second.slices != NULL));
    assert(first.slices == NULL || first.slices->count == second.slices->count);
    assert((first.start != NULL) == (second.start != NULL));
    assert((first.nccl != NULL) == (second.nccl != NULL));
    assert(first.nccl == NULL || memcmp(first.nccl, second.nccl, sizeof(*first.nccl)) == 0);
    assert((first.path != NULL) == (second.path != NULL));
    assert((first.passed != NULL) == (second.passed != NULL));
    assert((first.back != NULL) == (second.back != NULL));
    assert((first.decision != NULL) == (second.decision != NULL));
    assert((first.sum != NULL) == (second.sum != NULL));
    assert((first.outcome != NULL) == (second.outcome != NULL));
    assert((first.hello != NULL) == (second.hello != NULL));
    assert((first.probe != NULL) == (second.probe != NULL));
    assert((first.offer != NULL) == (second.offer != NULL));
    assert((first.loan != NULL) == (second.loan != NULL));
    assert((first.piece != NULL) == (second.piece != NULL));
    assert((first.wait != NULL) == (second.wait != NULL));
    assert(first.wait == NULL || first.wait->given_count == second.wait->given_count);
    assert(first.flow == second.flow);
    assert((first.clock != NULL) == (second.clock != NULL));
    assert((first.collect != NULL) == (second.collect != NULL));
    return 0;
}
