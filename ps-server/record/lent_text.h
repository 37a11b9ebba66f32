/* Texts for protobuf-c, which takes pointers to what may be changed, and changes nothing. */
#ifndef PS_SERVER_RECORD_LENT_TEXT_H
#define PS_SERVER_RECORD_LENT_TEXT_H

/* The same text; it has to stay until the message is packed. */
static inline char *lent_text(const char *text)
{
    union {
        const char *constant;
        char *changeable;
    } pointer = {.constant = text};
    return pointer.changeable;
}

#endif
