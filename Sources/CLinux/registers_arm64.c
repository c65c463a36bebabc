#if defined(__aarch64__)
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "clinux_registers.h"
#include "clinux_waiting.h"

// At an event stop the kernel has already prepared an interrupted call to be made again: the
// program counter is on `svc`, x0 is the argument, and no call number is shown. The kernel doesn't
// show what the call had returned, and so whether a handler ends it (ERESTARTNOHAND) or it keeps
// its end (ERESTART_RESTARTBLOCK). It uses that result while the thread doesn't leave the stop and
// its program counter is where the kernel set it.
enum { RESTART_BY_FLAG = 512, RESTART_UNLESS_HANDLED = 514, RESTART_BY_BLOCK = 516 };
enum { SVC = 0xd4000001u, NATIVE_WORDS = 34 };
// AFTER_COMPLETED: the first argument, which the result has replaced, is known. RESTARTED: it was
// AFTER_COMPLETED and is on `svc` now; it had returned EINTR to the kernel.
enum position { ELSEWHERE = 0, ON_SVC = 1, AFTER_SVC = 2, AFTER_COMPLETED = 3, RESTARTED = 4 };

struct native {
  uint64_t x[31], sp, pc, pstate;
  // The next values aren't in NT_PRSTATUS.
  uint64_t position, first_argument, thread_pointer;
};
_Static_assert(sizeof(struct native) <= sizeof(uint64_t[CLINUX_REGISTER_WORDS]), "words");

static struct native *native(struct clinux_registers *registers) {
  return (struct native *)registers->words;
}
static const struct native *native_const(const struct clinux_registers *registers) {
  return (const struct native *)registers->words;
}

static int is_made_again(const struct native *r) {
  return r->position == ON_SVC || r->position == RESTARTED;
}

int clinux_registers_supported(void) { return 1; }
uint32_t clinux_architecture(void) { return CLINUX_ARCHITECTURE_ARM64; }
int clinux_call_instruction_length(void) { return 4; }
int clinux_stop_hides_calls(void) { return 1; }
uint64_t clinux_registers_settable(const struct clinux_registers *registers) {
  return registers->length < NATIVE_WORDS * 8 ? registers->length : NATIVE_WORDS * 8;
}

static int is_svc(pid_t thread, uint64_t address) {
  errno = 0;
  long word = ptrace(PTRACE_PEEKTEXT, thread, (void *)(address & ~(uint64_t)7), 0);
  return !errno && (uint32_t)(address & 4 ? (uint64_t)word >> 32 : (uint64_t)word) == SVC;
}

int clinux_registers_complete(pid_t thread, struct clinux_registers *registers) {
  struct native *r = native(registers);
  if (registers->length != NATIVE_WORDS * 8) return -EIO;  // a 32-bit program
  registers->length = sizeof *r;
  r->thread_pointer = r->first_argument = 0;
  struct iovec area = {&r->thread_pointer, sizeof r->thread_pointer};
  if (ptrace(PTRACE_GETREGSET, thread, (void *)NT_ARM_TLS, &area) < 0) return -errno;
  r->position = is_svc(thread, r->pc) ? ON_SVC : is_svc(thread, r->pc - 4) ? AFTER_SVC : ELSEWHERE;
  return 0;
}

int clinux_registers_complete_call(struct clinux_registers *registers,
                               const struct clinux_call *before) {
  struct native *r = native(registers);
  if (r->position != AFTER_SVC || (int64_t)r->x[0] != -EINTR) return 0;
  if ((int64_t)r->x[8] != before->number) return 0;
  if (r->sp != before->stack || r->pc != before->instruction) return 0;
  if (memcmp(r->x + 1, before->arguments + 1, 5 * sizeof *r->x)) return 0;
  r->first_argument = before->arguments[0];
  r->position = AFTER_COMPLETED;
  return 1;
}

int clinux_registers_are_like(const struct clinux_registers *one,
                              const struct clinux_registers *other) {
  return !memcmp(one->words, other->words, NATIVE_WORDS * 8);
}

int clinux_registers_in_syscall(const struct clinux_registers *registers) {
  return native_const(registers)->position != ELSEWHERE;
}
int64_t clinux_registers_result(const struct clinux_registers *registers) {
  return (int64_t)native_const(registers)->x[0];
}
int clinux_registers_has_result(const struct clinux_registers *registers) {
  const struct native *r = native_const(registers);
  return r->position == AFTER_SVC && (int64_t)r->x[0] != -EINTR;
}
uint64_t clinux_registers_instruction(const struct clinux_registers *registers) {
  return native_const(registers)->pc;
}

int clinux_registers_newborn(const struct clinux_registers *registers) {
  const struct native *r = native_const(registers);
  return r->position == AFTER_SVC && r->x[0] == 0 && clinux_is_fork((int64_t)r->x[8]);
}

// The C library's own block ends at the address in `tpidr_el0`, or a little after it. glibc's has
// 1.8 KB.
void clinux_registers_thread_block(const struct clinux_registers *registers, uint64_t *start,
                                   uint64_t *length) {
  uint64_t pointer = native_const(registers)->thread_pointer;
  *start = pointer < 2560 ? 0 : pointer - 2560;
  *length = 2560 + 64;
}

