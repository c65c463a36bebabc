#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/syscall.h>
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
    default: return CLINUX_WAIT_NONE;
  }
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
