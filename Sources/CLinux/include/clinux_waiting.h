#ifndef CLINUX_WAITING_H
#define CLINUX_WAITING_H

#include <stdint.h>

// How a system call says when it will return by itself. The numbers of calls are macros that differ by
// architecture.
enum clinux_wait {
  CLINUX_WAIT_NONE = 0,
  CLINUX_WAIT_MILLISECONDS,       // an int; negative: for ever
  CLINUX_WAIT_TIMESPEC,           // a pointer to a relative one; NULL: for ever
  CLINUX_WAIT_TIMEVAL,            // the same with microseconds
  CLINUX_WAIT_TIMESPEC_ABSOLUTE,  // by CLOCK_MONOTONIC
  CLINUX_WAIT_TIMESPEC_REALTIME,  // absolute, by CLOCK_REALTIME
};

// Of a call with its six arguments; `argument`: which one of them holds the time.
enum clinux_wait clinux_wait_of(int64_t number, const uint64_t *arguments, int *argument);

#endif
