/* The disk of the coordinator's host: files and folders in memory, which a test makes fail.
 *
 * The product's own calls arrive here (disk_calls.c), for every path below DISK_ROOT. The disk
 * knows what it was asked to write, what of that is there, and what is there for good: bytes of a
 * file last once the file is synced, and names in a folder once the folder is. When power is lost,
 * a file that is not synced is left whole, cut short, with a wrong bit, or as it was synced last;
 * of what was done to a folder since it was synced, in order, only the first part is left. Folders
 * do not wait for each other: POSIX promises no more.
 *
 * What is left to chance comes from the world's seed, and calls that write take time of it. */
#ifndef TESTS_SIM_DISK_H
#define TESTS_SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_ROOT       "/disk"
#define DISK_NAME_BYTES 64
#define DISK_UNLIMITED  UINT64_MAX

struct disk_node; // a file or folder

/* What the disk does wrong now. */
struct disk_health {
    uint64_t room;     // bytes that find a place; DISK_UNLIMITED
    bool fails;        // some of what is written or synced does not arrive (EIO)
    bool is_read_only; // nothing can be changed (EROFS)
    uint64_t write_ns; // that a call which writes takes, at most
};

/* Begins with an empty disk that does nothing wrong; forgets the one before. */
void disk_format(void);

struct disk_health *disk_health(void);

/* After the end of all processes: forgets what they had open. */
void disk_close_all(void);

/* Likewise: forgets what does not last. */
void disk_lose_power(void);

/* NULL: there is none. `folder` NULL: the root, whose path is DISK_ROOT. */
struct disk_node *disk_find(struct disk_node *folder, const char *name);

/* A node by its path, which may be that of the root. NULL and errno. */
struct disk_node *disk_look_up(const char *path);

bool disk_is_folder(const struct disk_node *node);
uint64_t disk_size(const struct disk_node *node); // of a file

/* The index-th name in a folder; NULL: it has not so many. */
const char *disk_name(const struct disk_node *folder, uint32_t index);

/* A file has exactly what was written to it. */
bool disk_is_intact(const struct disk_node *file);

/* What a file has. Borrowed until something is written. */
const void *disk_bytes(const struct disk_node *file);

enum disk_damage { DISK_DAMAGE_CUT, DISK_DAMAGE_BIT, DISK_DAMAGE_GONE, DISK_DAMAGES };

/* Damages what was there for good. */
void disk_damage(struct disk_node *folder, const char *name, enum disk_damage damage);

/* What the calls do. They return 0 or an errno. */
int disk_make(struct disk_node *folder, const char *name, bool is_folder,
              struct disk_node **ret_node);
int disk_write(struct disk_node *file, const void *bytes, size_t size, uint64_t offset,
               size_t *ret_wrote);
size_t disk_read(const struct disk_node *file, void *ret_bytes, size_t size, uint64_t offset);
int disk_sync(struct disk_node *node);
int disk_rename(struct disk_node *folder, const char *from, const char *to);
int disk_remove(struct disk_node *folder, const char *name, bool is_folder);

/* What a descriptor has open. */
int disk_open(struct disk_node *node); // -1 and errno
struct disk_node *disk_opened(int fd); // NULL: no descriptor of the disk
void disk_close(int fd);

#endif
