/* Which sanitizers look at reads and writes of this build. */
#ifndef WORKER_DEVICE_REF_SANITIZED_H
#define WORKER_DEVICE_REF_SANITIZED_H

#include <stdbool.h>

#if defined(__has_feature) // clang, and gcc from version 14 on
#define HAS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#define HAS_THREAD_SANITIZER  __has_feature(thread_sanitizer)
#else
#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER true
#else
#define HAS_ADDRESS_SANITIZER false
#endif
#if defined(__SANITIZE_THREAD__)
#define HAS_THREAD_SANITIZER true
#else
#define HAS_THREAD_SANITIZER false
#endif
#endif

#if HAS_ADDRESS_SANITIZER || HAS_THREAD_SANITIZER
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

#endif
