#ifndef CLINUX_PASSING_H
#define CLINUX_PASSING_H
#include <stdint.h>

// recvmsg(2) without waiting: bytes of a stream, and the last of the descriptors that came with them
// (SCM_RIGHTS), -1 where none did. Whatever else was passed is closed before this returns, so that
// nobody can fill our table; what the kernel had no room for, it never installed.
int64_t clinux_receive_with_descriptor(int fd, void *buffer, int64_t capacity, int *passed);

// sendmsg(2) with one descriptor along, for tests and for whoever offers memory.
int64_t clinux_send_with_descriptor(int fd, const void *bytes, int64_t count, int passed);
#endif
