/* What threads need to read a sample, kept between samples: as many as there are threads that read
 * at once. */
#ifndef WORKER_DATA_IDLE_LIST_H
#define WORKER_DATA_IDLE_LIST_H

#include <pthread.h>

/* First member of what is kept. */
struct idle_entry {
    struct idle_entry *next;
};

struct idle_list {
    pthread_mutex_t lock;
    struct idle_entry *first; // guarded by the lock
};

void idle_list_init(struct idle_list *list);

/* Empty it first. */
void idle_list_finish(struct idle_list *list);

/* One that nobody uses, for the caller alone; NULL: there is none, and the caller makes one. */
struct idle_entry *idle_list_take(struct idle_list *list);
void idle_list_return(struct idle_list *list, struct idle_entry *entry);

#endif
