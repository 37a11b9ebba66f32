/* Moves what a call is about between all pairs of its processes at once. */
#include "worker/collective/call.h"

#include "common/vector/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What goes on with one of the other processes. */
struct line {
    uint32_t rank, index; // in the team; in the call
    struct pipe_end to, from;
    struct team_header header; // the other's
    struct transfer header_out, header_in;
    bool is_checked; // the headers are alike
    struct transfer out, in;
};

/* Chunks that come are not stored but folded. */
struct folding {
    const struct call_values *values;
    unsigned char *chunk; // this process's own
    size_t count, folded; // of its values
    const void **sources; // (lines + 1) by their place in the call
};

struct call {
    struct team *team;
    const struct call_options *options;
    struct team_header header; // this process's
    struct line *lines;        // (count) of the others
    uint32_t count, own;       // place of this process in the call
    struct folding *folding;   // NULL: nothing is
    enum status status;
    struct team_fault *fault;
};

void call_header(const struct call_options *options, uint64_t bytes, struct team_header *ret_header)
{
    *ret_header = (struct team_header){
        .ranks_digest = layout_digest_add(LAYOUT_DIGEST_SEED, options->ranks,
                                          options->count * sizeof(options->ranks[0])),
        .bytes = bytes,
    };
    snprintf(ret_header->label, sizeof(ret_header->label), "%s", options->label);
}

static enum status begin(struct call *call, uint64_t bytes)
{
    const struct call_options *options = call->options;
    call_header(options, bytes, &call->header);
    call->lines = calloc(options->count, sizeof(*call->lines));
    if (call->lines == NULL) {
        return STATUS_NO_MEMORY;
    }
    uint32_t own = team_rank(call->team);
    for (uint32_t i = 0; i < options->count; i++) {
        uint32_t rank = options->ranks[i];
        if (rank == own) {
            call->own = i;
            continue;
        }
        struct line *line = &call->lines[call->count++];
        *line = (struct line){
            .rank = rank,
            .index = i,
            .to = team_pipe(call->team, TEAM_CALLS, own, rank),
            .from = team_pipe(call->team, TEAM_CALLS, rank, own),
            .header_out = transfer_out(&call->header, sizeof(call->header)),
        };
        line->header_in = transfer_in(&line->header, sizeof(line->header));
    }
    return STATUS_OK;
}

static void check_header(struct call *call, struct line *line)
{
    line->is_checked = memcmp(&line->header, &call->header, sizeof(line->header)) == 0;
    if (!line->is_checked) {
        *call->fault = team_fault_of_call(line->rank, &line->header);
        call->status = STATUS_MISMATCH;
    }
}

static bool send_more(struct line *line)
{
    bool has_moved = pipe_put(line->to, &line->header_out);
    return (transfer_left(&line->header_out) == 0 && pipe_put(line->to, &line->out)) || has_moved;
}

static bool take_more(struct call *call, struct line *line)
{
    bool has_moved = false;
    if (!line->is_checked) {
        has_moved = pipe_take(line->from, &line->header_in);
        if (transfer_left(&line->header_in) > 0) {
            return has_moved;
        }
        check_header(call, line);
    }
    bool is_folded = call->folding != NULL && line->in.moved < line->in.size;
    return (line->is_checked && !is_folded && pipe_take(line->from, &line->in)) || has_moved;
}

/* Folds as many values as have come from all. */
static bool fold_more(struct call *call)
{
    struct folding *folding = call->folding;
    size_t size = fold_size(folding->values->type),
           bytes = (folding->count - folding->folded) * size;
    unsigned char *own = folding->chunk + folding->folded * size;
    folding->sources[call->own] = own;
    for (uint32_t i = 0; i < call->count && bytes > 0; i++) {
        const struct line *line = &call->lines[i];
        const unsigned char *come = NULL;
        size_t there = line->is_checked ? pipe_look(line->from, &line->in, &come) : 0;
        bytes = there < bytes ? there : bytes;
        folding->sources[line->index] = come;
    }
    size_t count = bytes / size;
    if (count == 0) {
        return false;
    }
    fold(folding->values->type, folding->values->operation, folding->sources, call->count + 1, own,
         count);
    folding->folded += count;
    for (uint32_t i = 0; i < call->count; i++) {
        pipe_drop(call->lines[i].from, &call->lines[i].in, count * size);
        team_wake(call->team, call->lines[i].rank);
    }
    return true;
}

static bool move(void *context)
{
    struct call *call = context;
    bool has_moved = false;
    for (uint32_t i = 0; i < call->count && call->status == STATUS_OK; i++) {
        struct line *line = &call->lines[i];
        bool has_sent = send_more(line), has_taken = take_more(call, line);
        if (has_sent || has_taken) {
            team_wake(call->team, line->rank);
            has_moved = true;
        }
    }
    if (call->status == STATUS_OK && call->folding != NULL && fold_more(call)) {
        has_moved = true;
    }
    return has_moved;
}

static bool is_line_over(const struct line *line)
{
    return line->is_checked && transfer_left(&line->header_out) == 0 &&
           transfer_left(&line->out) == 0 && transfer_left(&line->in) == 0;
}

static bool is_complete(const void *context)
{
    const struct call *call = context;
    bool is_over = true;
    for (uint32_t i = 0; i < call->count && is_over; i++) {
        is_over = is_line_over(&call->lines[i]);
    }
    return is_over || call->status != STATUS_OK;
}

