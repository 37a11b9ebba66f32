/* Channels over an abstract socket. */
#include "tests/support/common/channel_pair.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

void channel_pair_open(struct channel_pair *pair)
{
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    assert_int_equal(channel_create(&pair->server), STATUS_OK);
    assert_int_equal(channel_create(&pair->client), STATUS_OK);
    assert_int_equal(transport_bind(pair->server->transport, "ipc://*", endpoint), STATUS_OK);
    assert_int_equal(transport_connect(pair->client->transport, endpoint, &pair->to_server),
                     STATUS_OK);
}

void channel_pair_close(struct channel_pair *pair)
{
    channel_destroy(pair->client, 0);
    channel_destroy(pair->server, 0);
}

enum status channel_pair_receive(struct channel *channel, struct envelope *envelope,
                                 struct message *message)
{
    uint64_t dropped = channel->dropped_count;
    enum status status;
    do {
        status = channel_receive(channel, 10000, envelope, message);
    } while (status == STATUS_INTERRUPTED && channel->dropped_count == dropped);
    return status;
}
