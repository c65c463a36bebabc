#ifndef CLINUX_INPUTS_H
#define CLINUX_INPUTS_H
#include <stdint.h>
#include <sys/types.h>

// The properties of a socket, from any descriptor of it. TCP's fields are 0 for other sockets.
struct clinux_socket {
  int family, type;
  int is_listening;
  int is_tcp;
  int tcp_state;  // TCP_ESTABLISHED = 1 … (linux/tcp_states.h)
  uint32_t milliseconds_since_received;
  uint32_t milliseconds_since_sent;
  uint32_t milliseconds_since_acknowledged;  // by the other end
  uint64_t bytes_received, bytes_sent;
  int64_t unread;  // bytes, or connections that wait to be accepted; -1: unknown
  pid_t peer;  // Unix sockets: the process that made the other end (SO_PEERCRED); otherwise 0
};
int clinux_socket_facts(int fd, struct clinux_socket *facts);
// Returns the number of bytes that can be read from a pipe, or -1.
int64_t clinux_unread_bytes(int fd);
// Gives the calling thread a table of descriptors of its own, which has nothing but a copy of `fd`.
// Returns the copy, or -errno.
int clinux_keep_only(int fd);

struct clinux_file_type {
  int is_fifo, is_character_device;
  uint32_t major, minor;  // of a device
  uint64_t inode;
};
// Reads the type of a file by its path, without asking a file server (AT_STATX_DONT_SYNC).
int clinux_file_type(const char *path, struct clinux_file_type *type);
// Returns 1 for a terminal (isatty(3)).
int clinux_is_terminal(int fd);

// The next three functions are for FIFOs that a worker waits to open.
//
// Opens an O_PATH descriptor of the file that `path` names, seen from the directory `start`. The
// file is found in the kernel's cache of names alone (RESOLVE_CACHED, Linux 5.12): the call never
// waits for a file system, and fails with EAGAIN instead. `start` is `/` or a link of /proc/PID,
// which needs no file system either.
int clinux_open_cached(const char *start, const char *path);
// Returns 1 if a FIFO has an open writer or unread data. No data is removed: tee(2) copies into
// another pipe, and returns EAGAIN for an empty FIFO with a writer.
int clinux_has_writer(int reader);
// Makes an inotify descriptor that becomes readable when another process opens the same file.
int clinux_watch_opens(int descriptor);

// Calls accept4(2) with SOCK_CLOEXEC | SOCK_NONBLOCK. The client's address isn't read.
int clinux_accept(int listener);
// Accepts a connection from a listener that other processes share, and which may block because of
// them. It waits for at most 10 ms.
int clinux_accept_shared(int listener);

// Linux's native AIO, used only for a poll that is submitted once, and whose completion stays until
// it is read (IOCB_CMD_POLL, Linux 4.18).
uint64_t clinux_aio_setup(int capacity, int *error);
int clinux_aio_destroy(uint64_t context);
// The size of a request in bytes. Its memory must stay at its address until the request has ended.
int clinux_aio_request_size(void);
int clinux_aio_poll(uint64_t context, void *request, int fd, uint32_t events, uint64_t token);
int clinux_aio_cancel(uint64_t context, void *request);
// Stores the tokens of requests that have ended, at most 64, without waiting. Returns their number.
int clinux_aio_collect(uint64_t context, uint64_t *tokens, int capacity);
#endif