static enum team_need needs(const void *context, uint32_t rank)
{
    const struct call *call = context;
    for (uint32_t i = 0; i < call->count; i++) {
        const struct line *line = &call->lines[i];
        if (line->rank == rank && (!line->is_checked || transfer_left(&line->in) > 0)) {
            return TEAM_NEEDS_BYTES;
        }
        if (line->rank == rank) {
            return is_line_over(line) ? TEAM_NEEDS_NOTHING : TEAM_NEEDS_ROOM;
        }
    }
    return TEAM_NEEDS_NOTHING;
}

/* Moves the transfers of all lines. */
static enum status run(struct call *call)
{
    const struct team_work work = {move, is_complete, needs, call, TEAM_CALLS, call->header.label};
    enum status status = team_run(call->team, &work, call->fault);
    return status == STATUS_OK ? call->status : status;
}

static void set_transfers(struct line *line, struct transfer out, struct transfer in)
{
    line->out = out;
    line->in = in;
}

enum status call_barrier(struct team *team, const struct call_options *options,
                         struct team_fault *ret_fault)
{
    struct call call = {.team = team, .options = options, .fault = ret_fault};
    enum status status = begin(&call, 0);
    status = status == STATUS_OK ? run(&call) : status;
    free(call.lines);
    return status;
}

enum status call_broadcast(struct team *team, const struct call_options *options, void *bytes,
                           size_t size, uint32_t root, struct team_fault *ret_fault)
{
    struct call call = {.team = team, .options = options, .fault = ret_fault};
    const struct transfer whole = transfer_in(bytes, size), nothing = transfer_in(NULL, 0);
    enum status status = begin(&call, size);
    for (uint32_t i = 0; status == STATUS_OK && i < call.count; i++) {
        struct line *line = &call.lines[i];
        set_transfers(line, team_rank(team) == root ? whole : nothing,
                      line->rank == root ? whole : nothing);
    }
    status = status == STATUS_OK ? run(&call) : status;
    free(call.lines);
    return status;
}

enum status call_all_gather(struct team *team, const struct call_options *options, const void *own,
                            size_t own_bytes, void *all, struct team_fault *ret_fault)
{
    struct call call = {.team = team, .options = options, .fault = ret_fault};
    unsigned char *places = all;
    enum status status = begin(&call, own_bytes);
    if (status == STATUS_OK && own_bytes > 0) {
        memmove(places + call.own * own_bytes, own, own_bytes);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < call.count; i++) {
        struct line *line = &call.lines[i];
        set_transfers(line, transfer_out(places + call.own * own_bytes, own_bytes),
                      transfer_in(places + line->index * own_bytes, own_bytes));
    }
    status = status == STATUS_OK ? run(&call) : status;
    free(call.lines);
    return status;
}

/* Where a chunk of a slab begins, in values. */
static size_t chunk_begin(size_t count, uint32_t index, uint32_t parts)
{
    return count / parts * index + (count % parts < index ? count % parts : index);
}

/* A slab: first every chunk goes to its process, then what has become of it to all. */
static enum status reduce_slab(struct call *call, struct folding *folding, unsigned char *slab,
                               size_t count)
{
    size_t size = fold_size(folding->values->type);
    uint32_t parts = call->count + 1;
    size_t own_begin = chunk_begin(count, call->own, parts) * size;
    size_t own_bytes = chunk_begin(count, call->own + 1, parts) * size - own_begin;
    folding->chunk = slab + own_begin;
    folding->count = own_bytes / size;
    folding->folded = 0;
    for (uint32_t i = 0; i < call->count; i++) {
        struct line *line = &call->lines[i];
        size_t begin = chunk_begin(count, line->index, parts) * size;
        size_t bytes = chunk_begin(count, line->index + 1, parts) * size - begin;
        set_transfers(line, transfer_in(slab + begin, bytes), transfer_in(NULL, own_bytes));
    }
    call->folding = folding;
    enum status status = run(call);
    call->folding = NULL;
    for (uint32_t i = 0; status == STATUS_OK && i < call->count; i++) {
        struct line *line = &call->lines[i];
        set_transfers(line, transfer_out(slab + own_begin, own_bytes),
                      transfer_in(line->out.bytes, line->out.size));
    }
    return status == STATUS_OK ? run(call) : status;
}

enum status call_all_reduce(struct team *team, const struct call_options *options,
                            const struct call_values *values, struct team_fault *ret_fault)
{
    struct call call = {.team = team, .options = options, .fault = ret_fault};
    size_t size = fold_size(values->type);
    // What a process sends in a slab, and its result, have room in a pipe together: a process that
    // does not run holds up the others once a slab.
    size_t slab = options->count * (team_capacity(team) / 2 / size);
    struct folding folding = {.values = values,
                              .sources = calloc(options->count, sizeof(const void *))};
    enum status status = begin(&call, values->count * size);
    status = status == STATUS_OK && folding.sources == NULL ? STATUS_NO_MEMORY : status;
    // A vector of nothing is a call, too.
    for (size_t at = 0; status == STATUS_OK && (at < values->count || at == 0); at += slab) {
        size_t count = values->count - at < slab ? values->count - at : slab;
        status = reduce_slab(&call, &folding, (unsigned char *)values->values + at * size, count);
    }
    free(folding.sources);
    free(call.lines);
    return status;
}
