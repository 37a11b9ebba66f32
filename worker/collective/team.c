/* Makes and maps the memory of a team, and waits in it. */
#include "worker/collective/team.h"

#include "common/base/clock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// How long a wait spins if every process has a core, before it sleeps. It never yields: where
// others want the core, too, that lets all of them go first, and one that is woken goes before
// them.
#define SPIN_NS     50000
#define EAGER_SPINS 100 // reading the clock takes as long as a look at a few pipes

#define CALLS_BYTES_MAX    ((size_t)2 * 1024 * 1024) // a pipe's capacity
#define MESSAGES_BYTES_MAX ((size_t)64 * 1024)
#define SHARED_BYTES_MAX   ((size_t)8 * 1024 * 1024) // of all pipes of a kind to a process

#define INTAKE_MAX ((size_t)1 << 30) // of the messages of a process

/* At the beginning of a region; the pipes lie behind it, by their senders, both kinds of each. */
struct board {
    _Alignas(PIPE_ALIGNMENT) struct bell bell;
    _Alignas(PIPE_ALIGNMENT) _Atomic uint32_t presence; // enum team_presence
    _Alignas(PIPE_ALIGNMENT) struct circle_seat seat;
    _Alignas(PIPE_ALIGNMENT) unsigned char pipes[];
};

/* Messages of a process that were taken in before anybody asked for them. */
struct stash {
    unsigned char *bytes; // (capacity) owned
    size_t begin, end, capacity;
};

struct team {
    struct team_options options;
    struct region own;
    struct region_view *views; // (world) of the others
    struct board **boards;     // (world)
    struct stash *stashes;     // (world)
    size_t capacities[TEAM_PIPE_COUNT];
    size_t pipes_bytes; // of one sender
    bool spins;
};

/* A wait that goes on. */
struct wait {
    struct team *team;
    const struct team_work *work;
    uint32_t naps; // since something moved
};

static size_t capacity_of(size_t most, uint32_t world)
{
    size_t share = SHARED_BYTES_MAX / world / PIPE_ALIGNMENT * PIPE_ALIGNMENT;
    return share < most ? share : most;
}

static size_t region_bytes(const struct team *team)
{
    return sizeof(struct board) + team->options.world * team->pipes_bytes;
}

enum status team_create(const struct team_options *options, struct team_place *ret_place,
                        struct team **ret_team)
{
    assert(options->world >= 1 && options->world <= TEAM_SIZE_MAX);
    struct team *team = calloc(1, sizeof(*team));
    if (team == NULL) {
        return STATUS_NO_MEMORY;
    }
    uint32_t world = options->world;
    team->options = *options;
    team->options.intake_max = options->intake_max > 0 ? options->intake_max : INTAKE_MAX;
    team->spins = (long)world <= sysconf(_SC_NPROCESSORS_ONLN);
    team->capacities[TEAM_CALLS] = capacity_of(CALLS_BYTES_MAX, world);
    team->capacities[TEAM_MESSAGES] = capacity_of(MESSAGES_BYTES_MAX, world);
    team->pipes_bytes =
        pipe_bytes(team->capacities[TEAM_CALLS]) + pipe_bytes(team->capacities[TEAM_MESSAGES]);
    team->views = calloc(world, sizeof(*team->views));
    team->boards = calloc(world, sizeof(struct board *));
    team->stashes = calloc(world, sizeof(*team->stashes));
    bool has_memory = team->views != NULL && team->boards != NULL && team->stashes != NULL;
    enum status status =
        has_memory ? region_create(region_bytes(team), &team->own) : STATUS_NO_MEMORY;
    if (status != STATUS_OK) {
        team_destroy(team);
        return status;
    }
    *ret_place = (struct team_place){team->own.key};
    *ret_team = team;
    return STATUS_OK;
}

