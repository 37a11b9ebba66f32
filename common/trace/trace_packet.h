/* Packets of a Perfetto trace: struct trace_packet <-> bytes. Pure.
 *
 * A file is a sequence of packets, each behind its tag and length, so files can be concatenated.
 * Decoding works in a fixed scratch space, and checks what it reads: nothing in a file reaches an
 * assertion. */
#ifndef COMMON_TRACE_TRACE_PACKET_H
#define COMMON_TRACE_TRACE_PACKET_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_PACKET_BYTES  4096u  // longest packet, with its frame
#define TRACE_SCRATCH_BYTES 32768u // what a decoded one may take
#define TRACE_NOTES_MAX     16u    // of an event

enum trace_packet_type {
    TRACE_PACKET_OTHER, // of another writer: decoded as nothing
    TRACE_PACKET_PROCESS,
    TRACE_PACKET_THREAD,
    TRACE_PACKET_COUNTER_TRACK,
    TRACE_PACKET_BEGIN,
    TRACE_PACKET_END,
    TRACE_PACKET_INSTANT,
    TRACE_PACKET_COUNTER,
};

/* An annotation: a text, or else a number. */
struct trace_note {
    const char *name, *text; // text NULL: the number counts
    int64_t number;
};

/* Texts are borrowed: from the caller, or after decoding from the scratch. */
struct trace_packet {
    enum trace_packet_type type;
    uint32_t sequence;
    uint64_t time_ns;
    uint64_t track;   // that it describes, or is on
    uint64_t parent;  // of a described track; 0: none
    int32_t pid;      // of a process or thread
    int64_t tid;      // of a thread
    const char *name; // of a track or an event; unit and name of a counter's
    const char *unit;
    const char *category; // NULL: none
    double value;         // of a counter
    uint64_t flow;        // 0: none
    bool ends_flow;
    struct trace_note notes[TRACE_NOTES_MAX];
    uint32_t note_count;
};

struct trace_scratch {
    _Alignas(16) unsigned char bytes[TRACE_SCRATCH_BYTES];
};

/* Returns the bytes written; 0: it does not fit. */
size_t trace_packet_encode(const struct trace_packet *packet,
                           unsigned char ret_bytes[TRACE_PACKET_BYTES]);

/* Reads the packet at the beginning of `bytes`. *ret_used: how long it is. STATUS_END_OF_DATA:
 * there is only the beginning of one. STATUS_MALFORMED: this is no trace. */
enum status trace_packet_decode(const unsigned char *bytes, size_t size,
                                struct trace_scratch *scratch, size_t *ret_used,
                                struct trace_packet *ret_packet);

/* A note by its name; NULL: there is none. */
const struct trace_note *trace_packet_note(const struct trace_packet *packet, const char *name);

/* The number of a note; 0: there is none. */
uint64_t trace_packet_number(const struct trace_packet *packet, const char *name);

/* Whether it says something about its track, rather than being an event: see trace_file.h. */
bool trace_packet_is_fact(const struct trace_packet *packet, const char *name);

#endif
