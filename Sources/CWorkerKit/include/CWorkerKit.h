// The system calls of WorkerKit. The functions are small and decide nothing. They do what Swift
// can't call (sendmsg with a descriptor, fallocate) and what differs between systems, so that the
// Swift code is the same everywhere.
//
// A function that returns a number returns a value >= 0, or -errno. Each function may be called
// from any thread.
#ifndef CWORKERKIT_H
#define CWORKERKIT_H
#include <stdint.h>

// Connects to a Unix stream socket. Returns its descriptor, which is non-blocking and closed on
// exec. A path that begins with '@' is an abstract socket's.
int workerkit_connect(const char *path);
// Sends as much as the socket accepts now, and returns the number of bytes. The descriptor is sent
// with the first byte; -1 means none. Returns -EAGAIN if the socket is full.
int64_t workerkit_send(int socket, const void *bytes, int64_t length, int descriptor);
// Reads what has arrived, and returns the number of bytes. Returns -EAGAIN if there is nothing, and
// 0 at the end of the connection.
int64_t workerkit_receive(int socket, void *bytes, int64_t capacity);
// Ends both directions, which wakes a thread that waits for the socket.
void workerkit_shut(int socket);
// The value of EAGAIN.
extern const int workerkit_again;
// Closes a descriptor.
void workerkit_close(int descriptor);
// Creates a pipe whose ends are non-blocking and closed on exec.
int workerkit_pipe(int *reading, int *writing);

// The results of workerkit_wait: the socket can be read or has ended, it can be written, a byte was
// in the pipe.
enum { WORKERKIT_READABLE = 1, WORKERKIT_WRITABLE = 2, WORKERKIT_WOKEN = 4 };
// Waits until the socket can be read, or written if for_writing isn't 0, or until a byte is in the
// pipe; the bytes in the pipe are read and dropped. A socket of -1 is ignored. The timeout is in
// milliseconds; -1 means none. Returns the results above, or 0 after the timeout or a signal.
int workerkit_wait(int socket, int for_writing, int pipe, int timeout);
// Writes a byte into the pipe, which ends a wait of another thread.
void workerkit_wake(int pipe);

// Starts a detached thread with a stack of 512 KiB. It gets no signals.
int workerkit_start_thread(void (*body)(void *), void *argument);
// Returns a copy of the value of an environment variable, or NULL. Free it with workerkit_release.
char *workerkit_environment(const char *name);
// Frees a text that workerkit_environment returned.
void workerkit_release(char *text);
// Calls body when the process exits normally.
void workerkit_at_exit(void (*body)(void));
// Writes the text to standard error, as far as that is possible.
void workerkit_print_error(const char *text, int64_t length);
// Returns the time of CLOCK_MONOTONIC in milliseconds.
int64_t workerkit_milliseconds(void);

// From now on the allocator keeps little of the memory that is freed. memory.c has the reason.
void workerkit_keep_heap_small(void);
// Returns freed memory that the allocator keeps to the system: by malloc_trim(3), or the system's
// equivalent.
void workerkit_trim(void);
// Returns the size of a page in bytes.
int64_t workerkit_page_size(void);

// Creates a file of memory that can be given to the daemon, sealed against shrinking and growing.
// Returns its descriptor, -ENOTSUP if the system has no such files, and -EFBIG if the process's
// limit of file sizes is lower.
int workerkit_memory_file(int64_t size);
// Maps the file, or private memory with -1. Children don't inherit the mapping. Returns NULL if it
// fails, and sets *error to 0 or -errno.
void *workerkit_map(int file, int64_t length, int *error);
// Removes a mapping.
void workerkit_unmap(void *address, int64_t length);
// Frees whole pages of the mapping. They read as zeros afterwards.
int workerkit_punch(int file, void *mapping, int64_t offset, int64_t length);

// Reads a small file into the buffer, up to its capacity. Returns the number of bytes.
int64_t workerkit_read_file(const char *path, void *buffer, int64_t capacity);
// Returns the process's physical footprint in bytes if the system reports it (macOS), else
// -ENOTSUP.
int64_t workerkit_physical_footprint(void);
#endif
