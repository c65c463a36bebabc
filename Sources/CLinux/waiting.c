#define _GNU_SOURCE
#include <linux/futex.h>
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
