#ifndef CLINUX_INPUTS_H
#define CLINUX_INPUTS_H
#include <stdint.h>
#include <sys/types.h>

// What a socket is, from a duplicate of it. TCP's part is zero elsewhere.
struct clinux_socket {
  int family, type;
  int is_listening;
  int is_tcp;
  int tcp_state;             // TCP_ESTABLISHED = 1 … (linux/tcp_states.h)
  uint32_t milliseconds_since_received;
  uint32_t milliseconds_since_sent;
  uint32_t milliseconds_since_acknowledged;  // by the other end
  uint64_t bytes_received, bytes_sent;
  int64_t unread;            // bytes, or connections that wait to be accepted; -1: can't be told
  pid_t peer;                // Unix sockets: who made the other end (SO_PEERCRED), else 0
};
int clinux_socket_facts(int fd, struct clinux_socket *facts);
// Bytes that can be read from a pipe.
int64_t clinux_unread_bytes(int fd);
// 1: a FIFO. By name, and without asking a file server (AT_STATX_DONT_SYNC).
int clinux_is_fifo(const char *path);

// Linux's native AIO, for one of its operations only: a poll that is asked once, and stays answered
// (IOCB_CMD_POLL, Linux 4.18).
uint64_t clinux_aio_setup(int capacity, int *error);
int clinux_aio_destroy(uint64_t context);
// Bytes of a request; its memory must stay where it is until the request has ended.
int clinux_aio_request_size(void);
int clinux_aio_poll(uint64_t context, void *request, int fd, uint32_t events, uint64_t token);
int clinux_aio_cancel(uint64_t context, void *request);
// Those that have ended, without waiting; at most 64.
int clinux_aio_take(uint64_t context, uint64_t *tokens, int capacity);
#endif