enum status team_map(struct team *team, const struct team_place *places)
{
    for (uint32_t rank = 0; rank < team->options.world; rank++) {
        if (rank == team->options.rank) {
            team->boards[rank] = team->own.bytes;
            continue;
        }
        struct region_view *view = &team->views[rank];
        const struct region_key *key = &places[rank].key;
        if (key->size < region_bytes(team) || region_open(key, REGION_WRITE, view) != STATUS_OK) {
            return STATUS_UNREACHABLE;
        }
        team->boards[rank] = (struct board *)(void *)view->bytes;
    }
    return STATUS_OK;
}

void team_destroy(struct team *team)
{
    if (team == NULL) {
        return;
    }
    for (uint32_t rank = 0; rank < team->options.world; rank++) {
        if (team->views != NULL) {
            region_close(&team->views[rank]);
        }
        if (team->stashes != NULL) {
            free(team->stashes[rank].bytes);
        }
    }
    region_destroy(&team->own);
    free(team->stashes);
    free(team->boards);
    free(team->views);
    free(team);
}

uint32_t team_rank(const struct team *team)
{
    return team->options.rank;
}

size_t team_capacity(const struct team *team)
{
    return team->capacities[TEAM_CALLS];
}

uint32_t team_world(const struct team *team)
{
    return team->options.world;
}

static void wake_all(const struct team *team)
{
    for (uint32_t rank = 0; rank < team->options.world; rank++) {
        team_wake(team, rank);
    }
}

void team_say_presence(struct team *team, enum team_presence presence)
{
    atomic_store(&team->boards[team->options.rank]->presence, presence);
    wake_all(team);
}

struct team_fault team_fault_of_call(uint32_t rank, const struct team_header *other)
{
    struct team_fault fault = {.rank = rank, .kind = TEAM_DIFFERS, .other = *other};
    fault.other.label[TEAM_LABEL_BYTES - 1] = '\0';
    return fault;
}

void team_say_steps(struct team *team, uint64_t given, uint64_t needed)
{
    struct circle_seat *seat = &team->boards[team->options.rank]->seat;
    uint64_t before = atomic_load(&seat->given_steps);
    atomic_store(&seat->given_steps, given > before ? given : before);
    atomic_store(&seat->needs_step, needed);
}

struct pipe_end team_pipe(const struct team *team, enum team_pipe which, uint32_t from, uint32_t to)
{
    size_t offset = from * team->pipes_bytes +
                    (which == TEAM_MESSAGES ? pipe_bytes(team->capacities[TEAM_CALLS]) : 0);
    return (struct pipe_end){
        .pipe = (struct pipe *)(void *)(team->boards[to]->pipes + offset),
        .capacity = team->capacities[which],
    };
}

void team_wake(const struct team *team, uint32_t rank)
{
    bell_ring(&team->boards[rank]->bell);
}

/* Makes room for more bytes behind those that are there. */
static enum status make_room(struct stash *stash, size_t more)
{
    if (stash->capacity - stash->end >= more) {
        return STATUS_OK;
    }
    size_t kept = stash->end - stash->begin, capacity = 2 * kept + more;
    unsigned char *bytes = malloc(capacity);
    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (kept > 0) {
        memcpy(bytes, stash->bytes + stash->begin, kept);
    }
    free(stash->bytes);
    *stash = (struct stash){.bytes = bytes, .end = kept, .capacity = capacity};
    return STATUS_OK;
}

/* Takes in what messages have come, at most so many bytes of each sender. What is beyond that, or
 * finds no memory, stays where it is, and its sender waits. */
