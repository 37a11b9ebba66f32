/* How gradients are compressed, where the program says it. */
#include "worker/library/handle.h"

enum ringside_status ringside_set_compression(struct ringside *ringside, const char *kind)
{
    enum ringside_status entered =
        handle_enter(ringside, HANDLE_JOINED | HANDLE_DESCRIBED, "ringside_set_compression");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    const struct codec *given = &ringside->asked.compress;
    struct codec codec;
    char why[OPTION_ERROR_BYTES], options[CODEC_TEXT_BYTES];
    if (codec_parse(kind != NULL ? kind : "", &codec, why, sizeof(why)) != STATUS_OK) {
        return handle_refuse(ringside, RINGSIDE_INVALID, "ringside_set_compression: %s", why);
    }
    bool is_given = codec_is_same(given, &codec);
    if (codec.kind != CODEC_NONE && given->kind != CODEC_NONE && !is_given) {
        codec_text(given, options);
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "ringside_set_compression: the program says %.20s, and the job has "
                             "--compress %s: leave one of them out",
                             kind, options);
    }
    if (is_given) {
        codec.kind = CODEC_NONE; // nothing has to be said
    }
    ringside->codec = codec;
    return handle_exit(ringside, STATUS_OK);
}
