#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "clinux_waiting.h"

static enum clinux_wait absolute(uint64_t clock) {
  switch (clock) {
    case CLOCK_REALTIME: return CLINUX_WAIT_TIMESPEC_REALTIME;
    case CLOCK_MONOTONIC: return CLINUX_WAIT_TIMESPEC_ABSOLUTE;
    default: return CLINUX_WAIT_NONE;
  }
}

static enum clinux_wait futex(uint64_t operation) {
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT: return CLINUX_WAIT_TIMESPEC;
    case FUTEX_WAIT_BITSET:
      return absolute(operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC);
    default: return CLINUX_WAIT_NONE;
  }
}

// Returns the kind of a call on a socket. Its timeout is the socket's own (SO_RCVTIMEO,
// SO_SNDTIMEO).
static enum clinux_wait on_a_socket(int64_t number) {
  switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_preadv2:
    case SYS_accept:
    case SYS_accept4: return CLINUX_WAIT_RECEIVING;
    case SYS_write:
    case SYS_writev:
    case SYS_pwritev2:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg: return CLINUX_WAIT_SENDING;
    default: return CLINUX_WAIT_NONE;
  }
}

enum clinux_wait clinux_wait_of(int64_t number, const uint64_t *arguments, int *argument) {
  *argument = 0;
  switch (number) {
#ifdef SYS_poll
    case SYS_poll: *argument = 2; return CLINUX_WAIT_MILLISECONDS;
#endif
#ifdef SYS_epoll_wait
    case SYS_epoll_wait: *argument = 3; return CLINUX_WAIT_MILLISECONDS;
#endif
    case SYS_epoll_pwait: *argument = 3; return CLINUX_WAIT_MILLISECONDS;
#ifdef SYS_select
    case SYS_select: *argument = 4; return CLINUX_WAIT_TIMEVAL;
#endif
    case SYS_pselect6: *argument = 4; return CLINUX_WAIT_TIMESPEC;
    case SYS_ppoll: *argument = 2; return CLINUX_WAIT_TIMESPEC;
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2: *argument = 3; return CLINUX_WAIT_TIMESPEC;
#endif
    case SYS_rt_sigtimedwait: *argument = 2; return CLINUX_WAIT_TIMESPEC;
    case SYS_nanosleep: *argument = 0; return CLINUX_WAIT_TIMESPEC;
    case SYS_clock_nanosleep:
      *argument = 2;
      return arguments[1] & TIMER_ABSTIME ? absolute(arguments[0]) : CLINUX_WAIT_TIMESPEC;
    case SYS_futex: *argument = 3; return futex(arguments[1]);
#ifdef SYS_futex_waitv
    case SYS_futex_waitv: *argument = 3; return absolute(arguments[4]);
#endif
    case SYS_semtimedop: *argument = 3; return CLINUX_WAIT_TIMESPEC;
    case SYS_io_getevents: *argument = 4; return CLINUX_WAIT_TIMESPEC;
#ifdef SYS_io_pgetevents
    case SYS_io_pgetevents: *argument = 4; return CLINUX_WAIT_TIMESPEC;
#endif
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend: *argument = 4; return CLINUX_WAIT_TIMESPEC_REALTIME;
    default: return on_a_socket(number);
  }
}

enum clinux_again clinux_again_of(int64_t number) {
  switch (number) {
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait: return CLINUX_AGAIN_FROM_REGISTER;
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2: return CLINUX_AGAIN_AS_EPOLL_PWAIT;
#endif
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:
    case SYS_ppoll: return CLINUX_AGAIN_FROM_REMAINDER;
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents:
#ifdef SYS_io_pgetevents
    case SYS_io_pgetevents:
#endif
      return CLINUX_AGAIN_FROM_MEMORY;
    default:
      return on_a_socket(number) == CLINUX_WAIT_NONE ? CLINUX_AGAIN_AS_IT_IS
                                                     : CLINUX_AGAIN_FROM_SOCKET;
  }
}

// Returns 1 for calls that have had no effect when they return EINTR, so that they can be made
// again, as the program would do. close() and connect(), for example, aren't among them. select()
// and its relatives return EINTR for a stop if the kernel can't write the remaining time to the
// program's memory.
int clinux_may_be_made_again(int64_t number) {
  switch (number) {
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
    case 441:  // epoll_pwait2
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:
    case SYS_ppoll:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_sendmmsg:
    case SYS_io_getevents:
#ifdef SYS_io_pgetevents
    case SYS_io_pgetevents:
#endif
    case 426:  // io_uring_enter: it returns the number of requests if it has submitted any
      return 1;
  }
  return 0;
}

