#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clinux_ptrace.h"

#define AS_POINTER(value) ((void *)(uintptr_t)(value))
#define RESULT(call) ({ long r_ = (call); r_ < 0 ? -errno : (int)r_; })

pid_t clinux_thread_id(void) { return gettid(); }

int clinux_ptrace_seize(pid_t thread, uint64_t options) {
  return RESULT(ptrace(PTRACE_SEIZE, thread, 0, AS_POINTER(options)));
}
int clinux_ptrace_set_options(pid_t thread, uint64_t options) {
  return RESULT(ptrace(PTRACE_SETOPTIONS, thread, 0, AS_POINTER(options)));
}
int clinux_ptrace_interrupt(pid_t thread) {
  return RESULT(ptrace(PTRACE_INTERRUPT, thread, 0, 0));
}
int clinux_ptrace_continue(pid_t thread, int signal) {
  return RESULT(ptrace(PTRACE_CONT, thread, 0, AS_POINTER(signal)));
}
int clinux_ptrace_continue_to_syscall(pid_t thread, int signal) {
  return RESULT(ptrace(PTRACE_SYSCALL, thread, 0, AS_POINTER(signal)));
}
int clinux_ptrace_detach(pid_t thread, int signal) {
  return RESULT(ptrace(PTRACE_DETACH, thread, 0, AS_POINTER(signal)));
}

int clinux_ptrace_get_registers(pid_t thread, struct clinux_registers *registers) {
  struct iovec area = {registers->words, sizeof registers->words};
  if (ptrace(PTRACE_GETREGSET, thread, AS_POINTER(NT_PRSTATUS), &area) < 0) return -errno;
  registers->length = area.iov_len;
  return clinux_registers_complete(thread, registers);
}

int clinux_ptrace_set_registers(pid_t thread, const struct clinux_registers *registers) {
  struct iovec area = {(void *)registers->words, clinux_registers_settable(registers)};
  return RESULT(ptrace(PTRACE_SETREGSET, thread, AS_POINTER(NT_PRSTATUS), &area));
}

int clinux_ptrace_get_signal_mask(pid_t thread, uint64_t *mask) {
  return RESULT(ptrace(PTRACE_GETSIGMASK, thread, AS_POINTER(sizeof *mask), mask));
}
int clinux_ptrace_set_signal_mask(pid_t thread, uint64_t mask) {
  return RESULT(ptrace(PTRACE_SETSIGMASK, thread, AS_POINTER(sizeof mask), &mask));
}

int clinux_ptrace_get_rseq_area(pid_t thread, uint64_t *address, uint64_t *length) {
  // This is struct ptrace_rseq_configuration. The headers of Debian 11 are older than the call.
  struct {
    uint64_t pointer;
    uint32_t size, signature, flags, pad;
  } area = {0};
  int request = 0x420f;  // PTRACE_GET_RSEQ_CONFIGURATION
  if (ptrace(request, thread, AS_POINTER(sizeof area), &area) < 0) return -errno;
  *address = area.pointer;
  *length = area.size;
  return area.pointer != 0 && area.size != 0;
}

// waitid() is used and not waitpid(): the leader of a thread group that has ended must stay a
// zombie for the event loop, which reaps it through its pidfd and needs its exit status.
int clinux_ptrace_poll(pid_t thread, int *signal) {
  siginfo_t info;
  int scope = __WALL | __WNOTHREAD | WNOHANG;
  memset(&info, 0, sizeof info);
  if (waitid(P_PID, (id_t)thread, &info, WEXITED | WSTOPPED | WNOWAIT | scope) < 0) return -errno;
  if (info.si_pid == 0) return CLINUX_STOP_NONE;
  if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
    return CLINUX_STOP_EXITED;

  // It isn't an exit, so this consumes the stop that has just been seen.
  memset(&info, 0, sizeof info);
  if (waitid(P_PID, (id_t)thread, &info, WSTOPPED | scope) < 0) return -errno;
  if (info.si_pid == 0) return CLINUX_STOP_NONE;
  int event = info.si_status >> 8;
  *signal = info.si_status & 0xff;
  if (event == 128 /* PTRACE_EVENT_STOP */) return CLINUX_STOP_EVENT;
  if (event) return CLINUX_STOP_OTHER;
  return *signal == (SIGTRAP | 0x80) ? CLINUX_STOP_SYSCALL : CLINUX_STOP_SIGNAL;
}

int clinux_ptrace_reap(pid_t thread) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  int scope = __WALL | __WNOTHREAD | WNOHANG;
  if (waitid(P_PID, (id_t)thread, &info, WEXITED | scope) < 0) return -errno;
  return info.si_pid != 0;
}
