/* Keeps files and folders, what of them lasts, and who has them open. */
#include "tests/sim/disk.h"

#include "tests/sim/world.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_FIRST (1 << 20) // no descriptor of the system is as high
#define OPEN_MAX   256

struct content {
    unsigned char *bytes; // (size), owned
    uint64_t size;
};

struct entry {
    char name[DISK_NAME_BYTES];
    struct disk_node *node;
};

struct listing {
    struct entry *entries; // (count) of `room`, owned
    uint32_t count, room;
};

/* Something that was done to a folder. */
struct change {
    enum { CHANGE_ADD, CHANGE_REMOVE, CHANGE_RENAME } kind;
    struct entry entry;
    char to[DISK_NAME_BYTES];
};

struct disk_node {
    struct disk_node *next; // of all
    bool is_folder;

    // Of a file. `written` has all that was asked for, whatever has become of it.
    struct content now, synced, written;
    bool is_unsynced;

    // Of a folder.
    struct disk_node *parent; // the root's: itself
    struct listing names, synced_names;
    struct change *changes; // (change_count) of change_room, since it was synced; owned
    uint32_t change_count, change_room;
};

static struct {
    struct disk_node *all, *root;
    struct disk_node *open[OPEN_MAX]; // by descriptor
    struct disk_health health;
} disk;

static void *resize(void *memory, size_t bytes)
{
    void *moved = realloc(memory, bytes > 0 ? bytes : 1);
    if (moved == NULL) {
        abort();
    }
    return moved;
}

/* ============================================================================================
 * Contents and listings
 * ========================================================================================== */

static void content_resize(struct content *content, uint64_t size)
{
    content->bytes = resize(content->bytes, size);
    if (size > content->size) {
        memset(content->bytes + content->size, 0, size - content->size);
    }
    content->size = size;
}

static void content_put(struct content *content, const void *bytes, size_t size, uint64_t offset)
{
    if (offset + size > content->size) {
        content_resize(content, offset + size);
    }
    memcpy(content->bytes + offset, bytes, size);
}

static void content_copy(struct content *to, const struct content *from)
{
    content_resize(to, from->size);
    if (from->size > 0) {
        memcpy(to->bytes, from->bytes, from->size);
    }
}

static void content_cut(struct content *content)
{
    content_resize(content, content->size > 0 ? world_draw(content->size) : 0);
}

static void content_flip(struct content *content)
{
    if (content->size > 0) {
        content->bytes[world_draw(content->size)] ^= (unsigned char)(1u << world_draw(8));
    }
}

static void name_copy(char ret_name[DISK_NAME_BYTES], const char *name)
{
    int size = snprintf(ret_name, DISK_NAME_BYTES, "%s", name);
    assert(size < DISK_NAME_BYTES);
}

static struct entry *listing_find(const struct listing *listing, const char *name)
{
    for (uint32_t i = 0; i < listing->count; i++) {
        if (strcmp(listing->entries[i].name, name) == 0) {
            return &listing->entries[i];
        }
    }
    return NULL;
}

static void listing_remove(struct listing *listing, const char *name)
{
    struct entry *found = listing_find(listing, name);
    if (found != NULL) {
        *found = listing->entries[--listing->count];
    }
}

static void listing_add(struct listing *listing, const struct entry *entry)
{
    listing_remove(listing, entry->name);
    if (listing->count == listing->room) {
        listing->entries =
            world_grow(listing->entries, &listing->room, sizeof(listing->entries[0]));
    }
    listing->entries[listing->count++] = *entry;
}

static void listing_apply(struct listing *listing, const struct change *change)
{
    listing_remove(listing, change->entry.name);
    if (change->kind == CHANGE_ADD) {
        listing_add(listing, &change->entry);
    } else if (change->kind == CHANGE_RENAME) {
        struct entry renamed = change->entry;
        memcpy(renamed.name, change->to, sizeof(renamed.name));
        listing_add(listing, &renamed);
    }
}

static void change(struct disk_node *folder, const struct change *made)
{
    if (folder->change_count == folder->change_room) {
        folder->changes = world_grow(folder->changes, &folder->change_room, sizeof(*made));
    }
    folder->changes[folder->change_count++] = *made;
    listing_apply(&folder->names, made);
}

/* The first of what was done to the folder lasts from now on. */
static void settle_changes(struct disk_node *folder, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        listing_apply(&folder->synced_names, &folder->changes[i]);
    }
    folder->change_count = 0;
}

