/* Switches between stacks: context_x86_64.c, or context_ucontext.c where the processor is another
 * one. The first takes some nanoseconds, the second two system calls. */
#ifndef TESTS_SIM_CONTEXT_H
#define TESTS_SIM_CONTEXT_H

#include <stddef.h>

struct context;

/* That of whoever calls first. */
struct context *context_create(void);

/* One that calls run() on this stack when it is first switched to. It must not return. */
struct context *context_create_on(void *stack, size_t stack_bytes, void (*run)(void));
void context_destroy(struct context *context); // NULL is fine

/* Goes on where `to` was left; returns when somebody switches back to `from`. */
void context_switch(struct context *from, struct context *to);

#endif
