/* Keys as text: ZeroMQ's encoding of four bytes in five printable characters (RFC 32, Z85). Pure.
 */
#ifndef COMMON_SECURITY_Z85_H
#define COMMON_SECURITY_Z85_H

#include <stdbool.h>
#include <stddef.h>

#define Z85_TEXT_BYTES(size) ((size) / 4 * 5 + 1) // of so many bytes, terminator included

/* `size` must be a multiple of 4. */
void z85_encode(const unsigned char *bytes, size_t size, char *ret_text);

/* The first text_size characters. False, and ret_bytes undefined, unless they are the text of some
 * bytes: five for each four. */
bool z85_decode(const char *text, size_t text_size, unsigned char *ret_bytes);

#endif
