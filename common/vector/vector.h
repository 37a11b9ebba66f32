/* Arithmetic on float vectors, vectorised by run-time dispatch (AVX-512, AVX2, portable).
 *
 * The variants are compiled from the same lines, element by element without reassociation, so they
 * agree in every bit. */
#ifndef COMMON_VECTOR_VECTOR_H
#define COMMON_VECTOR_VECTOR_H

#include <stdbool.h>
#include <stddef.h>

/* to[i] += from[i] */
void vector_add(float *to, const float *from, size_t count);

/* to[i] = a[i] + b[i]; `to` may be a or b. */
void vector_sum(float *to, const float *a, const float *b, size_t count);

/* to[i] *= factor */
void vector_scale(float *to, float factor, size_t count);

/* Every one of the vectors becomes their sum, added up in the order in which they are given, times
 * the factor. No two may overlap; at least one. */
void vector_mean(float *const *vectors, size_t vector_count, float factor, size_t count);

/* No infinity and no NaN among them. */
bool vector_is_finite(const float *values, size_t count);

/* "avx512", "avx2" or "portable": what this machine runs. */
const char *vector_variant(void);

#endif