static enum status take_in(struct team *team, size_t bytes_max)
{
    enum status status = STATUS_OK;
    for (uint32_t from = 0; from < team->options.world; from++) {
        struct pipe_end pipe = team_pipe(team, TEAM_MESSAGES, from, team->options.rank);
        struct stash *stash = &team->stashes[from];
        if (from == team->options.rank || !pipe_has_bytes(pipe) ||
            stash->end - stash->begin > bytes_max) {
            continue;
        }
        enum status has_room = make_room(stash, pipe.capacity);
        if (has_room != STATUS_OK) {
            status = has_room;
            continue;
        }
        struct transfer transfer = transfer_in(stash->bytes + stash->end, pipe.capacity);
        (void)pipe_take(pipe, &transfer);
        stash->end += transfer.moved;
        team_wake(team, from);
    }
    return status;
}

bool team_take_message(struct team *team, uint32_t from, struct transfer *transfer)
{
    struct stash *stash = &team->stashes[from];
    size_t there = stash->end - stash->begin, left = transfer_left(transfer);
    size_t count = there < left ? there : left;
    size_t own = transfer->moved < transfer->size ? transfer->size - transfer->moved : 0;
    own = own < count ? own : count;
    if (own > 0) {
        memcpy(transfer->bytes + transfer->moved, stash->bytes + stash->begin, own);
    }
    transfer->moved += count;
    stash->begin += count;
    bool has_moved = count > 0;
    if (stash->begin == stash->end) {
        stash->begin = stash->end = 0;
        if (pipe_take(team_pipe(team, TEAM_MESSAGES, from, team->options.rank), transfer)) {
            team_wake(team, from);
            has_moved = true;
        }
    }
    return has_moved;
}

/* Whether a process that is awaited waits itself for what this one has not done, or has left. */
static bool is_deserted(const struct team *team, uint32_t rank)
{
    const struct board *board = team->boards[rank], *own = team->boards[team->options.rank];
    uint32_t presence = atomic_load(&board->presence);
    return presence == TEAM_LEFT ||
           (presence == TEAM_STARTING && atomic_load(&own->presence) == TEAM_PRESENT) ||
           atomic_load(&board->seat.needs_step) > atomic_load(&own->seat.given_steps);
}

/* One that is awaited in vain, or the size of the team. */
static uint32_t find_deserter(const struct team *team, const struct team_work *work)
{
    uint32_t rank = 0;
    while (rank < team->options.world &&
           (rank == team->options.rank || work->needs(work->context, rank) == TEAM_NEEDS_NOTHING ||
            !is_deserted(team, rank))) {
        rank++;
    }
    return rank;
}

static struct circle_seat *seat_of(void *context, uint32_t rank)
{
    return &((struct team *)context)->boards[rank]->seat;
}

static bool has_bytes(void *context, uint32_t kind, uint32_t from, uint32_t to)
{
    return kind >= TEAM_PIPE_COUNT || pipe_has_bytes(team_pipe(context, kind, from, to));
}

static struct circle_lack find_lack(const struct wait *wait)
{
    const struct team_work *work = wait->work;
    struct circle_lack lack = {.kind = work->pipe, .text = work->label};
    for (uint32_t rank = 0; rank < wait->team->options.world; rank++) {
        if (rank != wait->team->options.rank &&
            work->needs(work->context, rank) == TEAM_NEEDS_BYTES) {
            circle_add(&lack, rank);
        }
    }
    return lack;
}

/* One that waits with this process in a circle. */
static bool find_circle(const struct wait *wait, struct team_fault *ret_fault)
{
    struct team *team = wait->team;
    const struct circle circle = {
        .rank = team->options.rank,
        .size = team->options.world,
        .seat = seat_of,
        .has_bytes = has_bytes,
        .context = team,
    };
    const struct circle_lack lack = find_lack(wait);
    uint32_t next, after;
    if (!circle_find(&circle, &lack, &next, &after)) {
        return false;
    }
    const struct circle_seat *seat = seat_of(team, next);
    *ret_fault = (struct team_fault){
        .rank = next,
        .kind = TEAM_CIRCLE,
        .needs_step = atomic_load(&seat->needs_step),
        .after = after,
        .own_pipe = wait->work->pipe,
        .other_pipe = atomic_load(&seat->kind) == TEAM_MESSAGES ? TEAM_MESSAGES : TEAM_CALLS,
    };
    snprintf(ret_fault->other.label, sizeof(ret_fault->other.label), "%.*s", TEAM_LABEL_BYTES - 1,
             seat->text);
    return true;
}

