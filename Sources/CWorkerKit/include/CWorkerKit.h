// The system calls of WorkerKit. Small, and without decisions: what Swift can't call (sendmsg with a
// descriptor, fallocate), and what differs between systems, so that the Swift code is the same everywhere.
//
// Every function returns a value >= 0, or -errno.
#ifndef CWORKERKIT_H
#define CWORKERKIT_H
#include <stdint.h>

// A connection to a Unix stream socket, non-blocking, closed on exec. A path that begins with '@' is an
// abstract one.
int workerkit_connect(const char *path);
// Sends what the socket takes now, with a descriptor unless that is -1. -EAGAIN: it is full.
int64_t workerkit_send(int socket, const void *bytes, int64_t length, int descriptor);
// -EAGAIN: nothing there; 0: the end.
int64_t workerkit_receive(int socket, void *bytes, int64_t capacity);
// Ends both directions, which wakes a thread that waits for the socket.
void workerkit_shut(int socket);
// EAGAIN.
extern const int workerkit_again;
void workerkit_close(int descriptor);
// A pipe, non-blocking, closed on exec.
int workerkit_pipe(int *reading, int *writing);

enum { WORKERKIT_READABLE = 1, WORKERKIT_WRITABLE = 2, WORKERKIT_WOKEN = 4 };
// Waits until the socket (unless it is -1) can be read, or written where that is asked for, or a byte
// is in the pipe, which is taken out. Time-out in milliseconds, -1 for ever. Returns which.
int workerkit_wait(int socket, int for_writing, int pipe, int timeout);
void workerkit_wake(int pipe);

// A thread with a small stack that gets no signals.
int workerkit_start_thread(void (*body)(void *), void *argument);
// A copy of an environment variable's value, or NULL; to be freed.
char *workerkit_environment(const char *name);
void workerkit_release(char *text);
void workerkit_at_exit(void (*body)(void));
void workerkit_print_error(const char *text, int64_t length);
// Milliseconds of a clock that doesn't stop.
int64_t workerkit_milliseconds(void);

// From now on the allocator keeps little of freed memory by itself; see there.
void workerkit_keep_heap_small(void);
// Gives back what the allocator keeps of freed memory (malloc_trim(3), or what the system has like it).
void workerkit_trim(void);
int64_t workerkit_page_size(void);

// Memory that can be given to the daemon: a file of that size, sealed against shrinking and growing.
// -ENOTSUP where the system has none, -EFBIG where the process may not make a file as large.
int workerkit_memory_file(int64_t size);
// Maps the file, or with -1 private memory; not inherited by children. 0 or -errno in *error.
void *workerkit_map(int file, int64_t length, int *error);
void workerkit_unmap(void *address, int64_t length);
// Gives whole pages of the mapping back; they read as zero afterwards.
int workerkit_punch(int file, void *mapping, int64_t offset, int64_t length);

// A whole small file into a buffer; its length, cut at the capacity.
int64_t workerkit_read_file(const char *path, void *buffer, int64_t capacity);
// Its physical footprint, where the system just says it (macOS); else -ENOTSUP.
int64_t workerkit_physical_footprint(void);
#endif