/* ============================================================================================
 * The disk
 * ========================================================================================== */

static struct disk_node *create_node(bool is_folder)
{
    struct disk_node *node = calloc(1, sizeof(*node));
    if (node == NULL) {
        abort();
    }
    node->is_folder = is_folder;
    node->next = disk.all;
    disk.all = node;
    return node;
}

void disk_format(void)
{
    while (disk.all != NULL) {
        struct disk_node *node = disk.all;
        disk.all = node->next;
        free(node->now.bytes);
        free(node->synced.bytes);
        free(node->written.bytes);
        free(node->names.entries);
        free(node->synced_names.entries);
        free(node->changes);
        free(node);
    }
    disk_close_all();
    disk.root = create_node(true);
    disk.root->parent = disk.root;
    disk.health = (struct disk_health){.room = DISK_UNLIMITED};
}

struct disk_health *disk_health(void)
{
    return &disk.health;
}

static void lose(struct disk_node *node)
{
    if (node->is_folder) {
        settle_changes(node, (uint32_t)world_draw(node->change_count + UINT64_C(1)));
        node->names.count = 0;
        for (uint32_t i = 0; i < node->synced_names.count; i++) {
            listing_add(&node->names, &node->synced_names.entries[i]);
        }
        return;
    }
    switch (node->is_unsynced ? world_draw(4) : 0) {
    case 1:
        content_cut(&node->now);
        break;
    case 2:
        content_flip(&node->now);
        break;
    case 3:
        content_copy(&node->now, &node->synced);
        break;
    default:
        break;
    }
    content_copy(&node->synced, &node->now);
    node->is_unsynced = false;
}

void disk_lose_power(void)
{
    for (struct disk_node *node = disk.all; node != NULL; node = node->next) {
        lose(node);
    }
}

void disk_damage(struct disk_node *folder, const char *name, enum disk_damage damage)
{
    struct disk_node *file = disk_find(folder, name);
    switch (damage) {
    case DISK_DAMAGE_CUT:
        content_cut(&file->now);
        break;
    case DISK_DAMAGE_BIT:
        content_flip(&file->now);
        break;
    case DISK_DAMAGE_GONE:
        listing_remove(&folder->names, name);
        listing_remove(&folder->synced_names, name);
        break;
    case DISK_DAMAGES:
        break;
    }
}

/* ============================================================================================
 * Looking
 * ========================================================================================== */

struct disk_node *disk_find(struct disk_node *folder, const char *name)
{
    struct disk_node *in = folder != NULL ? folder : disk.root;
    if (strcmp(name, ".") == 0) {
        return in;
    }
    if (strcmp(name, "..") == 0) {
        return in->parent;
    }
    const struct entry *found = listing_find(&in->names, name);
    return found != NULL ? found->node : NULL;
}

struct disk_node *disk_look_up(const char *path)
{
    struct disk_node *node = disk.root;
    for (const char *rest = path + strlen(DISK_ROOT); *rest == '/' && node != NULL;) {
        char name[DISK_NAME_BYTES] = "";
        size_t size = strcspn(++rest, "/");
        assert(size < sizeof(name));
        memcpy(name, rest, size);
        node = size > 0 ? disk_find(node, name) : node;
        rest += size;
    }
    errno = ENOENT;
    return node;
}

bool disk_is_folder(const struct disk_node *node)
{
    return node->is_folder;
}

uint64_t disk_size(const struct disk_node *node)
{
    return node->now.size;
}

const char *disk_name(const struct disk_node *folder, uint32_t index)
{
    return index < folder->names.count ? folder->names.entries[index].name : NULL;
}

bool disk_is_intact(const struct disk_node *file)
{
    return file->now.size == file->written.size &&
           (file->now.size == 0 ||
            memcmp(file->now.bytes, file->written.bytes, file->now.size) == 0);
}

const void *disk_bytes(const struct disk_node *file)
{
    return file->now.bytes;
}

/* ============================================================================================
 * What the calls do
 * ========================================================================================== */

/* What every change of the disk takes, and what may become of it. */
static int begin_change(void)
{
    if (disk.health.write_ns > 0) {
        world_spend(world_draw(disk.health.write_ns));
    }
    if (disk.health.is_read_only) {
        return EROFS;
    }
    return disk.health.fails && world_draw(2) == 0 ? EIO : 0;
}

