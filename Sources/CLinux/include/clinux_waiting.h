#ifndef CLINUX_WAITING_H
#define CLINUX_WAITING_H

#include <stdint.h>

// The ways in which system calls specify their timeout. The numbers of calls are macros that differ
// by architecture.
enum clinux_wait {
  CLINUX_WAIT_NONE = 0,
  CLINUX_WAIT_MILLISECONDS,  // an int; negative: without limit
  CLINUX_WAIT_TIMESPEC,  // a pointer to a relative timespec; NULL: without limit
  CLINUX_WAIT_TIMEVAL,  // a pointer to a relative timeval (microseconds); NULL: without limit
  CLINUX_WAIT_TIMESPEC_ABSOLUTE,  // a pointer to a time of CLOCK_MONOTONIC
  CLINUX_WAIT_TIMESPEC_REALTIME,  // a pointer to a time of CLOCK_REALTIME
  CLINUX_WAIT_RECEIVING,  // the socket's timeout (SO_RCVTIMEO), or without limit
  CLINUX_WAIT_SENDING,  // the socket's timeout (SO_SNDTIMEO), or without limit
};

// Returns how a call with its six arguments specifies its timeout. *argument: the index of the
// argument that contains it.
enum clinux_wait clinux_wait_of(int64_t number, const uint64_t *arguments, int *argument);

// The kernel's treatment of the time-out when it makes an interrupted call again.
enum clinux_again {
  // Nothing has to be done: the call has an absolute end, or the kernel stores its end
  // (restart_syscall(2)).
  CLINUX_AGAIN_AS_IT_IS = 0,
  CLINUX_AGAIN_FROM_REGISTER,  // the whole time, which is in a register
  CLINUX_AGAIN_AS_EPOLL_PWAIT,  // the whole time; epoll_pwait has it in milliseconds
  CLINUX_AGAIN_FROM_MEMORY,  // the whole time, which the kernel reads from the program's memory
  // the remaining time, which the kernel has written to the program's memory
  CLINUX_AGAIN_FROM_REMAINDER,
  CLINUX_AGAIN_FROM_SOCKET,  // the whole time, which is the socket's
};
enum clinux_again clinux_again_of(int64_t number);
// Calls that return a partial result if a stop interrupts them, which can't be changed afterwards.
enum clinux_division {
  CLINUX_DIVISION_NONE = 0,
  CLINUX_DIVISION_ANY,
  // Arguments: 0 descriptor, 2 number of bytes. To a pipe, up to PIPE_BUF bytes are written at once
  // or not at all.
  CLINUX_DIVISION_OF_WRITE,
};
enum clinux_division clinux_division_of(int64_t number, const uint64_t *arguments);
int64_t clinux_number_of_epoll_pwait(void);
// Returns 1 for restart_syscall(2).
int clinux_is_restart(int64_t number);
// Returns 1 for calls that have had no effect when they return EINTR.
int clinux_may_be_made_again(int64_t number);
// Returns 1 for fork(2), clone(2), clone3(2).
int clinux_is_fork(int64_t number);
// Returns 1 for a call that moves memory, or copies it for a child, or may do so. (The flags of
// clone3(2) are in the program's memory.)
int clinux_may_fork_or_move(int64_t number, uint64_t first_argument);

// Returns 1 for the number of mremap.
int clinux_is_mremap(int64_t number);

// Returns SO_RCVTIMEO or SO_SNDTIMEO in nanoseconds; 0: no timeout. One of 136 years or more counts
// as none, as in calls whose time is in memory: sums with it could overflow.
int64_t clinux_socket_timeout(int fd, int sending);
// Returns 1 if, by poll(2), receiving or sending wouldn't wait.
int clinux_is_ready(int fd, int sending);

// Runs the calling thread on one processor only. Stores the processors on which it may run now, one
// bit each, in `length` bytes. `clinux_run_on_processors` restores them.
int clinux_run_on_processor(int processor, void *before, int64_t length);
int clinux_run_on_processors(const void *set, int64_t length);

// Calls that another process can end although no descriptor of the caller becomes readable.
enum clinux_outside {
  CLINUX_OUTSIDE_NONE = 0,
  CLINUX_OUTSIDE_OPEN,  // arguments 0 path, 1 flags
  CLINUX_OUTSIDE_OPENAT,  // arguments 0 directory, 1 path, 2 flags
  CLINUX_OUTSIDE_OPENAT2,  // arguments 0 directory, 1 path, 2 struct open_how
  CLINUX_OUTSIDE_LOCK,  // a lock of a file
  CLINUX_OUTSIDE_FUTEX,  // argument 0 address; not marked as private to the process
  CLINUX_OUTSIDE_SEMAPHORE,  // a semaphore of System V
  CLINUX_OUTSIDE_MESSAGE,  // a message queue of System V
  CLINUX_OUTSIDE_QUEUE,  // argument 0 descriptor of a POSIX message queue
};
enum clinux_outside clinux_outside_of(int64_t number, const uint64_t *arguments);

// How a call specifies the descriptors at which it waits for a connection.
enum clinux_awaited {
  CLINUX_AWAITED_NONE = 0,  // it waits for something else
  CLINUX_AWAITED_ONE,  // argument 0
  CLINUX_AWAITED_EPOLL,  // the members of the epoll set in argument 0
  CLINUX_AWAITED_POLL,  // arguments 0 array of struct pollfd, 1 its length
  CLINUX_AWAITED_SELECT,  // arguments 0 the highest descriptor plus 1, 1 fd_set
  CLINUX_AWAITED_UNKNOWN,  // restart_syscall(2), io_uring_enter(2)
};
enum clinux_awaited clinux_awaited_of(int64_t number);

#endif
