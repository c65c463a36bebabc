#define _GNU_SOURCE
#include "clinux_inputs.h"
#include "clinux_system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
#define CLINUX_IOCB_CMD_POLL 5

static int option(int fd, int level, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  return getsockopt(fd, level, name, &value, &length) < 0 ? -1 : value;
}

static void tcp_facts(int fd, struct clinux_socket *facts) {
  struct tcp_info info;
  memset(&info, 0, sizeof info);
  socklen_t length = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return;
  facts->is_tcp = 1;
  facts->tcp_state = info.tcpi_state;
  facts->milliseconds_since_received = info.tcpi_last_data_recv;
  facts->milliseconds_since_sent = info.tcpi_last_data_sent;
  facts->milliseconds_since_acknowledged = info.tcpi_last_ack_recv;
  facts->bytes_received = info.tcpi_bytes_received;
  facts->bytes_sent = info.tcpi_bytes_sent;
  // For listeners the field has the number of connections that are ready to be accepted.
  if (facts->is_listening) facts->unread = info.tcpi_unacked;
}

int clinux_socket_facts(int fd, struct clinux_socket *facts) {
  memset(facts, 0, sizeof *facts);
  facts->type = option(fd, SOL_SOCKET, SO_TYPE);
  if (facts->type < 0) return -errno;
  facts->family = option(fd, SOL_SOCKET, SO_DOMAIN);
  facts->is_listening = option(fd, SOL_SOCKET, SO_ACCEPTCONN) > 0;
  facts->unread = -1;
  if (facts->family == AF_UNIX) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0) facts->peer = peer.pid;
  }
  if (facts->type == SOCK_STREAM) {
    if (!facts->is_listening) facts->unread = clinux_unread_bytes(fd);
    if (facts->family == AF_INET || facts->family == AF_INET6) tcp_facts(fd, facts);
  } else {
    // For unread bytes, a datagram socket reports the first datagram only.
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof memory;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length) == 0)
      facts->unread = memory[SK_MEMINFO_RMEM_ALLOC];
  }
  return 0;
}

int64_t clinux_unread_bytes(int fd) {
  int count = 0;
  return ioctl(fd, FIONREAD, &count) < 0 ? -1 : count;
}

int clinux_keep_only(int fd) {
  if (syscall(SYS_close_range, 0, ~0U, 2 /* CLOSE_RANGE_UNSHARE */) < 0) return -errno;
  // The first thread has the process's table still.
  int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
  if (process < 0) return -errno;
  int copy = clinux_pidfd_getfd(process, fd), code = errno;
  close(process);
  return copy < 0 ? -code : copy;
}

int clinux_file_type(const char *path, struct clinux_file_type *type) {
  struct statx status;
  if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &status) < 0) return -errno;
  type->is_fifo = S_ISFIFO(status.stx_mode);
  type->is_character_device = S_ISCHR(status.stx_mode);
  type->major = status.stx_rdev_major;
  type->minor = status.stx_rdev_minor;
  type->inode = status.stx_ino;
  return 0;
}

int clinux_is_terminal(int fd) { return isatty(fd); }

int clinux_open_cached(const char *start, const char *path) {
  int directory = open(start, O_PATH | O_CLOEXEC);
  if (directory < 0) return -errno;
  // It is zeroed as a whole, because openat2(2) refuses unknown values in every field.
  struct open_how how;
  memset(&how, 0, sizeof how);
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_CACHED;
  long fd = syscall(SYS_openat2, directory, path, &how, sizeof how);
  int error = errno;
  close(directory);
  return fd < 0 ? -error : (int)fd;
}

int clinux_has_writer(int reader) {
  int scratch[2];
  if (pipe2(scratch, O_CLOEXEC | O_NONBLOCK) < 0) return -errno;
  ssize_t count = tee(reader, scratch[1], 1, SPLICE_F_NONBLOCK);
  int error = errno;
  close(scratch[0]);
  close(scratch[1]);
  if (count >= 0) return count > 0;
  return error == EAGAIN ? 1 : -error;
}

int clinux_watch_opens(int descriptor) {
  int watcher = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (watcher < 0) return -errno;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  if (inotify_add_watch(watcher, path, IN_OPEN) >= 0) return watcher;
  int error = errno;
  close(watcher);
  return -error;
}

// The handler does nothing: the signal's delivery interrupts a system call.
static void interrupt(int number) { (void)number; }

int clinux_accept(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return fd < 0 ? -errno : fd;
}

int clinux_accept_shared(int listener) {
  // O_NONBLOCK is a flag of the listener, which its other owners share, so it can't be set here.
  // Another owner may accept a connection between its announcement and this accept. So a timer that
  // fires every 10 ms ends the wait.
  int number = SIGRTMAX - 3;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = interrupt;
  sigaction(number, &action, NULL);
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = number;
  event._sigev_un._tid = gettid();
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0) return -errno;
  sigset_t one, mask;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, &mask);
  struct itimerspec often = {{0, 10000000}, {0, 10000000}};
  timer_settime(timer, 0, &often, NULL);
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  int error = errno;
  timer_delete(timer);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  if (fd >= 0) return fd;
  return error == EINTR ? -EAGAIN : -error;
}

uint64_t clinux_aio_setup(int capacity, int *error) {
  aio_context_t context = 0;
  *error = syscall(SYS_io_setup, capacity, &context) < 0 ? errno : 0;
  return context;
}

int clinux_aio_destroy(uint64_t context) {
  return syscall(SYS_io_destroy, context) < 0 ? -errno : 0;
}

int clinux_aio_request_size(void) { return sizeof(struct iocb); }

int clinux_aio_poll(uint64_t context, void *request, int fd, uint32_t events, uint64_t token) {
  struct iocb *block = request;
  memset(block, 0, sizeof *block);
  block->aio_data = token;
  block->aio_lio_opcode = CLINUX_IOCB_CMD_POLL;
  block->aio_fildes = (uint32_t)fd;
  block->aio_buf = events;
  return syscall(SYS_io_submit, context, 1, &block) < 0 ? -errno : 0;
}

int clinux_aio_cancel(uint64_t context, void *request) {
  struct io_event unused;
  return syscall(SYS_io_cancel, context, request, &unused) < 0 ? -errno : 0;
}

int clinux_aio_collect(uint64_t context, uint64_t *tokens, int capacity) {
  struct io_event events[64];
  struct timespec now = {0};
  int limit = capacity < 64 ? capacity : 64;
  int count = (int)syscall(SYS_io_getevents, context, 0, limit, events, &now);
  if (count < 0) return -errno;
  for (int i = 0; i < count; i++) tokens[i] = events[i].data;
  return count;
}
