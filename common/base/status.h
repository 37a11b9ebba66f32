/* How functions fail.
 *
 * A function that can fail returns enum status. Its outputs come last, are named ret_*, and are
 * written only when it returns STATUS_OK. Programming errors are not statuses: they assert. */
#ifndef COMMON_BASE_STATUS_H
#define COMMON_BASE_STATUS_H

#define STATUS_MAP(X)                             \
    X(OK, "ok")                                   \
    X(NO_MEMORY, "out of memory")                 \
    X(INVALID, "invalid argument")                \
    X(MALFORMED, "malformed message or file")     \
    X(MISMATCH, "peers disagree on the job")      \
    X(TIMED_OUT, "timed out")                     \
    X(UNREACHABLE, "peer is gone")                \
    X(END_OF_DATA, "end of data")                 \
    X(INTERRUPTED, "interrupted")                 \
    X(IO, "input/output error")                   \
    X(DEVICE, "device error")                     \
    X(NOT_FINITE, "loss is not finite")           \
    X(UNSUPPORTED, "not supported by this build") \
    X(DENIED, "access denied")                    \
    X(AGAIN, "the job goes on with other processes")

// clang warns about every ignored status; gcc has no attribute for a whole type.
#if defined(__clang__)
#define STATUS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define STATUS_MUST_CHECK
#endif

enum STATUS_MUST_CHECK status {
#define X(name, text) STATUS_##name,
    STATUS_MAP(X)
#undef X
        STATUS_COUNT
};

/* Static text; never NULL. */
const char *status_text(enum status status);

#endif