// The result depends on the call as it was made: the kernel doesn't show what it has done so far.
enum clinux_division clinux_division_of(int64_t number, const uint64_t *arguments) {
  enum { GETEVENTS = 1 };
  switch (number) {
    case SYS_write: return arguments[2] > 1 ? CLINUX_DIVISION_OF_WRITE : CLINUX_DIVISION_NONE;
    case SYS_sendto: return arguments[2] > 1 ? CLINUX_DIVISION_ANY : CLINUX_DIVISION_NONE;
    case SYS_writev:
    case SYS_pwritev2:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile: return CLINUX_DIVISION_ANY;
    case SYS_recvfrom:
      return arguments[3] & MSG_WAITALL && arguments[2] > 1 ? CLINUX_DIVISION_ANY
                                                            : CLINUX_DIVISION_NONE;
    case SYS_recvmsg:
      return arguments[2] & MSG_WAITALL ? CLINUX_DIVISION_ANY : CLINUX_DIVISION_NONE;
    case SYS_recvmmsg:
      return arguments[2] > 1 && !(arguments[3] & MSG_WAITFORONE) ? CLINUX_DIVISION_ANY
                                                                  : CLINUX_DIVISION_NONE;
    case 426:  // io_uring_enter that has submitted and waits
      return arguments[1] && arguments[2] && arguments[3] & GETEVENTS ? CLINUX_DIVISION_ANY
                                                                      : CLINUX_DIVISION_NONE;
    default: return CLINUX_DIVISION_NONE;
  }
}

int64_t clinux_number_of_epoll_pwait(void) { return SYS_epoll_pwait; }
int clinux_is_restart(int64_t number) { return number == SYS_restart_syscall; }

int clinux_is_fork(int64_t number) {
#ifdef SYS_fork
  if (number == SYS_fork) return 1;
#endif
  return number == SYS_clone || number == SYS_clone3;
}

int clinux_is_mremap(int64_t number) { return number == SYS_mremap; }

int clinux_may_fork_or_move(int64_t number, uint64_t first_argument) {
  switch (number) {
#ifdef SYS_fork
    case SYS_fork: return 1;
#endif
    case SYS_clone: return !(first_argument & CLONE_VM);
    case SYS_clone3: return 1;
    case SYS_mremap: return 1;
    default: return 0;
  }
}

int64_t clinux_socket_timeout(int fd, int sending) {
  struct timeval time;
  socklen_t length = sizeof time;
  if (getsockopt(fd, SOL_SOCKET, sending ? SO_SNDTIMEO : SO_RCVTIMEO, &time, &length) < 0)
    return -errno;
  if (time.tv_sec < 0 || time.tv_sec >= 1LL << 32) return 0;
  return time.tv_sec * 1000000000 + time.tv_usec * 1000;
}

int clinux_is_ready(int fd, int sending) {
  struct pollfd entry = {.fd = fd, .events = sending ? POLLOUT : POLLIN};
  return poll(&entry, 1, 0) > 0;
}

int clinux_run_on_processor(int processor, void *before, int64_t length) {
  cpu_set_t *old = before;
  size_t size = (size_t)length;
  if (sched_getaffinity(0, size, old) < 0) return -errno;
  if (processor < 0 || processor >= (int)(size * 8)) return -EINVAL;
  cpu_set_t *one = CPU_ALLOC(size * 8);
  if (!one) return -ENOMEM;
  CPU_ZERO_S(size, one);
  CPU_SET_S(processor, size, one);
  int result = sched_setaffinity(0, size, one) < 0 ? -errno : 0;
  CPU_FREE(one);
  return result;
}

int clinux_run_on_processors(const void *set, int64_t length) {
  return sched_setaffinity(0, (size_t)length, set) < 0 ? -errno : 0;
}
static enum clinux_outside shared_futex(uint64_t operation) {
  if (operation & FUTEX_PRIVATE_FLAG) return CLINUX_OUTSIDE_NONE;
  uint64_t command = operation & FUTEX_CMD_MASK;
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ? CLINUX_OUTSIDE_FUTEX
                                                                : CLINUX_OUTSIDE_NONE;
}

static enum clinux_outside record_lock(uint64_t command) {
  return command == F_SETLKW || command == F_OFD_SETLKW ? CLINUX_OUTSIDE_LOCK
                                                        : CLINUX_OUTSIDE_NONE;
}

enum clinux_outside clinux_outside_of(int64_t number, const uint64_t *arguments) {
  switch (number) {
#ifdef SYS_open
    case SYS_open: return CLINUX_OUTSIDE_OPEN;
#endif
    case SYS_openat: return CLINUX_OUTSIDE_OPENAT;
#ifdef SYS_openat2
    case SYS_openat2: return CLINUX_OUTSIDE_OPENAT2;
#endif
    case SYS_fcntl: return record_lock(arguments[1]);
    case SYS_flock: return arguments[1] & LOCK_NB ? CLINUX_OUTSIDE_NONE : CLINUX_OUTSIDE_LOCK;
    case SYS_futex: return shared_futex(arguments[1]);
    case SYS_semop:
    case SYS_semtimedop: return CLINUX_OUTSIDE_SEMAPHORE;
    case SYS_msgrcv: return CLINUX_OUTSIDE_MESSAGE;
    case SYS_mq_timedreceive: return CLINUX_OUTSIDE_QUEUE;
    default: return CLINUX_OUTSIDE_NONE;
  }
}

enum clinux_awaited clinux_awaited_of(int64_t number) {
  switch (number) {
    case SYS_accept:
    case SYS_accept4: return CLINUX_AWAITED_ONE;
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
    case 441: return CLINUX_AWAITED_EPOLL;  // epoll_pwait2
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll: return CLINUX_AWAITED_POLL;
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6: return CLINUX_AWAITED_SELECT;
    case SYS_restart_syscall:
    case 426: return CLINUX_AWAITED_UNKNOWN;  // io_uring_enter
    default: return CLINUX_AWAITED_NONE;
  }
}
