/* The C library's contexts, which save the signal mask as well. */
#include "tests/sim/context.h"

#include <stdlib.h>
#include <ucontext.h>

struct context {
    ucontext_t saved;
};

struct context *context_create(void)
{
    struct context *context = calloc(1, sizeof(*context));
    if (context == NULL || getcontext(&context->saved) != 0) {
        abort();
    }
    return context;
}

struct context *context_create_on(void *stack, size_t stack_bytes, void (*run)(void))
{
    struct context *context = context_create();
    context->saved.uc_stack.ss_sp = stack;
    context->saved.uc_stack.ss_size = stack_bytes;
    makecontext(&context->saved, run, 0);
    return context;
}

void context_destroy(struct context *context)
{
    free(context);
}

void context_switch(struct context *from, struct context *to)
{
    swapcontext(&from->saved, &to->saved);
}
