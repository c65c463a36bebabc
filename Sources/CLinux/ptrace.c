#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "clinux_ptrace.h"

#define AS_POINTER(value) ((void *)(uintptr_t)(value))
#define RESULT(call) ({ long r_ = (call); r_ < 0 ? -errno : (int)r_; })

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
  return 0;
}

int clinux_ptrace_set_registers(pid_t thread, const struct clinux_registers *registers) {
  struct iovec area = {(void *)registers->words, registers->length};
  return RESULT(ptrace(PTRACE_SETREGSET, thread, AS_POINTER(NT_PRSTATUS), &area));
}

int clinux_ptrace_get_signal_mask(pid_t thread, uint64_t *mask) {
  return RESULT(ptrace(PTRACE_GETSIGMASK, thread, AS_POINTER(sizeof *mask), mask));
}
int clinux_ptrace_set_signal_mask(pid_t thread, uint64_t mask) {
  return RESULT(ptrace(PTRACE_SETSIGMASK, thread, AS_POINTER(sizeof mask), &mask));
}

int64_t clinux_ptrace_rseq(pid_t thread) {
  struct {
    uint64_t pointer;
    uint32_t size, signature, flags, pad;
  } configuration = {0};
  long size = ptrace(0x420f /* PTRACE_GET_RSEQ_CONFIGURATION */, thread,
                     AS_POINTER(sizeof configuration), &configuration);
  return size < 0 ? -errno : (int64_t)configuration.pointer;
}

int clinux_ptrace_wait(pid_t thread, int no_hang, int *signal) {
  int status;
  pid_t waited;
  do {
    waited = waitpid(thread, &status, __WALL | __WNOTHREAD | (no_hang ? WNOHANG : 0));
  } while (waited < 0 && errno == EINTR);
  if (waited < 0) return -errno;
  if (waited == 0) return CLINUX_STOP_NONE;
  if (WIFEXITED(status) || WIFSIGNALED(status)) return CLINUX_STOP_EXITED;
  if (!WIFSTOPPED(status)) return CLINUX_STOP_OTHER;
  *signal = WSTOPSIG(status);
  if ((status >> 16) == 128 /* PTRACE_EVENT_STOP */) return CLINUX_STOP_EVENT;
  if (status >> 16) return CLINUX_STOP_OTHER;
  return *signal == (SIGTRAP | 0x80) ? CLINUX_STOP_SYSCALL : CLINUX_STOP_SIGNAL;
}