int disk_make(struct disk_node *folder, const char *name, bool is_folder,
              struct disk_node **ret_node)
{
    if (disk_find(folder, name) != NULL) {
        return EEXIST;
    }
    int error = begin_change();
    if (error != 0) {
        return error;
    }
    if (disk.health.room == 0) {
        return ENOSPC;
    }
    struct change added = {.kind = CHANGE_ADD, .entry.node = create_node(is_folder)};
    added.entry.node->parent = folder;
    name_copy(added.entry.name, name);
    change(folder, &added);
    *ret_node = added.entry.node;
    return 0;
}

/* The bytes of a write that find room. */
static size_t take_room(const struct disk_node *file, size_t size, uint64_t offset)
{
    uint64_t end = offset + size, grows = end > file->now.size ? end - file->now.size : 0;
    if (disk.health.room == DISK_UNLIMITED) {
        return size;
    }
    uint64_t lacking = grows > disk.health.room ? grows - disk.health.room : 0;
    disk.health.room -= grows - lacking;
    return lacking < size ? size - (size_t)lacking : 0;
}

int disk_write(struct disk_node *file, const void *bytes, size_t size, uint64_t offset,
               size_t *ret_wrote)
{
    int error = begin_change();
    if (error != 0) {
        return error;
    }
    size_t fits = take_room(file, size, offset);
    if (fits == 0) {
        return ENOSPC;
    }
    // A process that is killed in between has written the first half.
    size_t half = fits / 2;
    file->is_unsynced = true;
    content_put(&file->written, bytes, half, offset);
    content_put(&file->now, bytes, half, offset);
    error = begin_change();
    if (error != 0) {
        return error;
    }
    content_put(&file->written, bytes, fits, offset);
    content_put(&file->now, bytes, fits, offset);
    *ret_wrote = fits;
    return 0;
}

size_t disk_read(const struct disk_node *file, void *ret_bytes, size_t size, uint64_t offset)
{
    uint64_t there = offset < file->now.size ? file->now.size - offset : 0;
    size_t count = there < size ? (size_t)there : size;
    if (count > 0) {
        memcpy(ret_bytes, file->now.bytes + offset, count);
    }
    return count;
}

int disk_sync(struct disk_node *node)
{
    // One that a disk mounted read-only has nothing to write for is synced.
    int error = node->is_unsynced || node->change_count > 0 ? begin_change() : 0;
    if (error != 0) {
        return error;
    }
    if (node->is_folder) {
        settle_changes(node, node->change_count);
    } else {
        content_copy(&node->synced, &node->now);
        node->is_unsynced = false;
    }
    return 0;
}

int disk_rename(struct disk_node *folder, const char *from, const char *to)
{
    const struct entry *found = listing_find(&folder->names, from);
    const struct disk_node *target = disk_find(folder, to);
    if (found == NULL) {
        return ENOENT;
    }
    if (target != NULL && target->is_folder && target->names.count > 0) {
        return ENOTEMPTY;
    }
    struct change renamed = {.kind = CHANGE_RENAME, .entry = *found};
    name_copy(renamed.to, to);
    int error = begin_change();
    if (error == 0) {
        change(folder, &renamed);
    }
    return error;
}

int disk_remove(struct disk_node *folder, const char *name, bool is_folder)
{
    const struct entry *found = listing_find(&folder->names, name);
    if (found == NULL) {
        return ENOENT;
    }
    if (found->node->is_folder != is_folder) {
        return is_folder ? ENOTDIR : EISDIR;
    }
    if (is_folder && found->node->names.count > 0) {
        return ENOTEMPTY;
    }
    const struct change removed = {.kind = CHANGE_REMOVE, .entry = *found};
    int error = begin_change();
    if (error == 0) {
        disk.health.room += disk.health.room != DISK_UNLIMITED ? removed.entry.node->now.size : 0;
        change(folder, &removed);
    }
    return error;
}

/* ============================================================================================
 * Descriptors
 * ========================================================================================== */

int disk_open(struct disk_node *node)
{
    for (int i = 0; i < OPEN_MAX; i++) {
        if (disk.open[i] == NULL) {
            disk.open[i] = node;
            return OPEN_FIRST + i;
        }
    }
    errno = EMFILE;
    return -1;
}

struct disk_node *disk_opened(int fd)
{
    return fd >= OPEN_FIRST && fd < OPEN_FIRST + OPEN_MAX ? disk.open[fd - OPEN_FIRST] : NULL;
}

void disk_close(int fd)
{
    disk.open[fd - OPEN_FIRST] = NULL;
}

void disk_close_all(void)
{
    memset(disk.open, 0, sizeof(disk.open));
}
