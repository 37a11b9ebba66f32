/* Plans an all-reduce by halving and doubling: which worker gives what to which. Arithmetic only.
 *
 * The textbook's recursive halving (Thakur, Rabenseifner and Gropp 2005) adds up on the way, so
 * its sums have the order of a tree, and needs a power of two. Here values are handed on as they
 * are, and only the rank that a chunk belongs to adds them up, in the order of the ring. That is
 * both operations of Bruck, Ho, Kipnis, Upfal and Weathersby 1997, for any number N of workers, in
 * K = ceil(log2 N) rounds each. A piece is what one rank has for one chunk, S/N of S:
 *
 *     halving    (hops 1 .. K, "index") the piece that rank c + a has for chunk c is a ranks ahead
 *                of where it is to go. In round k = 0 .. K-1 every piece whose a has bit k goes 2^k
 *                ranks back. After it a worker has pieces for half as many chunks as before, from
 *                twice as many ranks each; after the last one those of all ranks for chunk c are
 *                at rank c.
 *     doubling   (hops K+1 .. 2K, "concatenation") at first rank c has the mean of chunk c, then
 *                those of chunks c .. c + 2^k - 1; in round k it gives them to rank c - 2^k, as far
 *                as that one lacks them.
 *
 * So in a hop of round k rank r sends one message to r - 2^k and gets one from r + 2^k, modulo N:
 * everybody has K ranks to send to. Out of each worker, and into it, go
 *
 *     halving    the bits that are set in all of 0 .. N-1 together, in pieces; N/2 log2 N of them,
 *                or S/2 log2 N, if N is a power of two
 *     doubling   N - 1 pieces
 *
 * From N = 4 on that is more than the 2(N-1) pieces of ring and direct (1.4 times as many among 8
 * workers, 1.8 times among 32), but no more than 2K messages, one after the other. */
#ifndef COMMON_PLAN_HALVING_PLAN_H
#define COMMON_PLAN_HALVING_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* A worker keeps pieces of one size in a store: those that it has to hand on, by the hop in which
 * they go, then the means of chunks rank, rank + 1, ..., rank + N-1. A message is a part of it. */
struct halving_hop {
    bool is_doubling;  // pieces are means; otherwise values
    bool completes;    // after it the values of all ranks have come
    bool goes_on;      // another hop follows
    uint32_t distance; // 2^k
    uint32_t first;    // in the sender's store
    uint32_t count;    // pieces
};

/* 2K; 0 if world is 1. */
uint32_t halving_hop_count(uint32_t world);

/* hop in 1 .. halving_hop_count(world). */
struct halving_hop halving_hop_at(uint32_t world, uint32_t hop);

/* Whether a worker sends to the one that is `offset` ranks ahead of it, in any hop. */
bool halving_meets(uint32_t world, uint32_t offset);

/* Pieces that a worker sends as values; then it has places for `world` means. */
uint32_t halving_value_count(uint32_t world);

/* By how many ranks its owner is ahead of where it is to go: the piece at `index` of a halving
 * hop's message. Ascending. */
uint32_t halving_ahead(const struct halving_hop *hop, uint32_t index);

/* Where in the store a piece of values is kept whose moves of less than `distance` are done, and
 * some others are not. */
uint32_t halving_place(uint32_t world, uint32_t ahead, uint32_t distance);

#endif
