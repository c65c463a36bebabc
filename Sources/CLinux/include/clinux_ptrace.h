#ifndef CLINUX_PTRACE_H
#define CLINUX_PTRACE_H
#include <stdint.h>
#include <sys/types.h>

#include "clinux_registers.h"

// All of these functions may be called only on the thread that traces (ptrace(2)).
enum {
  CLINUX_TRACE_SYSGOOD = 0x1,
  CLINUX_TRACE_SUSPEND_SECCOMP = 1 << 21,
};
// Returns the calling thread's ID, which TracerPid shows for the threads that it traces.
pid_t clinux_thread_id(void);

int clinux_ptrace_seize(pid_t thread, uint64_t options);
int clinux_ptrace_set_options(pid_t thread, uint64_t options);
int clinux_ptrace_interrupt(pid_t thread);
int clinux_ptrace_continue(pid_t thread, int signal);
int clinux_ptrace_continue_to_syscall(pid_t thread, int signal);
int clinux_ptrace_detach(pid_t thread, int signal);
int clinux_ptrace_get_registers(pid_t thread, struct clinux_registers *registers);
int clinux_ptrace_set_registers(pid_t thread, const struct clinux_registers *registers);
int clinux_ptrace_get_signal_mask(pid_t thread, uint64_t *mask);
int clinux_ptrace_set_signal_mask(pid_t thread, uint64_t mask);
// Reads the area that a stopped thread has registered for restartable sequences (rseq(2)). Returns
// 1; 0 if it has none; -EIO if this kernel doesn't show it (PTRACE_GET_RSEQ_CONFIGURATION, Linux
// 5.13).
int clinux_ptrace_get_rseq_area(pid_t thread, uint64_t *address, uint64_t *length);

enum {
  CLINUX_STOP_NONE,  // nothing to report
  CLINUX_STOP_EVENT,  // PTRACE_EVENT_STOP: interrupted, or a group stop
  CLINUX_STOP_SYSCALL,  // entry to or exit from a system call
  CLINUX_STOP_SIGNAL,  // *signal is about to be delivered
  CLINUX_STOP_OTHER,
  CLINUX_STOP_EXITED,
};
// Reads, without waiting, the stop of one tracee of the calling thread. (__WNOTHREAD excludes the
// tracees of other threads.) A stop is consumed; an exit isn't.
int clinux_ptrace_poll(pid_t thread, int *signal);
// Reaps a traced thread that has ended and isn't its group's leader. Until then the group's end
// isn't reported to any process. Returns 1 if it did so, 0 if the thread hasn't ended.
int clinux_ptrace_reap(pid_t thread);
#endif
