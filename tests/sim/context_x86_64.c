/* Saves the registers that a function call preserves (System V), and changes the stack. */
#include "tests/sim/context.h"

#include <stdint.h>
#include <stdlib.h>

struct context {
    void *top; // of its stack, where the registers lie
};

void sim_switch(void **ret_top, void *top);

__asm__(".text\n"
        ".globl sim_switch\n"
        ".type sim_switch, @function\n"
        "sim_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size sim_switch, . - sim_switch\n");

#define SAVED_REGISTERS 6

struct context *context_create(void)
{
    struct context *context = calloc(1, sizeof(*context));
    if (context == NULL) {
        abort();
    }
    return context;
}

struct context *context_create_on(void *stack, size_t stack_bytes, void (*run)(void))
{
    struct context *context = context_create();
    // A function begins with its stack 8 bytes off a multiple of 16, where its return address lies.
    uintptr_t *top = (uintptr_t *)stack + stack_bytes / sizeof(uintptr_t) - 1;
    *--top = (uintptr_t)run;
    for (int i = 0; i < SAVED_REGISTERS; i++) {
        *--top = 0;
    }
    context->top = top;
    return context;
}

void context_destroy(struct context *context)
{
    free(context);
}

void context_switch(struct context *from, struct context *to)
{
    sim_switch(&from->top, to->top);
}