static bool find_deserted(const struct wait *wait, struct team_fault *ret_fault)
{
    const struct team *team = wait->team;
    uint32_t deserter = find_deserter(team, wait->work);
    if (deserter == team->options.world) {
        return false;
    }
    const struct board *board = team->boards[deserter];
    *ret_fault = (struct team_fault){
        .rank = deserter,
        .kind = TEAM_DESERTED,
        .presence = atomic_load(&board->presence),
        .needs_step = atomic_load(&board->seat.needs_step),
    };
    return true;
}

static bool move(const struct wait *wait)
{
    return wait->work->move(wait->work->context) || wait->work->is_complete(wait->work->context);
}

/* Before a sleep: looks once more, and sits if the last sleep brought nothing either. */
static bool move_or_sit(void *context)
{
    const struct wait *wait = context;
    if (move(wait)) {
        return true;
    }
    if (wait->naps > 0) {
        const struct circle_lack lack = find_lack(wait);
        circle_sit(&wait->team->boards[wait->team->options.rank]->seat, &lack);
    }
    return false;
}

/* Whether it is for a message that this process sends. */
static bool is_sending(const struct wait *wait)
{
    const struct team *team = wait->team;
    bool needs_room = false;
    for (uint32_t rank = 0; rank < team->options.world && !needs_room; rank++) {
        needs_room = rank != team->options.rank &&
                     wait->work->needs(wait->work->context, rank) == TEAM_NEEDS_ROOM;
    }
    return needs_room && wait->work->pipe == TEAM_MESSAGES;
}

/* Sleeps until there is something to do, and looks why there might be nothing. */
static enum status nap(struct wait *wait, struct team_fault *ret_fault)
{
    struct team *team = wait->team;
    struct board *own = team->boards[team->options.rank];
    bool sends = is_sending(wait);
    enum status status = take_in(team, sends ? SIZE_MAX : team->options.intake_max);
    if (status != STATUS_OK && sends) {
        return status; // those who send to it may wait for it to receive, as it does for them
    }
    bell_nap(&own->bell, move_or_sit, wait);
    circle_rise(&own->seat);
    if (team->options.is_over(team->options.context)) {
        return STATUS_INTERRUPTED;
    }
    wait->naps++;
    struct team_fault fault;
    // What the other has sent before is there by now.
    if ((find_deserted(wait, &fault) || find_circle(wait, &fault)) && !move(wait)) {
        *ret_fault = fault;
        return STATUS_UNREACHABLE;
    }
    return STATUS_OK;
}

/* Whether a wait that began then, and has looked so often, goes on looking. */
static bool spins_on(const struct team *team, uint32_t spins, uint64_t *idle_since_ns)
{
    if (!team->spins || spins % EAGER_SPINS != 0) {
        return team->spins;
    }
    uint64_t now_ns = clock_now_ns();
    *idle_since_ns = spins == 0 ? now_ns : *idle_since_ns;
    return now_ns - *idle_since_ns < SPIN_NS;
}

enum status team_run(struct team *team, const struct team_work *work, struct team_fault *ret_fault)
{
    struct wait wait = {.team = team, .work = work};
    uint32_t spins = 0;
    uint64_t idle_since_ns = 0;
    while (!work->is_complete(work->context)) {
        if (work->move(work->context)) {
            spins = 0;
            wait.naps = 0;
        } else if (spins_on(team, spins, &idle_since_ns)) {
            spins++;
            bell_pause();
        } else {
            enum status status = nap(&wait, ret_fault);
            if (status != STATUS_OK) {
                return status;
            }
        }
    }
    return STATUS_OK;
}