// Returns the result that the call returned to the kernel when it was interrupted.
static int64_t restart_code(const struct native *r) {
  if (r->position == RESTARTED) return -RESTART_UNLESS_HANDLED;
  switch (r->x[8]) {
    case SYS_restart_syscall:
    case SYS_nanosleep: return -RESTART_BY_BLOCK;
    case SYS_clock_nanosleep:
      return r->x[1] & TIMER_ABSTIME ? -RESTART_UNLESS_HANDLED : -RESTART_BY_BLOCK;
    case SYS_futex: {
      uint64_t command = r->x[1] & FUTEX_CMD_MASK;
      int waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
      return waits && r->x[3] ? -RESTART_BY_BLOCK : -RESTART_BY_FLAG;
    }
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_rt_sigsuspend:
    case SYS_epoll_pwait:
    case 441:  // epoll_pwait2
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_msgrcv:
    case SYS_msgsnd: return -RESTART_UNLESS_HANDLED;
  }
  return -RESTART_BY_FLAG;
}

int clinux_registers_restart_interrupted(struct clinux_registers *registers) {
  struct native *r = native(registers);
  if (r->position != AFTER_COMPLETED || (int64_t)r->x[0] != -EINTR) return 0;
  if (!clinux_may_be_made_again((int64_t)r->x[8])) return 0;
  r->x[0] = r->first_argument;
  r->pc -= 4;
  r->position = RESTARTED;
  return 1;
}

int clinux_registers_interrupt_for_signal(struct clinux_registers *registers,
                                          int every_handler_ends_it) {
  struct native *r = native(registers);
  if (!is_made_again(r)) return 0;
  // Whether the call is made again depends on the handler's flags, which aren't shown. So the
  // kernel decides.
  if (restart_code(r) == -RESTART_BY_FLAG && !every_handler_ends_it) return 0;
  r->first_argument = r->x[0];
  clinux_registers_end_call(registers, -EINTR);
  r->position = AFTER_COMPLETED;
  return 1;
}

int clinux_registers_leave_call(struct clinux_registers *registers) {
  struct native *r = native(registers);
  if (!is_made_again(r)) return 0;
  r->x[0] = (uint64_t)restart_code(r);
  r->pc += 4;
  return 1;
}

int clinux_registers_call(const struct clinux_registers *registers, struct clinux_call *call) {
  const struct native *r = native_const(registers);
  if (r->position == ELSEWHERE) return 0;
  int again = is_made_again(r);
  *call = (struct clinux_call){
      .number = (int64_t)r->x[8],
      .arguments = {again ? r->x[0] : r->first_argument, r->x[1], r->x[2], r->x[3], r->x[4],
                    r->x[5]},
      .stack = r->sp,
      .instruction = again ? r->pc + 4 : r->pc,
      .is_made_again = again,
      .keeps_its_end = again && restart_code(r) == -RESTART_BY_BLOCK,
      // It isn't known. A correction changes no call on a socket without a timeout.
      .was_restarted = again,
  };
  return 1;
}

void clinux_registers_change_call(struct clinux_registers *registers, int64_t number, int argument,
                                  uint64_t value) {
  struct native *r = native(registers);
  r->x[8] = (uint64_t)number;
  if (argument >= 0 && argument < 6) r->x[argument] = value;
}

void clinux_registers_end_call(struct clinux_registers *registers, int64_t result) {
  struct native *r = native(registers);
  if (is_made_again(r)) r->pc += 4;
  r->position = AFTER_SVC;
  r->x[0] = (uint64_t)result;
}

void clinux_registers_prepare_call(struct clinux_registers *registers, uint64_t instruction,
                                   int64_t number, const uint64_t arguments[6]) {
  struct native *r = native(registers);
  r->pc = instruction;
  r->x[8] = (uint64_t)number;
  memcpy(r->x, arguments, 6 * sizeof *arguments);
}

static const uint32_t trampoline[] = {
    SVC,
    0x14000000,                     // 4: b .
    0xd2800008 | SYS_ppoll << 5,    // 8: mov x8, #SYS_ppoll
    0xd2800000, 0xd2800001,         // 12: mov x0, #0; mov x1, #0
    0xd2800002, 0xd2800003,         // 20: mov x2, #0; mov x3, #0
    SVC,                            // 28
    0x17fffffa,                     // 32: b 8
};

int clinux_trampoline_offsets(uint64_t *offsets, int capacity) {
  int count = sizeof trampoline / sizeof *trampoline;
  if (capacity < count) return -ENOSPC;
  for (int i = 0; i < count; i++) offsets[i] = (uint64_t)i * 4;
  return count;
}

void clinux_registers_park(struct clinux_registers *registers, uint64_t address, int spins) {
  native(registers)->pc = address + (spins ? 4 : 8);
}

int64_t clinux_find_syscall_instruction(const void *code, int64_t length) {
  const char *bytes = code;
  uint32_t word;
  for (int64_t i = 0; i + 4 <= length; i += 4) {
    memcpy(&word, bytes + i, 4);
    if (word == SVC) return i;
  }
  return -ENOENT;
}

int clinux_write_syscall_trampoline(void *code, int capacity) {
  if (capacity < (int)sizeof trampoline) return -ENOSPC;
  memcpy(code, trampoline, sizeof trampoline);
  return (int)sizeof trampoline;
}
#endif
